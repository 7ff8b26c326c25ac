/**
 * @file train_weights.h
 * @brief A model's tensors, and its optimiser's, in and out of safetensors files.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_WEIGHTS_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_WEIGHTS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"
#include "common/train/models/train_model.h"

/** What a checkpoint did not have. */
struct train_missing {
    size_t count;
    char first[96]; /**< the name of the first such tensor */
};

/**
 * @brief Sets the tensors that a checkpoint has: FOLDER/model.safetensors, or shards with an index.
 *
 * Names may lack "bert.", and LayerNorm's may be gamma and beta. Of BERT, what stands behind the
 * encoder (pooler and classifier, or the language model's head) may be missing, and a classifier
 * may have other labels: those stay as they are.
 *
 * @param missing receives what stayed
 * @return STATUS_OK, STATUS_BAD_FORMAT (another tensor is missing), STATUS_MISMATCH (a shape),
 *         STATUS_UNSUPPORTED (a type), each with path and tensor; as decoder_shards_open()
 */
MUST_CHECK enum status train_weights_load(struct train_model *model, const char *folder,
                                          struct train_missing *missing, struct error *error);

/** Writes the weights to a new file. */
MUST_CHECK enum status train_weights_write(const struct train_model *model, const char *path,
                                           enum nn_dtype dtype, struct error *error);

/**
 * @brief Writes the optimiser's moments to a new file, as m.NAME and v.NAME; of a model whose
 *        weights are double, also these, as weights.NAME, since model.safetensors rounds them.
 * @param type the engine's of the weights
 */
MUST_CHECK enum status train_moments_write(const struct train_model *model, const char *path,
                                           enum train_type type, struct error *error);

/** Reads such a file; shapes and types must be the model's. */
MUST_CHECK enum status train_moments_read(struct train_model *model, const char *path,
                                          enum train_type type, struct error *error);

#endif
