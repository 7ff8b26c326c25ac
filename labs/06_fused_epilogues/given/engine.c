/**
 * @file engine.c
 * @brief The solved stage below with its fused entries set: each is one fused_epilogues() call.
 */
#include "labs/06_fused_epilogues/given/engine.h"

#include <stddef.h>
#include <string.h>

#include "common/device/device.h"
#include "common/models/engine_layer.h"
#include "common/simt/simt.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/03_resident_weights/resident.h"
#include "labs/05_layernorm_softmax/given/engine.h"

#define F (sizeof(float))

struct stage {
    fused_function *run;
    void *workspace; /* device, FUSED_WORKSPACE_BYTES */
};

/* One call: the problem with the model's pointers, and which of its fields the operands are. */
struct fused_call {
    const struct stage *stage;
    struct fused_problem problem;
    struct resident_operand operands[RESIDENT_MAX_OPERANDS];
    size_t fields[RESIDENT_MAX_OPERANDS]; /* offsets in struct fused_problem */
    size_t count;
};

void fused_name_tensors(const struct fused_problem *problem) {
    simt_name_tensor(problem->out, "out");
    simt_name_tensor(problem->sum, "sum");
    simt_name_tensor(problem->in, "in");
    simt_name_tensor(problem->weight, "weight");
    simt_name_tensor(problem->bias, "bias");
    simt_name_tensor(problem->residual, "residual");
    simt_name_tensor(problem->norm.weight, "norm.weight");
    simt_name_tensor(problem->norm.bias, "norm.bias");
}

static enum status fused_kernel(const void *arguments, void *const *d, device_stream stream,
                                struct error *error) {
    const struct fused_call *call = arguments;
    struct fused_problem problem = call->problem;
    for (size_t i = 0; i < call->count; i++) {
        memcpy((char *)&problem + call->fields[i], &d[i], sizeof d[i]);
    }
    if (call->problem.residual == call->problem.out) {
        problem.residual = problem.out;
    }
    fused_name_tensors(&problem);
    return call->stage->run(&problem, call->stage->workspace, stream, error);
}

static void add_operand(struct fused_call *call, size_t field, const void *memory, size_t floats,
                        enum resident_use use) {
    if (memory != NULL) {
        call->fields[call->count] = field;
        call->operands[call->count++] = (struct resident_operand){memory, floats * F, use};
    }
}

#define ADD(field, floats, use) \
    add_operand(&call, offsetof(struct fused_problem, field), p->field, floats, use)

static enum status call_fused(void *context, const struct fused_problem *p) {
    struct fused_call call = {.stage = engine_layer_own(context), .problem = *p};
    size_t sums = p->M * p->N;
    bool in_place = p->out == p->residual;
    ADD(out, sums, in_place ? RESIDENT_IN_OUT : RESIDENT_OUT);
    ADD(in, p->weight != NULL ? p->M * p->K : sums, RESIDENT_IN);
    ADD(weight, p->N * p->K, RESIDENT_IN);
    ADD(bias, p->N, RESIDENT_IN);
    ADD(norm.weight, p->N, RESIDENT_IN);
    ADD(norm.bias, p->N, RESIDENT_IN);
    if (!in_place) {
        ADD(residual, sums, RESIDENT_IN);
    }
    struct resident *resident = engine_resident_of(engine_layer_base(context));
    return resident_call(resident, fused_kernel, &call, call.operands, call.count, NULL);
}

/* The part that all operations with a product have. */
static struct fused_problem product(enum fused_op op, float *out, const float *in,
                                    const float *weight, const float *bias, size_t M, size_t N,
                                    size_t K) {
    return (struct fused_problem){
        .op = op, .M = M, .N = N, .K = K, .in = in, .weight = weight, .bias = bias, .out = out};
}

static enum status stage_linear(void *context, float *out, const float *in, const float *weight,
                                const float *bias, size_t M, size_t N, size_t K) {
    const struct fused_problem p = product(FUSED_LINEAR, out, in, weight, bias, M, N, K);
    return call_fused(context, &p);
}

