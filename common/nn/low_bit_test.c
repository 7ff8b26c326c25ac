/* Weights of 8 and 4 bits: every stored number comes back, rounding is to nearest, groups and
 * nibbles stand where the header says. */
#include "common/nn/low_bit.h"

#include <math.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

enum { MOST = 1024 };

struct memory {
    uint8_t values[MOST], zeros[MOST];
    float scales[MOST];
};

static struct low_bit_matrix matrix_in(struct memory *memory, struct low_bit_layout layout) {
    memset(memory, 0xa5, sizeof *memory);
    return (struct low_bit_matrix){layout, memory->values, memory->scales,
                                   layout.has_zeros ? memory->zeros : NULL};
}

C_TEST(low_bit, every_stored_number_rounds_to_itself) {
    for (unsigned bits = 0; bits < 256; bits++) {
        float x = low_bit_stored(LOW_BIT_FP8, (uint8_t)bits, 0);
        if ((bits & 0x7f) == 0x7f) {
            EXPECT_TRUE(isnan(x));
        } else {
            EXPECT_INT_EQ((int)bits, low_bit_round(LOW_BIT_FP8, x, 1.0f, 0));
        }
        if (bits != 128) { /* -128 may be stored, but is never chosen */
            float y = low_bit_stored(LOW_BIT_INT8, (uint8_t)bits, 0);
            EXPECT_INT_EQ((int)bits, low_bit_round(LOW_BIT_INT8, y * 0.5f, 0.5f, 0));
        }
    }
    for (uint8_t zero = 0; zero < 16; zero++) {
        for (uint8_t bits = 0; bits < 16; bits++) {
            float x = low_bit_stored(LOW_BIT_INT4, bits, zero);
            EXPECT_TRUE(x == (float)(bits - zero));
            EXPECT_INT_EQ(bits, low_bit_round(LOW_BIT_INT4, x, 1.0f, zero));
        }
    }
}

C_TEST(low_bit, e4m3_by_hand) {
    EXPECT_INT_EQ(0x7e, low_bit_round(LOW_BIT_FP8, 448.0f, 1.0f, 0));
    EXPECT_INT_EQ(0x7e, low_bit_round(LOW_BIT_FP8, 1e9f, 1.0f, 0));
    EXPECT_INT_EQ(0xfe, low_bit_round(LOW_BIT_FP8, -470.0f, 1.0f, 0));
    EXPECT_INT_EQ(0x38, low_bit_round(LOW_BIT_FP8, 1.0f, 1.0f, 0));
    EXPECT_INT_EQ(0x38, low_bit_round(LOW_BIT_FP8, 1.0625f, 1.0f, 0)); /* a tie, to even */
    EXPECT_INT_EQ(0x3a, low_bit_round(LOW_BIT_FP8, 1.1875f, 1.0f, 0)); /* a tie, to even */
    EXPECT_INT_EQ(0x40, low_bit_round(LOW_BIT_FP8, 1.95f, 1.0f, 0));   /* into the next exponent */
    EXPECT_INT_EQ(0x01, low_bit_round(LOW_BIT_FP8, 0x1p-9f, 1.0f, 0)); /* the least */
    EXPECT_INT_EQ(0x00, low_bit_round(LOW_BIT_FP8, 0x1p-10f, 1.0f, 0));
    EXPECT_INT_EQ(0x08, low_bit_round(LOW_BIT_FP8, 0x1.fp-7f, 1.0f, 0));
    EXPECT_INT_EQ(0x80, low_bit_round(LOW_BIT_FP8, -0.0f, 1.0f, 0));
}

C_TEST(low_bit, nibbles_and_groups_stand_where_they_should) {
    struct memory memory;
    struct low_bit_matrix m =
        matrix_in(&memory, (struct low_bit_layout){LOW_BIT_INT4, 2, 5, 3, NN_F32, true});
    EXPECT_INT_EQ(3, low_bit_row_bytes(&m.layout));
    EXPECT_INT_EQ(2, low_bit_groups(&m.layout));
    for (size_t c = 0; c < 5; c++) {
        low_bit_set(&m, 0, c, (uint8_t)(c + 1));
        low_bit_set(&m, 1, c, (uint8_t)(15 - c));
    }
    EXPECT_INT_EQ(0x21, memory.values[0]);
    EXPECT_INT_EQ(0x43, memory.values[1]);
    EXPECT_INT_EQ(5, memory.values[2] & 15);
    EXPECT_INT_EQ(0xef, memory.values[3]);
    low_bit_set_group(&m, 1, 1, 0.5f, 3);
    EXPECT_TRUE(memory.scales[3] == 0.5f);
    EXPECT_INT_EQ(3, memory.zeros[3]);
    EXPECT_TRUE(low_bit_weight(&m, 1, 4) == 0.5 * (11 - 3));
    EXPECT_TRUE(low_bit_weight(&m, 1, 3) == 0.5 * (12 - 3));
}

