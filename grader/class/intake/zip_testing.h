/**
 * @file zip_testing.h
 * @brief Makes zip files in memory, for tests of their reader; also files that no honest program
 * makes.
 */
#ifndef WARPBOOK_GRADER_CLASS_INTAKE_ZIP_TESTING_H_
#define WARPBOOK_GRADER_CLASS_INTAKE_ZIP_TESTING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip_entry {
    const char *name;
    const void *content;
    size_t size;
    bool packed;    /**< deflated; else stored */
    uint16_t flags; /**< general purpose bits: 1 encrypted */
    uint32_t mode;  /**< st_mode, as Unix programs note it, or 0: not said */
    uint32_t told;  /**< bytes that the file says it unpacks to; 0: the right number */
};

/** Makes a zip file of @p count entries. @param data receives memory that the caller frees */
void zip_make(const struct zip_entry *entries, size_t count, unsigned char **data, size_t *size);

#endif
