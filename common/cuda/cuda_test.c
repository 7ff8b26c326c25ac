/* The device toolbox against plain sums on the host: on simt, or on a GPU of capability 8.0. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/cuda/testdata/test_kernels.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/testing/testing.h"

/* Opens the device, or skips: a program built for a GPU may be tested where there is none. */
#define OPEN_OR_SKIP()                                                                        \
    do {                                                                                      \
        struct error open_error = {0};                                                        \
        struct device_properties gpu;                                                         \
        if (device_open(&open_error) != STATUS_OK) {                                          \
            TEST_SKIP("%s", open_error.message);                                              \
        }                                                                                     \
        ASSERT_OK(device_properties(&gpu, NULL));                                             \
        if (gpu.code < 80) {                                                                  \
            TEST_SKIP("needs code for compute capability 8.0, %s runs code for %d", gpu.name, \
                      gpu.code);                                                              \
        }                                                                                     \
    } while (0)

/* Device memory with a copy of `bytes` of host memory. */
static void *copy_to_device(const void *from, size_t bytes) {
    void *d = NULL;
    EXPECT_OK(device_alloc(&d, bytes, NULL));
    EXPECT_OK(device_write(d, from, bytes, NULL, NULL));
    return d;
}

/* The sum of x[first .. first + count), or the largest of them. Sums of small integers are exact.
 */
static float reduced(const float *x, int first, int count, bool largest) {
    float result = largest ? -INFINITY : 0.0f;
    for (int i = first; i < first + count; i++) {
        result = largest ? fmaxf(result, x[i]) : result + x[i];
    }
    return result;
}

static void check_reductions(const struct test_reductions *r, const float *x, int i) {
    int warp = i / 32 * 32, eight = i / 8 * 8, quad = i / 4 * 4;
    EXPECT_NEAR(reduced(x, warp, 32, false), r->warp_sum, 0.0);
    EXPECT_NEAR(reduced(x, warp, 32, true), r->warp_max, 0.0);
    EXPECT_NEAR(reduced(x, eight, 8, false), r->sum_of_8, 0.0);
    EXPECT_NEAR(reduced(x, eight, 8, true), r->max_of_8, 0.0);
    EXPECT_NEAR(reduced(x, quad, 4, false), r->quad_sum, 0.0);
    EXPECT_NEAR(reduced(x, quad, 4, true), r->quad_max, 0.0);
    EXPECT_NEAR(reduced(x, 0, TEST_THREADS, false), r->block_sum, 0.0);
    EXPECT_NEAR(reduced(x, 0, TEST_THREADS, true), r->block_max, 0.0);
    EXPECT_NEAR(reduced(x, 0, TEST_THREADS, false), r->block_sum_of_any, 0.0);
    EXPECT_TRUE(r->warp_max_of_integers == (1ull << 40 | (unsigned)(warp + 31)));
    if (i % 32 == 0) {
        EXPECT_NEAR(reduced(x, warp, 32, false), r->sum_to_lane_0, 0.0);
    }
}

C_TEST(cuda, reductions_equal_plain_sums) {
    OPEN_OR_SKIP();
    float x[TEST_THREADS];
    struct test_reductions out[TEST_THREADS];
    for (int i = 0; i < TEST_THREADS; i++) {
        x[i] = (float)(i * 37 % 101 - 150); /* all negative: no maximum is 0 */
    }
    float *d_x = copy_to_device(x, sizeof x);
    struct test_reductions *d_out = copy_to_device(out, sizeof out);
    test_reduce(d_out, d_x, NULL);
    ASSERT_OK(device_read(out, d_out, sizeof out, NULL, NULL));
    for (int i = 0; i < TEST_THREADS; i++) {
        check_reductions(&out[i], x, i);
    }
    device_free(d_x);
    device_free(d_out);
}

enum { NUMBERS = 4096 };

