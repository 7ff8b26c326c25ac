/* All recorded models, the one of Pythia-70M's sizes among them, on vectorised operators. */
#include "common/checkpoints/gpt_neox/recorded_gpt_neox.h"
#include "common/cpu/cpu_engine.h"
#include "common/testing/testing.h"

enum { GREEDY = 200, LANES = 16 };

/* Sums in lanes, so that the compiler vectorises them. */
static enum status matmul(float *out, const float *in, const float *weight, size_t M, size_t N,
                          size_t K, int threads) {
    (void)threads;
    for (size_t i = 0; i < M * N; i++) {
        const float *a = in + i / N * K, *b = weight + i % N * K;
        float lanes[LANES] = {0.0f}, sum = 0.0f;
        size_t k = 0;
        for (; k + LANES <= K; k += LANES) {
            for (size_t j = 0; j < LANES; j++) {
                lanes[j] += a[k + j] * b[k + j];
            }
        }
        for (; k < K; k++) {
            sum += a[k] * b[k];
        }
        for (size_t j = 0; j < LANES; j++) {
            sum += lanes[j];
        }
        out[i] = sum;
    }
    return STATUS_OK;
}

static void check_on_cpu(void *context, const struct recorded_gpt_neox *recorded) {
    recorded_gpt_neox_check(recorded, context, 24, GREEDY);
}

C_TEST(gpt_neox_large, checkpoints_of_transformers) {
    struct engine engine;
    ASSERT_OK(cpu_engine_create(&engine, "cpu", matmul, 2));
    EXPECT_INT_EQ(6, recorded_gpt_neox_visit(check_on_cpu, &engine, true));
    engine_destroy(&engine);
}
