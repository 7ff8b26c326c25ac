/*
 * Every given operator of the GPU's engine next to the reference engine, which computes in double,
 * on the same random numbers; and twice with the same bits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "common/train/occurrences.h"
#include "labs/11_training/given/engine.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- Tensors in both engines ---- */

enum kind { ACTIVATION, WEIGHT, INDEX };

/* One argument of an operator. */
struct tensor {
    enum kind kind;
    size_t count;
    const int32_t *ids; /* INDEX: the numbers */
    float scale;        /* else normal, with this deviation; 0: zeros */
    size_t skew;        /* elements behind an aligned address */
    double loose;       /* beside the type's rounding, share of the largest; 0: a fp32 sum's */
    double typical;     /* the largest counts as this at least: an argument whose error it has */

    float *values;   /* what it holds before a call */
    void *host;      /* the reference's, (count) doubles, or the ids */
    void *base, *at; /* the GPU's */
};

enum { MOST = 12 };

/* Both engines, and the arguments of a call. */
struct rig {
    struct train_engine reference, gpu;
    enum nn_dtype type;
    struct rng rng;
    struct tensor tensors[MOST];
    size_t count;
};

/* A call of an operator; p: its tensors as that engine has them. */
typedef enum status call_function(const struct train_engine *engine, void **p, const void *sizes);

static enum nn_dtype type_of(const struct rig *rig, const struct tensor *t) {
    return t->kind == ACTIVATION ? rig->type : NN_F32;
}

static size_t bytes_of(const struct rig *rig, const struct tensor *t) {
    return t->count * (t->kind == INDEX ? sizeof(int32_t) : nn_dtype_bytes(type_of(rig, t)));
}

static bool rig_create(struct rig *rig, enum nn_dtype type) {
    struct error error = {0};
    const struct training_functions none = {NULL, NULL, NULL};
    *rig = (struct rig){.type = type, .rng = rng_create(11)};
    enum status status = training_engine_create_with(&rig->gpu, type, &none, &error);
    if (status == STATUS_NO_DEVICE) {
        test_stop(__FILE__, __LINE__, "%s", error.message);
        return false;
    }
    if (status != STATUS_OK || train_reference_create(&rig->reference) != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
        return false;
    }
    return true;
}

/* Values that the type can hold, so that both engines begin with the same. */
static void draw(struct rig *rig, struct tensor *t) {
    enum nn_dtype type = type_of(rig, t);
    void *stored = malloc(t->count * sizeof(float) + 1);
    t->values = calloc(t->count + 1, sizeof *t->values);
    if (stored != NULL && t->values != NULL) {
        rng_fill_normal(&rig->rng, t->values, t->count, t->scale);
        nn_dtype_store(stored, t->values, t->count, type);
        nn_dtype_load(t->values, stored, t->count, type);
    }
    free(stored);
}

/* The tensor as before a call, in both engines. */
static enum status reset(struct rig *rig, struct tensor *t) {
    if (t->kind == INDEX) {
        memcpy(t->host, t->ids, bytes_of(rig, t));
        return rig->gpu.write(rig->gpu.context, t->at, t->ids, bytes_of(rig, t));
    }
    void *stored = malloc(bytes_of(rig, t) + 1);
    if (stored == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < t->count; i++) {
        ((double *)t->host)[i] = (double)t->values[i];
    }
    nn_dtype_store(stored, t->values, t->count, type_of(rig, t));
    enum status status = rig->gpu.write(rig->gpu.context, t->at, stored, bytes_of(rig, t));
    free(stored);
    return status;
}

/* Adds an argument; its place is the order of the calls. count 0: NULL is passed. */
static void add(struct rig *rig, struct tensor tensor) {
    struct tensor *t = &rig->tensors[rig->count++];
    *t = tensor;
    if (t->count == 0) {
        return;
    }
    size_t element = bytes_of(rig, t) / t->count;
    if (t->kind != INDEX) {
        draw(rig, t);
    }
    t->host = calloc(t->count, sizeof(double));
    EXPECT_OK(rig->gpu.alloc(rig->gpu.context, (t->count + t->skew) * element, &t->base, NULL));
    t->at = (char *)t->base + t->skew * element;
    if (t->host == NULL || (t->kind != INDEX && t->values == NULL)) {
        TEST_FAIL("no memory for %zu numbers", t->count);
    }
}

