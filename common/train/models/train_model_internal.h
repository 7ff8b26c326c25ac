/**
 * @file train_model_internal.h
 * @brief Shared by the files of train_model.h: offsets of parameters, memory of a pass, and the
 *        interface that BERT and Llama2 implement.
 */
#ifndef WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_MODEL_INTERNAL_H_
#define WARPBOOK_COMMON_TRAIN_MODELS_TRAIN_MODEL_INTERNAL_H_

#include "common/train/models/train_model.h"

/** Alignment of tensors in elements: 16 bytes of bf16. */
enum { TRAIN_ALIGNMENT = 8 };

/** Rows that a language model's head processes at once; limits the memory for logits. */
enum { TRAIN_HEAD_ROWS = 2048 };

/** @name Offsets of parameters in the arrays, in elements
 * @{ */
struct train_linear_place {
    size_t weight; /**< (N, K) */
    size_t bias;   /**< (N), if the layer has one */
};

struct train_norm_place {
    size_t weight, bias; /**< (C); RMSNorm has no bias */
};
/** @} */

/** State of listing the tensors. There are two passes: first tensors with weight decay, then
 * others. */
struct train_listing {
    struct train_parameter *list; /**< NULL: only count them */
    size_t count;
    size_t elements; /**< of all tensors so far, alignment included */
    bool decaying;   /**< this pass lists matrices; else vectors */
    bool overflows;  /**< a size overflowed; further tensors are not counted */
    size_t NH;       /**< NH of the parameters that are added */
    char scope[64];  /**< prefix of the names: "bert.encoder.layer.0." */
};

/**
 * @brief Adds a tensor, scope + name.
 * @param columns 0: a vector
 * @param place receives its offset; NULL: not wanted
 */
void train_listing_add(struct train_listing *listing, const char *name, size_t rows, size_t columns,
                       size_t *place);

/** Adds name.weight (N, K) and name.bias (N). */
void train_listing_add_linear(struct train_listing *listing, const char *name, size_t N, size_t K,
                              struct train_linear_place *place);

/** Adds name.weight and name.bias (C). */
void train_listing_add_norm(struct train_listing *listing, const char *name, size_t C,
                            struct train_norm_place *place);

/** Lists the model's parameters: sets parameters, parameter_count, elements, decayed and offsets.
 */
enum status train_parameters_list(struct train_model *model, struct error *error);

/** One allocation for all activations. A first pass adds up sizes, a second one assigns addresses.
 */
struct train_space {
    char *base; /**< resident; NULL: only add up sizes */
    size_t bytes;
    bool overflows;
};

/** Assigns *slot the address of a * b elements, 256-byte aligned; NULL in the first pass. */
void train_space_take(struct train_space *space, void **slot, size_t a, size_t b,
                      enum train_type type);

/** The resident arrays of one batch, and the settings of a pass over it. */
struct train_pass {
    size_t rows, B, longest;
    const int32_t *ids;         /**< (rows) */
    const int32_t *positions;   /**< (rows): 0, 1, ... in each sequence */
    const int32_t *kinds;       /**< (rows): token types, all 0 */
    const int32_t *starts;      /**< (B + 1) */
    const int32_t *host_starts; /**< host: the same */
    const int32_t *targets;     /**< (target_count): rows with a label, or first rows */
    const int32_t *labels;      /**< (target_count): labels of those rows */
    size_t target_count;
    bool backward;
    struct train_occurrences words, places, types; /**< of ids, positions, kinds; for backward */
    float p;                                       /**< of dropout; 0 without backward */
    uint64_t seed;
    uint32_t step;
    float scale;   /**< of the loss */
    float *logits; /**< host, (B, labels), or NULL */
};

/** Gradients that are added up over the ranks at once. */
struct train_bucket {
    size_t first, count; /**< elements */
    size_t stands; /**< the bucket is complete when the matrices from this one on are; 0: at the
                      end of the pass */
};

struct train_bert;
struct train_gpt_neox;
struct train_llama2;

/** @return whether each of a model's sizes is from 1 to INT32_MAX. */
bool train_sizes_fit(const size_t *sizes, size_t count);

/** The functions of a kind of model: BERT, Llama2, or GPT-NeoX. */
struct train_architecture {
    /** @return STATUS_OK, or STATUS_INVALID_ARGUMENT with a message. */
    enum status (*check)(const struct train_config *config, struct error *error);
    /** Allocates the memory that only this architecture has. */
    enum status (*create)(struct train_model *model);
    void (*free)(struct train_model *model);
    /** Adds all tensors to the list. */
    void (*list)(struct train_model *model, struct train_listing *listing);
    /** Reserves space for all activations. */
    void (*plan)(struct train_model *model, struct train_space *space);
    /** Runs the forward pass and, if pass->backward, the backward pass. */
    enum status (*run)(struct train_model *model, const struct train_pass *pass);
    size_t (*layers)(const struct train_config *config);
    /** The first matrix of a layer; those of all layers lie in their order. */
    size_t (*first_of)(const struct train_model *model, size_t layer);
    size_t (*vocabulary)(const struct train_config *config);
    size_t (*longest)(const struct train_config *config);
};

