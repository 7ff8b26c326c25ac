/**
 * @file engine.c
 * @brief The solved stage below with two entries replaced: attention and attention_packed.
 *
 * Operands are device memory, and every operator is a launch on the one stream of stage 03. What
 * the lab's contract does not take (heads above 128, a scale that is not positive) the stage below
 * computes.
 */
#include "labs/07_attention/given/engine.h"

#include <math.h>

#include "common/models/engine_layer.h"
#include "common/models/fused.h"
#include "common/simt/simt.h"
#include "labs/03_resident_weights/given/engine.h"
#include "labs/03_resident_weights/resident.h"
#include "labs/06_fused_epilogues/given/engine.h"

struct stage {
    attention_function *run;
    struct resident *resident; /* stage 03's */
};

struct attention_call {
    attention_function *run;
    struct attention_problem problem; /* without device addresses */
};

void attention_name_tensors(const struct attention_problem *problem) {
    simt_name_tensor(problem->out, "out");
    simt_name_tensor(problem->q, "q");
    simt_name_tensor(problem->k, "k");
    simt_name_tensor(problem->v, "v");
    simt_name_tensor(problem->mask, "mask");
    simt_name_tensor(problem->starts, "starts");
}

/* Operands in the order out, q, k, v, and mask or starts, where there are any. */
static enum status attention_kernel(const void *arguments, void *const *d, device_stream stream,
                                    struct error *error) {
    const struct attention_call *call = arguments;
    struct attention_problem problem = call->problem;
    problem.out = d[0];
    problem.q = d[1];
    problem.k = d[2];
    problem.v = d[3];
    problem.mask = problem.mask != NULL ? d[4] : NULL;
    problem.starts = problem.starts != NULL ? d[4] : NULL;
    attention_name_tensors(&problem);
    return call->run(&problem, stream, error);
}

static bool contract_takes(const struct nn_attention *a) {
    return a->HS <= ATTENTION_MAX_HS && a->scale > 0.0f && isfinite(a->scale);
}

static struct attention_problem problem_of(const struct nn_attention *a) {
    return (struct attention_problem){
        .dtype = NN_F32,
        .mask = a->mask,
        .B = a->B,
        .T = a->T,
        .S = a->S,
        .NH = a->NH,
        .KVH = a->KVH,
        .HS = a->HS,
        .q_stride = a->q_stride,
        .kv_stride = a->kv_stride,
        .out_stride = a->NH * a->HS,
        .causal = a->causal,
        .scale = a->scale,
    };
}

/* Bytes from the first row to the end of the last. */
static size_t strided_bytes(size_t rows, size_t columns, size_t stride) {
    return rows == 0 ? 0 : ((rows - 1) * stride + columns) * sizeof(float);
}

/* `last`: mask or starts, of no bytes where there is neither. */
static enum status call_attention(const struct stage *stage, float *out,
                                  const struct nn_attention *a,
                                  const struct attention_problem *problem, size_t q_tokens,
                                  size_t kv_tokens, struct resident_operand last) {
    const struct attention_call call = {stage->run, *problem};
    size_t q_row = a->NH * a->HS, kv_row = a->KVH * a->HS;
    size_t kv_bytes = strided_bytes(kv_tokens, kv_row, a->kv_stride);
    const struct resident_operand operands[] = {
        {out, q_tokens * q_row * sizeof(float), RESIDENT_OUT},
        {a->q, strided_bytes(q_tokens, q_row, a->q_stride), RESIDENT_IN},
        {a->k, kv_bytes, RESIDENT_IN},
        {a->v, kv_bytes, RESIDENT_IN},
        last,
    };
    return resident_call(stage->resident, attention_kernel, &call, operands, last.bytes > 0 ? 5 : 4,
                         NULL);
}

static enum status stage_attention(void *context, float *out, const struct nn_attention *a) {
    if (!contract_takes(a)) {
        const struct engine *base = engine_layer_base(context);
        return base->attention(base->context, out, a);
    }
    const struct attention_problem problem = problem_of(a);
    const struct resident_operand mask = {a->mask, a->mask != NULL ? a->B * a->S : 0, RESIDENT_IN};
    return call_attention(engine_layer_own(context), out, a, &problem, a->B * a->T, a->B * a->S,
                          mask);
}

static enum status stage_attention_packed(void *context, float *out, const struct nn_attention *a,
                                          const int32_t *starts, const int32_t *host_starts) {
    if (!contract_takes(a)) {
        return engine_attention_packed(engine_layer_base(context), out, a, starts, host_starts);
    }
    struct attention_problem problem = problem_of(a);
    problem.mask = NULL;
    problem.starts = starts;
    problem.host_starts = host_starts;
    const struct resident_operand operand = {starts, (a->B + 1) * sizeof *starts, RESIDENT_IN};
    size_t tokens = (size_t)host_starts[a->B];
    return call_attention(engine_layer_own(context), out, a, &problem, tokens, tokens, operand);
}

enum status engine_attention_create_with(struct engine *engine, attention_function *run,
                                         struct error *error) {
    struct engine base;
    *engine = (struct engine){0};
    TRY(engine_fused_create(&base, error));
    const struct stage stage = {.run = run, .resident = engine_resident_of(&base)};
    TRY(engine_layer_create_copy(engine, "07_attention", &base, &stage, sizeof stage, NULL, error));
    engine->attention = stage_attention;
    engine->attention_packed = stage_attention_packed;
    return STATUS_OK;
}

enum status engine_attention_create(struct engine *engine, struct error *error) {
    return engine_attention_create_with(engine, attention, error);
}
