/* Each step of the ladder, and each of v10's kernels whichever it would choose, against sums in
 * double; on simt under full checks. gemm16_test has many more shapes for what gemm16() chooses. */
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/problem/problem.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Few multiprocessors: each cluster has several tiles. */
enum { MULTIPROCESSORS = 4 };

/* What runs: a step of the ladder; or one of v10's kernels. */
struct way {
    gemm16_function *step;
    const char *name;
    int tile; /* of gemm16_hopper_tiles(); -1: few rows */
    size_t splits;
    unsigned few_rows, blocks;
};

static enum status run(const struct gemm16_data *data, const struct way *way, struct error *error) {
    struct device_properties found;
    TRY(device_properties(&found, error));
    const struct gemm16_gpu gpu = {found.code / 10, MULTIPROCESSORS, found.shared_bytes};
    if (way->step != NULL) {
        return way->step(&data->problem, data->workspace, NULL, error);
    }
    if (way->tile < 0) {
        return gemm16_few_rows(&data->problem, way->few_rows, way->blocks, NULL, error);
    }
    return gemm16_hopper(&data->problem, &gpu, way->tile, way->splits, data->workspace, NULL,
                         error);
}

static void check(const struct gemm16_case *c, const struct way *way) {
    struct gemm16_data data = {0};
    struct error error = {0};
    char wrong[300] = "";
    enum status status = gemm16_data_create(&data, c, 0, &error);
    if (status == STATUS_OK) {
        status = gemm16_data_reset(&data, &error);
    }
    if (status == STATUS_OK) {
        status = run(&data, way, &error);
    }
    if (status == STATUS_OK) {
        status = gemm16_data_check(&data, wrong, sizeof wrong, &error);
    }
    if (status != STATUS_OK || wrong[0] != '\0') {
        TEST_FAIL("%s, tile %d, %zux%zux%zu, %s to %s: %s", way->name, way->tile, c->M, c->N, c->K,
                  nn_dtype_name(c->dtype), nn_dtype_name(c->out_dtype),
                  status == STATUS_OK ? wrong : error.message);
    }
    gemm16_data_free(&data);
}

/* The code that runs: 75, 80, 90; 0 without a GPU, which fails the test. */
static int code_of_gpu(void) {
    struct device_properties gpu = {0};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK || device_properties(&gpu, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return 0;
    }
    return gpu.code;
}

/* Edges in all directions, more steps of K than a ring has stages, all parts of the epilogue; and
   what a step passes on to v1: rows that are no whole pieces, transposed factors, an empty K. */
static const struct gemm16_case step_cases[] = {
    {.M = 200, .N = 264, .K = 72, .bias = true, .activate = true, .f = NN_GELU},
    {.M = 40, .N = 136, .K = 840, .residual = true, .activate = true, .f = NN_GELU_TANH},
    {.M = 129, .N = 24, .K = 136, .bias = true, .bias_is_float = true},
    {.M = 17, .N = 35, .K = 128, .bias = true, .residual = true, .activate = true, .f = NN_SILU},
    {.M = 33, .N = 19, .K = 21, .skew = 1},
    {.M = 64, .N = 40, .K = 48, .in_is_transposed = true, .weight_is_transposed = true},
    {.M = 5, .N = 7, .K = 0, .bias = true},
    {.M = 0, .N = 7, .K = 8},
};

C_TEST(steps, each_equals_the_oracle) {
    size_t count;
    const struct gemm16_step *steps = gemm16_ladder(&count);
    EXPECT_INT_EQ(10, count);
    int code = code_of_gpu();
    for (size_t i = 0; code >= 90 && i < count; i++) {
        for (size_t n = 0; n < COUNT(step_cases); n++) {
            const struct way way = {.step = steps[i].run, .name = steps[i].name};
            struct gemm16_case c = step_cases[n];
            c.dtype = (i + n) % 2 == 0 ? NN_BF16 : NN_F16;
            c.out_dtype = n == 2 ? NN_F32 : c.dtype;
            check(&c, &way);
        }
    }
    if (code < 90) {
        TEST_SKIP("needs a Hopper GPU");
    }
}

