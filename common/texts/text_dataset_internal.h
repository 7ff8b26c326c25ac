/**
 * @file text_dataset_internal.h
 * @brief What the readers of single data sets share; private to text_dataset.
 */
#ifndef WARPBOOK_COMMON_TEXTS_TEXT_DATASET_INTERNAL_H_
#define WARPBOOK_COMMON_TEXTS_TEXT_DATASET_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/texts/text_dataset.h"

enum { TEXT_MAX_BYTES = 16 << 20 };

/** A growing list of samples that owns their texts; zero-initialise. */
struct text_list {
    struct text_sample *samples;
    size_t count, capacity;
};

/**
 * @brief Checks a text and appends it.
 * @param text malloc'd, NUL behind @p length bytes; owned by the list from here on, on failure
 *             freed
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_BAD_FORMAT (no text), STATUS_OUT_OF_MEMORY; the line
 *         does not say where
 */
MUST_CHECK enum status text_list_add(struct text_list *list, char *text, size_t length,
                                     int32_t label, struct error *error);

/** @return whether there is nothing but white space. */
bool text_is_blank(const char *text, size_t length);

/** Frees the texts and the list. */
void text_list_free(struct text_list *list);

/** @return how many samples from the first on matter: skip + limit; SIZE_MAX: all. */
size_t text_dataset_wanted(const struct text_dataset_options *options);

MUST_CHECK enum status imdb_read(struct text_list *list, const char *path,
                                 const struct text_dataset_options *options, struct error *error);

MUST_CHECK enum status agnews_read(struct text_list *list, const char *path,
                                   const struct text_dataset_options *options, struct error *error);

MUST_CHECK enum status text_file_read(struct text_list *list, const char *path,
                                      const struct text_dataset_options *options,
                                      struct error *error);

MUST_CHECK enum status sample_read(struct text_list *list, const char *path,
                                   const struct text_dataset_options *options, struct error *error);

#endif
