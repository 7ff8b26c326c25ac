/**
 * @file engine.c
 * @brief The reference engine with one operator replaced: matmul is cpu_matmul().
 *
 * All other operators are the reference's, so any change of the model's speed
 * comes from the matmul.
 */
#include "labs/01_cpu_matmul/given/engine.h"

#include "common/models/engine_layer.h"
#include "labs/01_cpu_matmul/matmul.h"

struct stage {
    int threads;
};

static enum status stage_matmul(void *context, float *out, const float *in, const float *weight,
                                size_t M, size_t N, size_t K) {
    const struct stage *stage = engine_layer_own(context);
    return cpu_matmul(out, in, weight, M, N, K, stage->threads);
}

enum status engine_cpu_matmul_create(struct engine *engine, int threads) {
    struct engine reference;
    *engine = (struct engine){0};
    TRY(engine_reference_create(&reference));
    const struct stage stage = {.threads = threads};
    TRY(engine_layer_create_copy(engine, "01_cpu_matmul", &reference, &stage, sizeof stage, NULL,
                                 NULL));
    engine->matmul = stage_matmul;
    return STATUS_OK;
}
