/* What every step of the ladder, gemm16() among them, makes of unusual problems: the right result,
 * or one line and nothing written. On a Hopper GPU all steps run; BUILD runs the test as an older
 * GPU, too. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/problem/problem.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The GPU in use; without one the test fails. */
static struct device_properties gpu_in_use(void) {
    struct device_properties gpu = {0};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK || device_properties(&gpu, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
    }
    return gpu;
}

static bool is_one_line(const char *message, const char *text) {
    return strncmp(message, "gemm16: ", 8) == 0 && strchr(message, '\n') == NULL &&
           strstr(message, text) != NULL;
}

/* Whether out has the bytes from before the call. */
static bool is_untouched(struct gemm16_data *data) {
    EXPECT_OK(device_synchronize(NULL, NULL));
    if (data->out_bytes > 0) {
        EXPECT_OK(device_read(data->got, data->d_out, data->out_bytes, NULL, NULL));
    }
    return memcmp(data->got, data->old, data->out_bytes) == 0;
}

/* A step that has no code for the GPU says so, one that has is right. */
static void check_step(struct gemm16_data *data, const struct gemm16_step *step, bool may_refuse) {
    struct error error = {0};
    char wrong[300] = "";
    EXPECT_OK(gemm16_data_reset(data, NULL));
    enum status status = step->run(&data->problem, data->workspace, NULL, &error);
    if (status == STATUS_OK) {
        EXPECT_OK(gemm16_data_check(data, wrong, sizeof wrong, &error));
    } else if (status != STATUS_UNSUPPORTED || !may_refuse ||
               !is_one_line(error.message, "code for") || !is_untouched(data)) {
        snprintf(wrong, sizeof wrong, "status %d, '%.200s'", (int)status, error.message);
    }
    if (wrong[0] != '\0') {
        TEST_FAIL("%s, %zux%zux%zu, skew %zu: %s", step->name, data->c.M, data->c.N, data->c.K,
                  data->c.skew, wrong);
    }
}

/* Nothing to do, single elements, primes; rows of whole pieces that begin anywhere; results that
   are no whole pieces. */
static const struct gemm16_case edges[] = {
    {.M = 0, .N = 0, .K = 0},
    {.M = 0, .N = 72, .K = 64, .bias = true},
    {.M = 72, .N = 0, .K = 64, .residual = true},
    {.M = 0, .N = 8, .K = 8, .in_is_transposed = true, .weight_is_transposed = true},
    {.M = 3, .N = 5, .K = 0, .bias = true, .activate = true, .f = NN_GELU},
    {.M = 1, .N = 1, .K = 1},
    {.M = 1, .N = 1, .K = 8, .residual = true, .in_place = true},
    {.M = 31, .N = 37, .K = 41, .bias = true},
    {.M = 131, .N = 67, .K = 8},
    {.M = 67, .N = 131, .K = 72, .skew = 1, .bias = true, .residual = true},
    {.M = 130, .N = 72, .K = 64, .skew = 1},
    {.M = 19, .N = 136, .K = 72, .skew = 4, .residual = true, .in_place = true},
    {.M = 40, .N = 24, .K = 23, .skew = 3, .weight_is_transposed = true},
    {.M = 23, .N = 40, .K = 29, .in_is_transposed = true},
};

C_TEST(edges, each_step_is_right_or_says_one_line) {
    size_t count;
    const struct gemm16_step *steps = gemm16_ladder(&count);
    bool may_refuse = gpu_in_use().code / 10 != 9;
    for (size_t i = 0; i < COUNT(edges) && !test_has_failed(); i++) {
        struct gemm16_data data;
        struct gemm16_case c = edges[i];
        c.dtype = i % 2 == 0 ? NN_BF16 : NN_F16;
        c.out_dtype = i % 3 == 2 && !c.in_place ? NN_F32 : c.dtype;
        ASSERT_OK(gemm16_data_create(&data, &c, 8, NULL));
        for (size_t n = 0; n < count; n++) {
            check_step(&data, &steps[n], may_refuse);
        }
        gemm16_data_free(&data);
    }
}

/* Refused with a line that has `text`, or, where `may_be_right`, computed. */
static void check_refused(struct gemm16_data *data, const struct gemm16_problem *problem,
                          void *workspace, bool may_be_right, const char *text) {
    size_t count;
    const struct gemm16_step *steps = gemm16_ladder(&count);
    for (size_t i = 0; i < count; i++) {
        struct error error = {0};
        char wrong[300] = "";
        EXPECT_OK(gemm16_data_reset(data, NULL));
        enum status status = steps[i].run(problem, workspace, NULL, &error);
        if (status == STATUS_OK && may_be_right) {
            EXPECT_OK(gemm16_data_check(data, wrong, sizeof wrong, NULL));
            EXPECT_STR_EQ("", wrong);
            continue;
        }
        bool is_refused = status == STATUS_INVALID_ARGUMENT && is_one_line(error.message, text);
        bool is_too_old = status == STATUS_UNSUPPORTED && is_one_line(error.message, "code for");
        if (!(is_refused || is_too_old) || !is_untouched(data)) {
            TEST_FAIL("%s: status %d, '%s', want '%s'", steps[i].name, (int)status, error.message,
                      text);
        }
    }
}

/* A problem of which split-K would be faster. */
C_TEST(edges, no_workspace) {
    struct gemm16_data data;
    const struct gemm16_case c = {
        .M = 130, .N = 72, .K = 520, .dtype = NN_BF16, .out_dtype = NN_BF16};
    (void)gpu_in_use();
    ASSERT_OK(gemm16_data_create(&data, &c, 8, NULL));
    check_refused(&data, &data.problem, NULL, true, "workspace");
    check_refused(&data, &data.problem, (char *)data.workspace + 8, true, "workspace");
    gemm16_data_free(&data);
}

/* Sizes above the largest, and more results than a launch has blocks for: refused before anything
   is read. */
C_TEST(edges, too_large) {
    struct gemm16_data data;
    const struct gemm16_case c = {.M = 8, .N = 8, .K = 8, .dtype = NN_F16, .out_dtype = NN_F16};
    static const struct {
        size_t M, N, K;
        const char *text;
    } sizes[] = {{GEMM16_MAX_SIZE + 1, 8, 8, "M = 268435457 is above 268435456"},
                 {8, SIZE_MAX, 8, "N = 18446744073709551615 is above 268435456"},
                 {8, 8, SIZE_MAX / 2, "K = 9223372036854775807 is above 268435456"},
                 {GEMM16_MAX_SIZE, GEMM16_MAX_SIZE, 8, "268435456 x 268435456 results are more"}};
    (void)gpu_in_use();
    ASSERT_OK(gemm16_data_create(&data, &c, 8, NULL));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct gemm16_problem p = data.problem;
        p.M = sizes[i].M, p.N = sizes[i].N, p.K = sizes[i].K;
        check_refused(&data, &p, data.workspace, false, sizes[i].text);
    }
    gemm16_data_free(&data);
}
