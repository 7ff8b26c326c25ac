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
    enum { STREAM, BULK, SKINNY, SLICED } few; /* by gemm16_stream(), gemm16_bulk(), ... */
    int shape;                                 /* of these */
    unsigned blocks;                           /* of a cluster of gemm16_bulk() */
};

static enum status run(const struct gemm16_data *data, const struct way *way, struct error *error) {
    if (way->step != NULL) {
        return way->step(&data->problem, data->workspace, NULL, error);
    }
    return way->few == STREAM   ? gemm16_stream(&data->problem, way->shape, NULL, error)
           : way->few == BULK   ? gemm16_bulk(&data->problem, way->shape, way->blocks, NULL, error)
           : way->few == SKINNY ? gemm16_skinny(&data->problem, way->shape, NULL, error)
                                : gemm16_sliced(&data->problem, way->shape, NULL, error);
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
        TEST_FAIL("%s %d, %zux%zux%zu, %s to %s: %s", way->name, way->shape, c->M, c->N, c->K,
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
    {.M = 37, .N = 72, .K = 136, .bias = true, .gate = true},
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

/* Edges, one row, two tiles of rows, all parts of the epilogue; clusters of 1, 2, 4 and 8 blocks,
   some of which have no part of K. Forms 4 and 5 have an epilogue of at most a bias, of which there
   are kernels of their own; form 6 has a gate. */
static void check_few_rows(struct way way, size_t rows) {
    for (int form = 0; form < 7; form++) {
        const struct gemm16_case c = {.M = form == 1   ? 1
                                           : form == 5 ? 2 * rows - 3
                                                       : rows - 3,
                                      .N = form == 3 ? 35 : 136,
                                      .K = form == 2 ? 200 : 1032,
                                      .dtype = form > 1 ? NN_BF16 : NN_F16,
                                      .out_dtype = form == 3  ? NN_F32
                                                   : form > 1 ? NN_BF16
                                                              : NN_F16,
                                      .bias = form != 5,
                                      .bias_is_float = form == 0,
                                      .activate = form == 2 || form == 3,
                                      .gate = form == 6,
                                      .f = NN_GELU,
                                      .residual = form == 1};
        way.blocks = 1U << form % 4;
        check(&c, &way);
    }
}

C_TEST(steps, few_rows_by_each_kernel) {
    int count, code = code_of_gpu();
    const struct gemm16_few_shape *shapes = gemm16_stream_shapes(&count);
    for (int i = 0; i < count && code >= 80; i++) {
        check_few_rows((struct way){.name = "stream", .few = STREAM, .shape = i}, shapes[i].rows);
    }
    shapes = gemm16_bulk_shapes(&count);
    for (int i = 0; i < count && code / 10 == 9; i++) {
        check_few_rows((struct way){.name = "bulk", .few = BULK, .shape = i}, shapes[i].rows);
    }
    shapes = gemm16_skinny_shapes(&count);
    for (int i = 0; i < count && code / 10 == 9; i++) {
        check_few_rows((struct way){.name = "skinny", .few = SKINNY, .shape = i}, shapes[i].rows);
    }
    shapes = gemm16_sliced_shapes(&count);
    for (int i = 0; i < count && code / 10 == 9; i++) {
        check_few_rows((struct way){.name = "sliced", .few = SLICED, .shape = i}, shapes[i].rows);
    }
    if (code > 0 && code < 80) {
        TEST_SKIP("needs a GPU since Ampere");
    }
}
