/**
 * @file engine.c
 * @brief The solved stage 03 with one entry replaced: matmul is sgemm() with B transposed.
 *
 * Weights and activations are resident, so the operands are device memory, and
 * every operator is a launch on stage 03's one stream.
 */
#include "labs/04_sgemm/given/engine.h"

#include "common/device/device.h"
#include "common/models/engine_layer.h"
#include "common/simt/simt.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/03_resident_weights/resident.h"

struct stage {
    sgemm_function *run;
    void *workspace; /* device, SGEMM_WORKSPACE_BYTES */
};

struct matmul_call {
    const struct stage *stage;
    size_t M, N, K;
};

void sgemm_name_tensors(const struct sgemm_problem *problem) {
    simt_name_tensor(problem->C, "C");
    simt_name_tensor(problem->A, "A");
    simt_name_tensor(problem->B, "B");
}

static enum status matmul_kernel(const void *arguments, void *const *d, device_stream stream,
                                 struct error *error) {
    const struct matmul_call *call = arguments;
    const struct sgemm_problem problem = {
        .M = call->M,
        .N = call->N,
        .K = call->K,
        .form = SGEMM_B_TRANSPOSED,
        .alpha = 1.0f,
        .beta = 0.0f,
        .A = d[1],
        .B = d[2],
        .C = d[0],
    };
    sgemm_name_tensors(&problem);
    return call->stage->run(&problem, call->stage->workspace, stream, error);
}

static enum status stage_matmul(void *context, float *out, const float *in, const float *weight,
                                size_t M, size_t N, size_t K) {
    struct resident *resident = engine_resident_of(engine_layer_base(context));
    const struct matmul_call call = {engine_layer_own(context), M, N, K};
    const struct resident_operand operands[] = {
        {out, M * N * sizeof(float), RESIDENT_OUT},
        {in, M * K * sizeof(float), RESIDENT_IN},
        {weight, N * K * sizeof(float), RESIDENT_IN},
    };
    return resident_call(resident, matmul_kernel, &call, operands, 3, NULL);
}

static void stage_release(void *own) {
    device_free(((struct stage *)own)->workspace);
}

enum status engine_sgemm_create_with(struct engine *engine, sgemm_function *run,
                                     struct error *error) {
    struct engine base;
    struct stage stage = {.run = run};
    *engine = (struct engine){0};
    TRY(engine_resident_create(&base, error));
    enum status status = device_alloc(&stage.workspace, SGEMM_WORKSPACE_BYTES, error);
    if (status != STATUS_OK) {
        engine_destroy(&base);
        return status;
    }
    TRY(engine_layer_create_copy(engine, "04_sgemm", &base, &stage, sizeof stage, stage_release,
                                 error));
    engine->matmul = stage_matmul;
    return STATUS_OK;
}

enum status engine_sgemm_create(struct engine *engine, struct error *error) {
    return engine_sgemm_create_with(engine, sgemm, error);
}
