/* Storage in 16 bits: every 16-bit number survives a round trip; rounding is to nearest even. */
#include "common/nn/dtype.h"

#include <math.h>
#include <stdint.h>

#include "common/testing/testing.h"

static float through(float x, enum nn_dtype dtype) {
    uint16_t half;
    float back;
    nn_dtype_store(&half, &x, 1, dtype);
    nn_dtype_load(&back, &half, 1, dtype);
    return back;
}

static void check_all(enum nn_dtype dtype) {
    for (unsigned i = 0; i < 65536 && !test_has_failed(); i++) {
        uint16_t half = (uint16_t)i, again;
        float x;
        nn_dtype_load(&x, &half, 1, dtype);
        nn_dtype_store(&again, &x, 1, dtype);
        if (isnan(x) ? !isnan(through(x, dtype)) : again != half) {
            TEST_FAIL("%s 0x%04x became 0x%04x", nn_dtype_name(dtype), i, again);
        }
    }
}

C_TEST(dtype, fp16_comes_back) {
    check_all(NN_F16);
}

C_TEST(dtype, bf16_comes_back) {
    check_all(NN_BF16);
}

C_TEST(dtype, rounds_to_nearest_even) {
    EXPECT_TRUE(through(1.0f + 0x1p-11f, NN_F16) == 1.0f);
    EXPECT_TRUE(through(1.0f + 0x1.8p-10f, NN_F16) == 1.0f + 0x1p-9f);
    EXPECT_TRUE(through(0x1p-25f, NN_F16) == 0.0f);
    EXPECT_TRUE(through(0x1.8p-24f, NN_F16) == 0x1p-23f);
    EXPECT_TRUE(through(65519.0f, NN_F16) == 65504.0f);
    EXPECT_TRUE(isinf(through(65520.0f, NN_F16)));
    EXPECT_TRUE(through(1.0f + 0x1p-8f, NN_BF16) == 1.0f);
    EXPECT_TRUE(through(-1.0f - 0x1.8p-7f, NN_BF16) == -1.0f - 0x1p-6f);
    EXPECT_TRUE(isinf(through(3.4e38f, NN_BF16)));
}

C_TEST(dtype, fp32_is_copied) {
    const float values[3] = {1.0f, -0x1p-140f, 3e38f};
    float stored[3] = {0}, loaded[3] = {0};
    nn_dtype_store(stored, values, 3, NN_F32);
    nn_dtype_load(loaded, stored, 3, NN_F32);
    for (int i = 0; i < 3; i++) {
        EXPECT_TRUE(loaded[i] == values[i]);
    }
}
