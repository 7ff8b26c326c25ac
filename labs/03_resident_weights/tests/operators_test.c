/* The given kernels against common/nn, at sizes that are no multiple of anything. */
#include "labs/03_resident_weights/given/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

/* Buffers of a test: the host's values, the device's copy, and what is read back. */
enum { MOST = 6000, BUFFERS = 5 };
struct bed {
    struct rng rng;
    struct error error;
    float host[BUFFERS][MOST], got[MOST], want[MOST];
    float *d[BUFFERS];
    uint8_t *d_mask;
};

static struct bed *bed_create(void) {
    struct bed *bed = calloc(1, sizeof *bed);
    if (bed == NULL || device_open(&bed->error) != STATUS_OK) {
        test_stop(__FILE__, __LINE__, "%s", bed != NULL ? bed->error.message : "out of memory");
        free(bed);
        return NULL;
    }
    bed->rng = rng_create(7);
    for (int i = 0; i < BUFFERS; i++) {
        void *memory = NULL;
        rng_fill_normal(&bed->rng, bed->host[i], MOST, 1.0f);
        EXPECT_OK(device_alloc(&memory, sizeof bed->host[i], &bed->error));
        bed->d[i] = memory;
        EXPECT_OK(device_write(memory, bed->host[i], sizeof bed->host[i], NULL, &bed->error));
    }
    return bed;
}

static void bed_free(struct bed *bed) {
    for (int i = 0; i < BUFFERS; i++) {
        device_free(bed->d[i]);
    }
    device_free(bed->d_mask);
    free(bed);
}

/* Buffer `out` must hold want (count), and beyond that what it held. */
static void check(struct bed *bed, int out, size_t count, double tolerance, const char *what) {
    enum status status = device_read(bed->got, bed->d[out], sizeof bed->got, NULL, &bed->error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", what, error_text(&bed->error, status));
        return;
    }
    for (size_t i = 0; i < count; i++) {
        double allowed = tolerance * (1.0 + fabs((double)bed->want[i]));
        if (!(fabs((double)bed->got[i] - bed->want[i]) <= allowed)) {
            TEST_FAIL("%s: element %zu is %.9g, want %.9g", what, i, (double)bed->got[i],
                      (double)bed->want[i]);
            return;
        }
    }
    if (memcmp(bed->got + count, bed->host[out] + count, (MOST - count) * sizeof(float)) != 0) {
        TEST_FAIL("%s: wrote beyond its %zu elements", what, count);
    }
    /* As it was, for the next check. */
    EXPECT_OK(device_write(bed->d[out], bed->host[out], sizeof bed->got, NULL, &bed->error));
}

static const struct {
    size_t rows, C;
} sizes[] = {{1, 1}, {3, 5}, {1, 288}, {7, 31}, {2, 257}, {5, 1000}, {0, 4}, {1, 2047}};
#define EACH_SIZE(i) (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)

C_TEST(operators, norms_and_softmax) {
    struct bed *b = bed_create();
    if (b == NULL) {
        return;
    }
    for
        EACH_SIZE(i) {
            size_t rows = sizes[i].rows, C = sizes[i].C;
            float *in = b->host[1], *weight = b->host[2], *bias = b->host[3];
            nn_layernorm(b->want, in, weight, bias, rows, C, 1e-5f);
            EXPECT_OK(launch_layernorm(b->d[0], b->d[1], b->d[2], b->d[3], rows, C, 1e-5f, NULL,
                                       &b->error));
            check(b, 0, rows * C, 2e-5, "layernorm");
            nn_rmsnorm(b->want, in, weight, rows, C, 1e-5f);
            EXPECT_OK(launch_rmsnorm(b->d[1], b->d[1], b->d[2], rows, C, 1e-5f, NULL, &b->error));
            check(b, 1, rows * C, 2e-5, "rmsnorm in place");
            nn_softmax(b->want, in, rows, C);
            EXPECT_OK(launch_softmax(b->d[0], b->d[1], rows, C, NULL, &b->error));
            check(b, 0, rows * C, 1e-6, "softmax");
        }
    bed_free(b);
}

C_TEST(operators, softmax_of_nothing_but_minus_infinity_is_zeros) {
    struct bed *b = bed_create();
    if (b == NULL) {
        return;
    }
    for (size_t i = 0; i < 10; i++) {
        b->host[1][i] = i < 5 ? -INFINITY : 700.0f + (float)i;
    }
    EXPECT_OK(device_write(b->d[1], b->host[1], sizeof b->host[1], NULL, &b->error));
    nn_softmax(b->want, b->host[1], 2, 5);
    EXPECT_OK(launch_softmax(b->d[0], b->d[1], 2, 5, NULL, &b->error));
    check(b, 0, 10, 1e-6, "softmax");
    bed_free(b);
}

