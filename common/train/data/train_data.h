/**
 * @file train_data.h
 * @brief The training texts as token ids, all in one array.
 *
 * TRAIN_CLASSIFY: [CLS] text [SEP], truncated to a length. TRAIN_MLM: the same, but a longer text
 * is split into several sequences instead. TRAIN_LM: BOS text; the array is one stream of all
 * texts.
 */
#ifndef WARPBOOK_COMMON_TRAIN_DATA_TRAIN_DATA_H_
#define WARPBOOK_COMMON_TRAIN_DATA_TRAIN_DATA_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/folder.h"
#include "common/base/status.h"
#include "common/texts/text_dataset.h"
#include "common/tokenizers/bpe/bpe.h"
#include "common/tokenizers/wordpiece/wordpiece.h"
#include "common/train/models/train_model.h"

/** A vocabulary and its file, which is copied to each checkpoint. */
struct train_vocabulary {
    struct wordpiece *wordpiece; /**< of BERT, or NULL */
    struct bpe *bpe;             /**< of Llama2, or NULL */
    size_t size;
    int32_t mask; /**< [MASK]; TRAIN_MLM */
    char path[FOLDER_PATH_BYTES];
    const char *name; /**< its file name in a checkpoint: "vocab.txt" */
};

/**
 * @brief Reads a vocabulary: vocab.txt for BERT, tokenizer.json or tokenizer.bin for Llama2.
 * @param path     the file, or its folder
 * @param expected number of pieces in the model, or 0: any number
 * @return STATUS_OK; the failures of wordpiece_open() and tokenizer_open(); STATUS_MISMATCH with
 *         both numbers; STATUS_BAD_FORMAT when TRAIN_MLM finds no [MASK]
 */
MUST_CHECK enum status train_vocabulary_open(struct train_vocabulary *vocabulary,
                                             enum train_task task, const char *path,
                                             size_t expected, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void train_vocabulary_close(struct train_vocabulary *vocabulary);

/** The texts to read. */
struct train_source {
    enum text_dataset_kind kind;
    const char *path, *split;
    size_t skip, limit; /**< as struct text_dataset_options */
    struct text_columns columns;
    struct text_labels *labels;
};

/** Texts as ids. */
struct train_texts {
    int32_t *ids;
    size_t *starts;  /**< (count + 1): sequence i is ids[starts[i]] .. ids[starts[i + 1] - 1] */
    int32_t *labels; /**< (count); -1: none */
    size_t *bytes;   /**< (count): bytes of the text; of a split text, at its first sequence */
    size_t count, capacity, id_capacity;
    size_t texts; /**< number of texts read */
    size_t cut;   /**< texts that were too long */
    const char *const *label_names;
    size_t label_count; /**< 0: the texts have none */
};

/**
 * @brief Reads and tokenizes texts, with a progress line on a terminal.
 * @param max_length most ids of a sequence, at least 3; TRAIN_LM ignores it
 * @return STATUS_OK; the failures of text_dataset_open() and the tokenizers;
 *         STATUS_INVALID_ARGUMENT when TRAIN_CLASSIFY finds texts without labels
 */
MUST_CHECK enum status train_texts_read(struct train_texts *texts,
                                        const struct train_source *source, enum train_task task,
                                        const struct train_vocabulary *vocabulary,
                                        size_t max_length, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void train_texts_free(struct train_texts *texts);

/** A range of the sequences. */
struct train_part {
    const struct train_texts *texts;
    size_t first, count;
};

/** @return number of ids of a part. */
size_t train_part_ids(const struct train_part *part);

/** @return bytes of the texts of a part. */
uint64_t train_part_bytes(const struct train_part *part);

/** @return checksum of ids and labels: 64-bit FNV-1a. */
uint64_t train_part_checksum(const struct train_part *part);

#endif