/* With one line, and nothing done. */
C_TEST(steps, say_what_GPU_they_need) {
    const struct gemm16_case c = {.M = 8, .N = 8, .K = 8, .dtype = NN_F16, .out_dtype = NN_F16};
    static const int needs[10] = {0, 80, 80, 80, 90, 91, 91, 91, 91, 80};
    struct gemm16_data data = {0};
    size_t count;
    const struct gemm16_step *steps = gemm16_ladder(&count);
    int code = code_of_gpu();
    if (code == 0) {
        return;
    }
    ASSERT_OK(gemm16_data_create(&data, &c, 0, NULL));
    for (size_t i = 0; i < count; i++) {
        struct error error = {0};
        enum status status = steps[i].run(&data.problem, data.workspace, NULL, &error);
        bool has = code >= needs[i] || (needs[i] == 91 && code / 10 == 9);
        if (status != (has ? STATUS_OK : STATUS_UNSUPPORTED)) {
            TEST_FAIL("%s on code for %d: %s", steps[i].name, code, error.message);
        }
        if (!has && strstr(error.message, "gemm16: ") == NULL) {
            TEST_FAIL("%s says '%s'", steps[i].name, error.message);
        }
    }
    EXPECT_OK(device_synchronize(NULL, NULL));
    gemm16_data_free(&data);
}

/* Several tiles a cluster, edges in all directions, more steps of K than a ring has stages. */
C_TEST(steps, each_tile_of_v10_equals_the_oracle) {
    static const struct gemm16_case cases[] = {
        {.M = 300, .N = 264, .K = 72, .bias = true, .activate = true},
        {.M = 129, .N = 520, .K = 136, .residual = true},
        {.M = 40, .N = 72, .K = 968, .bias = true, .bias_is_float = true},
    };
    struct gemm16_problem plain = {0};
    int count = 0;
    (void)gemm16_hopper_tiles(&plain, &count);
    if (code_of_gpu() / 10 != 9) {
        TEST_SKIP("needs a Hopper GPU");
    }
    for (int tile = 0; tile < count; tile++) {
        for (size_t n = 0; n < COUNT(cases); n++) {
            struct gemm16_case c = cases[n];
            const struct way way = {.name = "plain", .tile = tile, .splits = n == 2 ? 3 : 1};
            c.dtype = ((size_t)tile + n) % 2 == 0 ? NN_F16 : NN_BF16;
            c.out_dtype = n == 2 && tile % 2 == 0 ? NN_F32 : c.dtype;
            check(&c, &way);
        }
    }
}

C_TEST(steps, each_tile_of_transposed_factors) {
    struct gemm16_problem transposed = {.in_is_transposed = true};
    int count = 0;
    (void)gemm16_hopper_tiles(&transposed, &count);
    if (code_of_gpu() / 10 != 9) {
        TEST_SKIP("needs a Hopper GPU");
    }
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
        const struct way way = {.name = "transposed", .tile = n / 3, .splits = n % 2 == 0 ? 1 : 3};
        check(&c, &way);
    }
}

/* Clusters of which blocks have no part of K, too. */
C_TEST(steps, few_rows_of_each_size) {
    if (code_of_gpu() / 10 != 9) {
        TEST_SKIP("needs a Hopper GPU");
    }
    static const unsigned rows[] = {8, 16, 32, 64, 128};
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (unsigned blocks = 1; blocks <= 8; blocks *= 2) {
            const struct gemm16_case c = {.M = rows[i] - 3,
                                          .N = 136,
                                          .K = blocks == 4 ? 200 : 1032,
                                          .dtype = blocks % 4 == 0 ? NN_BF16 : NN_F16,
                                          .out_dtype = blocks == 8   ? NN_F32
                                                       : blocks == 4 ? NN_BF16
                                                                     : NN_F16,
                                          .bias = true,
                                          .residual = blocks == 2};
            const struct way way = {
                .name = "few rows", .tile = -1, .few_rows = rows[i], .blocks = blocks};
            check(&c, &way);
        }
    }
}
