/**
 * @file train_encode.h
 * @brief Tokenizes many texts on all CPUs. One CPU makes about a million tokens a second, too few
 *        for a GPU that waits for a whole data set.
 */
#ifndef WARPBOOK_COMMON_TRAIN_DATA_TRAIN_ENCODE_H_
#define WARPBOOK_COMMON_TRAIN_DATA_TRAIN_ENCODE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/texts/text_dataset.h"
#include "common/train/data/train_data.h"

/** The tokens of a text. */
struct train_encoded {
    int32_t *ids; /**< free() */
    size_t count;
};

/**
 * @brief Tokenizes every text as "[CLS] pieces [SEP]", or for TRAIN_LM as "BOS pieces", with a
 *        progress line on a terminal.
 * @param encoded receives (dataset->count), to free with train_encoded_free()
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the failure of wordpiece_encode() or bpe_encode() for
 *         the first bad text; then there is nothing to free
 */
MUST_CHECK enum status train_encode(const struct train_vocabulary *vocabulary, enum train_task task,
                                    const struct text_dataset *dataset,
                                    struct train_encoded **encoded, struct error *error);

/** Frees; NULL is allowed. */
void train_encoded_free(struct train_encoded *encoded, size_t count);

#endif
