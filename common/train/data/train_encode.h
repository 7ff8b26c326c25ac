/**
 * @file train_encode.h
 * @brief The tokens of many texts, on all CPUs: a tokenizer makes a million tokens a second, a GPU
 *        would wait for those of a whole data set.
 */
#ifndef WARPBOOK_COMMON_TRAIN_DATA_TRAIN_ENCODE_H_
#define WARPBOOK_COMMON_TRAIN_DATA_TRAIN_ENCODE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/texts/text_dataset.h"
#include "common/train/data/train_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The tokens of a text. */
struct train_encoded {
    int32_t *ids; /**< free() */
    size_t count;
};

/**
 * @brief Makes the tokens of every text: [CLS] pieces [SEP], or of TRAIN_LM BOS pieces. On a
 *        terminal, what takes longer than two seconds shows how far it is.
 * @param encoded receives (dataset->count), for train_encoded_free()
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or as wordpiece_encode() and bpe_encode() of the first
 *         text that has none; then nothing is left to free
 */
MUST_CHECK enum status train_encode(const struct train_vocabulary *vocabulary, enum train_task task,
                                    const struct text_dataset *dataset,
                                    struct train_encoded **encoded, struct error *error);

/** Frees; NULL is allowed. */
void train_encoded_free(struct train_encoded *encoded, size_t count);

#ifdef __cplusplus
}
#endif

#endif
