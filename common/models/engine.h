/**
 * @file engine.h
 * @brief The operator table of a model: C functions that share one opaque context.
 *
 * Both models (bert.h, llama2.h) call operators only through this table, so the
 * same model code runs on the CPU reference and on every stage of the course.
 * The engine of stage N is the engine of stage N-1 with the operators of lab N
 * replaced.
 *
 * Memory. A model gets its memory from the engine and never dereferences it:
 * memory from alloc() and weights() is "resident", which means host memory for
 * a CPU engine and device memory for a GPU engine. Pointer arithmetic on
 * resident float pointers is allowed (a row of a cache, a slice of a fused
 * projection). Every pointer argument of an operator is resident unless it says
 * host.
 *
 * All entries except the optional and the fused ones are set. Each returns STATUS_OK or an error,
 * and a model stops at the first error. On a GPU an operator may return before
 * its work is done; read() and synchronize() wait. Operators of one engine run
 * in the order of the calls. An engine serves one thread.
 *
 * Semantics, shapes and aliasing of the operators are those of the functions
 * of the same name in common/nn/nn.h.
 */
#ifndef WARPBOOK_COMMON_MODELS_ENGINE_H_
#define WARPBOOK_COMMON_MODELS_ENGINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/nn/nn.h"

struct bert_encoder_call;
struct bert_encoder_model;
struct gpt_neox_decoder_model;
struct llama2_decoder_call;
struct llama2_decoder_model;
struct llama2_sampling;

struct engine {
    const char *name; /**< the stage, as tables and records show it: "01_cpu_matmul" */
    void *context;    /**< first argument of every entry */

    /** Frees the context. */
    void (*destroy)(void *context);

    /** @name Memory
     * @{ */

    /** Allocates @p bytes of resident memory, 64-byte aligned, contents undefined. */
    enum status (*alloc)(void *context, size_t bytes, void **memory);
    /** Frees memory from alloc(); NULL is allowed. */
    void (*release)(void *context, void *memory);
    /**
     * Makes @p bytes of host weights resident. A CPU engine may return @p host
     * itself, so the host memory must stay until release_weights().
     */
    enum status (*weights)(void *context, const void *host, size_t bytes, const void **resident);
    /** Ends the use of memory from weights(); NULL is allowed. */
    void (*release_weights)(void *context, const void *resident);
    /** Copies host memory into resident memory. */
    enum status (*write)(void *context, void *resident, const void *host, size_t bytes);
    /** Waits for all work, then copies resident memory to the host. */
    enum status (*read)(void *context, void *host, const void *resident, size_t bytes);
    /** Waits for all work. */
    enum status (*synchronize)(void *context);
    /** @} */

    /** @name Operators
     * @{ */

    /** out (M, N) = in (M, K) * weight (N, K)^T. */
    enum status (*matmul)(void *context, float *out, const float *in, const float *weight, size_t M,
                          size_t N, size_t K);
    /** x (rows, C) += bias (C). */
    enum status (*bias_add)(void *context, float *x, const float *bias, size_t rows, size_t C);
    /** out = f(in), elementwise; out may be in. */
    enum status (*activation)(void *context, float *out, const float *in, size_t count,
                              enum nn_activation f);
    /** out = silu(gate) * up, elementwise; out may be gate or up. */
    enum status (*silu_gate)(void *context, float *out, const float *gate, const float *up,
                             size_t count);
    /** out = a + b, elementwise; out may be a or b. */
    enum status (*residual)(void *context, float *out, const float *a, const float *b,
                            size_t count);
    /** LayerNorm per row; out may be in. */
    enum status (*layernorm)(void *context, float *out, const float *in, const float *weight,
                             const float *bias, size_t rows, size_t C, float eps);
    /** RMSNorm per row; out may be in. */
    enum status (*rmsnorm)(void *context, float *out, const float *in, const float *weight,
                           size_t rows, size_t C, float eps);
    /** softmax per row; out may be in. */
    enum status (*softmax)(void *context, float *out, const float *in, size_t rows, size_t C);
    /** Rotary embedding in place. */
    enum status (*rope)(void *context, float *x, size_t T, size_t heads, size_t HS, size_t stride,
                        size_t position, float theta, enum nn_rope_layout layout);
    /** Attention; the pointers inside @p a, mask too, are resident, @p a itself is host. */
    enum status (*attention)(void *context, float *out, const struct nn_attention *a);
    /** Rows of a table; @p ids is HOST memory, already checked against the table's size. */
    enum status (*embedding)(void *context, float *out, const float *table, const int32_t *ids,
                             size_t T, size_t C, bool accumulate);
    /** @} */

    /** @name Optional operators
     * @{ */

