/**
 * @file page.h
 * @brief The x-ray page around its data: one HTML file that needs no network and no other file.
 *
 * The data is one JSON object. simt's launches (runtime/xray) and those that Nsight Compute
 * measured (nsight) print one each, for the same script.
 */
#ifndef WARPBOOK_COMMON_SIMT_PAGE_PAGE_H_
#define WARPBOOK_COMMON_SIMT_PAGE_PAGE_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A named number of the data. */
struct page_field {
    const char *key;
    double value;
};

/** Prints a JSON object. Counts below 2^53 are printed to the last digit. */
void page_print_fields(const struct page_field *fields, size_t count, FILE *stream);

#define PAGE_PRINT_FIELDS(fields, stream) \
    page_print_fields(fields, sizeof(fields) / sizeof *(fields), stream)

/** Prints a JSON array. */
void page_print_numbers(const double *numbers, size_t count, FILE *stream);

/** Prints a JSON string without a '<', so that HTML can hold it. */
void page_print_quoted(const char *text, FILE *stream);

/** Prints [["short name", "what it means"], ...]. */
void page_print_names(const char *const (*names)[2], size_t count, FILE *stream);

/** Opens a source as the compiler named it, from here or from the workspace of `bazel run`.
 *  @return NULL: it is not there */
FILE *page_open_source(const char *file);

enum { PAGE_MOST_LINES = 100000, PAGE_MOST_BYTES = 2 << 20 };

/** Lines of a source that have counts, from 1 on; others are 0. */
struct page_marks {
    unsigned char line[PAGE_MOST_LINES + 4];
};

/**
 * @brief Prints one of the data's "files": its name and its text, or the text around marked lines
 *        if it is long.
 * @param source NULL: no text
 * @param left   bytes of text that the page has still room for; receives what is left
 */
void page_print_source(const char *name, FILE *source, const struct page_marks *marks, size_t *left,
                       FILE *stream);

/** Prints the data. */
typedef void page_data(const void *argument, FILE *stream);

/** Prints the whole page. */
void page_print(page_data *data, const void *argument, FILE *stream);

/** Writes the page to a file. @return STATUS_OK, STATUS_OUT_OF_MEMORY or what file_write() does */
MUST_CHECK enum status page_write(page_data *data, const void *argument, const char *path,
                                  struct error *error);

#ifdef __cplusplus
}
#endif

#endif
