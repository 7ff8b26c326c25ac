/* The given kernels against common/nn, at sizes that are no multiple of anything. */
#include "labs/03_resident_weights/given/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

/* Buffers of a test: the host's values, the device's copy, and the results. */
enum { MOST = 6000, BUFFERS = 5 };
struct fixture {
    struct rng rng;
    struct error error;
    float host[BUFFERS][MOST], got[MOST], want[MOST];
    float *d[BUFFERS];
    uint8_t *d_mask;
};

static struct fixture *fixture_create(void) {
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL || device_open(&f->error) != STATUS_OK) {
        test_stop(__FILE__, __LINE__, "%s", f != NULL ? f->error.message : "out of memory");
        free(f);
        return NULL;
    }
    f->rng = rng_create(7);
    for (int i = 0; i < BUFFERS; i++) {
        void *memory = NULL;
        rng_fill_normal(&f->rng, f->host[i], MOST, 1.0f);
        EXPECT_OK(device_alloc(&memory, sizeof f->host[i], &f->error));
        f->d[i] = memory;
        EXPECT_OK(device_write(memory, f->host[i], sizeof f->host[i], NULL, &f->error));
    }
    return f;
}

static void fixture_free(struct fixture *f) {
    for (int i = 0; i < BUFFERS; i++) {
        device_free(f->d[i]);
    }
    device_free(f->d_mask);
    free(f);
}

/* A test with a fixture `f`. */
#define FIXTURE_TEST(name)                          \
    static void body_##name(struct fixture *);      \
    C_TEST(operators, name) {                       \
        struct fixture *created = fixture_create(); \
        if (created != NULL) {                      \
            body_##name(created);                   \
            fixture_free(created);                  \
        }                                           \
    }                                               \
    static void body_##name(struct fixture *f)

/* Buffer `out` must hold want (count), and beyond that what it held. */
static void check(struct fixture *f, int out, size_t count, double tolerance, const char *what) {
    enum status status = device_read(f->got, f->d[out], sizeof f->got, NULL, &f->error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", what, error_text(&f->error, status));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double allowed = tolerance * (1.0 + fabs((double)f->want[i]));
        if (!(fabs((double)f->got[i] - f->want[i]) <= allowed)) {
            TEST_FAIL("%s: element %zu is %.9g, want %.9g", what, i, (double)f->got[i],
                      (double)f->want[i]);
            return;
        }
    }
    if (memcmp(f->got + count, f->host[out] + count, (MOST - count) * sizeof(float)) != 0) {
        TEST_FAIL("%s: wrote beyond its %zu elements", what, count);
    }
    /* Restored for the next check. */
    EXPECT_OK(device_write(f->d[out], f->host[out], sizeof f->got, NULL, &f->error));
}

static const struct {
    size_t rows, C;
} sizes[] = {{1, 1}, {3, 5}, {1, 288}, {7, 31}, {2, 257}, {5, 1000}, {0, 4}, {1, 2047}};
#define EACH_SIZE(i) (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)

FIXTURE_TEST(norms_and_softmax) {
    for
        EACH_SIZE(i) {
            size_t rows = sizes[i].rows, C = sizes[i].C;
            float *in = f->host[1], *weight = f->host[2], *bias = f->host[3];
            nn_layernorm(f->want, in, weight, bias, rows, C, 1e-5f);
            EXPECT_OK(launch_layernorm(f->d[0], f->d[1], f->d[2], f->d[3], rows, C, 1e-5f, NULL,
                                       &f->error));
            check(f, 0, rows * C, 2e-5, "layernorm");
            nn_rmsnorm(f->want, in, weight, rows, C, 1e-5f);
            EXPECT_OK(launch_rmsnorm(f->d[1], f->d[1], f->d[2], rows, C, 1e-5f, NULL, &f->error));
            check(f, 1, rows * C, 2e-5, "rmsnorm in place");
            nn_softmax(f->want, in, rows, C);
            EXPECT_OK(launch_softmax(f->d[0], f->d[1], rows, C, NULL, &f->error));
            check(f, 0, rows * C, 1e-6, "softmax");
        }
}

FIXTURE_TEST(softmax_of_nothing_but_minus_infinity_is_zeros) {
    for (size_t i = 0; i < 10; i++) {
        f->host[1][i] = i < 5 ? -INFINITY : 700.0f + (float)i;
    }
    EXPECT_OK(device_write(f->d[1], f->host[1], sizeof f->host[1], NULL, &f->error));
    nn_softmax(f->want, f->host[1], 2, 5);
    EXPECT_OK(launch_softmax(f->d[0], f->d[1], 2, 5, NULL, &f->error));
    check(f, 0, 10, 1e-6, "softmax");
}

FIXTURE_TEST(elementwise) {
    for
        EACH_SIZE(i) {
            size_t rows = sizes[i].rows, C = sizes[i].C, count = rows * C;
            memcpy(f->want, f->host[0], sizeof f->want);
            nn_bias_add(f->want, f->host[1], rows, C);
            EXPECT_OK(launch_bias_add(f->d[0], f->d[1], rows, C, NULL, &f->error));
            check(f, 0, count, 1e-6, "bias_add");
            nn_residual(f->want, f->host[1], f->host[2], count);
            EXPECT_OK(launch_residual(f->d[1], f->d[1], f->d[2], count, NULL, &f->error));
            check(f, 1, count, 1e-6, "residual in place");
            nn_silu_gate(f->want, f->host[1], f->host[2], count);
            EXPECT_OK(launch_silu_gate(f->d[2], f->d[1], f->d[2], count, NULL, &f->error));
            check(f, 2, count, 2e-6, "silu_gate in place");
        }
}

