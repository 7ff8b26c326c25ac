/**
 * @file decoder.h
 * @brief Given: a decoder over the lab's two operators that writes without end, at constant memory.
 *
 * It takes Llama2 (RMSNorm, gated feed-forward, sequential residual) and GPT-NeoX (LayerNorm,
 * biases, partial rotary embedding, parallel residual). Products are lab 09's solved ones, whose
 * residual is the bias here. A token is one launch that begins it and one CUDA graph of all others,
 * the same graph for every token: position and cache are in device memory. With parallel residual
 * the first half of the feed-forward runs beside attention, and the second half beside attention's
 * output product, on a GPU whose kernels may start early. A step may bring a kernel of its own for
 * the whole token (struct endless_whole); then the decoder begins the token and launches that.
 *
 *     sequential: x += attention(norm 0 of x);  x += feed-forward(norm 1 of x)
 *     parallel:   x += attention(norm 0 of x) + feed-forward(norm 1 of x)
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_DECODER_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_GIVEN_DECODER_H_

#include <stdint.h>

#include "labs/14_endless_text/endless_text.h"

struct endless_token;

#ifdef __cplusplus
extern "C" {
#endif

/** Weights of a layer in device memory: matrices row-major of the model's dtype, the rest fp32. */
struct endless_layer {
    const float *norms[2], *norm_biases[2]; /**< (C): of attention, of the feed-forward */
    const void *qkv;                        /**< ((NH + 2 KVH) * HS, C): rows of q, k and v */
    const void *out;                        /**< (C, NH*HS) */
    const void *up;   /**< (hidden, C); gated: (2 * hidden, C), the gate's rows first */
    const void *down; /**< (C, hidden) */
    const float *qkv_bias, *out_bias, *up_bias, *down_bias; /**< NULL: none */
};

struct endless_model {
    size_t C, hidden, L, NH, KVH, HS, V;
    size_t rotary, sinks, window; /**< as in struct endless_attention */
    bool layernorm;               /**< else RMSNorm */
    bool parallel;                /**< residual */
    bool gated;                   /**< SwiGLU; else `activation` */
    enum nn_activation activation;
    float eps, theta;
    enum nn_rope_layout layout;
    enum nn_dtype dtype;                       /**< of matrices and cache */
    const void *embedding;                     /**< (V, C) */
    const struct endless_layer *layers;        /**< (L), host memory */
    const float *final_norm, *final_norm_bias; /**< (C) */
    const void *classifier;                    /**< (V, C) */
};

/**
 * A token as a whole, for a step that has more than operators: from the embedding to the logits,
 * with a cache of its own. It may take some models only, and the decoder's way is there for others.
 */
struct endless_whole {
    /**
     * @brief Prepares for a model; may wait.
     * @param whole receives its memory; NULL if it does not take the model or the GPU
     */
    enum status (*create)(void **whole, const struct endless_model *model, device_stream stream,
                          struct error *error);
    /** Starts a token; does not wait. */
    enum status (*run)(void *whole, const struct endless_token *token, device_stream stream,
                       struct error *error);
    size_t (*bytes)(const void *whole); /**< of device memory, constant */
    void (*free)(void *whole);          /**< NULL is allowed */
};

/** What endless_whole.run() gets: device memory, the same but for the logits at each call. */
struct endless_token {
    const int32_t *position;
    const float *angles; /**< (sinks + window, rotary / 2, 2): cosine and sine */
    const float *x;      /**< (C): the token's embedding */
    float *logits;       /**< (V), or NULL */
};

struct endless_decoder;

/** @param model copied, with its layers; its weights outlive the decoder */
MUST_CHECK enum status endless_decoder_create(struct endless_decoder **decoder,
                                              const struct endless_model *model,
                                              const struct endless_functions *functions,
                                              struct error *error);

/** Frees; NULL is allowed. */
void endless_decoder_free(struct endless_decoder *decoder);

/**
 * @brief Starts a token; does not wait. Tokens come in order; position 0 begins a text.
 * @param token    below V
 * @param position in the text: below INT32_MAX
 * @param logits   device, (V); NULL: not wanted
 */
MUST_CHECK enum status endless_decoder_feed(struct endless_decoder *decoder, int32_t token,
                                            size_t position, float *logits, struct error *error);

/** Tokens launch their kernels one by one from now on, or, as at first, by the graph; a step's own
    kernel for the whole token is one launch both ways. */
void endless_decoder_launch_singly(struct endless_decoder *decoder, bool singly);

/** @return whether the step's own kernel computes whole tokens of this model. */
bool endless_decoder_is_whole(const struct endless_decoder *decoder);

/** @return the stream of its work. */
device_stream endless_decoder_stream(const struct endless_decoder *decoder);

/** @return bytes of device memory that the decoder itself has: constant, however long the text. */
size_t endless_decoder_bytes(const struct endless_decoder *decoder);

#ifdef __cplusplus
}
#endif

#endif
