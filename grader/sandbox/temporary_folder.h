/**
 * @file temporary_folder.h
 * @brief A fresh folder for a program that may leave anything in it.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_TEMPORARY_FOLDER_H_
#define WARPBOOK_GRADER_SANDBOX_TEMPORARY_FOLDER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

/**
 * @brief Makes an empty folder that only this user can enter.
 * @param parent where, or NULL for $TEST_TMPDIR, $TMPDIR or /tmp
 * @param path   receives its absolute path
 * @return STATUS_OK, STATUS_TOO_LONG or STATUS_IO
 */
MUST_CHECK enum status folder_create(const char *parent, char *path, size_t size,
                                     struct error *error);

/** What is directly in a folder. */
struct folder_use {
    unsigned entries;
    uint64_t bytes; /**< of storage */
};

/**
 * @brief Counts what is in a folder, but not what is in folders inside it.
 * @param most where counting ends
 * @return false when the folder cannot be read
 */
bool folder_use(const char *path, unsigned most, struct folder_use *use);

/**
 * @brief Removes the folder with all that is in it; follows no link, and needs the same memory and
 *        descriptors however deep it is.
 * @return whether it is gone
 */
bool folder_remove(const char *path);

#endif
