/* Every step of the ladder against the double oracle; the grader only sees the last one. */
#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "labs/01_cpu_matmul/matmul.h"

struct shape {
    size_t M, N, K;
};

/* Around the sizes where code takes another way: 4, 12, 16, 32, 256, and the blocks. */
static const struct shape shapes[] = {
    {0, 3, 3},    {3, 0, 3},    {3, 3, 0},    {20, 40, 0},    {1, 1, 1},      {1, 5, 3},
    {1, 33, 17},  {3, 4, 16},   {15, 9, 31},  {16, 32, 256},  {17, 33, 257},  {12, 31, 15},
    {24, 64, 64}, {25, 65, 63}, {121, 70, 5}, {133, 515, 40}, {37, 100, 520}, {1, 700, 600},
};

/* Buffers with canaries; data starts `skew` floats past a cache line. */
struct buffers {
    struct guarded out, in, weight;
    double *want;
};

static bool buffers_create(struct buffers *b, struct shape s, size_t skew, struct rng *rng) {
    *b = (struct buffers){0};
    if (guarded_create(&b->out, s.M * s.N + skew) != STATUS_OK ||
        guarded_create(&b->in, s.M * s.K + skew) != STATUS_OK ||
        guarded_create(&b->weight, s.N * s.K + skew) != STATUS_OK) {
        return false;
    }
    b->want = malloc(s.M * s.N * sizeof *b->want + 1);
    if (b->want == NULL) {
        return false;
    }
    rng_fill_normal(rng, b->in.data + skew, s.M * s.K, 1.0f);
    rng_fill_normal(rng, b->weight.data + skew, s.N * s.K, 1.0f);
    nn_matmul_f64(b->want, b->in.data + skew, b->weight.data + skew, s.M, s.N, s.K);
    return true;
}

static void buffers_free(struct buffers *b) {
    guarded_free(&b->out);
    guarded_free(&b->in);
    guarded_free(&b->weight);
    free(b->want);
}

static void check_step(const struct cpu_matmul_step *step, struct shape s, int threads,
                       size_t skew) {
    struct rng rng = rng_create(s.M * 31 + s.N * 7 + s.K);
    struct buffers b;
    if (!buffers_create(&b, s, skew, &rng)) {
        TEST_FAIL("out of memory");
    } else {
        EXPECT_OK(step->run(b.out.data + skew, b.in.data + skew, b.weight.data + skew, s.M, s.N,
                            s.K, threads));
        double scale = sqrt(s.K > 0 ? (double)s.K : 1.0);
        struct comparison c =
            compare_f32(b.out.data + skew, b.want, s.M * s.N, tolerance_dot_f32(s.K, scale));
        if (!c.pass || !guarded_intact(&b.out) || (skew > 0 && !isnan(b.out.data[0]))) {
            char text[256];
            comparison_describe(&c, s.N, text, sizeof text);
            TEST_FAIL("%s M=%zu N=%zu K=%zu threads=%d skew=%zu: %s", step->name, s.M, s.N, s.K,
                      threads, skew, text);
        }
    }
    buffers_free(&b);
}

static void check_ladder(int threads, size_t skew) {
    size_t count;
    const struct cpu_matmul_step *steps = cpu_matmul_ladder(&count);
    EXPECT_INT_EQ(5, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            check_step(&steps[i], shapes[s], threads, skew);
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

/* Infinities and NaN go where the formula sends them, and nowhere else. */
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
