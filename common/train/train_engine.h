/**
 * @file train_engine.h
 * @brief The operator table of training, forward and backward: C functions that share one opaque
 *        context, as engine.h is for inference.
 *
 * The models of train_model.h call operators only through this table. So the same code runs on the
 * reference, which computes and stores in double and against which gradients are checked, and on
 * the GPU in fp32, or in bf16 with fp32 weights.
 *
 * Types. Activations, their gradients and the copies of matrices that matmuls read have the type
 * `activations`; weights, their gradients and all statistics have the type `weights`. Pointers are
 * void, because only an engine knows its types.
 *
 * Memory. Memory from alloc() is "resident"; every pointer is resident unless it says host. A model
 * may do pointer arithmetic on it with train_type_bytes(), but only the engine dereferences it.
 *
 * All entries are set. Each returns STATUS_OK or an error; after an operator's error synchronize()
 * gives the message. Operators may return before the work is done; read() and synchronize() wait.
 * They run in the order of the calls. The same call on the same data gives the same bits each time.
 * An engine serves one thread.
 *
 * Names: rows (tokens of all sequences, one after the other without padding), C channels, M, N, K
 * for matmuls. "+=": added to the value that is there, so that gradients of several batches add up.
 */
#ifndef WARPBOOK_COMMON_TRAIN_TRAIN_ENGINE_H_
#define WARPBOOK_COMMON_TRAIN_TRAIN_ENGINE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/nn/nn.h"
#include "common/train/dropout.h"

