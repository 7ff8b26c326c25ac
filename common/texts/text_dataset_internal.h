/**
 * @file text_dataset_internal.h
 * @brief Shared by the readers of the data sets; private to text_dataset.
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
 * @param text malloc'd, @p length bytes and a NUL; the list becomes its owner, and frees it on
 *             failure
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_BAD_FORMAT (no text), STATUS_OUT_OF_MEMORY; the
 *         message does not name the file: callers add it
 */
MUST_CHECK enum status text_list_add(struct text_list *list, char *text, size_t length,
                                     int32_t label, struct error *error);

/** As text_list_add() with a copy of @p length bytes; also STATUS_TOO_LONG. */
MUST_CHECK enum status text_list_add_copy(struct text_list *list, const char *text, size_t length,
                                          int32_t label, struct error *error);

/** @return STATUS_OK, or STATUS_TOO_LONG for a text of more than TEXT_MAX_BYTES. */
MUST_CHECK enum status text_check_length(uint64_t length, struct error *error);

/** Puts "WHAT NUMBER: ", such as "line 7: ", before the message. @return @p status */
enum status text_error_at(struct error *error, enum status status, const char *what, size_t number);

/** @return whether the text is only white space. */
bool text_is_blank(const char *text, size_t length);

/** Frees the texts and the list. */
void text_list_free(struct text_list *list);

/** @return number of samples to read from the beginning: skip + limit; SIZE_MAX: all. */
size_t text_dataset_wanted(const struct text_dataset_options *options);

MUST_CHECK enum status imdb_read(struct text_list *list, const char *path,
                                 const struct text_dataset_options *options, struct error *error);

MUST_CHECK enum status agnews_read(struct text_list *list, const char *path,
                                   const struct text_dataset_options *options, struct error *error);

MUST_CHECK enum status text_file_read(struct text_list *list, const char *path,
                                      const struct text_dataset_options *options,
                                      struct error *error);

MUST_CHECK enum status own_read(struct text_list *list, const char *path,
                                const struct text_dataset_options *options, struct error *error);

/** @return whether a file's name ends in a format of own_read(). */
bool own_has_ending(const char *path);

/** @return STATUS_OK; STATUS_INVALID_ARGUMENT if there is no such format, or none can be found. */
MUST_CHECK enum status own_check(const char *path, const char *format, struct error *error);

MUST_CHECK enum status sample_read(struct text_list *list, const char *path,
                                   const struct text_dataset_options *options, struct error *error);

#endif
