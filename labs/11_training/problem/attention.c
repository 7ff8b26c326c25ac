#include "labs/11_training/problem/attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/words.h"
#include "common/train/train_engine.h"

static const char *const names[] = {"dq", "dk", "dv"};

/* A gradient whose largest element is smaller is that of a text of one token. */
static const double NOTHING = 1e-3;

/* ---- Where things lie ---- */

static size_t heads_of(const struct attention_gradient_case *c, int which) {
    return which == 0 ? c->spec.NH : c->spec.KVH;
}

static size_t stride_of(const struct attention_gradient_case *c, int which) {
    return which == 0 ? c->q_stride : c->kv_stride;
}

/* In which tensor q, k or v lies. */
static int tensor_of(const struct attention_gradient_case *c, int which) {
    return c->spec.joined ? 0 : which;
}

/* And at which element of its rows. */
static size_t first_of(const struct attention_gradient_case *c, int which) {
    const struct attention_gradient_spec *s = &c->spec;
    const size_t firsts[] = {0, s->NH * s->HS, (s->NH + s->KVH) * s->HS};
    return s->joined ? firsts[which] : 0;
}

/* The oracle's values of q, k or v, or of its gradient. */
static double *values_of(const struct attention_gradient_case *c, const struct tensor tensors[3],
                         int which) {
    return tensors[tensor_of(c, which)].values + first_of(c, which);
}

/* Unused elements at the end of a joined row. */
static size_t gap_of(const struct attention_gradient_spec *s) {
    return s->packed ? 0 : ATTENTION_GRADIENT_GAP;
}

static void describe(struct attention_gradient_case *c) {
    const struct attention_gradient_spec *s = &c->spec;
    snprintf(c->name, sizeof c->name,
             "attention_backward %s, %zu text%s, the longest of %zu tokens, %zu rows, NH=%zu "
             "KVH=%zu HS=%zu%s%s",
             nn_dtype_name(s->dtype), s->B, plural(s->B), c->longest, c->rows, s->NH, s->KVH, s->HS,
             s->causal ? ", causal" : "", s->joined ? ", q, k and v in one matrix" : "");
}

static void lay_out(struct attention_gradient_case *c) {
    const struct attention_gradient_spec *s = &c->spec;
    for (size_t b = 0; b < s->B; b++) {
        size_t length = (size_t)s->lengths[b];
        c->starts[b + 1] = c->starts[b] + s->lengths[b];
        c->longest = length > c->longest ? length : c->longest;
    }
    c->rows = (size_t)c->starts[s->B];
    size_t joined = (s->NH + 2 * s->KVH) * s->HS + gap_of(s);
    c->q_stride = s->joined ? joined : s->NH * s->HS;
    c->kv_stride = s->joined ? joined : s->KVH * s->HS;
    describe(c);
}

/* Every tensor of a case, for what is done with all. */
enum { TENSORS = 10 };
static void list_tensors(struct attention_gradient_case *c, struct tensor *all[TENSORS]) {
    struct tensor *list[TENSORS] = {&c->qkv[0],  &c->qkv[1], &c->qkv[2], &c->dqkv[0], &c->dqkv[1],
                                    &c->dqkv[2], &c->out,    &c->dout,   &c->lse,     &c->d_starts};
    memcpy(all, list, sizeof list);
}

static enum status make_tensors(struct attention_gradient_case *c, bool guarded,
                                struct error *error) {
    const struct attention_gradient_spec *s = &c->spec;
    for (int i = 0; i < 3; i++) {
        size_t count = s->joined && i > 0 ? 0 : c->rows * stride_of(c, i);
        TRY(tensor_create(&c->qkv[i], s->dtype, count, guarded, error));
        TRY(tensor_create(&c->dqkv[i], s->dtype, count, guarded, error));
        c->want[i] = calloc(c->rows * heads_of(c, i) * s->HS + 1, sizeof(double));
        if (c->want[i] == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
        }
    }
    TRY(tensor_create(&c->out, s->dtype, c->rows * s->NH * s->HS, guarded, error));
    TRY(tensor_create(&c->dout, s->dtype, c->rows * s->NH * s->HS, guarded, error));
    TRY(tensor_create(&c->lse, NN_F32, c->rows * s->NH, guarded, error));
    TRY(tensor_create(&c->d_starts, NN_F32, s->B + 1, guarded, error));
    const struct attention_backward_problem problem = attention_gradient_problem(c);
    return device_alloc(&c->scratch, attention_backward_scratch(&problem), error);
}

/* ---- What is right ---- */

