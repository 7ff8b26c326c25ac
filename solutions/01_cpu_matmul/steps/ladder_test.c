/* Every step of the ladder against the double oracle; the grader only sees the last one. */
#include <math.h>
#include <string.h>

#include "common/testing/testing.h"
#include "labs/01_cpu_matmul/matmul.h"
#include "labs/01_cpu_matmul/problem/oracle.h"

/* Around the sizes where the steps change their code path: 4, 12, 16, 32, 256, and the blocks. */
static const struct matmul_shape shapes[] = {
    {0, 3, 3},    {3, 0, 3},    {3, 3, 0},    {20, 40, 0},    {1, 1, 1},      {1, 5, 3},
    {1, 33, 17},  {3, 4, 16},   {15, 9, 31},  {16, 32, 256},  {17, 33, 257},  {12, 31, 15},
    {24, 64, 64}, {25, 65, 63}, {121, 70, 5}, {133, 515, 40}, {37, 100, 520}, {1, 700, 600},
};

/* One step on one problem; `out` is between canaries, (M, N) floats after `skew`. */
static void check_step(const struct cpu_matmul_step *step, const struct matmul_data *data,
                       struct guarded *out, int threads) {
    const struct matmul_shape s = data->shape;
    char text[256];
    EXPECT_OK(step->run(out->data + data->skew, data->in, data->weight, s.M, s.N, s.K, threads));
    if (!matmul_check_guarded(data, out, text, sizeof text)) {
        TEST_FAIL("%s M=%zu N=%zu K=%zu threads=%d skew=%zu: %s", step->name, s.M, s.N, s.K,
                  threads, data->skew, text);
    }
}

/* Pointers begin `skew` floats past a cache line. */
static void check_shape(const struct cpu_matmul_step *step, struct matmul_shape s, int threads,
                        size_t skew) {
    struct rng rng = rng_create(s.M * 31 + s.N * 7 + s.K);
    struct matmul_data data;
    struct guarded out = {0};
    struct error error = {0};
    enum status status = matmul_data_create(&data, s, skew, MATMUL_NORMAL, &rng, &error);
    if (status != STATUS_OK || guarded_create(&out, s.M * s.N + skew) != STATUS_OK) {
        TEST_FAIL("out of memory: %s", error.message);
    } else {
        check_step(step, &data, &out, threads);
    }
    guarded_free(&out);
    matmul_data_free(&data);
}

static void check_ladder(int threads, size_t skew) {
    size_t count;
    const struct cpu_matmul_step *steps = cpu_matmul_ladder(&count);
    EXPECT_INT_EQ(5, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            check_shape(&steps[i], shapes[s], threads, skew);
        }
    }
}

C_TEST(ladder, one_thread) {
    check_ladder(1, 0);
}

C_TEST(ladder, more_threads_than_cores) {
    check_ladder(7, 0);
}

C_TEST(ladder, unaligned_pointers) {
    check_ladder(3, 1);
}

/* An infinite input makes its own row of the output infinite, and no other element. */
C_TEST(ladder, keeps_infinities_in_their_row) {
    enum { M = 18, N = 35, K = 19 };
    float in[M * K], weight[N * K], out[M * N];
    for (size_t i = 0; i < M * K; i++) {
        in[i] = i == 5 * K + 3 ? INFINITY : 1.0f;
    }
    for (size_t i = 0; i < N * K; i++) {
        weight[i] = 1.0f;
    }
    size_t count;
    const struct cpu_matmul_step *steps = cpu_matmul_ladder(&count);
    for (size_t s = 0; s < count; s++) {
        ASSERT_OK(steps[s].run(out, in, weight, M, N, K, 1));
        for (size_t i = 0; i < M * N; i++) {
            if (out[i] != (i / N == 5 ? INFINITY : (float)K)) {
                TEST_FAIL("%s: element %zu is %g", steps[s].name, i, (double)out[i]);
                break;
            }
        }
    }
}

/* The engine changes the number of threads while a model runs; its results must not change. */
static void check_bits(struct matmul_shape s) {
    struct rng rng = rng_create(s.M);
    struct matmul_data data;
    struct guarded one = {0}, several = {0};
    struct error error = {0};
    ASSERT_OK(matmul_data_create(&data, s, 0, MATMUL_NORMAL, &rng, &error));
    ASSERT_OK(guarded_create(&one, s.M * s.N));
    ASSERT_OK(guarded_create(&several, s.M * s.N));
    EXPECT_OK(cpu_matmul(one.data, data.in, data.weight, s.M, s.N, s.K, 1));
    for (int threads = 2; threads <= 8; threads++) {
        EXPECT_OK(cpu_matmul(several.data, data.in, data.weight, s.M, s.N, s.K, threads));
        EXPECT_INT_EQ(0, memcmp(one.data, several.data, s.M * s.N * sizeof(float)));
    }
    guarded_free(&one);
    guarded_free(&several);
    matmul_data_free(&data);
}

C_TEST(ladder, the_number_of_threads_changes_no_bit) {
    const struct matmul_shape sizes[] = {
        {1, 700, 600}, {24, 33, 700}, {40, 33, 700}, {133, 40, 300}, {37, 515, 40}, {15, 200, 99},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_bits(sizes[i]);
    }
}
