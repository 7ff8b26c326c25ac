/* The kernels for Hopper on simt, with code for compute_90a: against sums in double, under full
 * checks. gemm16_test runs them on a GPU, with many more shapes. */
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/problem/problem.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Few multiprocessors: each cluster of two blocks has several tiles. */
enum { MULTIPROCESSORS = 4 };

static void check(const struct gemm16_case *c, int tile, size_t splits) {
    struct device_properties found;
    struct gemm16_data data = {0};
    struct error error = {0};
    char wrong[300] = "";
    if (device_open(&error) != STATUS_OK || device_properties(&found, &error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    const struct gemm16_gpu gpu = {found.code / 10, MULTIPROCESSORS, found.shared_bytes};
    enum status status = gemm16_data_create(&data, c, 0, &error);
    if (status == STATUS_OK && !gemm16_hopper_can(&data.problem, &gpu)) {
        TEST_FAIL("there is no code for compute_90a, or it does not take the problem");
    }
    if (status == STATUS_OK) {
        status = gemm16_data_reset(&data, &error);
    }
    if (status == STATUS_OK) {
        status = gemm16_hopper(&data.problem, &gpu, tile, splits, data.workspace, NULL, &error);
    }
    if (status == STATUS_OK) {
        status = gemm16_data_check(&data, wrong, sizeof wrong, &error);
    }
    if (status != STATUS_OK || wrong[0] != '\0') {
        TEST_FAIL("kernel %d, %zux%zux%zu, %s to %s: %s", tile, c->M, c->N, c->K,
                  nn_dtype_name(c->dtype), nn_dtype_name(c->out_dtype),
                  status == STATUS_OK ? wrong : error.message);
    }
    gemm16_data_free(&data);
}

/* Several tiles a cluster, edges in all directions, more steps of K than a ring has stages. */
C_TEST(gemm16_hopper, each_kernel_equals_the_oracle) {
    static const struct gemm16_case cases[] = {
        {.M = 300, .N = 264, .K = 72, .bias = true, .activate = true},
        {.M = 129, .N = 520, .K = 136, .residual = true},
        {.M = 40, .N = 72, .K = 584, .bias = true, .bias_is_float = true},
    };
    struct gemm16_problem plain = {0};
    int count = 0;
    (void)gemm16_hopper_tiles(&plain, &count);
    EXPECT_INT_EQ(5, count);
    for (int tile = 0; tile < count; tile++) {
        for (size_t n = 0; n < COUNT(cases); n++) {
            struct gemm16_case c = cases[n];
            bool half = ((size_t)tile + n) % 2 == 0;
            c.dtype = half ? NN_F16 : NN_BF16;
            c.out_dtype = n == 2 ? NN_F32 : c.dtype;
            check(&c, tile, 1);
        }
    }
}

C_TEST(gemm16_hopper, each_kernel_of_transposed_factors) {
    struct gemm16_problem transposed = {.in_is_transposed = true};
    int count = 0;
    (void)gemm16_hopper_tiles(&transposed, &count);
    EXPECT_TRUE(count > 0);
    for (int n = 0; n < 3 * count; n++) {
        const struct gemm16_case c = {.M = 136,
                                      .N = 200,
                                      .K = 328,
                                      .dtype = n % 2 == 0 ? NN_BF16 : NN_F16,
                                      .out_dtype = NN_F32,
                                      .residual = true,
                                      .residual_is_float = true,
                                      .in_place = true,
                                      .in_is_transposed = n % 3 != 1,
                                      .weight_is_transposed = n % 3 > 0};
        check(&c, n / 3, n % 2 == 0 ? 1 : 3);
    }
}
