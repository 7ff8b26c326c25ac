/* Numbers of checkpoints of few bits are found again, and others are not taken for such. */
#include "solutions/13_low_bit/decoder/stored_numbers.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/checkpoints/gguf/gguf_blocks.h"
#include "common/testing/testing.h"

enum { ROWS = 5, COLUMNS = 320, COUNT = ROWS * COLUMNS };

/* A matrix and its weights. */
struct fixture {
    struct low_bit_matrix matrix;
    uint8_t values[COUNT], zeros[COUNT];
    float scales[COUNT], weights[COUNT];
};

static struct fixture *make(enum low_bit_type type, size_t group, enum nn_dtype scales,
                            bool has_zeros) {
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL) {
        abort();
    }
    f->matrix.layout = (struct low_bit_layout){type, ROWS, COLUMNS, group, scales, has_zeros};
    f->matrix.values = f->values;
    f->matrix.scales = f->scales;
    f->matrix.zeros = has_zeros ? f->zeros : NULL;
    return f;
}

/* Weights that a rounded matrix stands for. */
static struct fixture *rounded(enum low_bit_type type, size_t group, enum nn_dtype scales,
                               bool has_zeros) {
    struct fixture *f = make(type, group, scales, has_zeros);
    struct rng rng = rng_create(group + scales);
    for (size_t i = 0; i < COUNT; i++) {
        f->weights[i] = rng_uniform(&rng) * 2.0f - 0.8f;
    }
    EXPECT_OK(low_bit_quantize(f->weights, &f->matrix, NULL));
    low_bit_dequantize(&f->matrix, 0, ROWS, f->weights);
    return f;
}

static bool equal(const float *a, const float *b) {
    for (size_t i = 0; i < COUNT; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

/* Finds the numbers of weights in a layout; those must stand for the same weights. */
static bool finds(const float *weights, enum low_bit_type type, size_t group,
                  enum nn_dtype scales) {
    struct fixture *f = make(type, group, scales, type == LOW_BIT_INT4);
    bool found = stored_numbers_find(weights, &f->matrix);
    if (found) {
        low_bit_dequantize(&f->matrix, 0, ROWS, f->weights);
        EXPECT_TRUE(equal(weights, f->weights));
    }
    free(f);
    return found;
}

C_TEST(stored_numbers, of_rounded_matrices) {
    static const struct {
        enum low_bit_type type;
        size_t group;
        enum nn_dtype scales;
        bool zeros;
    } cases[] = {{LOW_BIT_INT4, 32, NN_BF16, true},
                 {LOW_BIT_INT4, 128, NN_BF16, true},
                 {LOW_BIT_INT4, 128, NN_F16, true},
                 {LOW_BIT_INT4, 32, NN_F16, false},
                 {LOW_BIT_INT8, 320, NN_BF16, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool int4 = cases[i].type == LOW_BIT_INT4;
        struct fixture *f = rounded(cases[i].type, cases[i].group, cases[i].scales, cases[i].zeros);
        enum nn_dtype scales = int4 ? cases[i].scales : NN_F32;
        EXPECT_TRUE(finds(f->weights, cases[i].type, cases[i].group, scales));
        f->weights[COUNT / 2] *= 1.0001f;
        EXPECT_TRUE(!finds(f->weights, cases[i].type, cases[i].group, scales));
        free(f);
    }
}

/* Groups of 32 are none of 128, and 8 bits are not 4. */
C_TEST(stored_numbers, not_of_another_layout) {
    struct fixture *groups = rounded(LOW_BIT_INT4, 32, NN_F16, true);
    struct fixture *bytes = rounded(LOW_BIT_INT8, 320, NN_BF16, false);
    EXPECT_TRUE(!finds(groups->weights, LOW_BIT_INT4, 128, NN_F16));
    EXPECT_TRUE(!finds(bytes->weights, LOW_BIT_INT4, 32, NN_F16));
    free(groups);
    free(bytes);
}

/* A matrix of zeros, and rows of one value. */
C_TEST(stored_numbers, of_one_value) {
    float weights[COUNT] = {0};
    EXPECT_TRUE(finds(weights, LOW_BIT_INT4, 32, NN_BF16));
    for (size_t i = 0; i < COUNT; i++) {
        weights[i] = i / COLUMNS % 2 == 0 ? 0.75f : -3.0f;
    }
    EXPECT_TRUE(finds(weights, LOW_BIT_INT4, 32, NN_BF16));
    EXPECT_TRUE(finds(weights, LOW_BIT_INT8, 320, NN_F32));
}

/* Q4_0 has such groups; Q4_K's minima are no multiples of its scales. */
C_TEST(stored_numbers, of_gguf_blocks) {
    static const enum gguf_type types[] = {GGUF_Q4_0, GGUF_Q4_K};
    for (size_t t = 0; t < 2; t++) {
        const struct gguf_block block = gguf_block(types[t]);
        size_t count = COUNT / block.weights;
        unsigned char data[COUNT];
        float weights[COUNT] = {0};
        struct rng rng = rng_create(t);
        for (size_t i = 0; i < count * block.bytes; i++) {
            data[i] = (unsigned char)rng_below(&rng, 256);
        }
        for (size_t i = 0; i < count; i++) { /* scales of 2^-5 to 2^-4, as fp16 */
            data[i * block.bytes + 1] = 0x28 | (data[i * block.bytes + 1] & 3);
            data[i * block.bytes + 3] = types[t] == GGUF_Q4_K ? 0x28 : data[i * block.bytes + 3];
        }
        gguf_dequantize(types[t], data, weights, count * block.weights);
        EXPECT_TRUE(finds(weights, LOW_BIT_INT4, 32, NN_F16) == (types[t] == GGUF_Q4_0));
    }
}