extern const struct train_architecture train_bert_architecture;
extern const struct train_architecture train_gpt_neox_architecture;
extern const struct train_architecture train_llama2_architecture;

/** One array that holds all numbers of a batch, on the host and resident. */
struct train_upload {
    int32_t *host, *resident;
    size_t capacity, used;
    int32_t *scratch; /**< host, for occurrences */
};

struct train_model {
    struct train_config config;
    const struct train_engine *engine;
    const struct train_architecture *architecture;

    struct train_parameter *parameters;
    size_t parameter_count;
    size_t elements; /**< of each array below */
    size_t decayed;  /**< number of elements with weight decay, which come first */

    void *weights, *gradient, *m, *v; /**< (elements), resident, weights' type */
    void *copy;     /**< (elements), activations' type; NULL if the types are the same */
    void *scalars;  /**< enum train_scalar, weights' type */
    void *activity; /**< all activations */
    struct train_upload upload;

    struct train_bucket *buckets; /**< (bucket_count), in the order of the backward pass */
    size_t bucket_count, next_bucket;
    bool last_pass;      /**< gradients of this pass are added up over the ranks */
    size_t first, count; /**< elements of m and v that this rank has, and updates */
    size_t part;         /**< of the ranks before the last; 0 without ZeRO-1 */

    struct train_bert *bert;
    struct train_gpt_neox *gpt_neox;
    struct train_llama2 *llama2;
};

/** Single numbers of a model. */
enum train_scalar { TRAIN_LOSS, TRAIN_NORM, TRAIN_SCALE, TRAIN_SCALARS };

/** @return the address of element @p index. */
static inline void *train_at(const void *base, size_t index, enum train_type type) {
    return (char *)base + index * train_type_bytes(type);
}

static inline void *train_scalar(const struct train_model *m, enum train_scalar which) {
    return train_at(m->scalars, which, m->engine->weights);
}

static inline const void *train_weight(const struct train_model *m, size_t place) {
    return train_at(m->weights, place, m->engine->weights);
}

/** @return the matrix that matmuls read: the copy, if there is one. */
static inline const void *train_matrix(const struct train_model *m, size_t place) {
    return m->copy != NULL ? train_at(m->copy, place, m->engine->activations)
                           : train_weight(m, place);
}

static inline void *train_gradient(const struct train_model *m, size_t place) {
    return train_at(m->gradient, place, m->engine->weights);
}

/** @name Layers of a model: operators of the engine with the model's parameters
 * @{ */
/** A linear layer's sizes; has_bias is false in Llama2 and for classifiers of language models. */
struct train_linear {
    struct train_linear_place place;
    size_t N, K;
    bool has_bias;
};

enum status train_linear_forward(const struct train_model *m, const struct train_linear *linear,
                                 void *out, const void *in, size_t rows);
/** din NULL: not wanted; add as in struct train_engine. */
enum status train_linear_backward(const struct train_model *m, const struct train_linear *linear,
                                  void *din, const void *add, const void *dout, const void *in,
                                  size_t rows);
/** Attention over @p qkv (rows, (NH + 2 KVH) HS): the heads of query, key and value side by side.
 */
struct train_attention train_attention_of(const struct train_model *m,
                                          const struct train_pass *pass, const void *qkv, size_t NH,
                                          size_t KVH, size_t HS);
struct train_norm train_norm_of(const struct train_model *m, struct train_norm_place place,
                                bool has_bias, float eps);
struct train_norm_gradient train_norm_gradient_of(const struct train_model *m,
                                                  struct train_norm_place place, bool has_bias);
/** @} */

/**
 * @brief Checks a batch, makes its numbers resident, and fills in the pass, except p, seed, step,
 *        scale and logits.
 */
enum status train_batch_begin(struct train_model *m, const struct train_batch *batch, bool backward,
                              struct train_pass *pass, struct error *error);

/** @name Other ranks (exchange.c): all of it does nothing without peers
 * @{ */
/** Sets the rank's part of the optimiser's states, and the buckets. */
enum status train_exchange_create(struct train_model *m, struct error *error);
/** Memory of the gradients, weights and moments: with peers some of it is reached by all ranks. */
enum status train_exchange_alloc(struct train_model *m, struct error *error);
void train_exchange_free(struct train_model *m);
/** Gradients of all matrices from element @p first on stand. */
enum status train_gradients_stand(struct train_model *m, size_t first);
/** Before the update: the rest of the buckets. */
enum status train_exchange_finish(struct train_model *m);
/** After the update: with ZeRO-1 the other ranks' weights. */
enum status train_exchange_weights(struct train_model *m);
/** @return where an element of m or v is; NULL: on no rank that is reached from here */
void *train_moment_at(const struct train_model *m, const void *moments, size_t element);
/** @} */

/** Allocates the memory for train_batch_begin(). */
enum status train_upload_create(struct train_model *m, struct error *error);
void train_upload_free(struct train_model *m);

#endif
