/**
 * @file linear.c
 * @brief Linear layers on the GPU, forward and backward: fp32 by lab 06's products with a bias and
 *        lab 04's sgemm(), bf16 by gemm16().
 *
 * din = dout * weight, and dweight += dout^T * in. gemm16() takes both operands transposed or not.
 * sgemm() does so with its right one alone: in fp32 sgemm_a_transposed() computes dweight, which
 * wants rows of whole vectors; else dout is copied transposed. A bias's gradient is the sums of
 * dout's columns.
 */
#include "labs/04_sgemm/given/sgemm_a_transposed.h"
#include "labs/11_training/given/internal.h"

/* Lab 06 wants zeros at the beginning of its memory; the others' lies behind them. */
static void *behind_zeros(const struct training *t) {
    return (char *)t->products + FUSED_ZERO_BYTES;
}

static enum status product(struct training *t, const struct sgemm_problem *problem) {
    return sgemm(problem, behind_zeros(t), t->stream, &t->failed);
}

static enum status product16(struct training *t, const struct gemm16_problem *problem) {
    return gemm16(problem, behind_zeros(t), t->stream, &t->failed);
}

static enum status linear_f32(struct training *t, float *out, const float *in, const float *weight,
                              const float *bias, size_t M, size_t N, size_t K) {
    if (bias != NULL) {
        const struct fused_problem problem = {.op = FUSED_LINEAR,
                                              .M = M,
                                              .N = N,
                                              .K = K,
                                              .in = in,
                                              .weight = weight,
                                              .bias = bias,
                                              .out = out};
        return fused_epilogues(&problem, t->products, t->stream, &t->failed);
    }
    return product(t, &(struct sgemm_problem){.M = M,
                                              .N = N,
                                              .K = K,
                                              .form = SGEMM_B_TRANSPOSED,
                                              .alpha = 1.0f,
                                              .beta = 0.0f,
                                              .A = in,
                                              .B = weight,
                                              .C = out});
}

enum status training_linear(void *context, void *out, const void *in, const void *weight,
                            const void *bias, size_t M, size_t N, size_t K) {
    struct training *t = context;
    if (t->type == NN_F32) {
        return linear_f32(t, out, in, weight, bias, M, N, K);
    }
    return product16(t, &(struct gemm16_problem){.dtype = NN_BF16,
                                                 .out_dtype = NN_BF16,
                                                 .M = M,
                                                 .N = N,
                                                 .K = K,
                                                 .in = in,
                                                 .weight = weight,
                                                 .bias = bias,
                                                 .bias_is_float = true,
                                                 .out = out});
}

/* The arguments of linear_backward(). */
struct linear_gradient {
    void *din;
    const void *add;
    float *dweight, *dbias;
    const void *dout, *in, *weight;
    size_t M, N, K;
};

/* A gradient's scratch memory. */
struct linear_scratch {
    float *sums;       /* partial sums of dout's columns */
    float *transposed; /* dout (N, M), fp32; where sgemm_a_transposed() does not take dout */
};

/* Whether rows of dout and of in begin 16-byte aligned. */
static bool has_whole_vectors(const struct linear_gradient *g) {
    return ((uintptr_t)g->dout | (uintptr_t)g->in) % 16 == 0 && g->N % 4 == 0 && g->K % 4 == 0;
}

static enum status place_scratch(struct training *t, const struct linear_gradient *g,
                                 struct linear_scratch *scratch) {
    struct scratch_layout layout = {.count = 0};
    size_t floats = g->dbias != NULL ? given_column_partials(g->M) * g->N : 0;
    bool copies = t->type == NN_F32 && !has_whole_vectors(g);
    size_t sums = scratch_add(&layout, floats * sizeof(float));
    size_t transposed = scratch_add(&layout, copies ? g->M * g->N * sizeof(float) : 0);
    TRY(scratch_reserve(t, &layout));
    *scratch =
        (struct linear_scratch){scratch_at(t, &layout, sums), scratch_at(t, &layout, transposed)};
    return STATUS_OK;
}

/* din = dout * weight + add: sgemm() adds to its output, which holds add. */
static enum status input_gradient_f32(struct training *t, const struct linear_gradient *g) {
    if (g->din == NULL) {
        return STATUS_OK;
    }
    if (g->add != NULL && g->add != g->din) {
        TRY(device_copy(g->din, g->add, g->M * g->K * sizeof(float), t->stream, &t->failed));
    }
    return product(t, &(struct sgemm_problem){.M = g->M,
                                              .N = g->K,
                                              .K = g->N,
                                              .form = SGEMM_B_PLAIN,
                                              .alpha = 1.0f,
                                              .beta = g->add != NULL ? 1.0f : 0.0f,
                                              .A = g->dout,
                                              .B = g->weight,
                                              .C = g->din});
}

/* dweight += dout^T * in. */
static enum status weight_gradient_f32(struct training *t, const struct linear_gradient *g,
                                       float *transposed) {
    const struct given_call call = training_call(t);
    struct sgemm_problem problem = {.M = g->N,
                                    .N = g->K,
                                    .K = g->M,
                                    .form = SGEMM_B_PLAIN,
                                    .alpha = 1.0f,
                                    .beta = 1.0f,
                                    .A = g->dout,
                                    .B = g->in,
                                    .C = g->dweight};
    if (has_whole_vectors(g)) {
        return sgemm_a_transposed(&problem, behind_zeros(t), t->stream, &t->failed);
    }
    TRY(given_transpose(&call, transposed, g->dout, g->M, g->N));
    problem.A = transposed;
    return product(t, &problem);
}

/* dweight += dout^T * in. Sums are fp32: dweight is its own residual. */
static enum status weight_gradient_16(struct training *t, const struct linear_gradient *g) {
    return product16(t, &(struct gemm16_problem){.dtype = NN_BF16,
                                                 .out_dtype = NN_F32,
                                                 .M = g->N,
                                                 .N = g->K,
                                                 .K = g->M,
                                                 .in = g->dout,
                                                 .in_is_transposed = true,
                                                 .weight = g->in,
                                                 .weight_is_transposed = true,
                                                 .residual = g->dweight,
                                                 .residual_is_float = true,
                                                 .out = g->dweight});
}

/* din = dout * weight + add. */
static enum status input_gradient_16(struct training *t, const struct linear_gradient *g) {
    return g->din == NULL ? STATUS_OK
                          : product16(t, &(struct gemm16_problem){.dtype = NN_BF16,
                                                                  .out_dtype = NN_BF16,
                                                                  .M = g->M,
                                                                  .N = g->K,
                                                                  .K = g->N,
                                                                  .in = g->dout,
                                                                  .weight = g->weight,
                                                                  .weight_is_transposed = true,
                                                                  .residual = g->add,
                                                                  .out = g->din});
}

enum status training_linear_backward(void *context, void *din, const void *add, void *dweight,
                                     void *dbias, const void *dout, const void *in,
                                     const void *weight, size_t M, size_t N, size_t K) {
    struct training *t = context;
    const struct linear_gradient g = {din, add, dweight, dbias, dout, in, weight, M, N, K};
    const struct given_call call = training_call(t);
    struct linear_scratch scratch;
    TRY(place_scratch(t, &g, &scratch));
    if (dbias != NULL) {
        TRY(given_sum_columns(&call, dbias, dout, M, N, scratch.sums));
    }
    if (t->type == NN_F32) {
        TRY(weight_gradient_f32(t, &g, scratch.transposed));
        return input_gradient_f32(t, &g);
    }
    TRY(weight_gradient_16(t, &g));
    return input_gradient_16(t, &g);
}
