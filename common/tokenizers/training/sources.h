/**
 * @file sources.h
 * @brief The texts that words are counted of: one data set, from one place or several.
 */
#ifndef WARPBOOK_COMMON_TOKENIZERS_TRAINING_SOURCES_H_
#define WARPBOOK_COMMON_TOKENIZERS_TRAINING_SOURCES_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/tokenizers/training/words.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where texts come from. */
struct vocab_sources {
    const char *dataset; /**< a name of text_dataset.h */
    const char *data;    /**< paths with commas between */
    const char *split;   /**< splits with commas between: one for each path, or one for all, or all
                              of one path */
    size_t skip, limit;  /**< texts of each path and split; limit 0: all */
};

/**
 * @brief Counts the words of all texts; progress is shown on a terminal.
 * @param texts receives how many there were
 * @return as text_dataset_open()
 */
MUST_CHECK enum status vocab_sources_count(const struct vocab_sources *sources,
                                           enum vocab_kind kind, bool lowercase,
                                           struct vocab_words *words, size_t *texts,
                                           struct error *error);

#ifdef __cplusplus
}
#endif

#endif