FIXTURE_TEST(activations) {
    static const enum nn_activation all[] = {NN_GELU, NN_GELU_TANH, NN_SILU, NN_TANH, NN_RELU};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        nn_activation(f->want, f->host[1], 999, all[i]);
        EXPECT_OK(launch_activation(f->d[0], f->d[1], 999, all[i], NULL, &f->error));
        check(f, 0, 999, 2e-6, "activation");
    }
}

FIXTURE_TEST(rope) {
    enum { T = 3, HEADS = 5, HS = 14, STRIDE = HEADS * HS + 9 };
    for (int layout = NN_ROPE_INTERLEAVED; layout <= NN_ROPE_HALVES; layout++) {
        for (size_t position = 0; position < 3000; position += 1499) {
            memcpy(f->want, f->host[0], sizeof f->want);
            nn_rope(f->want, T, HEADS, HS, STRIDE, position, 1e4f, (enum nn_rope_layout)layout);
            EXPECT_OK(launch_rope(f->d[0], T, HEADS, HS, STRIDE, position, 1e4f,
                                  (enum nn_rope_layout)layout, NULL, &f->error));
            check(f, 0, T * STRIDE, 1e-6, "rope");
        }
    }
}

FIXTURE_TEST(rope_table) {
    enum { T = 3, HEADS = 5, HS = 14, STRIDE = HEADS * HS + 9 };
    for (int layout = NN_ROPE_INTERLEAVED; layout <= NN_ROPE_HALVES; layout++) {
        memcpy(f->want, f->host[0], sizeof f->want);
        nn_rope_table(f->want, T, HEADS, HS, STRIDE, 1499, f->host[1], (enum nn_rope_layout)layout);
        EXPECT_OK(launch_rope_table(f->d[0], T, HEADS, HS, STRIDE, 1499, f->d[1],
                                    (enum nn_rope_layout)layout, NULL, &f->error));
        check(f, 0, T * STRIDE, 1e-6, "rope_table");
    }
}

/* One attention call on buffers 1 to 3. */
static void check_attention(struct fixture *f, const struct nn_attention *sizes_of,
                            const uint8_t *mask) {
    struct nn_attention a = *sizes_of;
    double scores[300];
    a.q = f->host[1];
    a.k = f->host[2];
    a.v = f->host[3];
    a.mask = mask;
    nn_attention(f->want, &a, scores);
    if (mask != NULL) {
        EXPECT_OK(device_write(f->d_mask, mask, a.B * a.S, NULL, &f->error));
    }
    a.q = f->d[1];
    a.k = f->d[2];
    a.v = f->d[3];
    a.mask = mask != NULL ? f->d_mask : NULL;
    EXPECT_OK(launch_attention(f->d[0], &a, NULL, &f->error));
    check(f, 0, a.B * a.T * a.NH * a.HS, 1e-5, "attention");
}

FIXTURE_TEST(attention) {
    const struct nn_attention cases[] = {
        /* one token over its cache, grouped queries */
        {.B = 1, .T = 1, .S = 77, .NH = 6, .KVH = 2, .HS = 10, .q_stride = 60, .kv_stride = 20},
        /* a prompt, after some tokens that came before */
        {.B = 1, .T = 9, .S = 14, .NH = 4, .KVH = 4, .HS = 16, .q_stride = 70, .kv_stride = 64},
        /* more keys than threads */
        {.B = 1, .T = 1, .S = 290, .NH = 2, .KVH = 1, .HS = 18, .q_stride = 36, .kv_stride = 20},
        /* sentences, from a fused projection */
        {.B = 3, .T = 11, .S = 11, .NH = 3, .KVH = 3, .HS = 12, .q_stride = 108, .kv_stride = 108},
    };
    uint8_t mask[33];
    void *memory = NULL;
    EXPECT_OK(device_alloc(&memory, sizeof mask, &f->error));
    f->d_mask = memory;
    for (size_t i = 0; i < sizeof mask; i++) {
        mask[i] = i < 11 ? 0 : i % 3 != 0; /* the first sentence is masked altogether */
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nn_attention a = cases[i];
        a.scale = 0.3f;
        a.causal = true;
        check_attention(f, &a, NULL);
        a.causal = false;
        check_attention(f, &a, NULL);
        if (a.B * a.S == sizeof mask) {
            check_attention(f, &a, mask);
        }
    }
}

C_TEST(operators, attention_refuses_too_many_keys) {
    struct error error = {0};
    const struct nn_attention a = {.B = 1,
                                   .T = 1,
                                   .S = ATTENTION_MAX_KEYS + 1,
                                   .NH = 1,
                                   .KVH = 1,
                                   .HS = 2,
                                   .q_stride = 2,
                                   .kv_stride = 2};
    EXPECT_STATUS(STATUS_UNSUPPORTED, launch_attention(NULL, &a, NULL, &error));
    EXPECT_STR_EQ("attention over 11265 key positions: this kernel holds at most 11264",
                  error.message);
}

FIXTURE_TEST(embedding) {
    enum { T = 6, C = 29, V = 200 };
    const int32_t ids[T] = {199, 0, 3, 3, 77, 1};
    struct embedding_ids given = {{0}};
    memcpy(given.ids, ids, sizeof ids);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        memcpy(f->want, f->host[0], sizeof f->want);
        nn_embedding(f->want, f->host[1], ids, T, C, accumulate != 0);
        EXPECT_OK(
            launch_embedding(f->d[0], f->d[1], &given, T, C, accumulate != 0, NULL, &f->error));
        check(f, 0, T * C, 1e-6, "embedding");
    }
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  launch_embedding(f->d[0], f->d[1], &given, EMBEDDING_MAX_IDS + 1, C, false, NULL,
                                   &f->error));
}
