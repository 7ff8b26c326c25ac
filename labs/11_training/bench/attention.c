/* Attention's gradient in the bench: texts of one length, q, k and v as thirds of one matrix. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/train/train_engine.h"
#include "labs/11_training/bench/parts.h"

enum { QKV, OUT, DOUT, LSE, DQKV, TENSORS };

/* Heads of texts that are compared, spread over all: the oracle has one CPU. */
enum { CHECKED = 4 };

struct sizes {
    size_t B, NH, T, HS, C, rows;
};

static struct sizes sizes_of(const struct bench_shape *s) {
    struct sizes z = {.B = s->sizes[0], .NH = s->sizes[1], .T = s->sizes[2], .HS = s->sizes[3]};
    z.C = z.NH * z.HS;
    z.rows = z.B * z.T;
    return z;
}

static float scale_of(const struct sizes *z) {
    return 1.0f / sqrtf((float)z->HS);
}

/* One head of one text: its tensors close together, and the gradients that they ought to have. */
struct one {
    size_t b, h;
    double *q, *k, *v, *out, *dout, *dq, *dk, *dv; /* (T, HS) */
    double *lse;                                   /* (T) */
    int32_t starts[2];
    struct train_attention attention; /* points to the above */
};

static enum status one_create(struct one *one, const struct sizes *z, int which) {
    size_t count = z->T * z->HS;
    double **parts[] = {&one->q,    &one->k,  &one->v,  &one->out,
                        &one->dout, &one->dq, &one->dk, &one->dv};
    *one = (struct one){0};
    size_t pair = z->B * z->NH > 1 ? (z->B * z->NH - 1) * (size_t)which / (CHECKED - 1) : 0;
    one->b = pair / z->NH;
    one->h = pair % z->NH;
    one->q = calloc(8 * count + z->T, sizeof *one->q);
    for (int i = 1; i < 8 && one->q != NULL; i++) {
        *parts[i] = one->q + (size_t)i * count;
    }
    one->lse = one->q != NULL ? one->q + 8 * count : NULL;
    one->starts[1] = (int32_t)z->T;
    one->attention = (struct train_attention){.q = one->q,
                                              .k = one->k,
                                              .v = one->v,
                                              .starts = one->starts,
                                              .host_starts = one->starts,
                                              .B = 1,
                                              .rows = z->T,
                                              .longest = z->T,
                                              .NH = 1,
                                              .KVH = 1,
                                              .HS = z->HS,
                                              .q_stride = z->HS,
                                              .kv_stride = z->HS,
                                              .scale = scale_of(z)};
    return one->q != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void one_free(struct one *one) {
    free(one->q);
}

/* The head's rows of a tensor whose rows are `stride` apart, to or from the head's own. */
static void copy_head(double *own, double *tensor, size_t stride, const struct sizes *z,
                      const struct one *one, bool to_tensor) {
    for (size_t t = 0; t < z->T; t++) {
        double *row = tensor + (one->b * z->T + t) * stride + one->h * z->HS;
        double *own_row = own + t * z->HS;
        memcpy(to_tensor ? row : own_row, to_tensor ? own_row : row, z->HS * sizeof *own);
    }
}

static void take_inputs(struct one *one, const struct bench_case *c, const struct sizes *z) {
    double *qkv = c->tensors[QKV].values;
    copy_head(one->q, qkv, 3 * z->C, z, one, false);
    copy_head(one->k, qkv + z->C, 3 * z->C, z, one, false);
    copy_head(one->v, qkv + 2 * z->C, 3 * z->C, z, one, false);
    copy_head(one->out, c->tensors[OUT].values, z->C, z, one, false);
    copy_head(one->dout, c->tensors[DOUT].values, z->C, z, one, false);
    for (size_t t = 0; t < z->T; t++) {
        one->lse[t] = c->tensors[LSE].values[(one->b * z->T + t) * z->NH + one->h];
    }
}

/* Its forward pass, into the case's values of out and lse. */
static enum status forward(struct bench_case *c, const struct sizes *z, int which,
                           const struct train_engine *reference) {
    struct one one;
    TRY(one_create(&one, z, which));
    take_inputs(&one, c, z);
    enum status status = reference->attention(reference->context, one.out, one.lse, &one.attention);
    copy_head(one.out, c->tensors[OUT].values, z->C, z, &one, true);
    for (size_t t = 0; t < z->T; t++) {
        c->tensors[LSE].values[(one.b * z->T + t) * z->NH + one.h] = one.lse[t];
    }
    one_free(&one);
    return status;
}

/* Of heads that are not compared out stays 0, and lse what equal scores would have: the work is the
   same. */
static enum status fill_forward(struct bench_case *c, const struct sizes *z, struct error *error) {
    struct train_engine reference;
    TRY(train_reference_create(&reference));
    for (size_t i = 0; i < z->rows * z->NH; i++) {
        c->tensors[LSE].values[i] = log((double)z->T) + 0.5;
    }
    enum status status = STATUS_OK;
    for (int i = 0; i < CHECKED && status == STATUS_OK; i++) {
        status = forward(c, z, i, &reference);
    }
    train_engine_destroy(&reference);
    TRY(status);
    TRY(bench_tensor_put(&c->tensors[OUT], error));
    return bench_tensor_put(&c->tensors[LSE], error);
}

static enum status make_starts(struct bench_case *c, const struct sizes *z, struct error *error) {
    size_t bytes = (z->B + 1) * sizeof *c->starts;
    c->starts = malloc(bytes);
    if (c->starts == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory on the host");
    }
    for (size_t b = 0; b <= z->B; b++) {
        c->starts[b] = (int32_t)(b * z->T);
    }
    TRY(device_alloc((void **)&c->d_starts, bytes, error));
    return device_write(c->d_starts, c->starts, bytes, NULL, error);
}

/* The first texts. */
static struct attention_backward_problem problem_of(const struct bench_case *c, size_t texts) {
    const struct bench_tensor *t = c->tensors;
    const struct sizes z = sizes_of(&c->shape);
    size_t bytes = z.C * nn_dtype_bytes(c->dtype);
    char *qkv = t[QKV].device, *dqkv = t[DQKV].device;
    return (struct attention_backward_problem){.dtype = c->dtype,
                                               .q = qkv,
                                               .k = qkv + bytes,
                                               .v = qkv + 2 * bytes,
                                               .out = t[OUT].device,
                                               .dout = t[DOUT].device,
                                               .lse = t[LSE].device,
                                               .dq = dqkv,
                                               .dk = dqkv + bytes,
                                               .dv = dqkv + 2 * bytes,
                                               .starts = c->d_starts,
                                               .host_starts = c->starts,
                                               .B = texts,
                                               .rows = texts * z.T,
                                               .longest = z.T,
                                               .NH = z.NH,
                                               .KVH = z.NH,
                                               .HS = z.HS,
                                               .q_stride = 3 * z.C,
                                               .kv_stride = 3 * z.C,
                                               .scale = scale_of(&z)};
}

static enum status create(struct bench_case *c, struct error *error) {
    const struct sizes z = sizes_of(&c->shape);
    struct rng rng = rng_create(4);
    const size_t counts[] = {z.rows * 3 * z.C, z.rows * z.C, z.rows * z.C, z.rows * z.NH,
                             z.rows * 3 * z.C};
    for (int i = 0; i < TENSORS; i++) {
        enum nn_dtype dtype = i == LSE ? NN_F32 : c->dtype;
        TRY(bench_tensor_create(&c->tensors[i], dtype, counts[i], 0, error));
    }
    TRY(make_starts(c, &z, error));
    TRY(bench_tensor_draw(&c->tensors[QKV], &rng, 0.0, 1.0, error));
    TRY(bench_tensor_draw(&c->tensors[DOUT], &rng, 0.1, 1.0, error));
    TRY(fill_forward(c, &z, error));
    const struct attention_backward_problem problem = problem_of(c, z.B);
    return device_alloc(&c->scratch, attention_backward_scratch(&problem), error);
}

static void destroy(struct bench_case *c) {
    for (int i = 0; i < TENSORS; i++) {
        bench_tensor_free(&c->tensors[i]);
    }
    device_free(c->scratch);
    device_free(c->d_starts);
    free(c->starts);
}

static enum status run(struct bench_case *c, size_t rows, device_stream stream,
                       struct error *error) {
    const struct attention_backward_problem problem = problem_of(c, rows);
    return c->functions->attention_backward(&problem, c->scratch, stream, error);
}

/* fp32: as the ladder's test. bf16: p and ds are rounded before they multiply, the result once. */
static enum status check_one(struct bench_case *c, struct one *one, const struct sizes *z,
                             char *wrong, size_t size, struct error *error) {
    double storage = c->dtype == NN_F32 ? 0.0 : 4.0 * nn_dtype_rounding(c->dtype);
    const double *want[] = {one->dq, one->dk, one->dv};
    static const char *const names[] = {"dq", "dk", "dv"};
    for (size_t i = 0; i < 3 && wrong[0] == '\0'; i++) {
        size_t first = one->b * z->T * 3 * z->C + i * z->C + one->h * z->HS;
        TRY(bench_tensor_check(&c->tensors[DQKV], names[i], want[i], first, z->T, z->HS, 3 * z->C,
                               5e-5 + storage, wrong, size, error));
    }
    return STATUS_OK;
}

static enum status expect_and_check(struct bench_case *c, const struct sizes *z, int which,
                                    const struct train_engine *reference, char *wrong, size_t size,
                                    struct error *error) {
    struct one one;
    TRY(one_create(&one, z, which));
    take_inputs(&one, c, z);
    const struct train_attention_gradient gradient = {one.dq, one.dk, one.dv};
    enum status status = reference->attention_backward(reference->context, &gradient, one.dout,
                                                       one.out, one.lse, &one.attention);
    if (status == STATUS_OK) {
        status = check_one(c, &one, z, wrong, size, error);
    }
    one_free(&one);
    return status;
}

static enum status check(struct bench_case *c, char *wrong, size_t size, struct error *error) {
    const struct sizes z = sizes_of(&c->shape);
    struct train_engine reference;
    TRY(bench_tensor_poison(&c->tensors[DQKV], error));
    TRY(run(c, z.B, NULL, error));
    TRY(train_reference_create(&reference));
    enum status status = STATUS_OK;
    wrong[0] = '\0';
    for (int i = 0; i < CHECKED && status == STATUS_OK && wrong[0] == '\0'; i++) {
        status = expect_and_check(c, &z, i, &reference, wrong, size, error);
    }
    train_engine_destroy(&reference);
    return status;
}

static void describe(const struct bench_shape *s, char *text, size_t size) {
    snprintf(text, size, "b%zu h%zu s%zu d%zu", s->sizes[0], s->sizes[1], s->sizes[2], s->sizes[3]);
}

/* Five products of each pair of a query and a key: scores, dp, dq, dk, dv. */
static double flops(const struct bench_shape *s) {
    const struct sizes z = sizes_of(s);
    return 10.0 * (double)z.rows * (double)z.T * (double)z.C;
}

/* q, k, v, out, dout and three gradients, and lse. */
static double bytes(const struct bench_shape *s, enum nn_dtype dtype) {
    const struct sizes z = sizes_of(s);
    return 8.0 * (double)z.rows * (double)z.C * (double)nn_dtype_bytes(dtype) +
           4.0 * (double)z.rows * (double)z.NH;
}

static double memory(const struct bench_shape *s, enum nn_dtype dtype) {
    const struct sizes z = sizes_of(s);
    return bytes(s, dtype) + 8.0 * (double)z.rows * (double)z.NH * (double)(z.T + z.HS + 2);
}

static bool differ(const struct training_functions *a, const struct training_functions *b) {
    return a->attention_backward != b->attention_backward;
}

const struct bench_function bench_attention = {.name = "attention_backward",
                                               .flag = "attention",
                                               .example = "B,NH,T,HS",
                                               .sizes = 4,
                                               .unit = "TFLOP/s",
                                               .create = create,
                                               .destroy = destroy,
                                               .run = run,
                                               .check = check,
                                               .describe = describe,
                                               .flops = flops,
                                               .bytes = bytes,
                                               .memory = memory,
                                               .differ = differ};
