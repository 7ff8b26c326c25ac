/* Every step of the ladder against the double oracle; the grader only sees the last one. */
#include <stdlib.h>

#include "labs/04_sgemm/problem/case.h"
#include "solutions/ladder_gpu.h"

/* Around the sizes where kernels change their code path: 4, 8, 16, 32, 64, 128, 256. K beyond 500:
   split-K, the last part shorter. */
static const struct sgemm_shape shapes[] = {
    {0, 3, 3},     {3, 0, 3},     {3, 3, 0},     {130, 140, 0},  {1, 1, 1},
    {2, 3, 1},     {1, 33, 17},   {3, 4, 16},    {15, 9, 31},    {17, 33, 129},
    {31, 129, 7},  {64, 64, 64},  {65, 63, 66},  {127, 131, 13}, {128, 128, 64},
    {129, 257, 9}, {16, 132, 68}, {3, 140, 300}, {140, 1, 300},  {530, 70, 20},
    {5, 132, 530}, {132, 5, 530}, {8, 8, 531},   {256, 64, 20},  {192, 320, 20},
};

/* The epilogue does not depend on K, except with split-K. */
static const struct sgemm_shape short_shapes[] = {
    {130, 140, 0}, {131, 141, 0},  {1, 33, 17},   {3, 4, 16},   {17, 33, 9},   {65, 63, 6},
    {129, 257, 9}, {192, 320, 20}, {16, 132, 20}, {140, 1, 12}, {20, 68, 530},
};

/* Shapes of which a row or a column begins at 16 bytes wherever the matrix does. */
static const struct sgemm_shape aligned_shapes[] = {
    {130, 140, 0}, {3, 4, 16},    {64, 64, 64},  {127, 132, 13}, {128, 128, 20}, {16, 132, 68},
    {3, 140, 300}, {140, 1, 300}, {530, 70, 20}, {20, 68, 532},  {192, 320, 20},
};

static const struct sgemm_shape gpu_shapes[] = {
    {1024, 1024, 1024}, {1021, 1031, 1033}, {2048, 768, 768}, {8192, 768, 128},
    {4099, 65, 2053},   {7, 30011, 4096},   {8388737, 1, 1},  {1, 8388737, 1},
};

/* Puts all operands back, runs a step and checks its result and who wrote where. */
static void check_step(const struct sgemm_step *step, struct sgemm_data *data,
                       struct sgemm_buffers *buffers, void *workspace, float *C) {
    struct error error = {0};
    char text[300] = "";
    const char *wrong = NULL;
    const struct sgemm_shape s = data->shape;
    const struct sgemm_variant v = data->variant;
    const struct sgemm_problem problem = sgemm_buffers_problem(buffers, data);
    bool good = sgemm_buffers_put(buffers, data, &error) == STATUS_OK &&
                step->run(&problem, workspace, NULL, &error) == STATUS_OK &&
                device_synchronize(NULL, &error) == STATUS_OK &&
                sgemm_buffers_get(buffers, C, &wrong, &error) == STATUS_OK && wrong == NULL &&
                sgemm_check(data, C, text, sizeof text);
    if (!good) {
        TEST_FAIL("%s M=%zu N=%zu K=%zu %s alpha=%g beta=%g skew=%zu: %s %s %s", step->name, s.M,
                  s.N, s.K, v.form == SGEMM_B_PLAIN ? "plain" : "transposed", (double)v.alpha,
                  (double)v.beta, v.skew, wrong != NULL ? wrong : "", text, error.message);
    }
}

/* One problem, for all steps. */
static enum status check_problem(struct sgemm_data *data, struct sgemm_buffers *buffers,
                                 void *workspace, bool guarded, struct error *error) {
    size_t count;
    const struct sgemm_step *steps = sgemm_ladder(&count);
    const struct sgemm_shape s = data->shape;
    float *C = malloc(s.M * s.N * sizeof *C + 1);
    if (C == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = sgemm_buffers_create(buffers, s, data->variant.skew, guarded, error);
    for (size_t i = 0; status == STATUS_OK && i < count && !test_has_failed(); i++) {
        check_step(&steps[i], data, buffers, workspace, C);
    }
    free(C);
    return status;
}

static void check_steps(struct sgemm_shape s, struct sgemm_variant v, void *workspace,
                        bool guarded) {
    struct rng rng = rng_create(s.M * 31 + s.N * 7 + s.K);
    struct sgemm_data data;
    struct sgemm_buffers buffers = {0};
    struct error error = {0};
    enum status status = sgemm_data_create(&data, s, v, SGEMM_NORMAL, SGEMM_ALL_ROWS, &rng, &error);
    if (status == STATUS_OK) {
        status = check_problem(&data, &buffers, workspace, guarded, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("M=%zu N=%zu K=%zu: %s", s.M, s.N, s.K, error.message);
    }
    sgemm_buffers_free(&buffers);
    sgemm_data_free(&data);
}

/* Every step, every shape of a list. */
static void check_ladder(struct sgemm_variant v, const struct sgemm_shape *list, size_t count) {
    struct device_properties gpu;
    struct error error = {0};
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    if (list == gpu_shapes && gpu.modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    void *workspace = NULL;
    ASSERT_OK(device_alloc(&workspace, SGEMM_WORKSPACE_BYTES, &error));
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        check_steps(list[i], v, workspace, !gpu.modelled);
    }
    device_free(workspace);
}

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)sgemm_ladder(&count);
    EXPECT_INT_EQ(10, count);
}

/* A test of every step on every shape of a list, in one variant. */
#define LADDER_TEST(name, list, ...)                                                            \
    C_TEST(ladder, name) {                                                                      \
        check_ladder((struct sgemm_variant){__VA_ARGS__}, list, sizeof(list) / sizeof *(list)); \
    }

LADDER_TEST(transposed, shapes, SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 0)
LADDER_TEST(plain, shapes, SGEMM_B_PLAIN, 1.0f, 0.0f, 0)
LADDER_TEST(alpha_and_beta_transposed, short_shapes, SGEMM_B_TRANSPOSED, -0.75f, 0.5f, 0)
LADDER_TEST(alpha_without_beta_plain, short_shapes, SGEMM_B_PLAIN, 2.5f, 0.0f, 0)
LADDER_TEST(unaligned_pointers_plain, aligned_shapes, SGEMM_B_PLAIN, 1.0f, -1.0f, 1)
LADDER_TEST(unaligned_pointers_transposed, aligned_shapes, SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 1)
LADDER_TEST(large_transposed, gpu_shapes, SGEMM_B_TRANSPOSED, 1.0f, 0.0f, 0)
LADDER_TEST(large_plain, gpu_shapes, SGEMM_B_PLAIN, 1.0f, 1.0f, 0)

/* One size too many is refused by every step, with nothing launched. */
C_TEST(ladder, sizes_above_the_largest_are_refused) {
    size_t count;
    struct device_properties gpu;
    struct error error = {0};
    const struct sgemm_step *steps = sgemm_ladder(&count);
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        for (int which = 0; which < 3; which++) {
            size_t size = SGEMM_MAX_SIZE + 1;
            const struct sgemm_problem problem = {.M = which == 0 ? size : 1,
                                                  .N = which == 1 ? size : 1,
                                                  .K = which == 2 ? size : 1,
                                                  .alpha = 1.0f};
            EXPECT_STATUS(STATUS_INVALID_ARGUMENT, steps[i].run(&problem, NULL, NULL, &error));
        }
    }
    EXPECT_OK(device_synchronize(NULL, &error));
}
