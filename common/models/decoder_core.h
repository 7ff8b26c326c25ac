/**
 * @file decoder_core.h
 * @brief What models of both families of decoders share, Llama2 and GPT-NeoX: calls of a text's
 *        tokens, the engine's own decoder, and attention over a cache of sinks and recent tokens.
 */
#ifndef WARPBOOK_COMMON_MODELS_DECODER_CORE_H_
#define WARPBOOK_COMMON_MODELS_DECODER_CORE_H_

#include "common/models/engine.h"
#include "common/models/llama2_decoder.h"
#include "common/models/streaming_cache.h"

/** Sizes of the model, as in its configuration. */
struct decoder_core {
    const struct engine *engine;
    size_t batch; /**< most tokens of a call */
    size_t C, L, V, T;
    size_t sinks, recent; /**< recent > 0: T is their sum, and texts do not end there */
    void *decoder;        /**< the engine's, if it runs the whole model; else NULL */
};

/** What a family does itself, operator by operator. `model` is its struct. */
struct decoder_family_steps {
    /** Layer l of T new tokens, in the residual stream. */
    enum status (*layer)(void *model, size_t l, size_t T, size_t position);
    /** Logits of the last of T tokens, copied to the host. */
    enum status (*classify_last)(void *model, size_t T, float *logits);
    /** Rotary embedding of `heads` heads of T tokens, in place. */
    enum status (*rotate)(const void *model, float *x, size_t T, size_t heads, size_t position);
};

/**
 * @brief Feeds @p count tokens from @p position on.
 * @param x         resident, (batch, C): the residual stream
 * @param embedding resident, (V, C)
 * @param logits    host, (V): of the last token; NULL: not wanted
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT, STATUS_TOO_LONG, or the engine's status
 */
MUST_CHECK enum status decoder_core_forward(const struct decoder_core *core,
                                            const struct decoder_family_steps *steps, void *model,
                                            float *x, const float *embedding, const int32_t *tokens,
                                            size_t count, size_t position, float *logits);

/** @return whether the engine's decoder draws tokens itself. */
bool decoder_core_draws(const struct decoder_core *core);

/** @return STATUS_UNSUPPORTED unless decoder_core_draws() */
MUST_CHECK enum status decoder_core_begin(const struct decoder_core *core,
                                          const struct llama2_sampling *sampling);

/** @return STATUS_UNSUPPORTED unless decoder_core_draws(); STATUS_INVALID_ARGUMENT at position 0;
 *          STATUS_TOO_LONG */
MUST_CHECK enum status decoder_core_next(const struct decoder_core *core, size_t position,
                                         int32_t *token);

/** out (T, N) = in (T, K) * weight (N, K)^T, plus bias (N) if there is one. */
MUST_CHECK enum status decoder_core_project(const struct decoder_core *core, float *out,
                                            const float *in, const float *weight, const float *bias,
                                            size_t T, size_t N, size_t K);

/** A layer's attention of one new token, whose query, key and value are projected; all resident. */
struct decoder_places {
    size_t NH, KVH, HS;
    float scale;
    float *q;           /**< (NH*HS): rotated in place */
    const float *k, *v; /**< (T, KVH*HS): the layer's cache; keys are not rotated */
    float *placed;      /**< (T, KVH*HS): scratch memory, the keys rotated by their places */
    const float *zeros; /**< (T, KVH*HS) */
    float *attended;    /**< (NH*HS) */
};

/** attended = attention of the token whose cache is @p cache over the tokens that it sees. */
MUST_CHECK enum status decoder_core_attend_places(const struct decoder_core *core,
                                                  const struct decoder_family_steps *steps,
                                                  const void *model,
                                                  const struct streaming_cache *cache,
                                                  const struct decoder_places *places);

#endif