static void check_conversion(const float *x, enum test_type type, enum test_form form) {
    static const enum nn_dtype types[] = {NN_F32, NN_F16, NN_BF16};
    static float want[NUMBERS], got[NUMBERS], stored[NUMBERS];
    float *d_x = copy_to_device(x, sizeof want), *d_out = copy_to_device(x, sizeof want);
    nn_dtype_store(stored, x, NUMBERS, types[type]);
    nn_dtype_load(want, stored, NUMBERS, types[type]);
    test_convert(d_out, d_x, NUMBERS, type, form, NULL);
    EXPECT_OK(device_read(got, d_out, sizeof got, NULL, NULL));
    for (int i = 0; i < NUMBERS && !test_has_failed(); i++) {
        if (memcmp(&want[i], &got[i], sizeof(float)) != 0) {
            TEST_FAIL("type %d, form %d: %a becomes %a, not %a", type, form, (double)x[i],
                      (double)got[i], (double)want[i]);
        }
    }
    device_free(d_x);
    device_free(d_out);
}

C_TEST(cuda, conversions_round_as_the_host_does) {
    OPEN_OR_SKIP();
    static float x[NUMBERS];
    struct rng rng = rng_create(1);
    rng_fill_normal(&rng, x, NUMBERS, 1.0f);
    for (int i = 0; i < NUMBERS; i++) { /* from fp16's subnormals to beyond its largest number */
        x[i] = ldexpf(x[i], i % 48 - 28);
    }
    for (enum test_type type = TEST_F32; type <= TEST_BF16; type++) {
        for (enum test_form form = TEST_SINGLE; form <= TEST_VECTORS; form++) {
            check_conversion(x, type, form);
        }
    }
}

/* Integers, so that sums are exact in every order. */
static void check_mma(enum nn_dtype dtype, bool transposed) {
    float a[16][16], b[16][8], b_stored[16 * 8], c[16][8], got[16][8];
    uint16_t a16[16 * 16], b16[16 * 8];
    for (int i = 0; i < 16; i++) {
        for (int k = 0; k < 16; k++) {
            a[i][k] = (float)((5 * i + 3 * k) % 17 - 8);
        }
        for (int n = 0; n < 8; n++) {
            b[i][n] = (float)((7 * i + 11 * n) % 13 - 6);
            b_stored[transposed ? i * 8 + n : n * 16 + i] = b[i][n];
            c[i][n] = (float)(i - n);
        }
    }
    nn_dtype_store(a16, &a[0][0], 256, dtype);
    nn_dtype_store(b16, b_stored, 128, dtype);
    uint16_t *d_a = copy_to_device(a16, sizeof a16), *d_b = copy_to_device(b16, sizeof b16);
    float *d_c = copy_to_device(c, sizeof c);
    test_mma(d_c, d_a, d_b, dtype == NN_BF16, transposed, NULL);
    EXPECT_OK(device_read(got, d_c, sizeof got, NULL, NULL));
    for (int i = 0; i < 16; i++) {
        for (int n = 0; n < 8; n++) {
            float sum = c[i][n];
            for (int k = 0; k < 16; k++) {
                sum += a[i][k] * b[k][n];
            }
            EXPECT_NEAR(sum, got[i][n], 0.0);
        }
    }
    device_free(d_a);
    device_free(d_b);
    device_free(d_c);
}

C_TEST(cuda, an_mma_tile_equals_plain_sums) {
    OPEN_OR_SKIP();
    check_mma(NN_F16, false);
    check_mma(NN_F16, true);
    check_mma(NN_BF16, false);
    check_mma(NN_BF16, true);
}

C_TEST(cuda, copies_arrive_and_fill_with_zeros) {
    OPEN_OR_SKIP();
    uint32_t in[32][4], got[32][4];
    for (uint32_t i = 0; i < 128; i++) {
        in[i / 4][i % 4] = 0x01020304u * (i + 1);
    }
    uint32_t *d_in = copy_to_device(in, sizeof in), *d_out = copy_to_device(in, sizeof in);
    for (int by_words = 0; by_words < 2; by_words++) {
        test_copy(d_out, d_in, by_words, NULL);
        ASSERT_OK(device_read(got, d_out, sizeof got, NULL, NULL));
        for (int i = 0; i < 128; i++) {
            EXPECT_INT_EQ(i % 4 < i / 4 % 5 ? in[i / 4][i % 4] : 0, got[i / 4][i % 4]);
        }
    }
    test_copy_groups(d_out, d_in, NULL);
    ASSERT_OK(device_read(got, d_out, sizeof got, NULL, NULL));
    for (int i = 0; i < 128; i++) {
        int row = i / 4, from = row < 16 ? 15 - row : 47 - row;
        EXPECT_INT_EQ(in[from][i % 4], got[row][i % 4]);
    }
    device_free(d_in);
    device_free(d_out);
}