/* Rounded to nearest: no weight is further away than half a step and what the scale's own rounding
 * moves the ends of the range. */
static void check_error(struct low_bit_layout layout, uint64_t seed) {
    struct memory memory;
    struct low_bit_matrix m = matrix_in(&memory, layout);
    struct rng rng = rng_create(seed);
    float weights[MOST], back[MOST];
    struct error error = {0};
    rng_fill_rows(&rng, weights, layout.rows, layout.columns);
    ASSERT_OK(low_bit_quantize(weights, &m, &error));
    low_bit_dequantize(&m, 0, layout.rows, back);
    for (size_t r = 0; r < layout.rows; r++) {
        for (size_t c = 0; c < layout.columns; c++) {
            uint8_t zero;
            double scale = low_bit_get_group(&m, r, c / layout.group, &zero);
            double w = weights[r * layout.columns + c], q = low_bit_weight(&m, r, c);
            /* a range of 15 steps loses up to half a step at each end to the zero point, too */
            double most = layout.type == LOW_BIT_FP8 ? fmax(fabs(w) * 0x1p-4, scale * 0x1p-10)
                                                     : scale * (layout.has_zeros ? 1.0 : 0.5);
            most += fabs(w) * nn_dtype_rounding(layout.scale_dtype) + 1e-6 * fabs(w);
            if (fabs(w - q) > most) {
                TEST_FAIL("%s (%zu, %zu): %g became %g with scale %g",
                          low_bit_type_name(layout.type), r, c, w, q, scale);
                return;
            }
            EXPECT_TRUE((double)back[r * layout.columns + c] == (double)(float)q);
        }
    }
}

C_TEST(low_bit, rounds_to_nearest) {
    for (int scales = NN_F32; scales <= NN_BF16; scales++) {
        enum nn_dtype dtype = (enum nn_dtype)scales;
        check_error((struct low_bit_layout){LOW_BIT_INT8, 5, 67, 67, dtype, false}, 1);
        check_error((struct low_bit_layout){LOW_BIT_INT8, 3, 96, 32, dtype, false}, 2);
        check_error((struct low_bit_layout){LOW_BIT_INT4, 3, 257, 128, dtype, false}, 3);
        check_error((struct low_bit_layout){LOW_BIT_INT4, 7, 65, 32, dtype, true}, 4);
        check_error((struct low_bit_layout){LOW_BIT_FP8, 3, 64, 64, dtype, false}, 5);
    }
}

C_TEST(low_bit, extremes_have_a_scale) {
    struct memory memory;
    struct error error = {0};
    const float cases[][2] = {{0.0f, 0.0f}, {1e-45f, 0.0f}, {3e38f, -3e38f}, {-1.0f, -2.0f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int zeros = 0; zeros < 2; zeros++) {
            struct low_bit_matrix m = matrix_in(
                &memory, (struct low_bit_layout){LOW_BIT_INT4, 1, 2, 2, NN_BF16, zeros != 0});
            ASSERT_OK(low_bit_quantize(cases[i], &m, &error));
            for (size_t c = 0; c < 2; c++) {
                double w = low_bit_weight(&m, 0, c);
                EXPECT_TRUE(isfinite(w));
                EXPECT_TRUE(fabs(w - (double)cases[i][c]) <=
                            0.15 * fabs((double)cases[i][0]) + 1e-38);
            }
        }
    }
}

C_TEST(low_bit, refuses_what_is_no_matrix) {
    const struct low_bit_layout wrong[] = {
        {(enum low_bit_type)7, 1, 1, 1, NN_F32, false},
        {LOW_BIT_INT8, 0, 1, 1, NN_F32, false},
        {LOW_BIT_INT8, 1, 0, 1, NN_F32, false},
        {LOW_BIT_INT8, 1, 8, 0, NN_F32, false},
        {LOW_BIT_INT8, 1, 8, 9, NN_F32, false},
        {LOW_BIT_INT8, 1, 8, 8, NN_F32, true},
        {LOW_BIT_INT4, 1, 8, 8, (enum nn_dtype)9, true},
        {LOW_BIT_INT4, (size_t)1 << 40, 8, 8, NN_F32, true},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error error = {0};
        EXPECT_INT_EQ(STATUS_INVALID_ARGUMENT, low_bit_check(&wrong[i], &error));
        EXPECT_TRUE(error.message[0] != '\0');
    }
    struct memory memory;
    struct error error = {0};
    const float weights[2] = {1.0f, INFINITY};
    struct low_bit_matrix m =
        matrix_in(&memory, (struct low_bit_layout){LOW_BIT_INT8, 1, 2, 2, NN_F32, false});
    EXPECT_INT_EQ(STATUS_INVALID_ARGUMENT, low_bit_quantize(weights, &m, &error));
    EXPECT_TRUE(strstr(error.message, "(0, 1)") != NULL);
}
