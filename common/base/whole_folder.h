/**
 * @file whole_folder.h
 * @brief Folders that appear complete or not at all, even if the program or the machine stops.
 *
 * A folder is written as NAME.partial, synchronised to the disk with its files, then renamed to
 * NAME. A folder that is replaced is called NAME.old between two renames. A program calls
 * whole_folder_recover() when it starts.
 */
#ifndef WARPBOOK_COMMON_BASE_WHOLE_FOLDER_H_
#define WARPBOOK_COMMON_BASE_WHOLE_FOLDER_H_

#include "common/base/folder.h"
#include "common/base/status.h"

/** Makes a folder and missing folders above it. */
MUST_CHECK enum status whole_folder_make(const char *path, struct error *error);

/**
 * @brief Begins a folder: makes an empty PATH.partial.
 * @param partial receives that path
 */
MUST_CHECK enum status whole_folder_begin(const char *path, char partial[FOLDER_PATH_BYTES],
                                          struct error *error);

/** Ends the folder: renames PATH.partial to PATH, which it replaces. */
MUST_CHECK enum status whole_folder_finish(const char *path, struct error *error);

/** Removes PATH.partial as far as possible. */
void whole_folder_abandon(const char *path);

/**
 * @brief Removes a folder of files. If it contains folders, these and the folder itself stay.
 * @return STATUS_OK, also if the folder does not exist
 */
MUST_CHECK enum status whole_folder_remove(const char *path, struct error *error);

/**
 * @brief Cleans up a folder after an interrupted program: removes NAME.partial; renames NAME.old to
 *        NAME if there is no NAME, and else removes it.
 * @param parent  the folder to clean up
 * @param is_mine whether a folder with this name, without the ending, belongs to the program
 */
MUST_CHECK enum status whole_folder_recover(const char *parent, bool (*is_mine)(const char *name),
                                            struct error *error);

#endif
