/**
 * @file train_batches.h
 * @brief Makes batches: shuffles the sequences in each epoch and, for TRAIN_MLM, masks tokens.
 *
 * A batch depends only on the seed, the epoch and its number, so that a run can resume at any
 * batch. Batches are not sorted by length: sequences are not padded, so mixed lengths cost nothing.
 *
 * TRAIN_MLM, as Devlin et al. 2019: each token except [CLS] and [SEP] is selected with a
 * probability (theirs: 0.15). Of the selected tokens 80% become [MASK], 10% become a random piece,
 * 10% stay. TRAIN_LM: the stream of all texts, in rows of max_length tokens. The label of a token
 * is the next token, so the last token of the stream is only a label. The label of a text's last
 * token is the BOS of the next text, so the model also learns where texts end.
 */
#ifndef WARPBOOK_COMMON_TRAIN_DATA_TRAIN_BATCHES_H_
#define WARPBOOK_COMMON_TRAIN_DATA_TRAIN_BATCHES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/train/data/train_data.h"
#include "common/train/models/train_model.h"

struct train_batches_options {
    enum train_task task;
    size_t batch_size; /**< sequences of a batch, at least 1 */
    size_t max_length; /**< tokens of a sequence */
    uint64_t seed;
    const struct train_vocabulary *vocabulary; /**< TRAIN_MLM */
    float asked;      /**< TRAIN_MLM: probability that a token is selected */
    bool texts_alone; /**< TRAIN_LM: BOS is not a label; for evaluation */
};

/** The sequences of a part of the texts, and their order in one epoch. */
struct train_batches {
    struct train_part part;
    struct train_batches_options options;
    size_t sequences; /**< TRAIN_LM: rows of the stream */
    size_t *order;    /**< (sequences) */
    uint64_t epoch;   /**< order is of this epoch */
    int32_t cls, sep; /**< TRAIN_MLM */
};

/** The epoch whose order is that of the texts, for evaluation. */
#define TRAIN_IN_ORDER UINT64_MAX

/**
 * @param part its texts must outlive the batches
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY; STATUS_BAD_FORMAT for a part without a sequence to learn
 *         from
 */
MUST_CHECK enum status train_batches_create(struct train_batches *batches,
                                            const struct train_part *part,
                                            const struct train_batches_options *options,
                                            struct error *error);

/** Frees; a zero-initialised one is allowed. */
void train_batches_free(struct train_batches *batches);

/** @return number of batches of an epoch; the last may be smaller. */
size_t train_batches_count(const struct train_batches *batches);

/** A batch and its memory. */
struct train_batch_memory {
    int32_t *ids, *starts, *labels;
    struct train_batch batch;
    size_t rows;
    size_t asked; /**< labels that are not -1 */
};

/** Allocates memory for the largest batch of these options. */
MUST_CHECK enum status train_batch_memory_create(struct train_batch_memory *memory,
                                                 const struct train_batches_options *options,
                                                 struct error *error);

/** Frees; a zero-initialised one is allowed. */
void train_batch_memory_free(struct train_batch_memory *memory);

/** Fills a batch. @param index in [0, train_batches_count()) */
void train_batches_fill(struct train_batches *batches, uint64_t epoch, size_t index,
                        struct train_batch_memory *memory);

#endif