static void add_activation(struct rig *rig, size_t count, float scale) {
    add(rig, (struct tensor){.kind = ACTIVATION, .count = count, .scale = scale});
}

static void add_weight(struct rig *rig, size_t count, float scale) {
    add(rig, (struct tensor){.kind = WEIGHT, .count = count, .scale = scale});
}

static void add_index(struct rig *rig, const int32_t *ids, size_t count) {
    add(rig, (struct tensor){.kind = INDEX, .count = count, .ids = ids});
}

static void clear(struct rig *rig) {
    for (size_t i = 0; i < rig->count; i++) {
        struct tensor *t = &rig->tensors[i];
        rig->gpu.release(rig->gpu.context, t->base);
        free(t->host);
        free(t->values);
    }
    rig->count = 0;
}

static void rig_free(struct rig *rig) {
    clear(rig);
    train_engine_destroy(&rig->reference);
    train_engine_destroy(&rig->gpu);
}

/*
 * The type's rounding of each element, and of the largest one 2e-5 for fp32's sums, or what the
 * tensor says: where something was rounded to bf16 on the way, two roundings of the largest.
 */
static void compare(const struct rig *rig, const struct tensor *t, const void *bytes,
                    const char *what, size_t number) {
    const double *want = t->host;
    float *got = malloc(t->count * sizeof *got);
    double largest = t->typical, rounding = nn_dtype_rounding(type_of(rig, t));
    if (got == NULL) {
        TEST_FAIL("no memory");
        return;
    }
    nn_dtype_load(got, bytes, t->count, type_of(rig, t));
    for (size_t i = 0; i < t->count; i++) {
        largest = fmax(largest, fabs(want[i]));
    }
    double loose = rig->type == NN_BF16 ? fmax(t->loose, 2e-5) : 2e-5;
    for (size_t i = 0; i < t->count && !test_has_failed(); i++) {
        double allowed = loose * largest + 1.25 * rounding * fabs(want[i]);
        if (!(fabs((double)got[i] - want[i]) <= allowed)) {
            TEST_FAIL("%s, %s: tensor %zu, element %zu of %zu is %.9g, not %.9g (+- %.3g)", what,
                      rig->gpu.name, number, i, t->count, (double)got[i], want[i], allowed);
        }
    }
    free(got);
}

/* One call on the GPU; bytes[i] receives what tensor i holds then, malloc()ed. */
static enum status run_gpu(struct rig *rig, call_function *call, const void *sizes, void **bytes,
                           struct error *error) {
    void *p[MOST] = {NULL};
    for (size_t i = 0; i < rig->count; i++) {
        struct tensor *t = &rig->tensors[i];
        p[i] = t->at;
        if (t->count > 0) {
            TRY(reset(rig, t));
        }
    }
    enum status status = call(&rig->gpu, p, sizes);
    enum status waited = rig->gpu.synchronize(rig->gpu.context, error);
    TRY(status != STATUS_OK ? status : waited);
    for (size_t i = 0; i < rig->count; i++) {
        struct tensor *t = &rig->tensors[i];
        bytes[i] = calloc(1, bytes_of(rig, t) + 1);
        if (bytes[i] == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        if (t->count > 0) {
            TRY(rig->gpu.read(rig->gpu.context, bytes[i], t->at, bytes_of(rig, t)));
        }
    }
    return STATUS_OK;
}

static enum status run_reference(struct rig *rig, call_function *call, const void *sizes) {
    void *p[MOST] = {NULL};
    for (size_t i = 0; i < rig->count; i++) {
        struct tensor *t = &rig->tensors[i];
        p[i] = t->host;
        if (t->count > 0) {
            TRY(reset(rig, t));
        }
    }
    return call(&rig->reference, p, sizes);
}

static void compare_all(struct rig *rig, void **first, void **second, const char *what) {
    for (size_t i = 0; i < rig->count; i++) {
        const struct tensor *t = &rig->tensors[i];
        if (memcmp(first[i], second[i], bytes_of(rig, t)) != 0) {
            TEST_FAIL("%s, %s: tensor %zu has other bits the second time", what, rig->gpu.name, i);
        }
        if (t->kind != INDEX && t->count > 0) {
            compare(rig, t, first[i], what, i);
        }
    }
}

/* Calls the operator in both engines, on the GPU twice, compares all tensors, and drops them. */
static void check(struct rig *rig, call_function *call, const void *sizes, const char *what) {
    void *first[MOST] = {NULL}, *second[MOST] = {NULL};
    struct error error = {0};
    enum status status = run_gpu(rig, call, sizes, first, &error);
    if (status == STATUS_OK) {
        status = run_gpu(rig, call, sizes, second, &error);
    }
    if (status == STATUS_OK) {
        status = run_reference(rig, call, sizes);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s, %s: %s", what, rig->gpu.name, error_text(&error, status));
    } else {
        compare_all(rig, first, second, what);
    }
    for (size_t i = 0; i < MOST; i++) {
        free(first[i]);
        free(second[i]);
    }
    clear(rig);
}

typedef void rig_function(struct rig *rig);

static void on_type(rig_function *function, enum nn_dtype type) {
    struct rig rig;
    if (rig_create(&rig, type)) {
        function(&rig);
        rig_free(&rig);
    }
}

/* GPUs before compute capability 8.0 run fp32 alone. */
static bool has_bf16(void) {
    struct device_properties gpu;
    return device_properties(&gpu, NULL) == STATUS_OK && gpu.code >= 80;
}

static void on_both_types(rig_function *function) {
    on_type(function, NN_F32);
    if (!test_has_failed() && has_bf16()) {
        on_type(function, NN_BF16);
    }
}

/* Defines call_name(), which makes the call `e->operator(...)` with the sizes `c`. */
#define CALL(name, sizes_type, call)                                                            \
    static enum status call_##name(const struct train_engine *e, void **p, const void *sizes) { \
        const sizes_type *c = sizes;                                                            \
        return call;                                                                            \
    }

