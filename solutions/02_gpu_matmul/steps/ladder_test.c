/* Every step of the ladder against the double oracle; the grader only sees the last one. */
#include <stdlib.h>

#include "labs/02_gpu_matmul/gpu_matmul.h"
#include "labs/02_gpu_matmul/problem/case.h"
#include "solutions/ladder_gpu.h"

/* Around the sizes where kernels change their code path: 1 row, 4, 8, 32, 128, 4096 columns, K % 4.
 */
static const struct matmul_shape shapes[] = {
    {0, 3, 3},    {3, 0, 3},    {3, 3, 0},     {1, 1, 1},     {1, 5, 3},    {1, 33, 17},
    {3, 4, 16},   {15, 9, 31},  {16, 32, 256}, {17, 33, 257}, {5, 7, 128},  {1, 4095, 36},
    {1, 4097, 8}, {1, 4099, 5}, {24, 64, 64},  {1, 700, 600}, {4, 31, 130}, {1, 9, 1031},
};

/* Operands on the host and on the device, and what is read back. */
struct trial {
    struct matmul_data data;
    struct gpu_matmul_buffers buffers;
    float *got;
};

static enum status trial_create(struct trial *t, struct matmul_shape s, size_t skew, bool guarded,
                                struct error *error) {
    struct rng rng = rng_create(s.M * 31 + s.N * 7 + s.K);
    *t = (struct trial){.got = malloc(s.M * s.N * sizeof(float) + 1)};
    if (t->got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    TRY(matmul_data_create(&t->data, s, 0, MATMUL_NORMAL, &rng, error));
    TRY(gpu_matmul_buffers_create(&t->buffers, s, skew, guarded, error));
    return gpu_matmul_buffers_put(&t->buffers, &t->data, error);
}

static void trial_free(struct trial *t) {
    gpu_matmul_buffers_free(&t->buffers);
    matmul_data_free(&t->data);
    free(t->got);
}

/* Runs a step once and checks its result and who wrote where; *wrong: what is wrong, or NULL. */
static enum status run_step(const struct gpu_matmul_step *step, struct trial *t, const char **wrong,
                            char *text, size_t size, struct error *error) {
    const struct gpu_matmul_buffers *b = &t->buffers;
    const struct matmul_shape s = t->data.shape;
    TRY(step->run(b->out.data, b->in.data, b->weight.data, s.M, s.N, s.K, NULL, error));
    TRY(gpu_matmul_buffers_get(b, t->got, wrong, error));
    if (*wrong == NULL && !matmul_check(&t->data, t->got, text, size)) {
        *wrong = text;
    }
    return STATUS_OK;
}

static void check_step(const struct gpu_matmul_step *step, struct matmul_shape s, size_t skew,
                       bool guarded) {
    struct trial t;
    struct error error = {0};
    char text[256];
    const char *wrong = NULL;
    enum status status = trial_create(&t, s, skew, guarded, &error);
    if (status == STATUS_OK) {
        status = run_step(step, &t, &wrong, text, sizeof text, &error);
    }
    if (status != STATUS_OK || wrong != NULL) {
        TEST_FAIL("%s M=%zu N=%zu K=%zu skew=%zu: %s", step->name, s.M, s.N, s.K, skew,
                  status != STATUS_OK ? error_text(&error, status) : wrong);
    }
    trial_free(&t);
}

static void check_ladder(size_t skew) {
    size_t count;
    struct device_properties gpu;
    const struct gpu_matmul_step *steps = gpu_matmul_ladder(&count);
    bool open = ladder_gpu_open(&gpu);
    EXPECT_INT_EQ(4, count);
    for (size_t i = 0; i < count && open && !test_has_failed(); i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes && !test_has_failed(); s++) {
            check_step(&steps[i], shapes[s], skew, !gpu.modelled);
        }
    }
}

C_TEST(ladder, aligned_pointers) {
    check_ladder(0);
}

C_TEST(ladder, unaligned_pointers) {
    check_ladder(1);
}

/* Aligned weights beside inputs that are not: float4 needs both. */
C_TEST(ladder, one_operand_unaligned) {
    enum { N = 6, K = 40 };
    struct device_properties gpu;
    struct error error = {0};
    struct trial t;
    size_t count;
    bool intact, changed;
    char text[256];
    const struct gpu_matmul_step *steps = gpu_matmul_ladder(&count);
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(trial_create(&t, (struct matmul_shape){2, N, K}, 0, false, &error));
    /* One row, from the second element of `in` on. */
    t.data.shape.M = 1;
    t.data.in++;
    matmul_data_calculate(&t.data);
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        EXPECT_OK(device_buffer_put(&t.buffers.out, NULL, &error));
        EXPECT_OK(steps[i].run(t.buffers.out.data, t.buffers.in.data + 1, t.buffers.weight.data, 1,
                               N, K, NULL, &error));
        EXPECT_OK(device_buffer_get(&t.buffers.out, t.got, &intact, &changed, &error));
        EXPECT_TRUE(matmul_check(&t.data, t.got, text, sizeof text));
    }
    trial_free(&t);
}
