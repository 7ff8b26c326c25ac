/**
 * @file bert_checkpoint.h
 * @brief BERT as Hugging Face stores it: a folder with config.json and model.safetensors.
 *
 * Tensor names as in transformers' BertModel and BertForSequenceClassification,
 * with and without the "bert." prefix (and the old LayerNorm.gamma / .beta).
 * F32, F16 and BF16 tensors become fp32.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_CHECKPOINT_H_
#define WARPBOOK_COMMON_CHECKPOINTS_BERT_BERT_CHECKPOINT_H_

#include "common/base/arena.h"
#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"
#include "common/checkpoints/packed/packed_config.h"
#include "common/checkpoints/safetensors/safetensors.h"

struct bert_checkpoint {
    struct bert_config config;
    struct bert_weights weights; /**< inside the arena */
    struct arena arena;
};

/**
 * @brief Reads FOLDER/config.json and FOLDER/model.safetensors.
 *
 * @param folder path of the checkpoint
 * @return STATUS_OK, or the status of file_read(), bert_config_parse(), safetensors_open() or
 *         bert_checkpoint_load(); the message names the file and the tensor or key
 */
MUST_CHECK enum status bert_checkpoint_open(struct bert_checkpoint *checkpoint, const char *folder,
                                            struct error *error);

/**
 * @brief Reads the weights of a file of any name, dequantising those of few bits.
 * @param packed what the file's config.json says of them
 * @return STATUS_OK, or the status of safetensors_open(), packed_find() or bert_checkpoint_load();
 *         the message names the file
 */
MUST_CHECK enum status bert_checkpoint_open_file(struct bert_checkpoint *checkpoint,
                                                 const struct bert_config *config,
                                                 const struct packed_config *packed,
                                                 const char *path, struct error *error);

/**
 * @brief Parses the text of a config.json.
 *
 * Keys: hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, vocab_size,
 * max_position_embeddings, each from 1 to INT32_MAX; type_vocab_size (default 2), layer_norm_eps
 * (1e-12), hidden_act (gelu), id2label, num_labels. Other keys are ignored, but model_type,
 * position_embedding_type and is_decoder must not ask for another architecture.
 *
 * `labels` is the length of "id2label" if present, else "num_labels", else 2
 * (transformers' default); the loader sets it to 0 if the checkpoint has no classifier.
 *
 * @param json @p size bytes, need not end in NUL
 * @return STATUS_OK, the status of json_object_parse(), STATUS_BAD_FORMAT (a key is missing or its
 *         value is out of range) or STATUS_UNSUPPORTED (another architecture)
 */
MUST_CHECK enum status bert_config_parse(struct bert_config *config, const char *json, size_t size,
                                         struct error *error);

enum { BERT_LABEL_BYTES = 64 };

/** A name, NUL-terminated; longer ones are cut between characters. */
struct bert_label {
    char name[BERT_LABEL_BYTES];
};

/**
 * @brief Reads the names of the classes 0 to @p labels - 1.
 *
 * A class without a name in "id2label" is called LABEL_N; control characters become '?'.
 *
 * @param json   text of a config.json, @p size bytes; NULL: no names
 * @param names  receives an array of @p labels names, which the caller frees
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of json_object_parse()
 */
MUST_CHECK enum status bert_labels_parse(const char *json, size_t size, size_t labels,
                                         struct bert_label **names, struct error *error);

/**
 * @brief Copies the weights that @p config asks for from an open safetensors file, as fp32.
 *
 * Every tensor and its shape is checked before memory is allocated. Tensors that a
 * classifier does not use (position_ids, cls.*) are ignored; pooler and
 * classifier may be missing.
 *
 * @param file may be closed afterwards
 * @return STATUS_OK, STATUS_BAD_FORMAT (a tensor is missing), STATUS_MISMATCH (its shape differs
 *         from the configuration), STATUS_UNSUPPORTED (its type is not F32, F16 or BF16),
 *         STATUS_OVERFLOW, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bert_checkpoint_load(struct bert_checkpoint *checkpoint,
                                            const struct bert_config *config,
                                            const struct safetensors *file, struct error *error);

/**
 * @brief Serialises weights as a model.safetensors, fp32, into memory that the caller frees.
 *
 * Pooler and classifier are left out if their weight is NULL. Names have the
 * "bert." prefix if there is a classifier, as in transformers.
 *
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of safetensors_serialize()
 */
MUST_CHECK enum status bert_checkpoint_serialize(const struct bert_config *config,
                                                 const struct bert_weights *weights,
                                                 unsigned char **data, size_t *size,
                                                 struct error *error);

/**
 * @brief Serialises a configuration as the text of a config.json, which the caller frees.
 * @return STATUS_OK, STATUS_UNSUPPORTED for an activation that BERT configurations do not have,
 *         STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bert_config_serialize(const struct bert_config *config, char **json);

/** Frees; a zero-initialised one is allowed. */
void bert_checkpoint_close(struct bert_checkpoint *checkpoint);

#endif
