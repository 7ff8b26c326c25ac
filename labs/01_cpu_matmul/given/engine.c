/**
 * @file engine.c
 * @brief The reference engine with one entry replaced: matmul is cpu_matmul().
 *
 * All other entries are the reference's. So what changes in the model's speed is
 * the matmul's doing, and nothing else's.
 */
#include "labs/01_cpu_matmul/given/engine.h"

#include <stdlib.h>

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
    enum status status = engine_reference_create(&reference);
    if (status != STATUS_OK) {
        return status;
    }
    struct stage *stage = malloc(sizeof *stage);
    if (stage == NULL) {
        engine_destroy(&reference);
        return STATUS_OUT_OF_MEMORY;
    }
    stage->threads = threads;
    status = engine_layer_create(engine, "01_cpu_matmul", &reference, stage, free);
    if (status == STATUS_OK) {
        engine->matmul = stage_matmul;
    }
    return status;
}