static struct train_attention reference_attention(const struct attention_gradient_case *c) {
    const struct attention_gradient_spec *s = &c->spec;
    return (struct train_attention){.q = values_of(c, c->qkv, 0),
                                    .k = values_of(c, c->qkv, 1),
                                    .v = values_of(c, c->qkv, 2),
                                    .starts = c->starts,
                                    .host_starts = c->starts,
                                    .B = s->B,
                                    .rows = c->rows,
                                    .longest = c->longest,
                                    .NH = s->NH,
                                    .KVH = s->KVH,
                                    .HS = s->HS,
                                    .q_stride = c->q_stride,
                                    .kv_stride = c->kv_stride,
                                    .causal = s->causal,
                                    .scale = 1.0f / sqrtf((float)s->HS)};
}

/* The forward pass in double; what it leaves is rounded as it would be stored. */
static enum status forward(struct attention_gradient_case *c, const struct train_engine *reference,
                           struct error *error) {
    const struct train_attention attention = reference_attention(c);
    TRY(reference->attention(reference->context, c->out.values, c->lse.values, &attention));
    TRY(tensor_put(&c->out, NULL, error));
    return tensor_put(&c->lse, NULL, error);
}

/* Its gradient. The reference lays it out as q, k and v are. */
static enum status backward(struct attention_gradient_case *c, const struct train_engine *reference,
                            struct error *error) {
    const struct train_attention attention = reference_attention(c);
    double *const rows[] = {values_of(c, c->dqkv, 0), values_of(c, c->dqkv, 1),
                            values_of(c, c->dqkv, 2)};
    const struct train_attention_gradient gradient = {rows[0], rows[1], rows[2]};
    TRY(reference->attention_backward(reference->context, &gradient, c->dout.values, c->out.values,
                                      c->lse.values, &attention));
    for (int i = 0; i < 3; i++) {
        size_t width = heads_of(c, i) * c->spec.HS;
        for (size_t row = 0; row < c->rows; row++) {
            memcpy(c->want[i] + row * width, rows[i] + row * stride_of(c, i),
                   width * sizeof(double));
        }
    }
    (void)error;
    return STATUS_OK;
}

static enum status both_passes(struct attention_gradient_case *c,
                               const struct train_engine *reference, struct error *error) {
    TRY(forward(c, reference, error));
    return backward(c, reference, error);
}

static enum status compute(struct attention_gradient_case *c, struct error *error) {
    struct train_engine reference = {0};
    TRY(train_reference_create(&reference));
    enum status status = both_passes(c, &reference, error);
    train_engine_destroy(&reference);
    return status;
}

static enum status draw(struct attention_gradient_case *c, struct rng *rng, struct error *error) {
    for (int i = 0; i < 3; i++) {
        TRY(tensor_draw(&c->qkv[i], rng, 0.0, i == 0 ? c->spec.loudness : 1.0, error));
    }
    return tensor_draw(&c->dout, rng, 0.1, 1.0, error);
}

enum status attention_gradient_create(struct attention_gradient_case *c,
                                      const struct attention_gradient_spec *spec, struct rng *rng,
                                      bool guarded, struct error *error) {
    *c = (struct attention_gradient_case){.spec = *spec};
    lay_out(c);
    TRY(make_tensors(c, guarded, error));
    TRY(draw(c, rng, error));
    return compute(c, error);
}

void attention_gradient_free(struct attention_gradient_case *c) {
    struct tensor *all[TENSORS];
    list_tensors(c, all);
    for (size_t i = 0; i < TENSORS; i++) {
        tensor_free(all[i]);
    }
    for (int i = 0; i < 3; i++) {
        free(c->want[i]);
    }
    device_free(c->scratch);
}

/* ---- Another worker's memory; other inputs ---- */

enum status attention_gradient_place(struct attention_gradient_case *copy, struct error *error) {
    struct tensor *all[TENSORS];
    const struct attention_backward_problem problem = attention_gradient_problem(copy);
    list_tensors(copy, all);
    for (size_t i = 0; i < TENSORS; i++) {
        all[i]->buffer = (struct device_buffer){0};
    }
    copy->scratch = NULL;
    for (size_t i = 0; i < TENSORS; i++) {
        TRY(tensor_place(all[i], error));
    }
    return device_alloc(&copy->scratch, attention_backward_scratch(&problem), error);
}

void attention_gradient_unplace(struct attention_gradient_case *copy) {
    struct tensor *all[TENSORS];
    list_tensors(copy, all);
    for (size_t i = 0; i < TENSORS; i++) {
        tensor_unplace(all[i]);
    }
    device_free(copy->scratch);
}

static double sign_of(struct rng *rng) {
    return rng_below(rng, 2) == 0 ? 1.0 : -1.0;
}