    /** Rotary embedding in place with frequencies (HS/2). NULL: models that need it are refused. */
    enum status (*rope_table)(void *context, float *x, size_t T, size_t heads, size_t HS,
                              size_t stride, size_t position, const float *frequencies,
                              enum nn_rope_layout layout);
    /** @} */

    /** @name Fused operators
     * Several operators in one, which a stage may run in fewer launches. NULL: the stage does not
     * fuse them. Models call these through fused.h, which then calls the operators above.
     * @{ */

    /** out (M, N) = in (M, K) * weight (N, K)^T + bias (N). */
    enum status (*linear)(void *context, float *out, const float *in, const float *weight,
                          const float *bias, size_t M, size_t N, size_t K);
    /** out (M, N) = f(in (M, K) * weight (N, K)^T + bias (N)). */
    enum status (*linear_activation)(void *context, float *out, const float *in,
                                     const float *weight, const float *bias, size_t M, size_t N,
                                     size_t K, enum nn_activation f);
    /**
     * x (M, N) = LayerNorm(x + in (M, K) * weight (N, K)^T + bias (N)), the end of a sublayer of
     * BERT. @p scratch (M, N): contents undefined before and after.
     */
    enum status (*linear_residual_layernorm)(void *context, float *x, const float *in,
                                             const float *weight, const float *bias,
                                             const struct nn_norm *norm, float *scratch, size_t M,
                                             size_t N, size_t K);
    /** out (rows, C) = LayerNorm(a + b); out may be a or b. */
    enum status (*residual_layernorm)(void *context, float *out, const float *a, const float *b,
                                      const struct nn_norm *norm, size_t rows, size_t C);
    /**
     * Attention within each of a->B sequences that lie one after the other without padding:
     * sequence b has the tokens starts[b] .. starts[b + 1] - 1 of q, k, v and out, at least one.
     *
     * @param a           T and S are both the length of the longest; no mask
     * @param starts      (B + 1), resident
     * @param host_starts (B + 1), the same numbers in HOST memory
     */
    enum status (*attention_packed)(void *context, float *out, const struct nn_attention *a,
                                    const int32_t *starts, const int32_t *host_starts);

    /**
     * BERT's whole encoder, bert_encoder.h: created once for a model, run for each batch without
     * padding, freed before the engine. Either all three entries are set or none. An engine_layer
     * does not pass them on, as they would bypass the operators that it replaces.
     *
     * @param encoder receives the handle that encoder_run() and encoder_free() take
     */
    enum status (*encoder_create)(void *context, const struct bert_encoder_model *model,
                                  void **encoder);
    enum status (*encoder_run)(void *context, void *encoder, const struct bert_encoder_call *call);
    void (*encoder_free)(void *context, void *encoder); /**< NULL is allowed */

    /**
     * Llama2's whole decoder, llama2_decoder.h: created once for a model, fed with tokens, freed
     * before the engine. Either the first three entries are set or none. An engine_layer does not
     * pass them on.
     *
     * A decoder that computes Llama2 alone declines a model for which llama2_extra() names
     * something. decoder_run() waits for the work if logits are wanted.
     *
     * @param decoder receives the handle that the other entries take; NULL with STATUS_OK: the
     *                decoder does not support this model, which then runs operator by operator
     */
    enum status (*decoder_create)(void *context, const struct llama2_decoder_model *model,
                                  void **decoder, struct error *error);
    /** The same for a GPT-NeoX, gpt_neox_decoder.h. NULL: the engine runs it operator by operator.
     * Its handle is for the entries that follow, which are set, too. */
    enum status (*gpt_neox_decoder_create)(void *context,
                                           const struct gpt_neox_decoder_model *model,
                                           void **decoder, struct error *error);
    enum status (*decoder_run)(void *context, void *decoder,
                               const struct llama2_decoder_call *call);
    void (*decoder_free)(void *context, void *decoder); /**< NULL is allowed */

    /**
     * Generation on the device: decoder_begin() sets how tokens are sampled. decoder_next() samples
     * one from the logits of the token before it, returns it in @p token and feeds it at
     * @p position. It may work ahead of the calls; results for positions that the caller never asks
     * for have no effect. Either both entries are set or none. The first call of decoder_next()
     * comes after decoder_begin() and a decoder_run() for position - 1. STATUS_BAD_FORMAT: one of
     * the logits is NaN, or the largest is not finite.
     */
    enum status (*decoder_begin)(void *context, void *decoder,
                                 const struct llama2_sampling *sampling);
    enum status (*decoder_next)(void *context, void *decoder, size_t position, int32_t *token);
    /** @} */
};

/** Frees the engine's context; a zero-initialised engine is allowed. */
void engine_destroy(struct engine *engine);

/**
 * @brief Makes the CPU reference: its operators are those of common/nn, its memory is host memory.
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status engine_reference_create(struct engine *engine);

#endif
