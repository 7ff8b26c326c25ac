#include "common/quantize/calibration.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/cpu/cpu_engine.h"
#include "common/cpu/gemm.h"
#include "common/models/engine_layer.h"
#include "common/quantize/gptq.h"

/* A matrix whose inputs are gathered. */
struct gathered {
    const float *weights;
    struct calibration_sums sums;
    float *wanted;                 /* (tokens, K): of the piece of text as it ran first */
    size_t tokens, kept, compared; /* of them */
};

/* A matrix in whose place the model uses another. */
struct replaced {
    const float *weights;
    float *other;
};

enum { MOST = 4096 };

struct calibration {
    struct gathered matrices[MOST];
    size_t count;
    struct replaced replaced[MOST];
    size_t replaced_count;
    bool first; /* a piece of text runs with the weights as they were */
};

static enum status product(float *out, const float *in, const float *weight, size_t M, size_t N,
                           size_t K, int threads) {
    struct cpu_scratch scratch = {0};
    const struct gemm g = {.M = M,
                           .N = N,
                           .K = K,
                           .a = {.at = in, .row = K, .column = 1},
                           .b = {.at = weight, .row = 1, .column = K},
                           .c = out};
    enum status status = cpu_gemm(threads, &scratch, &g);
    cpu_scratch_free(&scratch);
    return status;
}

static void gather(struct gathered *g, const float *in, size_t M, size_t K) {
    size_t left = g->kept - g->compared, count = M < left ? M : left;
    gptq_add(g->sums.hessian, in, M, K);
    gptq_add_drift(g->sums.drift, g->wanted + g->compared * K, in, count, K);
    g->compared += count;
}

static void keep(struct gathered *g, const float *in, size_t M, size_t K) {
    size_t left = g->tokens - g->kept, count = M < left ? M : left;
    memcpy(g->wanted + g->kept * K, in, count * K * sizeof *in);
    g->kept += count;
}

static enum status gathering_matmul(void *context, float *out, const float *in, const float *weight,
                                    size_t M, size_t N, size_t K) {
    struct calibration *c = engine_layer_own(context);
    const struct engine *base = engine_layer_base(context);
    for (size_t i = 0; i < c->count; i++) {
        if (c->matrices[i].weights == weight) {
            (c->first ? keep : gather)(&c->matrices[i], in, M, K);
        }
    }
    for (size_t i = 0; i < c->replaced_count && !c->first; i++) {
        if (c->replaced[i].weights == weight) {
            return base->matmul(base->context, out, in, c->replaced[i].other, M, N, K);
        }
    }
    return base->matmul(base->context, out, in, weight, M, N, K);
}

static void clear(struct calibration *c) {
    for (size_t i = 0; i < c->count; i++) {
        free(c->matrices[i].sums.hessian);
        free(c->matrices[i].sums.drift);
        free(c->matrices[i].wanted);
    }
    c->count = 0;
}

static void destroy(void *own) {
    struct calibration *c = own;
    clear(c);
    for (size_t i = 0; i < c->replaced_count; i++) {
        free(c->replaced[i].other);
    }
    free(c);
}

enum status calibration_engine_create(struct engine *engine, int threads) {
    struct engine base;
    struct calibration *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    enum status status = cpu_engine_create(&base, "cpu", product, threads);
    if (status != STATUS_OK) {
        free(c);
        return status;
    }
    TRY(engine_layer_create(engine, "calibration", &base, c, destroy));
    engine->matmul = gathering_matmul;
    engine->linear = NULL;
    engine->linear_activation = NULL;
    engine->linear_residual_layernorm = NULL;
    return STATUS_OK;
}

enum status calibration_add(struct engine *engine, const float *weights, size_t K, size_t tokens) {
    struct calibration *c = engine_layer_own(engine->context);
    size_t count, inputs;
    if (c->count == MOST || !checked_multiply(K, K, &count) ||
        !checked_multiply(K, tokens, &inputs)) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct gathered *g = &c->matrices[c->count++];
    *g = (struct gathered){.weights = weights,
                           .sums = {calloc(count, sizeof(double)), calloc(count, sizeof(double))},
                           .wanted = calloc(inputs, sizeof(float)),
                           .tokens = tokens};
    return g->sums.hessian != NULL && g->sums.drift != NULL && g->wanted != NULL
               ? STATUS_OK
               : STATUS_OUT_OF_MEMORY;
}

static void start(struct engine *engine, bool first) {
    struct calibration *c = engine_layer_own(engine->context);
    c->first = first;
    for (size_t i = 0; i < c->count; i++) {
        c->matrices[i].kept = first ? 0 : c->matrices[i].kept;
        c->matrices[i].compared = 0;
    }
}

void calibration_begin(struct engine *engine) {
    start(engine, true);
}

void calibration_repeat(struct engine *engine) {
    start(engine, false);
}

struct calibration_sums calibration_of(const struct engine *engine, const float *weights) {
    const struct calibration *c = engine_layer_own(engine->context);
    for (size_t i = 0; i < c->count; i++) {
        if (c->matrices[i].weights == weights) {
            return c->matrices[i].sums;
        }
    }
    return (struct calibration_sums){NULL, NULL};
}

enum status calibration_replace(struct engine *engine, const float *weights, float *other) {
    struct calibration *c = engine_layer_own(engine->context);
    if (c->replaced_count == MOST) {
        free(other);
        return STATUS_OUT_OF_MEMORY;
    }
    c->replaced[c->replaced_count++] = (struct replaced){weights, other};
    return STATUS_OK;
}

void calibration_clear(struct engine *engine) {
    clear(engine_layer_own(engine->context));
}
