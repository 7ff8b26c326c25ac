/**
 * @file bert_checkpoint.h
 * @brief BERT as Hugging Face stores it: a folder with config.json and model.safetensors.
 *
 * Tensor names as in transformers' BertModel and BertForSequenceClassification,
 * with and without the "bert." prefix (and the old LayerNorm.gamma / .beta).
 * F32, F16 and BF16 tensors become fp32.
 */
#ifndef WARPBOOK_COMMON_FORMATS_BERT_CHECKPOINT_H_
#define WARPBOOK_COMMON_FORMATS_BERT_CHECKPOINT_H_

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/formats/bert_weights.h"
#include "common/formats/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bert_checkpoint {
    struct bert_config config;
    struct bert_weights weights; /**< inside the arena */
    struct arena arena;
};

/**
 * @brief Reads FOLDER/config.json and FOLDER/model.safetensors.
 *
 * Missing tensors, shapes that disagree with the configuration, sizes that
 * overflow, a "hidden_act" or a position embedding type that is not known: one
 * line naming the file and the tensor or key.
 */
MUST_CHECK enum status bert_checkpoint_open(struct bert_checkpoint *checkpoint, const char *folder,
                                            struct error *error);

/**
 * @brief The configuration alone, from the text of a config.json.
 *
 * `labels` is the length of "id2label" if present, else "num_labels", else 2
 * (what transformers assumes); the loader sets it to 0 when the checkpoint has no classifier.
 */
MUST_CHECK enum status bert_config_parse(struct bert_config *config, const char *json, size_t size,
                                         struct error *error);

/** Takes the weights named in @p config out of an open safetensors file. */
MUST_CHECK enum status bert_checkpoint_load(struct bert_checkpoint *checkpoint,
                                            const struct bert_config *config,
                                            const struct safetensors *file, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void bert_checkpoint_close(struct bert_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif

#endif
