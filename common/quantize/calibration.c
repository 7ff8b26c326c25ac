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
    struct calibration_matrix matrix;
    struct calibration_sums sums;
    float *wanted;                 /* (tokens, rows): of the piece of text as it ran first */
    size_t tokens, kept, compared; /* of them */
    const float *product;          /* is_added: the last one, which has not been added yet */
    float *in;                     /* (M, K): its inputs, a copy */
    size_t M, room;                /* tokens of it; for which there is memory */
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

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

/* What came of M tokens: kept, or compared with what was kept. */
static void take(struct gathered *g, bool first, const float *in, const float *result, size_t M) {
    size_t rows = g->matrix.rows;
    if (first) {
        size_t count = least_of(M, g->tokens - g->kept);
        memcpy(g->wanted + g->kept * rows, result, count * rows * sizeof *result);
        g->kept += count;
    } else {
        size_t count = least_of(M, g->kept - g->compared);
        gptq_add_pull(g->sums.pull, g->wanted + g->compared * rows, result, in, count, rows,
                      g->matrix.K);
        g->compared += count;
    }
}

/* Remembers a product that will be added to something. */
static enum status await_sum(struct gathered *g, const float *in, const float *product, size_t M) {
    if (M > g->room) {
        float *more = realloc(g->in, M * g->matrix.K * sizeof *more);
        if (more == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        g->in = more;
        g->room = M;
    }
    memcpy(g->in, in, M * g->matrix.K * sizeof *in);
    g->product = product;
    g->M = M;
    return STATUS_OK;
}

static enum status gather(struct calibration *c, struct gathered *g, const float *in,
                          const float *product, size_t M) {
    if (!c->first) {
        gptq_add(g->sums.hessian, in, M, g->matrix.K);
    }
    if (g->matrix.is_added) {
        return await_sum(g, in, product, M);
    }
    take(g, c->first, in, product, M);
    return STATUS_OK;
}

static const float *replacement(const struct calibration *c, const float *weight) {
    for (size_t i = 0; i < c->replaced_count && !c->first; i++) {
        if (c->replaced[i].weights == weight) {
            return c->replaced[i].other;
        }
    }
    return weight;
}

static enum status gathering_matmul(void *context, float *out, const float *in, const float *weight,
                                    size_t M, size_t N, size_t K) {
    struct calibration *c = engine_layer_own(context);
    const struct engine *base = engine_layer_base(context);
    TRY(base->matmul(base->context, out, in, replacement(c, weight), M, N, K));
    for (size_t i = 0; i < c->count; i++) {
        if (c->matrices[i].matrix.weights == weight) {
            TRY(gather(c, &c->matrices[i], in, out, M));
        }
    }
    return STATUS_OK;
}

static enum status gathering_residual(void *context, float *out, const float *a, const float *b,
                                      size_t count) {
    struct calibration *c = engine_layer_own(context);
    const struct engine *base = engine_layer_base(context);
    TRY(base->residual(base->context, out, a, b, count));
    for (size_t i = 0; i < c->count; i++) {
        struct gathered *g = &c->matrices[i];
        if (g->product != NULL && (g->product == a || g->product == b)) {
            take(g, c->first, g->in, out, g->M);
            g->product = NULL;
        }
    }
    return STATUS_OK;
}

static void clear(struct calibration *c) {
    for (size_t i = 0; i < c->count; i++) {
        free(c->matrices[i].sums.hessian);
        free(c->matrices[i].sums.pull);
        free(c->matrices[i].wanted);
        free(c->matrices[i].in);
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
    engine->residual = gathering_residual;
    engine->linear = NULL;
    engine->linear_activation = NULL;
    engine->linear_residual_layernorm = NULL;
    return STATUS_OK;
}

enum status calibration_add(struct engine *engine, const struct calibration_matrix *matrix,
                            size_t tokens) {
    struct calibration *c = engine_layer_own(engine->context);
    size_t square, weights, products;
    if (c->count == MOST || !checked_multiply(matrix->K, matrix->K, &square) ||
        !checked_multiply(matrix->rows, matrix->K, &weights) ||
        !checked_multiply(matrix->rows, tokens, &products)) {
        return STATUS_OUT_OF_MEMORY;
    }
    struct gathered *g = &c->matrices[c->count++];
    *g =
        (struct gathered){.matrix = *matrix,
                          .sums = {calloc(square, sizeof(double)), calloc(weights, sizeof(double))},
                          .wanted = calloc(products, sizeof(float)),
                          .tokens = tokens};
    return g->sums.hessian != NULL && g->sums.pull != NULL && g->wanted != NULL
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
        if (c->matrices[i].matrix.weights == weights) {
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
