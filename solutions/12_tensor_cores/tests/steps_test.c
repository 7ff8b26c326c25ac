/* Each step of the ladder, and each of v10's kernels for few rows, against sums in double; on simt
 * under full checks. gemm16_test has many more shapes for what gemm16() chooses. */
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/problem/problem.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What runs: a step of the ladder; or one of v10's kernels for few rows. */
struct way {
    const char *name;
    gemm16_function *step;
    enum status (*few_rows)(const struct gemm16_problem *problem, int shape, unsigned blocks,
                            device_stream stream, struct error *error);
    int shape;
    unsigned blocks;
};

static enum status run(const struct gemm16_data *data, const struct way *way, struct error *error) {
    return way->step != NULL ? way->step(&data->problem, data->workspace, NULL, error)
                             : way->few_rows(&data->problem, way->shape, way->blocks, NULL, error);
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
        TEST_FAIL("%s %d of %u blocks, %zux%zux%zu, %s to %s: %s", way->name, way->shape,
                  way->blocks, c->M, c->N, c->K, nn_dtype_name(c->dtype),
                  nn_dtype_name(c->out_dtype), status == STATUS_OK ? wrong : error.message);
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

/* The least code that each step needs; 91: that of a Hopper GPU alone. */
static bool has_code(size_t step, int code) {
    static const int needs[] = {0, 80, 80, 80, 90, 91, 91, 91, 91, 80};
    return needs[step] == 91 ? code / 10 == 9 : code >= needs[step];
}

C_TEST(steps, each_equals_the_oracle) {
    size_t count;
    const struct gemm16_step *steps = gemm16_ladder(&count);
    int code = code_of_gpu();
    EXPECT_INT_EQ(10, count);
    for (size_t i = 0; code >= 80 && i < count; i++) {
        for (size_t n = 0; has_code(i, code) && n < COUNT(step_cases); n++) {
            struct gemm16_case c = step_cases[n];
            c.dtype = (i + n) % 2 == 0 ? NN_BF16 : NN_F16;
            c.out_dtype = n == 2 ? NN_F32 : c.dtype;
            const struct way way = {.name = steps[i].name, .step = steps[i].run};
            check(&c, &way);
        }
    }
    if (code > 0 && code < 80) {
        TEST_SKIP("needs a GPU since Ampere");
    }
}

/* With one line, and nothing done. */
C_TEST(steps, say_what_GPU_they_need) {
    const struct gemm16_case c = {.M = 8, .N = 8, .K = 8, .dtype = NN_F16, .out_dtype = NN_F16};
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
        bool has = has_code(i, code);
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

/* A kernel with clusters of 1, 2, 4 or 8 blocks, of which some have no part of K. */
static void check_few_rows(struct way way, const struct gemm16_few_shape *shape) {
    for (way.blocks = 1; way.blocks <= 8; way.blocks *= 2) {
        const struct gemm16_case c = {.M = way.blocks == 2 ? 1 : shape->rows + 3,
                                      .N = way.blocks == 8 ? 35 : 136,
                                      .K = way.blocks == 4 ? 200 : 1032,
                                      .dtype = way.blocks % 4 == 0 ? NN_BF16 : NN_F16,
                                      .out_dtype = way.blocks == 8   ? NN_F32
                                                   : way.blocks == 4 ? NN_BF16
                                                                     : NN_F16,
                                      .bias = true,
                                      .bias_is_float = way.blocks == 1,
                                      .activate = way.blocks > 2,
                                      .f = NN_GELU,
                                      .residual = way.blocks == 2};
        check(&c, &way);
    }
}

C_TEST(steps, few_rows_by_each_kernel) {
    int count;
    const struct gemm16_few_shape *shapes = gemm16_stream_shapes(&count);
    if (code_of_gpu() < 90) {
        TEST_SKIP("needs clusters, of a GPU since Hopper");
    }
    for (int i = 0; i < count; i++) {
        check_few_rows((struct way){.name = "stream", .few_rows = gemm16_stream, .shape = i},
                       &shapes[i]);
    }
    shapes = gemm16_narrow_shapes(&count);
    for (int i = 0; i < count; i++) {
        check_few_rows((struct way){.name = "narrow", .few_rows = gemm16_narrow, .shape = i},
                       &shapes[i]);
    }
}
