/**
 * @file train_model.h
 * @brief BERT, Llama2 and GPT-NeoX for training, written once over struct train_engine: loss,
 * gradients of all parameters, and their update.
 *
 * All parameters lie in one array: first those with weight decay (matrices and embeddings), then
 * norms and biases. Gradients and the optimiser's two moments have the same layout. If activations
 * have another type than weights, matmuls read the matrices from a copy in the activations' type.
 *
 * BERT: post-norm, as bert.h. Dropout after the embeddings, the attention and the feed-forward, but
 * not on the softmax weights. TRAIN_CLASSIFY: pooler, dropout, classifier. TRAIN_MLM: the head of
 * Hugging Face's BertForMaskedLM (dense, GELU, LayerNorm, the word embedding as matrix, a bias).
 * Llama2: pre-norm, as llama2.h; GPT-NeoX: as gpt_neox.h; no dropout. TRAIN_LM: each row predicts
 * the next token.
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_MODEL_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_MODEL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_weights.h"
#include "common/checkpoints/gpt_neox/gpt_neox_weights.h"
#include "common/checkpoints/llama2/llama2_weights.h"
#include "common/train/train_engine.h"
#include "common/train/train_peers.h"

enum train_task { TRAIN_CLASSIFY, TRAIN_MLM, TRAIN_LM };

struct train_config {
    enum train_task task;
    struct bert_config bert;          /**< TRAIN_CLASSIFY, with labels; TRAIN_MLM */
    struct llama2_config llama2;      /**< TRAIN_LM */
    struct gpt_neox_config gpt_neox;  /**< TRAIN_LM with is_gpt_neox */
    bool is_gpt_neox;                 /**< TRAIN_LM: a GPT-NeoX instead of a Llama2 */
    bool tied;                        /**< TRAIN_LM: the embedding is also the classifier */
    float dropout;                    /**< of BERT; below 1 */
    size_t most_rows, most_sequences; /**< of a batch */
    const struct train_peers *peers;  /**< other ranks; NULL: none. Outlives the model */
};

/** One tensor of a model. */
struct train_parameter {
    char name[96];        /**< as Hugging Face's checkpoints have it */
    size_t rows, columns; /**< a vector has columns = 0 */
    size_t count;         /**< elements */
    size_t offset;        /**< first element in the arrays */
    bool decays;
    size_t NH; /**< not 0: of its rows, those of q, then k, then v come first in the arrays; in a
                  checkpoint, and for train_model_read() and _write(), q, k and v of each of NH
                  heads follow each other (GPT-NeoX) */
};

/** A batch, in host memory. Sequences lie one after the other, without padding. */
struct train_batch {
    const int32_t *ids;    /**< (rows) */
    const int32_t *starts; /**< (B + 1), the first 0, rising */
    size_t B;
    /**
     * TRAIN_CLASSIFY: (B), the class of each sequence. TRAIN_MLM and TRAIN_LM: (rows), the token to
     * predict at each row, or -1: none.
     */
    const int32_t *labels;
};

/** Settings of one update. */
struct train_update {
    float rate, beta1, beta2, eps, decay;
    float most_norm; /**< gradients are scaled down to this norm; 0: never */
    uint64_t step;   /**< from 1 on */
};

/** Arrays with one element for each parameter. */
enum train_state { TRAIN_WEIGHTS, TRAIN_GRADIENT, TRAIN_M, TRAIN_V };

struct train_model; /**< opaque */

/**
 * @brief Makes a model; all parameters are 0.
 *
 * C, and Llama2's KVH * HS, must be multiples of 8, so that query, key and value lie one after the
 * other and are aligned. There are at most 1024 layers. All memory is allocated here.
 *
 * @param config copied
 * @param engine must outlive the model
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT with the wrong sizes in the message;
 *         STATUS_OUT_OF_MEMORY, or the engine's failure
 */
MUST_CHECK enum status train_model_create(struct train_model **model,
                                          const struct train_config *config,
                                          const struct train_engine *engine, struct error *error);

void train_model_free(struct train_model *model);