/* One channel of a head of rows `stride` apart. */
static void flip_column(double *values, size_t rows, size_t stride, double sign) {
    for (size_t row = 0; row < rows; row++) {
        values[row * stride] *= sign;
    }
}

/* A channel of a key head, and of all query heads that read it. */
static void flip_channel(struct attention_gradient_case *c, size_t head, size_t channel,
                         double qk_sign, double v_sign) {
    const struct attention_gradient_spec *s = &c->spec;
    size_t group = s->NH / s->KVH, key = head * s->HS + channel;
    flip_column(values_of(c, c->qkv, 1) + key, c->rows, c->kv_stride, qk_sign);
    flip_column(values_of(c, c->qkv, 2) + key, c->rows, c->kv_stride, v_sign);
    flip_column(c->want[1] + key, c->rows, s->KVH * s->HS, qk_sign);
    flip_column(c->want[2] + key, c->rows, s->KVH * s->HS, v_sign);
    for (size_t h = head * group; h < (head + 1) * group; h++) {
        size_t query = h * s->HS + channel, width = s->NH * s->HS;
        flip_column(values_of(c, c->qkv, 0) + query, c->rows, c->q_stride, qk_sign);
        flip_column(c->want[0] + query, c->rows, width, qk_sign);
        flip_column(c->out.values + query, c->rows, width, v_sign);
        flip_column(c->dout.values + query, c->rows, width, v_sign);
    }
}

void attention_gradient_renew(struct attention_gradient_case *c, struct rng *rng) {
    for (size_t head = 0; head < c->spec.KVH; head++) {
        for (size_t channel = 0; channel < c->spec.HS; channel++) {
            double qk_sign = sign_of(rng), v_sign = sign_of(rng);
            flip_channel(c, head, channel, qk_sign, v_sign);
        }
    }
}

enum status attention_gradient_send(struct attention_gradient_case *c, struct error *error) {
    float starts[ATTENTION_GRADIENT_MOST_TEXTS + 1];
    for (int i = 0; i < 3; i++) {
        TRY(tensor_put(&c->qkv[i], NULL, error));
        TRY(tensor_poison(&c->dqkv[i], error));
    }
    TRY(tensor_put(&c->out, NULL, error));
    TRY(tensor_put(&c->dout, NULL, error));
    TRY(tensor_put(&c->lse, NULL, error));
    memcpy(starts, c->starts, (c->spec.B + 1) * sizeof *starts);
    return device_buffer_put(&c->d_starts.buffer, starts, error);
}

/* The device's place of q, k or v, or of its gradient. */
static void *device_place(const struct attention_gradient_case *c, const struct tensor tensors[3],
                          int which) {
    char *data = (char *)(void *)tensors[tensor_of(c, which)].buffer.data;
    return data + first_of(c, which) * nn_dtype_bytes(c->spec.dtype);
}

struct attention_backward_problem
attention_gradient_problem(const struct attention_gradient_case *c) {
    const struct attention_gradient_spec *s = &c->spec;
    return (struct attention_backward_problem){
        .dtype = s->dtype,
        .q = device_place(c, c->qkv, 0),
        .k = device_place(c, c->qkv, 1),
        .v = device_place(c, c->qkv, 2),
        .out = c->out.buffer.data,
        .dout = c->dout.buffer.data,
        .lse = c->lse.buffer.data,
        .dq = device_place(c, c->dqkv, 0),
        .dk = device_place(c, c->dqkv, 1),
        .dv = device_place(c, c->dqkv, 2),
        .starts = (const int32_t *)(const void *)c->d_starts.buffer.data,
        .host_starts = c->starts,
        .B = s->B,
        .rows = c->rows,
        .longest = c->longest,
        .NH = s->NH,
        .KVH = s->KVH,
        .HS = s->HS,
        .q_stride = c->q_stride,
        .kv_stride = c->kv_stride,
        .causal = s->causal,
        .scale = 1.0f / sqrtf((float)s->HS)};
}

struct tensor_outputs attention_gradient_outputs(const struct attention_gradient_case *c) {
    return (struct tensor_outputs){{&c->dqkv[0], &c->dqkv[1], &c->dqkv[2]}, 3};
}

/* ---- The verdict ---- */

/*
 * Each result is a sum over the tokens of a text. fp32: its terms err like dot products of length
 * HS, times how loud the scores are, its sums like one of the text's length. bf16: probabilities
 * and their gradients may be rounded once before they multiply, and the result once. Sums and
 * roundings are relative to the largest element of the same gradient. The dot products are of
 * size 1 before they cancel each other (the inputs' deviation), however little they leave: of a
 * text of one token nothing.
 */
