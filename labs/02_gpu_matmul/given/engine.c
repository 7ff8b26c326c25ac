/**
 * @file engine.c
 * @brief Stage 01's engine with one operator replaced: matmul is gpu_matmul(), with host pointers.
 *
 * All memory stays on the host, as in stage 01, and all other operators run
 * there. So each matmul copies its operands over the bus, and its result back.
 */
#include "labs/02_gpu_matmul/given/engine.h"

#include "common/device/device.h"
#include "common/models/engine_layer.h"
#include "labs/01_cpu_matmul/given/engine.h"
#include "labs/02_gpu_matmul/gpu_matmul.h"

static enum status stage_matmul(void *context, float *out, const float *in, const float *weight,
                                size_t M, size_t N, size_t K) {
    return gpu_matmul(engine_layer_own(context), out, in, weight, M, N, K, NULL);
}

static void stage_destroy(void *own) {
    gpu_matmul_destroy(own);
}

enum status engine_gpu_matmul_create(struct engine *engine, struct error *error) {
    struct engine base;
    struct gpu_matmul *matmul;
    *engine = (struct engine){0};
    TRY(device_open(error));
    TRY(gpu_matmul_create(&matmul, error));
    enum status status =
        engine_cpu_matmul_create(&base, 1); /* what is not a matmul is too short for threads */
    if (status != STATUS_OK) {
        gpu_matmul_destroy(matmul);
        return error_set(error, status, "out of memory for the engine");
    }
    status = engine_layer_create(engine, "02_gpu_matmul", &base, matmul, stage_destroy);
    if (status != STATUS_OK) {
        return error_set(error, status, "out of memory for the engine");
    }
    engine->matmul = stage_matmul;
    engine->linear = NULL; /* with lab 01's matmul */
    engine->linear_activation = NULL;
    engine->linear_residual_layernorm = NULL;
    return STATUS_OK;
}
