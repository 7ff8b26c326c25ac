/**
 * @file reference_attention_gradient_test.c
 * @brief The reference's attention and rotary positions backward, against central differences.
 */
#include <math.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/train/reference/gradient_check.h"
#include "common/train/train_engine.h"

/* Shapes of one check. */
struct shape {
    size_t lengths[4]; /* of the sequences, 0 after the last */
    size_t NH, KVH, HS;
    size_t gap;  /* elements that lie unused at the end of a row */
    bool packed; /* q, k and v in one row, as a fused product leaves them */
};

static const struct shape shapes[] = {
    {{1}, 1, 1, 1, 0, false},      {{5}, 2, 2, 3, 0, true},     {{3, 1, 7}, 1, 1, 8, 5, true},
    {{4, 6, 2}, 4, 2, 3, 1, true}, {{2, 9}, 3, 1, 5, 2, false}, {{1, 1, 1, 1}, 2, 1, 4, 0, true},
    {{11, 3}, 6, 3, 2, 0, false},
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

struct attention {
    struct train_engine engine;
    struct train_attention sizes;
    int32_t starts[5];
    size_t count;          /* of x: all that q, k and v lie in */
    size_t q, k, v;        /* where they begin there */
    double *x, *out, *lse; /* out (rows, NH, HS), lse (rows, NH) */
    const double *dout;
};

static void set_starts(struct attention *a, const struct shape *shape) {
    struct train_attention *sizes = &a->sizes;
    while (sizes->B < 4 && shape->lengths[sizes->B] > 0) {
        size_t length = shape->lengths[sizes->B++];
        sizes->longest = length > sizes->longest ? length : sizes->longest;
        sizes->rows += length;
        a->starts[sizes->B] = (int32_t)sizes->rows;
    }
}

/* Layout of q, k and v in x: in one row for each token, or one after the other. */
static void set_places(struct attention *a, const struct shape *shape) {
    size_t width = shape->NH * shape->HS, kv_width = shape->KVH * shape->HS;
    struct train_attention *sizes = &a->sizes;
    if (shape->packed) {
        sizes->q_stride = sizes->kv_stride = width + 2 * kv_width + shape->gap;
        a->k = width, a->v = width + kv_width;
        a->count = sizes->rows * sizes->q_stride;
    } else {
        sizes->q_stride = width + shape->gap;
        sizes->kv_stride = kv_width + 2 * shape->gap;
        a->k = sizes->rows * sizes->q_stride;
        a->v = a->k + sizes->rows * sizes->kv_stride;
        a->count = a->v + sizes->rows * sizes->kv_stride;
    }
}

static void attention_create(struct attention *a, struct gradient_tensors *t,
                             const struct shape *shape, bool causal) {
    *a = (struct attention){.engine = t->engine,
                            .sizes = {.NH = shape->NH,
                                      .KVH = shape->KVH,
                                      .HS = shape->HS,
                                      .causal = causal,
                                      .scale = 1.0f / sqrtf((float)shape->HS)}};
    set_starts(a, shape);
    set_places(a, shape);
    size_t heads = a->sizes.rows * shape->NH;
    a->x = gradient_random(t, a->count);
    a->out = gradient_unwritten(t, heads * shape->HS);
    a->lse = gradient_unwritten(t, heads);
    a->dout = gradient_random(t, heads * shape->HS);
    a->sizes.starts = a->sizes.host_starts = a->starts;
    a->sizes.q = a->x + a->q;
    a->sizes.k = a->x + a->k;
    a->sizes.v = a->x + a->v;
}

static double attention_loss(void *arguments) {
    struct attention *a = arguments;
    EXPECT_OK(a->engine.attention(a->engine.context, a->out, a->lse, &a->sizes));
    return gradient_dot(a->out, a->dout, a->sizes.rows * a->sizes.NH * a->sizes.HS);
}

/* Elements of dx that belong to no head are still NaN; they become 0. @return how many were */
static size_t unwritten(double *dx, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(dx[i])) {
            dx[i] = 0.0;
            found++;
        }
    }
    return found;
}

static void check_attention(const struct shape *shape, bool causal) {
    struct gradient_tensors t = gradient_tensors_create(shape->HS * 100 + shape->NH);
    struct attention a;
    attention_create(&a, &t, shape, causal);
    double *dx = gradient_unwritten(&t, a.count);
    struct train_attention_gradient gradient = {dx + a.q, dx + a.k, dx + a.v};
    (void)attention_loss(&a);
    EXPECT_OK(
        a.engine.attention_backward(a.engine.context, &gradient, a.dout, a.out, a.lse, &a.sizes));
    size_t heads = a.sizes.rows * (shape->NH + 2 * shape->KVH) * shape->HS;
    EXPECT_INT_EQ(a.count - heads, unwritten(dx, a.count));
    gradient_check("attention's dq, dk, dv", a.x, dx, NULL, a.count, attention_loss, &a);
    gradient_tensors_free(&t);
}

C_TEST(gradient, attention) {
    for (size_t i = 0; i < SHAPES; i++) {
        check_attention(shapes + i, false);
        check_attention(shapes + i, true);
    }
}

/* ---- rope ---- */

struct rope {
    struct train_engine engine;
    size_t rows, heads, HS, stride;
    const int32_t *positions;
    enum nn_rope_layout layout;
    double *x, *out;
    const double *dout;
};

static enum status turn(const struct rope *r, double *x, bool back) {
    return r->engine.rope(r->engine.context, x, r->positions, r->rows, r->heads, r->HS, r->stride,
                          10000.0f, r->layout, back);
}

static double rope_loss(void *arguments) {
    struct rope *r = arguments;
    memcpy(r->out, r->x, r->rows * r->stride * sizeof *r->x);
    EXPECT_OK(turn(r, r->out, false));
    return gradient_dot(r->out, r->dout, r->rows * r->stride);
}

static void check_rope(size_t rows, size_t heads, size_t HS, size_t gap,
                       enum nn_rope_layout layout) {
    struct gradient_tensors t = gradient_tensors_create(rows * 100 + HS);
    size_t count = rows * (heads * HS + gap);
    struct rope r = {
        .engine = t.engine,
        .rows = rows,
        .heads = heads,
        .HS = HS,
        .stride = heads * HS + gap,
        .positions = gradient_integers(&t, rows, 100),
        .layout = layout,
        .x = gradient_random(&t, count),
        .out = gradient_unwritten(&t, count),
        .dout = gradient_random(&t, count),
    };
    double *din = gradient_copy(&t, r.dout, count), *there = gradient_copy(&t, r.x, count);
    EXPECT_OK(turn(&r, din, true));
    gradient_check("rope's din", r.x, din, NULL, count, rope_loss, &r);
    EXPECT_OK(turn(&r, there, false));
    EXPECT_OK(turn(&r, there, true));
    for (size_t i = 0; i < count; i++) {
        EXPECT_NEAR(r.x[i], there[i], 1e-14);
        EXPECT_TRUE(i % r.stride < heads * HS || din[i] == r.dout[i]); /* between rows: untouched */
    }
    gradient_tensors_free(&t);
}

C_TEST(gradient, rope) {
    const enum nn_rope_layout layouts[] = {NN_ROPE_INTERLEAVED, NN_ROPE_HALVES};
    for (size_t i = 0; i < 2; i++) {
        check_rope(1, 1, 2, 0, layouts[i]);
        check_rope(5, 2, 6, 3, layouts[i]);
        check_rope(7, 3, 8, 0, layouts[i]);
    }
}