static enum status stage_linear_activation(void *context, float *out, const float *in,
                                           const float *weight, const float *bias, size_t M,
                                           size_t N, size_t K, enum nn_activation f) {
    struct fused_problem p = product(FUSED_LINEAR_ACTIVATION, out, in, weight, bias, M, N, K);
    p.f = f;
    return call_fused(context, &p);
}

static enum status stage_linear_residual_layernorm(void *context, float *x, const float *in,
                                                   const float *weight, const float *bias,
                                                   const struct nn_norm *norm, float *scratch,
                                                   size_t M, size_t N, size_t K) {
    (void)scratch; /* the sum goes to x itself */
    struct fused_problem p = product(FUSED_LINEAR_ADD_NORM, x, in, weight, bias, M, N, K);
    p.residual = x;
    p.norm = *norm;
    return call_fused(context, &p);
}

static enum status stage_residual_layernorm(void *context, float *out, const float *a,
                                            const float *b, const struct nn_norm *norm, size_t rows,
                                            size_t C) {
    const struct fused_problem p = {
        .op = FUSED_ADD_NORM, .M = rows, .N = C, .in = b, .residual = a, .norm = *norm, .out = out};
    return call_fused(context, &p);
}

/* The lone fused add: x += product in one operation, then the bias and the LayerNorm one by one. */
static enum status lone_add(void *context, float *x, const float *in, const float *weight,
                            const float *bias, const struct nn_norm *norm, float *scratch, size_t M,
                            size_t N, size_t K) {
    const struct engine *below = engine_layer_base(context);
    (void)scratch;
    struct fused_problem p = product(FUSED_LINEAR_ADD, x, in, weight, NULL, M, N, K);
    p.residual = x;
    TRY(call_fused(context, &p));
    TRY(below->bias_add(below->context, x, bias, M, N));
    return below->layernorm(below->context, x, x, norm->weight, norm->bias, M, N, norm->eps);
}

static void stage_release(void *own) {
    device_free(((struct stage *)own)->workspace);
}

static enum status workspace_create(void **workspace, struct error *error) {
    TRY(device_alloc(workspace, FUSED_WORKSPACE_BYTES, error));
    TRY(device_set(*workspace, 0, FUSED_ZERO_BYTES, NULL, error));
    return device_synchronize(NULL, error);
}

enum status engine_unfused_create(struct engine *engine, struct error *error) {
    return engine_layernorm_softmax_create(engine, error);
}

/* The stage below with memory of this one, and no entry replaced yet. */
static enum status layer_create(struct engine *engine, fused_function *run, struct error *error) {
    struct engine base;
    struct stage stage = {.run = run};
    *engine = (struct engine){0};
    TRY(engine_unfused_create(&base, error));
    enum status status = workspace_create(&stage.workspace, error);
    if (status != STATUS_OK) {
        stage_release(&stage);
        engine_destroy(&base);
        return status;
    }
    return engine_layer_create_copy(engine, "06_fused_epilogues", &base, &stage, sizeof stage,
                                    stage_release, error);
}

enum status engine_fused_create_with(struct engine *engine, fused_function *run,
                                     struct error *error) {
    TRY(layer_create(engine, run, error));
    engine->linear = stage_linear;
    engine->linear_activation = stage_linear_activation;
    engine->linear_residual_layernorm = stage_linear_residual_layernorm;
    engine->residual_layernorm = stage_residual_layernorm;
    return STATUS_OK;
}

enum status engine_fused_create(struct engine *engine, struct error *error) {
    return engine_fused_create_with(engine, fused_epilogues, error);
}

enum status engine_lone_add_create(struct engine *engine, struct error *error) {
    TRY(layer_create(engine, fused_epilogues, error));
    engine->linear_residual_layernorm = lone_add;
    return STATUS_OK;
}
