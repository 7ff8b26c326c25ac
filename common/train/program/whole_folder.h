/**
 * @file whole_folder.h
 * @brief Folders of files that appear whole or not at all, whenever the program or the machine
 *        stops.
 *
 * A folder is filled as NAME.partial; then it and its files are on the disk, and it is renamed. One
 * that is replaced is NAME.old for the moment between two renames. Whoever starts next calls
 * whole_folder_recover().
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_WHOLE_FOLDER_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_WHOLE_FOLDER_H_

#include "common/base/folder.h"
#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a folder, and those above it, where they are missing. */
MUST_CHECK enum status whole_folder_make(const char *path, struct error *error);

/**
 * @brief Begins one: makes PATH.partial, empty.
 * @param partial receives that path
 */
MUST_CHECK enum status whole_folder_begin(const char *path, char partial[FOLDER_PATH_BYTES],
                                          struct error *error);

/** Ends it: PATH is what PATH.partial was, and what PATH was before is gone. */
MUST_CHECK enum status whole_folder_finish(const char *path, struct error *error);

/** Drops PATH.partial, as far as that can be done. */
void whole_folder_abandon(const char *path);

/**
 * @brief Removes a folder of files. Folders in it are not touched; then it stays.
 * @return STATUS_OK, also when there is none
 */
MUST_CHECK enum status whole_folder_remove(const char *path, struct error *error);

/**
 * @brief Clears up what a program that was stopped has left in a folder: NAME.partial goes,
 * NAME.old becomes NAME again where there is none, and else goes, too.
 * @param parent  whose folders are looked at
 * @param is_mine whether a folder of this name, without the ending, is the program's
 */
MUST_CHECK enum status whole_folder_recover(const char *parent, bool (*is_mine)(const char *name),
                                            struct error *error);

#ifdef __cplusplus
}
#endif

#endif