#ifdef __cplusplus
extern "C" {
#endif

enum train_type { TRAIN_F64, TRAIN_F32, TRAIN_BF16 };

/** @return bytes of an element: 8, 4, 2. */
static inline size_t train_type_bytes(enum train_type type) {
    return type == TRAIN_F64 ? 8 : type == TRAIN_F32 ? 4 : 2;
}

/** Parameters of a norm over C channels, of the weights' type. */
struct train_norm {
    const void *weight; /**< (C) */
    const void *bias;   /**< (C); RMSNorm: NULL */
    float eps;
};

/** Gradients of a norm's parameters, of the weights' type. */
struct train_norm_gradient {
    void *weight; /**< (C) += */
    void *bias;   /**< (C) +=; RMSNorm: NULL */
};

/**
 * Self-attention within each of B sequences: sequence b is the rows starts[b] .. starts[b + 1] - 1
 * of q, k, v and out. Each has at least one.
 */
struct train_attention {
    const void *q;              /**< (rows, NH, HS), rows q_stride apart */
    const void *k, *v;          /**< (rows, KVH, HS), rows kv_stride apart */
    const int32_t *starts;      /**< (B + 1), the first 0, the last rows */
    const int32_t *host_starts; /**< host: the same numbers */
    size_t B, rows, longest;    /**< sequences, tokens of all, of the longest */
    size_t NH, KVH, HS;         /**< NH a multiple of KVH: head h reads key head h / (NH / KVH) */
    size_t q_stride, kv_stride; /**< elements */
    bool causal;                /**< token t of a sequence sees 0 .. t only */
    float scale;                /**< of q.k, usually 1 / sqrt(HS) */
};

/** Gradients of attention: laid out as q, k and v, which they must not overlap. */
struct train_attention_gradient {
    void *dq, *dk, *dv;
};

/**
 * The rows of each id, so that the gradient of an embedding table is summed in the same order each
 * time. The rows of one id are split into pieces of at most TRAIN_PIECE rows. Each piece is summed,
 * then the sums of the pieces.
 */
struct train_occurrences {
    const int32_t *rows;   /**< (count): rows, grouped by id, rising in each group */
    const int32_t *pieces; /**< (piece_count + 1): where each piece begins in rows */
    const int32_t *firsts; /**< (id_count + 1): the first piece of each id */
    const int32_t *ids;    /**< (id_count): the ids that occur, rising */
    size_t count, piece_count, id_count;
};

enum { TRAIN_PIECE = 64 };

/** AdamW (Loshchilov and Hutter 2019) over all parameters at once. */
struct train_adamw {
    void *weights;        /**< (count), weights' type */
    void *copy;           /**< (count), activations' type; NULL if the types are the same */
    const void *gradient; /**< (count), weights' type */
    void *m, *v;          /**< (count), weights' type */
    size_t count;
    size_t decayed;    /**< number of elements with weight decay, which come first */
    const void *scale; /**< one element of the weights' type: factor of the gradient */
    float rate, beta1, beta2, eps, decay;
    uint64_t step; /**< from 1 on */
};

/** Work that calls operators of an engine, and nothing else of it. */
typedef enum status train_work(void *argument);

struct train_engine {
    const char *name;
    void *context;
    enum train_type activations, weights;

    /** Frees the context. */
    void (*destroy)(void *context);

    /** @name Memory
     * @{ */
    /** Allocates resident memory, 256-byte aligned, every byte 0. */
    enum status (*alloc)(void *context, size_t bytes, void **memory, struct error *error);
    /** Frees memory from alloc(); NULL is allowed. */
    void (*release)(void *context, void *memory);
    /** Copies host bytes to resident memory; the caller may change them when it returns. */
    enum status (*write)(void *context, void *resident, const void *host, size_t bytes);
    /** Waits for all work, then copies resident bytes to the host. */
    enum status (*read)(void *context, void *host, const void *resident, size_t bytes);
    /** Sets every byte to 0, in order of the calls. */
    enum status (*zero)(void *context, void *resident, size_t bytes);
    /** copy = weights, rounded to the activations' type. */
    enum status (*convert)(void *context, void *copy, const void *weights, size_t count);
    /** Waits for all work. */
    enum status (*synchronize)(void *context, struct error *error);
    /** @} */

    /**
     * Does work(argument), in one launch where the engine can. The work calls operators, zero() and
     * convert() alone; what it does depends on nothing that these change on the host, for it may be
     * called twice.
     */
    enum status (*at_once)(void *context, train_work *work, void *argument);

    /** @name Linear layers
     * @{ */
    /**
     * out (M, N) = in (M, K) * weight (N, K)^T + bias (N); bias NULL: none. weight, here and in
     * linear_backward(), is of the activations' type, bias of the weights'.
     */
    enum status (*linear)(void *context, void *out, const void *in, const void *weight,
                          const void *bias, size_t M, size_t N, size_t K);
    /**
     * din (M, K) = dout (M, N) * weight (N, K) + add (M, K); din NULL: not wanted; add NULL: none,
     * it may be din. dweight (N, K) += dout^T * in; dbias (N) += sums of dout's columns; NULL: none
     */
    enum status (*linear_backward)(void *context, void *din, const void *add, void *dweight,
                                   void *dbias, const void *dout, const void *in,
                                   const void *weight, size_t M, size_t N, size_t K);
    /** @} */

    /** @name Elementwise
     * @{ */
    /** out = f(in); f is NN_GELU or NN_TANH. */
    enum status (*activation)(void *context, void *out, const void *in, size_t count,
                              enum nn_activation f);
    /** din = dout * f'(in); din may be dout. */
    enum status (*activation_backward)(void *context, void *din, const void *dout, const void *in,
                                       size_t count, enum nn_activation f);
    /** activation_backward() of (rows, C), and dbias (C), of the weights' type, += the sums of
     * din's columns: the gradient of a bias that was added before. */
    enum status (*activation_bias_backward)(void *context, void *din, void *dbias, const void *dout,
                                            const void *in, size_t rows, size_t C,
                                            enum nn_activation f);
    /** out (rows, hidden) = silu(gate) * up, where gate_up (rows, 2 hidden) has both in a row. */
    enum status (*silu_gate)(void *context, void *out, const void *gate_up, size_t rows,
                             size_t hidden);
    enum status (*silu_gate_backward)(void *context, void *dgate_up, const void *dout,
                                      const void *gate_up, size_t rows, size_t hidden);
    /** out = add + dropout(in); add NULL: none; out may be either. Also the backward pass, with the
     * same mask. */
    enum status (*dropout)(void *context, void *out, const void *add, const void *in, size_t count,
                           const struct train_dropout *dropout);
    /** din (rows, C) = dropout(dout), and dbias (C) += the sums of din's columns, likewise. din may
     * be dout. */
    enum status (*dropout_bias_backward)(void *context, void *din, void *dbias, const void *dout,
                                         size_t rows, size_t C,
                                         const struct train_dropout *dropout);
    /** @} */

    /** @name Norms
     * stats: LayerNorm (rows, 2), mean and rstd = 1 / sqrt(var + eps); RMSNorm (rows), rstd =
     * 1 / sqrt(mean square + eps).
     * @{ */
    /** sum = add + dropout(in), add NULL: none; out = LayerNorm(sum). sum may be in or add. */
    enum status (*layernorm)(void *context, void *out, void *stats, void *sum, const void *add,
                             const void *in, const struct train_dropout *dropout,
                             const struct train_norm *norm, size_t rows, size_t C);
    /** din: the gradient of sum, given as in. din may be dout. */
    enum status (*layernorm_backward)(void *context, void *din,
                                      const struct train_norm_gradient *gradient, const void *dout,
                                      const void *in, const void *stats,
                                      const struct train_norm *norm, size_t rows, size_t C);
    enum status (*rmsnorm)(void *context, void *out, void *stats, const void *in,
                           const struct train_norm *norm, size_t rows, size_t C);
    /** din = gradient + add; add NULL: none; din may be add or dout. */
    enum status (*rmsnorm_backward)(void *context, void *din, const void *add,
                                    const struct train_norm_gradient *gradient, const void *dout,
                                    const void *in, const void *stats,
                                    const struct train_norm *norm, size_t rows, size_t C);
    /** @} */

    /** @name Attention
     * @{ */
    /** out (rows, NH, HS) contiguous; lse (rows, NH), weights' type: log of the sum of exp(score)
     */
    enum status (*attention)(void *context, void *out, void *lse,
                             const struct train_attention *attention);
    enum status (*attention_backward)(void *context,
                                      const struct train_attention_gradient *gradient,
                                      const void *dout, const void *out, const void *lse,
                                      const struct train_attention *attention);
    /**
     * Rotary embedding in place: rotates pairs of channels of x (rows, heads, HS), rows `stride`
     * apart, by their row's position. If `back`, rotates in the other direction, which is the
     * backward pass.
     */
    enum status (*rope)(void *context, void *x, const int32_t *positions, size_t rows, size_t heads,
                        size_t HS, size_t stride, float theta, enum nn_rope_layout layout,
                        bool back);
    /** @} */

    /** @name Tables and rows
     * @{ */
    /** out (rows, C) = table (V, C)[ids]; += with accumulate. table: weights' type. */
    enum status (*embedding)(void *context, void *out, const void *table, const int32_t *ids,
                             size_t rows, size_t C, bool accumulate);
    /** dtable (V, C) += rows of dout (rows, C), by id. */
    enum status (*embedding_backward)(void *context, void *dtable, const void *dout,
                                      const struct train_occurrences *occurrences, size_t C);
    /** out (count, C) = in[index]. */
    enum status (*gather)(void *context, void *out, const void *in, const int32_t *index,
                          size_t count, size_t C);
    /** out[index] += in (count, C); no index occurs twice. */
    enum status (*scatter)(void *context, void *out, const void *in, const int32_t *index,
                           size_t count, size_t C);
    /**
     * Softmax cross-entropy and its gradient: loss += scale * sum over rows of -log p[label], and
     * logits (M, V) become scale * (p - onehot(label)). A row with label -1 adds nothing and
     * becomes zeros. loss: one element, weights' type.
     */
    enum status (*cross_entropy)(void *context, void *logits, void *loss, const int32_t *labels,
                                 float scale, size_t M, size_t V);
    /** @} */

    /** @name Optimiser
     * @{ */
    /** norm = sqrt(sum of squares); scale = min(1, most / norm), 1 when most is 0. One element
     * each.
     */
    enum status (*clip)(void *context, void *scale, void *norm, const void *gradient, size_t count,
                        float most);
    enum status (*adamw)(void *context, const struct train_adamw *adamw);
    /** @} */
};

/** at_once() of an engine that has no launches. */
static inline enum status train_engine_just_do(void *context, train_work *work, void *argument) {
    (void)context;
    return work(argument);
}

/** Frees the engine's context; a zero-initialised engine is allowed. */
static inline void train_engine_destroy(struct train_engine *engine) {
    const struct train_engine none = {0};
    if (engine->destroy != NULL) {
        engine->destroy(engine->context);
    }
    *engine = none;
}

/**
 * @brief The reference: all in double, on the CPU, written to be read and to be right.
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status train_reference_create(struct train_engine *engine);

#ifdef __cplusplus
}
#endif

#endif
