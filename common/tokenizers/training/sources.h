/**
 * @file sources.h
 * @brief Counts the words of a data set, from one path or several.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_SOURCES_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_SOURCES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/tokenizers/training/words.h"

/** The texts to read. */
struct vocab_sources {
    const char *dataset; /**< a name of text_dataset.h */
    const char *data;    /**< paths, separated by commas */
    const char *split;   /**< splits, separated by commas: one for each path, one for all paths, or
                              several of the only path */
    size_t skip, limit;  /**< texts to skip and to read of each path and split; limit 0: all */
};

/**
 * @brief Counts the words of all texts; shows its progress on a terminal.
 * @param lowercase as for vocab_count_text()
 * @param texts     receives the number of texts
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT (the lists), or the status of text_dataset_open() or
 *         vocab_count_text()
 */
MUST_CHECK enum status vocab_sources_count(const struct vocab_sources *sources,
                                           enum vocab_kind kind, bool lowercase,
                                           struct vocab_words *words, size_t *texts,
                                           struct error *error);

#endif