static struct tolerance tolerance_of(const struct attention_gradient_case *c, double largest) {
    const struct attention_gradient_spec *s = &c->spec;
    double loudness = fmax(1.0, s->loudness);
    double terms = tolerance_dot_f32(s->HS, loudness).absolute;
    double sums = 0.25 * tolerance_dot_f32(c->longest * (s->NH / s->KVH), 1.0).absolute;
    double rounding = nn_dtype_rounding(s->dtype);
    double storage = s->dtype == NN_F32 ? 0.0 : 4.0 * rounding * loudness;
    const struct tolerance tolerance = {terms * fmax(largest, 1.0) +
                                            (sums + storage + 0x1p-19) * largest,
                                        rounding, s->dtype == NN_F32 ? 1e-4 : 8.0 * rounding};
    /* Of a text of one token dq and dk are nothing but rounding, of which no share can be asked. */
    return tensor_tighten(tolerance, largest > NOTHING ? s->share : 0.0, s->norm, largest,
                          s->dtype);
}

static bool check_one(const struct attention_gradient_case *c, int which, float *got, char *text,
                      size_t size) {
    const struct attention_gradient_spec *s = &c->spec;
    size_t width = heads_of(c, which) * s->HS, count = c->rows * width;
    double largest = 0.0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(c->want[which][i]));
    }
    struct comparison result =
        compare_f32(got, c->want[which], count, tolerance_of(c, fmax(largest, NOTHING)));
    result.pass = result.pass || (largest < NOTHING && result.finite &&
                                  fabs(result.got - result.want) <= result.allowed);
    if (!result.pass) {
        int length = snprintf(text, size, "%s: %s (rows, heads x HS): ", c->name, names[which]);
        comparison_describe(&result, width, text + length, size - (size_t)length);
    }
    return result.pass;
}

/* Is what lies behind a row's gradients as it was, bytes of 0xff? */
static bool gaps_untouched(const struct attention_gradient_case *c) {
    size_t bytes = nn_dtype_bytes(c->spec.dtype), gap = gap_of(&c->spec) * bytes;
    const unsigned char *all = (const unsigned char *)c->dqkv[0].bytes;
    bool untouched = true;
    for (size_t row = 0; row < c->rows && c->spec.joined; row++) {
        const unsigned char *end = all + (row + 1) * c->q_stride * bytes;
        for (const unsigned char *at = end - gap; at < end; at++) {
            untouched = untouched && *at == 0xff;
        }
    }
    return untouched;
}

/* Reads one of the gradients, rows close together. */
static enum status read_one(struct attention_gradient_case *c, int which, float *all, float *got,
                            bool *intact, struct error *error) {
    size_t stride = stride_of(c, which), width = heads_of(c, which) * c->spec.HS;
    bool changed;
    TRY(tensor_get(&c->dqkv[tensor_of(c, which)], all, intact, &changed, error));
    for (size_t row = 0; row < c->rows; row++) {
        memcpy(got + row * width, all + first_of(c, which) + row * stride, width * sizeof *got);
    }
    return STATUS_OK;
}

static enum status check_inputs(struct attention_gradient_case *c, float *got, char *text,
                                size_t size, struct error *error) {
    const struct tensor *inputs[] = {&c->qkv[0], &c->qkv[1], &c->qkv[2],
                                     &c->out,    &c->dout,   &c->lse};
    static const char *const input_names[] = {"q", "k", "v", "out", "dout", "lse"};
    for (size_t i = 0; i < 6 && text[0] == '\0'; i++) {
        bool intact, changed;
        TRY(tensor_get(inputs[i], got, &intact, &changed, error));
        if (changed || !intact) {
            snprintf(text, size, "%s: changed its input %s", c->name, input_names[i]);
        }
    }
    return STATUS_OK;
}

/* @param all, got host, each as large as the largest tensor */
static enum status check_all(struct attention_gradient_case *c, float *all, float *got, char *text,
                             size_t size, struct error *error) {
    for (int i = 0; i < 3; i++) {
        bool intact = true;
        TRY(read_one(c, i, all, got, &intact, error));
        if (!check_one(c, i, got, text, size)) {
            return STATUS_OK;
        }
        if (!(intact && gaps_untouched(c))) {
            snprintf(text, size, "%s: wrote outside of %s", c->name, names[i]);
            return STATUS_OK;
        }
    }
    return check_inputs(c, got, text, size, error);
}

enum status attention_gradient_check(struct attention_gradient_case *c, char *text, size_t size,
                                     struct error *error) {
    size_t stride = c->q_stride > c->kv_stride ? c->q_stride : c->kv_stride;
    float *got = calloc(2 * c->rows * stride + 2, sizeof *got);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    text[0] = '\0';
    enum status status = check_all(c, got + c->rows * stride + 1, got, text, size, error);
    free(got);
    return status;
}
