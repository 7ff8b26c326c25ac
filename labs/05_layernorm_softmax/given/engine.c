/**
 * @file engine.c
 * @brief The solved stage 04 with three entries replaced: layernorm, rmsnorm and softmax.
 *
 * Operands are device memory, and every operator is a launch on the one stream
 * of stage 03.
 */
#include "labs/05_layernorm_softmax/given/engine.h"

#include "common/device/device.h"
#include "common/models/engine_layer.h"
#include "common/simt/simt.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/03_resident_weights/resident.h"
#include "labs/04_sgemm/given/engine.h"

struct stage {
    rows_function *run;
    void *workspace; /* device, ROWS_WORKSPACE_BYTES */
};

struct rows_call {
    const struct stage *stage;
    enum rows_op op;
    size_t rows, C;
    float eps;
};

void rows_name_tensors(const struct rows_problem *problem) {
    simt_name_tensor(problem->out, "out");
    simt_name_tensor(problem->in, "in");
    simt_name_tensor(problem->weight, "weight");
    simt_name_tensor(problem->bias, "bias");
    simt_name_tensor(problem->mask, "mask");
}

/* Operands in the order out, in, weight, bias; an operator has those it needs. */
static enum status rows_kernel(const void *arguments, void *const *d, device_stream stream,
                               struct error *error) {
    const struct rows_call *call = arguments;
    const struct rows_problem problem = {
        .op = call->op,
        .type = NN_F32,
        .rows = call->rows,
        .C = call->C,
        .in = d[1],
        .out = d[0],
        .weight = call->op != ROWS_SOFTMAX ? d[2] : NULL,
        .bias = call->op == ROWS_LAYERNORM ? d[3] : NULL,
        .eps = call->eps,
    };
    rows_name_tensors(&problem);
    return call->stage->run(&problem, call->stage->workspace, stream, error);
}

/* A model may ask for rows of no elements; the contract has no such rows. */
static enum status call_rows(void *context, struct rows_call call, float *out, const float *in,
                             const float *weight, const float *bias) {
    size_t bytes = call.rows * call.C * sizeof(float), row_bytes = call.C * sizeof(float);
    const struct resident_operand operands[] = {
        {out, bytes, RESIDENT_OUT},
        {in, bytes, RESIDENT_IN},
        {weight, row_bytes, RESIDENT_IN},
        {bias, row_bytes, RESIDENT_IN},
    };
    size_t count = call.op == ROWS_LAYERNORM ? 4 : call.op == ROWS_RMSNORM ? 3 : 2;
    if (bytes == 0) {
        return STATUS_OK;
    }
    struct resident *resident = engine_resident_of(engine_layer_base(context));
    return resident_call(resident, rows_kernel, &call, operands, count, NULL);
}

static enum status stage_layernorm(void *context, float *out, const float *in, const float *weight,
                                   const float *bias, size_t rows, size_t C, float eps) {
    const struct rows_call call = {engine_layer_own(context), ROWS_LAYERNORM, rows, C, eps};
    return call_rows(context, call, out, in, weight, bias);
}

static enum status stage_rmsnorm(void *context, float *out, const float *in, const float *weight,
                                 size_t rows, size_t C, float eps) {
    const struct rows_call call = {engine_layer_own(context), ROWS_RMSNORM, rows, C, eps};
    return call_rows(context, call, out, in, weight, NULL);
}

static enum status stage_softmax(void *context, float *out, const float *in, size_t rows,
                                 size_t C) {
    const struct rows_call call = {engine_layer_own(context), ROWS_SOFTMAX, rows, C, 0.0f};
    return call_rows(context, call, out, in, NULL, NULL);
}

static void stage_release(void *own) {
    device_free(((struct stage *)own)->workspace);
}

enum status engine_layernorm_softmax_create_with(struct engine *engine, rows_function *run,
                                                 struct error *error) {
    struct engine base;
    struct stage stage = {.run = run};
    *engine = (struct engine){0};
    TRY(engine_sgemm_create(&base, error));
    enum status status = device_alloc(&stage.workspace, ROWS_WORKSPACE_BYTES, error);
    if (status != STATUS_OK) {
        engine_destroy(&base);
        return status;
    }
    TRY(engine_layer_create_copy(engine, "05_layernorm_softmax", &base, &stage, sizeof stage,
                                 stage_release, error));
    engine->layernorm = stage_layernorm;
    engine->rmsnorm = stage_rmsnorm;
    engine->softmax = stage_softmax;
    /* A fused entry of the base would go by these. */
    engine->linear_residual_layernorm = NULL;
    engine->residual_layernorm = NULL;
    return STATUS_OK;
}

enum status engine_layernorm_softmax_create(struct engine *engine, struct error *error) {
    return engine_layernorm_softmax_create_with(engine, layernorm_softmax, error);
}
