/**
 * @file given_linear.c
 * @brief Linear layers on the GPU, forward and backward: fp32 by lab 04's sgemm(), bf16 by
 * gemm16().
 *
 * din = dout * weight, and dweight += dout^T * in. sgemm() takes its right factor either way, so
 * fp32 needs dout turned round alone; gemm16() reads both factors along the sum, so bf16 needs
 * weight, dout and in turned round. A bias's gradient falls off where dout is.
 */
#include "common/base/checked.h"
#include "labs/11_training/given_internal.h"

static enum status product(struct training *t, const struct sgemm_problem *problem) {
    return sgemm(problem, t->products, t->stream, &t->failed);
}

static enum status product16(struct training *t, const struct gemm16_problem *problem) {
    return gemm16(problem, t->products, t->stream, &t->failed);
}

/* fp32: the bias goes to out first, and the product is added. */
static enum status linear_f32(struct training *t, float *out, const float *in, const float *weight,
                              const float *bias, size_t M, size_t N, size_t K) {
    const struct given_call call = training_call(t);
    if (bias != NULL) {
        TRY(given_spread_bias(&call, out, bias, M, N));
    }
    return product(t, &(struct sgemm_problem){.M = M,
                                              .N = N,
                                              .K = K,
                                              .form = SGEMM_B_TRANSPOSED,
                                              .alpha = 1.0f,
                                              .beta = bias != NULL ? 1.0f : 0.0f,
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

/* What linear_backward() is given. */
struct linear_gradient {
    void *din;
    const void *add;
    float *dweight, *dbias;
    const void *dout, *in, *weight;
    size_t M, N, K;
};

static enum status add_bias_gradient(struct training *t, const struct linear_gradient *g,
                                     const float *sums) {
    const struct given_call call = training_call(t);
    return g->dbias == NULL
               ? STATUS_OK
               : given_add_parts(&call, g->dbias, sums, given_transposition_parts(g->M), g->N);
}

/* din = dout * weight + add: sgemm() adds to what is there. */
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

static enum status linear_backward_f32(struct training *t, const struct linear_gradient *g) {
    struct scratch_parts parts = {.count = 0};
    size_t turned = scratch_add(&parts, g->M * g->N * sizeof(float));
    size_t sums = scratch_add(&parts, given_transposition_parts(g->M) * g->N * sizeof(float));
    TRY(scratch_need_parts(t, &parts));
    float *dout = scratch_at(t, &parts, turned), *columns = scratch_at(t, &parts, sums);
    const struct given_call call = training_call(t);
    const struct given_transposition turn = {g->dout, dout, g->M,
                                             g->N,    g->M, g->dbias != NULL ? columns : NULL};
    TRY(given_transpose(&call, &turn, 1));
    TRY(add_bias_gradient(t, g, columns));
    TRY(product(t, &(struct sgemm_problem){.M = g->N,
                                           .N = g->K,
                                           .K = g->M,
                                           .form = SGEMM_B_PLAIN,
                                           .alpha = 1.0f,
                                           .beta = 1.0f,
                                           .A = dout,
                                           .B = g->in,
                                           .C = g->dweight}));
    return input_gradient_f32(t, g);
}

/* gemm16() is fast where rows are whole 16-byte pieces. */
static size_t padded(size_t count) {
    return ceil_div(count, 8) * 8;
}

/* What the products of bf16 read, in scratch memory. */
struct turned {
    void *dout, *in; /* (N, M padded), (K, M padded) */
    float *sums;     /* of dout's columns, in parts */
    void *weight;    /* (K, N padded) */
    void *wide;      /* (M, N padded): dout, where N is to be padded */
    size_t M, N;     /* padded */
};

static enum status place_turned(struct training *t, const struct linear_gradient *g,
                                struct turned *turned) {
    struct scratch_parts parts = {.count = 0};
    size_t M = padded(g->M), N = padded(g->N), bytes = nn_dtype_bytes(NN_BF16);
    size_t dout = scratch_add(&parts, g->N * M * bytes), in = scratch_add(&parts, g->K * M * bytes);
    size_t sums = scratch_add(&parts, given_transposition_parts(g->M) * g->N * sizeof(float));
    size_t weight = scratch_add(&parts, g->din != NULL ? g->K * N * bytes : 0);
    size_t wide = scratch_add(&parts, g->din != NULL && N != g->N ? g->M * N * bytes : 0);
    TRY(scratch_need_parts(t, &parts));
    *turned = (struct turned){.dout = scratch_at(t, &parts, dout),
                              .in = scratch_at(t, &parts, in),
                              .sums = g->dbias != NULL ? scratch_at(t, &parts, sums) : NULL,
                              .weight = scratch_at(t, &parts, weight),
                              .wide = scratch_at(t, &parts, wide),
                              .M = M,
                              .N = N};
    return STATUS_OK;
}

/* All in one launch: dout, in and, where din is wanted, weight. */
static enum status turn_all(struct training *t, const struct linear_gradient *g,
                            const struct turned *turned) {
    const struct given_call call = training_call(t);
    const struct given_transposition list[] = {
        {g->dout, turned->dout, g->M, g->N, turned->M, turned->sums},
        {g->in, turned->in, g->M, g->K, turned->M, NULL},
        {g->weight, turned->weight, g->N, g->K, turned->N, NULL},
    };
    return given_transpose(&call, list, g->din != NULL ? 3 : 2);
}

/* dweight += dout^T * in. Sums are fp32 all the way: what is there is the residual. */
static enum status weight_gradient_16(struct training *t, const struct linear_gradient *g,
                                      const struct turned *turned) {
    return product16(t, &(struct gemm16_problem){.dtype = NN_BF16,
                                                 .out_dtype = NN_F32,
                                                 .M = g->N,
                                                 .N = g->K,
                                                 .K = turned->M,
                                                 .in = turned->dout,
                                                 .weight = turned->in,
                                                 .residual = g->dweight,
                                                 .residual_is_float = true,
                                                 .out = g->dweight});
}

/* din = dout * weight + add. */
static enum status input_gradient_16(struct training *t, const struct linear_gradient *g,
                                     const struct turned *turned) {
    const struct given_call call = training_call(t);
    bool wide = turned->N != g->N;
    if (wide) {
        TRY(given_pad(&call, turned->wide, g->dout, g->M, g->N, turned->N));
    }
    return product16(t, &(struct gemm16_problem){.dtype = NN_BF16,
                                                 .out_dtype = NN_BF16,
                                                 .M = g->M,
                                                 .N = g->K,
                                                 .K = turned->N,
                                                 .in = wide ? turned->wide : g->dout,
                                                 .weight = turned->weight,
                                                 .residual = g->add,
                                                 .out = g->din});
}

static enum status linear_backward_16(struct training *t, const struct linear_gradient *g) {
    struct turned turned;
    TRY(place_turned(t, g, &turned));
    TRY(turn_all(t, g, &turned));
    TRY(add_bias_gradient(t, g, turned.sums));
    TRY(weight_gradient_16(t, g, &turned));
    return g->din == NULL ? STATUS_OK : input_gradient_16(t, g, &turned);
}

enum status training_linear_backward(void *context, void *din, const void *add, void *dweight,
                                     void *dbias, const void *dout, const void *in,
                                     const void *weight, size_t M, size_t N, size_t K) {
    struct training *t = context;
    const struct linear_gradient g = {din, add, dweight, dbias, dout, in, weight, M, N, K};
    return t->type == NN_F32 ? linear_backward_f32(t, &g) : linear_backward_16(t, &g);
}
