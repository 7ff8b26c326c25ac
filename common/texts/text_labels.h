/**
 * @file text_labels.h
 * @brief The names of labels: collected from texts, or those that a model knows.
 *
 * A name is valid UTF-8 of at most 63 bytes, without control characters and not blank. Collected
 * names are sorted: by value if all of them are whole numbers, otherwise by their bytes.
 */
#ifndef WARPBOOK_COMMON_TEXTS_TEXT_LABELS_H_
#define WARPBOOK_COMMON_TEXTS_TEXT_LABELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

enum { TEXT_LABELS_MOST = 4096, TEXT_LABEL_BYTES = 64 };

/** Zero-initialise. */
struct text_labels {
    const char **names; /**< (count): by id */
    size_t count;
    bool closed;                 /**< no other label is accepted: the names are those of a model */
    struct text_label **entries; /**< (count): by id */
    void *tree;                  /**< of search.h: the entries by name */
    size_t name_capacity, entry_capacity;
};

/**
 * @brief Finds a name; a class that a closed set calls LABEL_3, as transformers does with a class
 *        that has no name, is also found as 3.
 * @return the id, or -1
 */
int32_t text_labels_find(const struct text_labels *labels, const char *name);

/**
 * @brief Finds a name, or adds it with the next id.
 * @param name @p length bytes and a NUL
 * @param id   receives its id
 * @return STATUS_OK; STATUS_MISMATCH, with the names known, when the set is closed;
 *         STATUS_BAD_FORMAT, STATUS_BAD_UTF8, STATUS_TOO_LONG (the name, or TEXT_LABELS_MOST of
 *         them); STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status text_labels_take(struct text_labels *labels, const char *name, size_t length,
                                        int32_t *id, struct error *error);

/**
 * @brief Sorts the names, which changes their ids.
 * @param ids (count) receives the new id of each old one
 */
void text_labels_sort(struct text_labels *labels, int32_t *ids);

/** @return "'a', 'b', 'c' and 4 more", as many names as fit into @p size bytes; @p text */
const char *text_labels_list(const struct text_labels *labels, char *text, size_t size);

/** Frees; a zero-initialised or freed one is allowed. */
void text_labels_free(struct text_labels *labels);

#endif
