/**
 * @file nn.h
 * @brief Reference operators of BERT and Llama2, in plain C with double accumulation.
 *
 * They are the oracle of every parity test and the operators of the reference
 * engine. They are written to be read and to be right, not to be fast.
 *
 * Conventions. All pointers are host memory, fp32, row-major and contiguous
 * unless a stride (in elements) is given. Sizes are element counts. Inputs and
 * outputs do not overlap unless a function says so. Sums, means, exponentials
 * and quotients are computed in double and rounded once, when stored. Sizes of
 * zero are allowed and leave the output empty. Operators do not allocate, do
 * not fail and do not check: callers pass sizes that fit their buffers.
 *
 * Names: B batch, T tokens (query positions), S key positions, C channels,
 * NH query heads, KVH key/value heads, HS head size, V vocabulary; M, N, K for
 * matmul.
 */
#ifndef WARPBOOK_COMMON_NN_NN_H_
#define WARPBOOK_COMMON_NN_NN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief out = in * weight^T, the linear layer of both models.
 * @param out    (M, N)
 * @param in     (M, K)
 * @param weight (N, K): one row per output feature, as both checkpoint formats store it
 */
void nn_matmul(float *out, const float *in, const float *weight, size_t M, size_t N, size_t K);

/** As nn_matmul(), with the result in double, for comparisons with a tolerance. @param out (M, N)
 */
void nn_matmul_f64(double *out, const float *in, const float *weight, size_t M, size_t N, size_t K);

/** x[i, j] += bias[j]. @param x (rows, C), in place @param bias (C) */
void nn_bias_add(float *x, const float *bias, size_t rows, size_t C);

/** Elementwise functions. */
enum nn_activation {
    NN_GELU,      /**< x * Phi(x), exact, by erf (Hendrycks and Gimpel 2016): BERT */
    NN_GELU_TANH, /**< 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GPT-2 */
    NN_SILU,      /**< x / (1 + e^-x): Llama2's feed-forward gate */
    NN_TANH,      /**< tanh(x): BERT's pooler */
    NN_RELU       /**< max(x, 0) */
};

/** out[i] = f(in[i]). @param out (count), may be in */
void nn_activation(float *out, const float *in, size_t count, enum nn_activation f);

/** out[i] = silu(gate[i]) * up[i] (SwiGLU, Shazeer 2020). @param out (count), may be gate or up */
void nn_silu_gate(float *out, const float *gate, const float *up, size_t count);

/** out[i] = a[i] + b[i], the residual connection. @param out (count), may be a or b */
void nn_residual(float *out, const float *a, const float *b, size_t count);

/** Parameters of a LayerNorm over C channels; host, fp32. */
struct nn_norm {
    const float *weight, *bias; /**< (C) */
    float eps;
};

/**
 * @brief LayerNorm (Ba et al. 2016): (x - mean) / sqrt(var + eps) * weight + bias, per row.
 * @param out (rows, C), may be in @param in (rows, C) @param weight (C) @param bias (C)
 */
void nn_layernorm(float *out, const float *in, const float *weight, const float *bias, size_t rows,
                  size_t C, float eps);

/**
 * @brief RMSNorm (Zhang and Sennrich 2019): x / sqrt(mean(x^2) + eps) * weight, per row.
 * @param out (rows, C), may be in @param in (rows, C) @param weight (C)
 */
void nn_rmsnorm(float *out, const float *in, const float *weight, size_t rows, size_t C, float eps);

/**
 * @brief Softmax of each row, after subtracting its maximum. A row of only -inf becomes zeros.
 * @param out (rows, C), may be in @param in (rows, C)
 */
void nn_softmax(float *out, const float *in, size_t rows, size_t C);

/** Which two channels of a head rotary embedding rotates as a pair. */
enum nn_rope_layout {
    NN_ROPE_INTERLEAVED, /**< 2i and 2i+1: Meta's Llama2, llama2.c */
    NN_ROPE_HALVES       /**< i and i + HS/2: Hugging Face's Llama, GPT-NeoX */
};

/**
 * @brief Rotary position embedding (Su et al. 2021), in place.
 *
 * Row t of x is at position `position + t`; pair i is rotated by the angle
 * (position + t) * theta^(-2i/HS), in radians.
 *
 * @param x      (T, heads, HS), rows `stride` elements apart
 * @param stride elements from one token to the next, at least heads * HS
 * @param HS     even
 */
void nn_rope(float *x, size_t T, size_t heads, size_t HS, size_t stride, size_t position,
             float theta, enum nn_rope_layout layout);

/**
 * @brief As nn_rope(), but pair i is rotated by (position + t) * frequencies[i] radians.
 * @param frequencies (HS/2)
 */
void nn_rope_table(float *x, size_t T, size_t heads, size_t HS, size_t stride, size_t position,
                   const float *frequencies, enum nn_rope_layout layout);

/** Sizes and inputs of one attention call. */
struct nn_attention {
    const float *q;      /**< (B, T, NH, HS), tokens q_stride apart */
    const float *k;      /**< (B, S, KVH, HS), tokens kv_stride apart */
    const float *v;      /**< (B, S, KVH, HS), tokens kv_stride apart */
    const uint8_t *mask; /**< (B, S): 0 masks the key out; NULL: no mask */
    size_t B, T, S;      /**< batch, query positions, key positions */
    size_t NH, KVH, HS;  /**< NH is a multiple of KVH: head h uses key head h / (NH / KVH) */
    size_t q_stride;     /**< elements from one query token to the next */
    size_t kv_stride;    /**< elements from one key (value) token to the next */
    bool causal;         /**< query t sees keys 0 .. S - T + t only; needs S >= T */
    float scale;         /**< factor of q.k, usually 1 / sqrt(HS) */
};

/**
 * @brief Scaled dot-product attention (Vaswani et al. 2017), grouped queries (Ainslie et al. 2023).
 *
 * If all keys of a query are masked, its output is zeros.
 *
 * @param out     (B, T, NH, HS), contiguous
 * @param scores  scratch, S doubles
 */
void nn_attention(float *out, const struct nn_attention *a, double *scores);

/**
 * @brief Gathers rows of a table: out[t] = table[ids[t]], or += if @p accumulate.
 * @param out (T, C) @param table (V, C) @param ids (T), each in [0, V)
 */
void nn_embedding(float *out, const float *table, const int32_t *ids, size_t T, size_t C,
                  bool accumulate);

#ifdef __cplusplus
}
#endif

#endif
