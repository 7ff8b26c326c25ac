/* Every step of the ladder against the double oracle; the grader only sees the last one. */
#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/device_buffer.h"
#include "common/testing/testing.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"

struct shape {
    size_t M, N, K;
};

/* Around the sizes where code takes another way: 1 row, 4, 8, 32, 128, 4096 columns, K % 4. */
static const struct shape shapes[] = {
    {0, 3, 3},    {3, 0, 3},    {3, 3, 0},     {1, 1, 1},     {1, 5, 3},    {1, 33, 17},
    {3, 4, 16},   {15, 9, 31},  {16, 32, 256}, {17, 33, 257}, {5, 7, 128},  {1, 4095, 36},
    {1, 4097, 8}, {1, 4099, 5}, {24, 64, 64},  {1, 700, 600}, {4, 31, 130}, {1, 9, 1031},
};

/* Buffers of one case, data `skew` floats past a 256-byte boundary. */
struct buffers {
    struct device_buffer out, in, weight;
    float *values, *got;
    double *want;
};

static enum status buffers_create(struct buffers *b, struct shape s, size_t skew, bool guarded,
                                  struct error *error) {
    struct rng rng = rng_create(s.M * 31 + s.N * 7 + s.K);
    *b = (struct buffers){.values = malloc((s.M * s.K + s.N * s.K) * sizeof(float) + 1),
                          .got = malloc(s.M * s.N * sizeof(float) + 1),
                          .want = malloc(s.M * s.N * sizeof(double) + 1)};
    if (b->values == NULL || b->got == NULL || b->want == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    float *weight = b->values + s.M * s.K;
    rng_fill_normal(&rng, b->values, s.M * s.K + s.N * s.K, 1.0f);
    nn_matmul_f64(b->want, b->values, weight, s.M, s.N, s.K);
    enum status status = device_buffer_create(&b->out, s.M * s.N, guarded, skew, error);
    if (status == STATUS_OK) {
        status = device_buffer_create(&b->in, s.M * s.K, guarded, skew, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_create(&b->weight, s.N * s.K, guarded, skew, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_put(&b->in, b->values, error);
    }
    return status == STATUS_OK ? device_buffer_put(&b->weight, weight, error) : status;
}

static void buffers_free(struct buffers *b) {
    device_buffer_free(&b->out);
    device_buffer_free(&b->in);
    device_buffer_free(&b->weight);
    free(b->values);
    free(b->got);
    free(b->want);
}

static void check_step(const struct gpu_matmul_step *step, struct shape s, size_t skew,
                       bool guarded) {
    struct buffers b;
    struct error error = {0};
    bool intact = false, changed;
    enum status status = buffers_create(&b, s, skew, guarded, &error);
    if (status == STATUS_OK) {
        status = step->run(b.out.data, b.in.data, b.weight.data, s.M, s.N, s.K, NULL, &error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_get(&b.out, b.got, &intact, &changed, &error);
    }
    double scale = sqrt(s.K > 0 ? (double)s.K : 1.0);
    struct comparison c = compare_f32(b.got, b.want, s.M * s.N, tolerance_dot_f32(s.K, scale));
    if (status != STATUS_OK || !c.pass || !intact) {
        char text[256];
        comparison_describe(&c, s.N, text, sizeof text);
        TEST_FAIL("%s M=%zu N=%zu K=%zu skew=%zu: %s", step->name, s.M, s.N, s.K, skew,
                  status != STATUS_OK ? error_text(&error, status) : text);
    }
    buffers_free(&b);
}

static void check_ladder(size_t skew) {
    size_t count;
    struct error error = {0};
    struct device_properties properties;
    const struct gpu_matmul_step *steps = gpu_matmul_ladder(&count);
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(device_properties(&properties, &error));
    EXPECT_INT_EQ(4, count);
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes && !test_has_failed(); s++) {
            check_step(&steps[i], shapes[s], skew, !properties.modelled);
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
    struct error error = {0};
    struct buffers b;
    size_t count;
    bool intact, changed;
    const struct gpu_matmul_step *steps = gpu_matmul_ladder(&count);
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(buffers_create(&b, (struct shape){2, N, K}, 0, false, &error));
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        const float *in = b.in.data + 1; /* one row, from its second element on */
        nn_matmul_f64(b.want, b.values + 1, b.values + 2 * K, 1, N, K);
        EXPECT_OK(steps[i].run(b.out.data, in, b.weight.data, 1, N, K, NULL, &error));
        EXPECT_OK(device_buffer_get(&b.out, b.got, &intact, &changed, &error));
        EXPECT_TRUE(compare_f32(b.got, b.want, N, tolerance_dot_f32(K, sqrt(K))).pass);
    }
    buffers_free(&b);
}