C_TEST(operators, elementwise) {
    struct bed *b = bed_create();
    if (b == NULL) {
        return;
    }
    for
        EACH_SIZE(i) {
            size_t rows = sizes[i].rows, C = sizes[i].C, count = rows * C;
            memcpy(b->want, b->host[0], sizeof b->want);
            nn_bias_add(b->want, b->host[1], rows, C);
            EXPECT_OK(launch_bias_add(b->d[0], b->d[1], rows, C, NULL, &b->error));
            check(b, 0, count, 1e-6, "bias_add");
            nn_residual(b->want, b->host[1], b->host[2], count);
            EXPECT_OK(launch_residual(b->d[1], b->d[1], b->d[2], count, NULL, &b->error));
            check(b, 1, count, 1e-6, "residual in place");
            nn_silu_gate(b->want, b->host[1], b->host[2], count);
            EXPECT_OK(launch_silu_gate(b->d[2], b->d[1], b->d[2], count, NULL, &b->error));
            check(b, 2, count, 2e-6, "silu_gate in place");
        }
    bed_free(b);
}

C_TEST(operators, activations) {
    static const enum nn_activation all[] = {NN_GELU, NN_GELU_TANH, NN_SILU, NN_TANH, NN_RELU};
    struct bed *b = bed_create();
    if (b == NULL) {
        return;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        nn_activation(b->want, b->host[1], 999, all[i]);
        EXPECT_OK(launch_activation(b->d[0], b->d[1], 999, all[i], NULL, &b->error));
        check(b, 0, 999, 2e-6, "activation");
    }
    bed_free(b);
}

C_TEST(operators, rope) {
    enum { T = 3, HEADS = 5, HS = 14, STRIDE = HEADS * HS + 9 };
    struct bed *b = bed_create();
    if (b == NULL) {
        return;
    }
    for (int layout = NN_ROPE_INTERLEAVED; layout <= NN_ROPE_HALVES; layout++) {
        for (size_t position = 0; position < 3000; position += 1499) {
            memcpy(b->want, b->host[0], sizeof b->want);
            nn_rope(b->want, T, HEADS, HS, STRIDE, position, 1e4f, (enum nn_rope_layout)layout);
            EXPECT_OK(launch_rope(b->d[0], T, HEADS, HS, STRIDE, position, 1e4f,
                                  (enum nn_rope_layout)layout, NULL, &b->error));
            check(b, 0, T * STRIDE, 1e-6, "rope");
        }
    }
    bed_free(b);
}

/* One attention call on buffers 1 to 3. */
static void check_attention(struct bed *b, const struct nn_attention *sizes_of,
                            const uint8_t *mask) {
    struct nn_attention a = *sizes_of;
    double scores[300];
    a.q = b->host[1];
    a.k = b->host[2];
    a.v = b->host[3];
    a.mask = mask;
    nn_attention(b->want, &a, scores);
    if (mask != NULL) {
        EXPECT_OK(device_write(b->d_mask, mask, a.B * a.S, NULL, &b->error));
    }
    a.q = b->d[1];
    a.k = b->d[2];
    a.v = b->d[3];
    a.mask = mask != NULL ? b->d_mask : NULL;
    EXPECT_OK(launch_attention(b->d[0], &a, NULL, &b->error));
    check(b, 0, a.B * a.T * a.NH * a.HS, 1e-5, "attention");
}

C_TEST(operators, attention) {
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
    struct bed *b = bed_create();
    if (b == NULL) {
        return;
    }
    EXPECT_OK(device_alloc(&memory, sizeof mask, &b->error));
    b->d_mask = memory;
    for (size_t i = 0; i < sizeof mask; i++) {
        mask[i] = i < 11 ? 0 : i % 3 != 0; /* the first sentence sees nothing at all */
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nn_attention a = cases[i];
        a.scale = 0.3f;
        a.causal = true;
        check_attention(b, &a, NULL);
        a.causal = false;
        check_attention(b, &a, NULL);
        if (a.B * a.S == sizeof mask) {
            check_attention(b, &a, mask);
        }
    }
    bed_free(b);
}

C_TEST(operators, attention_says_how_many_keys_it_holds) {
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

C_TEST(operators, embedding) {
    enum { T = 6, C = 29, V = 200 };
    const int32_t ids[T] = {199, 0, 3, 3, 77, 1};
    struct embedding_ids given = {{0}};
    struct bed *b = bed_create();
    if (b == NULL) {
        return;
    }
    memcpy(given.ids, ids, sizeof ids);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        memcpy(b->want, b->host[0], sizeof b->want);
        nn_embedding(b->want, b->host[1], ids, T, C, accumulate != 0);
        EXPECT_OK(
            launch_embedding(b->d[0], b->d[1], &given, T, C, accumulate != 0, NULL, &b->error));
        check(b, 0, T * C, 1e-6, "embedding");
    }
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  launch_embedding(b->d[0], b->d[1], &given, EMBEDDING_MAX_IDS + 1, C, false, NULL,
                                   &b->error));
    bed_free(b);
}