/** @return the tensors. @param count receives their number */
const struct train_parameter *train_model_parameters(const struct train_model *model,
                                                     size_t *count);

/** @return the tensor with this name; NULL: there is none. */
const struct train_parameter *train_model_find(const struct train_model *model, const char *name);

/**
 * @brief Draws parameters from a seed: matrices and embeddings normally distributed with deviation
 *        0.02 (language models' matrices into the residual stream 0.02 / sqrt(2 L)), biases 0,
 * norms 1.
 */
MUST_CHECK enum status train_model_draw(struct train_model *model, uint64_t seed,
                                        struct error *error);

/** Sets a tensor. @param values host, (parameter->count) */
MUST_CHECK enum status train_model_write(struct train_model *model, enum train_state state,
                                         const struct train_parameter *parameter,
                                         const float *values, struct error *error);

/** Reads a tensor. @param values host, (parameter->count); of the reference: rounded */
MUST_CHECK enum status train_model_read(const struct train_model *model, enum train_state state,
                                        const struct train_parameter *parameter, float *values,
                                        struct error *error);

/** The same in double: exact with the reference. */
MUST_CHECK enum status train_model_write_f64(struct train_model *model, enum train_state state,
                                             const struct train_parameter *parameter,
                                             const double *values, struct error *error);
MUST_CHECK enum status train_model_read_f64(const struct train_model *model, enum train_state state,
                                            const struct train_parameter *parameter, double *values,
                                            struct error *error);

/** A checksum of all weights, as they are stored. */
MUST_CHECK enum status train_model_checksum(const struct train_model *model, uint64_t *sum,
                                            struct error *error);

/**
 * @brief A forward pass with dropout and a backward pass: loss += scale * sum of the losses of all
 *        labels, gradients += scale * gradient of that sum.
 *
 * For the mean over a batch pass scale = 1 / number of labels; to accumulate several batches
 * 1 / number of labels of all of them.
 *
 * @param seed of dropout
 * @param step number of this pass in the run
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for ids, labels or starts out of range,
 * STATUS_TOO_LONG for a batch or a sequence that is too large, both with a message and without
 * effect; or the engine's failure, after which gradients and loss are undefined
 */
MUST_CHECK enum status train_model_backward(struct train_model *model,
                                            const struct train_batch *batch, float scale,
                                            uint64_t seed, uint32_t step, struct error *error);

/**
 * @brief A forward pass without dropout: loss += scale * sum of the losses; no gradients.
 * @param logits host, (B, labels), for TRAIN_CLASSIFY only; NULL: not wanted
 */
MUST_CHECK enum status train_model_evaluate(struct train_model *model,
                                            const struct train_batch *batch, float scale,
                                            float *logits, struct error *error);

/**
 * @brief With peers: the next train_model_backward() is this rank's last of the step, so gradients
 *        may be added up over the ranks as soon as they stand.
 */
void train_model_last_pass(struct train_model *model);

/** Clips, updates all parameters, and sets the gradients to 0. With peers: collective. */
MUST_CHECK enum status train_model_update(struct train_model *model,
                                          const struct train_update *update, struct error *error);

/**
 * @brief train_model_backward() of a step's only batch, and train_model_update(): with the same
 *        results, and on a GPU in one launch. With peers: collective.
 */
MUST_CHECK enum status train_model_step(struct train_model *model, const struct train_batch *batch,
                                        float scale, uint64_t seed, uint32_t step,
                                        const struct train_update *update, struct error *error);

/**
 * @brief Waits, and reads the accumulated loss.
 * @param norm receives the gradients' norm at the last update, before clipping; NULL: not wanted
 */
MUST_CHECK enum status train_model_read_loss(const struct train_model *model, double *loss,
                                             double *norm, struct error *error);

/** The same, and sets it to 0. */
MUST_CHECK enum status train_model_take_loss(struct train_model *model, double *loss, double *norm,
                                             struct error *error);

/** Sets the accumulated loss to a value of train_model_read_loss(), to continue a run bit for bit.
 */
MUST_CHECK enum status train_model_write_loss(struct train_model *model, double loss,
                                              struct error *error);

#endif