/* A test whose body, check_name(), gets a rig of fp32. */
#define FP32_TEST(name)                        \
    static void check_##name(struct rig *rig); \
    C_TEST(given, name) {                      \
        on_type(check_##name, NN_F32);         \
    }                                          \
    static void check_##name(struct rig *rig)

/* The same, and then with one of bf16. */
#define TYPES_TEST(name)                       \
    static void check_##name(struct rig *rig); \
    C_TEST(given, name) {                      \
        on_both_types(check_##name);           \
    }                                          \
    static void check_##name(struct rig *rig)

/* ---- Linear layers ---- */

struct linear_case {
    size_t M, N, K;
    bool bias, din;
    int add; /* 0: none; 1: of its own; 2: din itself */
};

static const struct linear_case linear_cases[] = {
    {1, 1, 1, true, true, 0},      {5, 3, 7, false, true, 1},    {33, 40, 24, true, true, 2},
    {70, 64, 64, true, false, 0},  {17, 2, 33, true, true, 1},   {9, 136, 72, false, true, 2},
    {131, 48, 16, true, true, 1},  {64, 200, 96, true, true, 2}, {3, 67, 8, true, true, 0},
    {150, 264, 24, true, true, 1},
};

CALL(linear, struct linear_case, e->linear(e->context, p[0], p[1], p[2], p[3], c->M, c->N, c->K))

TYPES_TEST(linear) {
    for (size_t i = 0; i < COUNT(linear_cases); i++) {
        const struct linear_case *c = &linear_cases[i];
        add_activation(rig, c->M * c->N, 1.0f); /* old values must not matter */
        add_activation(rig, c->M * c->K, 1.0f);
        add_activation(rig, c->N * c->K, 1.0f);
        add_weight(rig, c->bias ? c->N : 0, 1.0f);
        check(rig, call_linear, c, "linear");
    }
}

static enum status call_linear_backward(const struct train_engine *e, void **p, const void *sizes) {
    const struct linear_case *c = sizes;
    const void *more = c->add == 2 ? p[0] : p[1];
    return e->linear_backward(e->context, p[0], more, p[2], p[3], p[4], p[5], p[6], c->M, c->N,
                              c->K);
}

TYPES_TEST(linear_backward) {
    for (size_t i = 0; i < COUNT(linear_cases); i++) {
        const struct linear_case *c = &linear_cases[i];
        add_activation(rig, c->din ? c->M * c->K : 0, 1.0f);
        add_activation(rig, c->add == 1 ? c->M * c->K : 0, 1.0f);
        add_weight(rig, c->N * c->K, 1.0f);
        add_weight(rig, c->bias ? c->N : 0, 1.0f);
        add_activation(rig, c->M * c->N, 1.0f);
        add_activation(rig, c->M * c->K, 1.0f);
        add_activation(rig, c->N * c->K, 1.0f);
        check(rig, call_linear_backward, c, "linear_backward");
    }
}

/* ---- Elementwise ---- */

static const size_t counts[] = {1, 7, 8, 1000, 4099};

struct activation_case {
    size_t count;
    enum nn_activation f;
    bool in_place;
};

CALL(activation, struct activation_case, e->activation(e->context, p[0], p[1], c->count, c->f))

CALL(activation_backward, struct activation_case,
     e->activation_backward(e->context, c->in_place ? p[2] : p[0], p[2], p[1], c->count, c->f))

TYPES_TEST(activation) {
    for (size_t i = 0; i < 2 * COUNT(counts); i++) {
        const struct activation_case c = {counts[i / 2], i % 2 == 0 ? NN_GELU : NN_TANH, i % 3 > 0};
        /* In its tail 1 + erf(x) keeps the absolute error of fp32's erf. */
        const struct tensor one = {
            .kind = ACTIVATION, .count = c.count, .scale = 1.0f, .typical = 0.1};
        add(rig, one);
        add_activation(rig, c.count, 2.0f);
        check(rig, call_activation, &c, "activation");
        add(rig, one);
        add_activation(rig, c.count, 2.0f);
        add(rig, one);
        check(rig, call_activation_backward, &c, "activation_backward");
    }
}

struct bias_case {
    size_t rows, C;
    enum nn_activation f;
    float p;
    bool in_place;
};

CALL(activation_bias_backward, struct bias_case,
     e->activation_bias_backward(e->context, c->in_place ? p[2] : p[0], p[3], p[2], p[1], c->rows,
                                 c->C, c->f))

static enum status call_dropout_bias_backward(const struct train_engine *e, void **p,
                                              const void *sizes) {
    const struct bias_case *c = sizes;
    const struct train_dropout dropout = {c->p, 5, 6, 7};
    return e->dropout_bias_backward(e->context, c->in_place ? p[2] : p[0], p[1], p[2], c->rows,
                                    c->C, &dropout);
}

/* Rows of a part of a block, of a block, and more; columns that are no vectors, too. */
TYPES_TEST(bias_backward) {
    static const struct bias_case cases[] = {
        {1, 1, NN_GELU, 0.3f, false},   {64, 8, NN_TANH, 0.3f, true},
        {7, 37, NN_GELU, 0.1f, true},   {65, 264, NN_TANH, 0.0f, false},
        {150, 40, NN_GELU, 0.5f, true}, {129, 301, NN_GELU, 0.2f, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct bias_case *c = &cases[i];
        size_t count = c->rows * c->C;
        const struct tensor one = {
            .kind = ACTIVATION, .count = count, .scale = 1.0f, .typical = 0.1};
        add(rig, one);
        add_activation(rig, count, 2.0f);
        add(rig, one);
        add_weight(rig, c->C, 1.0f);
        check(rig, call_activation_bias_backward, c, "activation_bias_backward");
        add_activation(rig, count, 1.0f);
        add_weight(rig, c->C, 1.0f);
        add_activation(rig, count, 1.0f);
        check(rig, call_dropout_bias_backward, c, "dropout_bias_backward");
    }
}

struct gate_case {
    size_t rows, hidden;
};

CALL(silu_gate, struct gate_case, e->silu_gate(e->context, p[0], p[1], c->rows, c->hidden))

CALL(silu_gate_backward, struct gate_case,
     e->silu_gate_backward(e->context, p[0], p[1], p[2], c->rows, c->hidden))

TYPES_TEST(silu_gate) {
    static const struct gate_case cases[] = {{1, 1}, {3, 8}, {5, 37}, {4, 264}, {2, 2100}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct gate_case *c = &cases[i];
        add_activation(rig, c->rows * c->hidden, 1.0f);
        add_activation(rig, c->rows * 2 * c->hidden, 2.0f);
        check(rig, call_silu_gate, c, "silu_gate");
        add_activation(rig, c->rows * 2 * c->hidden, 1.0f);
        add_activation(rig, c->rows * c->hidden, 1.0f);
        add_activation(rig, c->rows * 2 * c->hidden, 2.0f);
        check(rig, call_silu_gate_backward, c, "silu_gate_backward");
    }
}

struct dropout_case {
    size_t count;
    struct train_dropout dropout;
    int add, out; /* out: 0: of its own; 1: add; 2: in */
};

CALL(dropout, struct dropout_case,
     e->dropout(e->context, p[c->out], c->add ? p[1] : NULL, p[2], c->count, &c->dropout))

TYPES_TEST(dropout) {
    for (int i = 0; i < 12; i++) {
        const struct dropout_case c = {.count = counts[i % 5],
                                       .dropout = {.p = i % 4 == 3 ? 0.0f : 0.3f,
                                                   .seed = 0x123456789abcdefu + (uint64_t)i,
                                                   .site = (uint32_t)i,
                                                   .step = 7},
                                       .add = i % 2,
                                       .out = i % 2 == 1   ? i % 3
                                              : i % 3 == 1 ? 2
                                                           : 0};
        size_t skew = i % 5 == 4 ? 3 : 0;
        const struct tensor one = {
            .kind = ACTIVATION, .count = c.count, .scale = 1.0f, .skew = skew};
        add(rig, one);
        add(rig, one);
        add(rig, one);
        check(rig, call_dropout, &c, "dropout");
    }
}

/* ---- Norms ---- */

/* Two of bf16's roundings, of the largest element. */
static const double ROUNDED_TWICE = 2.0 / 256.0;

struct norm_case {
    size_t rows, C;
    float p;
    bool add, in_place;
};

/* Lengths of rows: of one vector, of all numbers of vectors a lane, of a block. */
static const struct norm_case norm_cases[] = {
    {3, 1, 0.0f, false, false},   {9, 5, 0.2f, true, false},   {5, 8, 0.0f, false, true},
    {70, 64, 0.1f, true, true},   {6, 264, 0.0f, true, false}, {3, 768, 0.1f, true, false},
    {2, 1024, 0.2f, false, true}, {3, 1025, 0.1f, true, true}, {2, 2056, 0.0f, false, false},
};

static enum status call_layernorm(const struct train_engine *e, void **p, const void *sizes) {
    const struct norm_case *c = sizes;
    const struct train_dropout dropout = {c->p, 5, 6, 7};
    const struct train_norm norm = {p[5], p[6], 1e-5f};
    return e->layernorm(e->context, p[0], p[1], c->in_place ? p[4] : p[2], c->add ? p[3] : NULL,
                        p[4], &dropout, &norm, c->rows, c->C);
}

TYPES_TEST(layernorm) {
    for (size_t i = 0; i < COUNT(norm_cases); i++) {
        const struct norm_case *c = &norm_cases[i];
        size_t count = c->rows * c->C;
        add(rig, (struct tensor){
                     .kind = ACTIVATION, .count = count, .scale = 1.0f, .loose = ROUNDED_TWICE});
        add(rig, (struct tensor){
                     .kind = WEIGHT, .count = 2 * c->rows, .scale = 1.0f, .loose = ROUNDED_TWICE});
        add_activation(rig, count, 1.0f);
        add_activation(rig, count, 1.0f);
        add_activation(rig, count, 3.0f);
        add_weight(rig, c->C, 1.0f);
        add_weight(rig, c->C, 1.0f);
        check(rig, call_layernorm, c, "layernorm");
    }
}

static enum status call_rmsnorm(const struct train_engine *e, void **p, const void *sizes) {
    const struct norm_case *c = sizes;
    const struct train_norm norm = {p[3], NULL, 1e-5f};
    return e->rmsnorm(e->context, p[0], p[1], p[2], &norm, c->rows, c->C);
}

/* din may be add, or dout. */
static enum status call_rmsnorm_backward(const struct train_engine *e, void **p,
                                         const void *sizes) {
    const struct norm_case *c = sizes;
    const struct train_norm norm = {p[6], NULL, 1e-5f};
    const struct train_norm_gradient gradient = {p[2], NULL};
    void *din = !c->in_place ? p[0] : c->add ? p[1] : p[3];
    return e->rmsnorm_backward(e->context, din, c->add ? p[1] : NULL, &gradient, p[3], p[4], p[5],
                               &norm, c->rows, c->C);
}

TYPES_TEST(rmsnorm) {
    for (size_t i = 0; i < COUNT(norm_cases); i++) {
        const struct norm_case *c = &norm_cases[i];
        size_t count = c->rows * c->C;
        add_activation(rig, count, 1.0f);
        add_weight(rig, c->rows, 1.0f);
        add_activation(rig, count, 3.0f);
        add_weight(rig, c->C, 1.0f);
        check(rig, call_rmsnorm, c, "rmsnorm");
        add_activation(rig, count, 1.0f);
        add_activation(rig, count, 1.0f);
        add_weight(rig, c->C, 1.0f);
        add_activation(rig, count, 1.0f);
        add_activation(rig, count, 1.0f);
        add_weight(rig, c->rows, 1.0f);
        add_weight(rig, c->C, 1.0f);
        check(rig, call_rmsnorm_backward, c, "rmsnorm_backward");
    }
}

/* ---- Attention ---- */

struct attention_case {
    const int32_t *starts;
    size_t B, NH, KVH, HS, more; /* more: elements between rows that belong to nobody */
    bool causal;
};

static struct train_attention attention_of(const struct attention_case *c, void **p) {
    struct train_attention a = {.q = p[2],
                                .k = p[3],
                                .v = p[4],
                                .starts = p[5],
                                .host_starts = c->starts,
                                .B = c->B,
                                .rows = (size_t)c->starts[c->B],
                                .NH = c->NH,
                                .KVH = c->KVH,
                                .HS = c->HS,
                                .q_stride = c->NH * c->HS + c->more,
                                .kv_stride = c->KVH * c->HS + c->more,
                                .causal = c->causal,
                                .scale = 1.0f / sqrtf((float)c->HS)};
    for (size_t b = 0; b < c->B; b++) {
        size_t length = (size_t)(c->starts[b + 1] - c->starts[b]);
        a.longest = length > a.longest ? length : a.longest;
    }
    return a;
}

static enum status call_attention(const struct train_engine *e, void **p, const void *sizes) {
    const struct train_attention a = attention_of(sizes, p);
    return e->attention(e->context, p[0], p[1], &a);
}

TYPES_TEST(attention) {
    static const int32_t one[] = {0, 1}, few[] = {0, 3, 4}, some[] = {0, 5, 6, 71, 90},
                         many[] = {0, 130, 163};
    static const struct attention_case cases[] = {
        {one, 1, 1, 1, 8, 0, true},    {few, 2, 2, 1, 32, 8, false}, {some, 4, 2, 2, 64, 0, true},
        {some, 4, 4, 2, 8, 16, false}, {some, 4, 2, 1, 48, 8, true}, {many, 2, 1, 1, 128, 0, true},
        {many, 2, 2, 2, 64, 64, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct attention_case *c = &cases[i];
        size_t rows = (size_t)c->starts[c->B];
        add(rig, (struct tensor){.kind = ACTIVATION,
                                 .count = rows * c->NH * c->HS,
                                 .scale = 1.0f,
                                 .loose = ROUNDED_TWICE});
        add_weight(rig, rows * c->NH, 1.0f);
        add_activation(rig, rows * (c->NH * c->HS + c->more), 1.5f);
        add_activation(rig, rows * (c->KVH * c->HS + c->more), 1.5f);
        add_activation(rig, rows * (c->KVH * c->HS + c->more), 1.0f);
        add_index(rig, c->starts, c->B + 1);
        check(rig, call_attention, c, "attention");
    }
}

struct rope_case {
    size_t rows, heads, HS, stride;
    enum nn_rope_layout layout;
    bool back;
};

CALL(rope, struct rope_case,
     e->rope(e->context, p[0], p[1], c->rows, c->heads, c->HS, c->stride, 10000.0f, c->layout,
             c->back))

TYPES_TEST(rope) {
    static const int32_t positions[] = {0, 1, 2047, 5, 4095, 77};
    static const struct rope_case cases[] = {
        {6, 1, 2, 2, NN_ROPE_INTERLEAVED, false},    {6, 3, 48, 150, NN_ROPE_INTERLEAVED, true},
        {6, 2, 64, 131, NN_ROPE_INTERLEAVED, false}, {6, 2, 64, 128, NN_ROPE_HALVES, false},
        {5, 3, 6, 21, NN_ROPE_HALVES, true},         {3, 2, 128, 256, NN_ROPE_HALVES, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        add_activation(rig, cases[i].rows * cases[i].stride, 1.0f);
        add_index(rig, positions, cases[i].rows);
        check(rig, call_rope, &cases[i], "rope");
    }
}

/* ---- Tables and rows ---- */

struct rows_case {
    size_t rows, V, C;
    bool accumulate;
    struct train_occurrences occurrences;
};

CALL(embedding, struct rows_case,
     e->embedding(e->context, p[0], p[1], p[2], c->rows, c->C, c->accumulate))

CALL(gather, struct rows_case, e->gather(e->context, p[0], p[1], p[2], c->rows, c->C))

CALL(scatter, struct rows_case, e->scatter(e->context, p[1], p[0], p[2], c->rows, c->C))

TYPES_TEST(rows) {
    static const int32_t ids[] = {4, 0, 2, 7, 10, 1, 3, 9, 8, 5}; /* each once, for scatter */
    static const size_t widths[] = {1, 5, 8, 64, 264, 777};
    for (size_t i = 0; i < COUNT(widths); i++) {
        const struct rows_case c = {
            .rows = COUNT(ids) - i, .V = 11, .C = widths[i], .accumulate = i % 2 == 1};
        add_activation(rig, c.rows * c.C, 1.0f);
        add_weight(rig, c.V * c.C, 1.0f);
        add_index(rig, ids, c.rows);
        check(rig, call_embedding, &c, "embedding");
        call_function *const calls[] = {call_gather, call_scatter};
        for (int j = 0; j < 2; j++) {
            add_activation(rig, c.rows * c.C, 1.0f);
            add_activation(rig, c.V * c.C, 1.0f);
            add_index(rig, ids, c.rows);
            check(rig, calls[j], &c, j == 0 ? "gather" : "scatter");
        }
    }
}

static enum status call_embedding_backward(const struct train_engine *e, void **p,
                                           const void *sizes) {
    const struct rows_case *c = sizes;
    const struct train_occurrences o = train_occurrences_at(&c->occurrences, p[2]);
    return e->embedding_backward(e->context, p[0], p[1], &o, c->C);
}

/* Most ids occur a few times, one occurs in every other row: more than a piece holds, and of 1200
   rows in more pieces than are added up at once. */
static void check_embedding_backward_of(struct rig *rig, size_t rows, size_t C) {
    enum { V = 50 };
    int32_t ids[1200], scratch[V], *block = malloc(train_occurrences_most(rows) * sizeof *block);
    struct error error = {0};
    struct rows_case c = {.rows = rows, .V = V, .C = C};
    for (size_t i = 0; i < rows; i++) {
        ids[i] = i % 2 == 0 ? 13 : (int32_t)rng_below(&rig->rng, V);
    }
    ASSERT_TRUE(block != NULL);
    EXPECT_OK(train_occurrences_build(&c.occurrences, block, scratch, ids, rows, V, &error));
    add_weight(rig, V * C, 1.0f);
    add_activation(rig, rows * C, 1.0f);
    add_index(rig, block, train_occurrences_used(&c.occurrences));
    check(rig, call_embedding_backward, &c, "embedding_backward");
    free(block);
}

TYPES_TEST(embedding_backward) {
    check_embedding_backward_of(rig, 1, 3);
    check_embedding_backward_of(rig, 100, 8);
    check_embedding_backward_of(rig, 400, 5);
    check_embedding_backward_of(rig, 399, 136);
    check_embedding_backward_of(rig, 300, 264);
    check_embedding_backward_of(rig, 1200, 8);
}

struct loss_case {
    size_t M, V;
};

CALL(cross_entropy, struct loss_case,
     e->cross_entropy(e->context, p[0], p[1], p[2], 0.25f, c->M, c->V))

TYPES_TEST(cross_entropy) {
    static const struct loss_case cases[] = {{1, 1},   {16, 2},  {9, 3},     {5, 10},    {70, 17},
                                             {6, 999}, {4, 520}, {2, 30522}, {2, 60000}, {3, 4104}};
    int32_t labels[70];
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct loss_case *c = &cases[i];
        for (size_t m = 0; m < c->M; m++) {
            labels[m] = m % 3 == 1 ? -1 : (int32_t)rng_below(&rig->rng, c->V);
        }
        labels[0] = (int32_t)c->V - 1;
        add_activation(rig, c->M * c->V, 3.0f);
        add_weight(rig, 1, 1.0f);
        add_index(rig, labels, c->M);
        check(rig, call_cross_entropy, c, "cross_entropy");
    }
}

/* ---- Norm of the gradient, memory, failures ---- */

struct clip_case {
    size_t count;
    float most;
};

CALL(clip, struct clip_case, e->clip(e->context, p[0], p[1], p[2], c->count, c->most))

FP32_TEST(clip) {
    static const struct clip_case cases[] = {
        {1, 0.0f}, {5000, 1.0f}, {5001, 1e6f}, {600003, 0.5f}, {4300003, 0.5f}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        add_weight(rig, 1, 1.0f);
        add_weight(rig, 1, 1.0f);
        add_weight(rig, cases[i].count, 1.0f);
        check(rig, call_clip, &cases[i], "clip");
    }
}

static enum status call_convert(const struct train_engine *e, void **p, const void *sizes) {
    return e->convert(e->context, p[0], p[1], *(const size_t *)sizes);
}

TYPES_TEST(convert) {
    for (size_t i = 0; i < COUNT(counts); i++) {
        add_activation(rig, counts[i], 1.0f);
        add_weight(rig, counts[i], 1.0f);
        check(rig, call_convert, &counts[i], "convert");
    }
}

/* Copies larger than a slot of page-locked memory, and more small ones than there are slots. */
FP32_TEST(memory) {
    enum { BYTES = 3 << 20, STEP = 100000 };
    const struct train_engine *e = &rig->gpu;
    unsigned char *host = malloc(BYTES), *back = calloc(1, BYTES);
    void *memory = NULL;
    ASSERT_TRUE(host != NULL && back != NULL);
    ASSERT_OK(e->alloc(e->context, BYTES, &memory, NULL));
    EXPECT_INT_EQ(0, (uintptr_t)memory % 256);
    memset(back, 1, BYTES);
    EXPECT_OK(e->read(e->context, back, memory, BYTES));
    EXPECT_TRUE(back[0] == 0 && memcmp(back, back + 1, BYTES - 1) == 0);
    for (size_t i = 0; i < BYTES; i++) {
        host[i] = (unsigned char)(i * 2654435761u >> 24);
    }
    EXPECT_OK(e->write(e->context, memory, host, BYTES));
    EXPECT_OK(e->read(e->context, back, memory, BYTES));
    EXPECT_TRUE(memcmp(host, back, BYTES) == 0);
    unsigned char *moving = malloc(STEP);
    ASSERT_TRUE(moving != NULL);
    for (size_t at = 0; at + STEP <= BYTES; at += STEP) {
        for (size_t i = 0; i < STEP; i++) {
            moving[i] = host[at + i] = (unsigned char)(at / STEP + i);
        }
        EXPECT_OK(e->write(e->context, (char *)memory + at, moving, STEP));
        memset(moving, 0xff, STEP); /* as soon as write() is back */
    }
    EXPECT_OK(e->read(e->context, back, memory, BYTES));
    EXPECT_TRUE(memcmp(host, back, BYTES) == 0);
    EXPECT_OK(e->zero(e->context, memory, 1000));
    EXPECT_OK(e->read(e->context, back, memory, 1001));
    EXPECT_TRUE(back[0] == 0 && memcmp(back, back + 1, 999) == 0 && back[1000] == host[1000]);
    e->release(e->context, memory);
    e->release(e->context, NULL);
    free(moving);
    free(host);
    free(back);
}

/* An operator returns its status alone; synchronize() has the line, once. */
FP32_TEST(failures) {
    const struct train_engine *e = &rig->gpu;
    struct error error = {0};
    const struct train_adamw adamw = {.count = 0};
    EXPECT_STATUS(STATUS_UNSUPPORTED, e->adamw(e->context, &adamw));
    EXPECT_STATUS(STATUS_UNSUPPORTED, e->synchronize(e->context, &error));
    EXPECT_STR_EQ("no adamw() was given", error.message);
    EXPECT_OK(e->synchronize(e->context, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, e->activation(e->context, NULL, NULL, 0, NN_RELU));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, e->synchronize(e->context, &error));
    EXPECT_STR_EQ("activation: f = 4 is neither GELU nor tanh", error.message);
}

C_TEST(given, refuses_other_types) {
    struct train_engine engine;
    struct error error = {0};
    const struct training_functions none = {NULL, NULL, NULL};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  training_engine_create_with(&engine, NN_F16, &none, &error));
    EXPECT_STR_EQ("training: type 1 is neither fp32 nor bf16", error.message);
    train_engine_destroy(&engine);
}

C_TEST(given, says_that_bf16_needs_another_GPU) {
    struct train_engine engine;
    struct error error = {0};
    const struct training_functions none = {NULL, NULL, NULL};
    if (has_bf16()) {
        TEST_SKIP("this GPU has bf16");
    }
    EXPECT_STATUS(STATUS_UNSUPPORTED, training_engine_create_with(&engine, NN_BF16, &none, &error));
    EXPECT_TRUE(strstr(error.message, "fp32 runs on it") != NULL);
}
