#include "common/programs/decoder/quantize_awq.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/quantize/awq.h"
#include "common/quantize/calibration.h"
#include "common/quantize/gptq.h"

struct quantize_awq_memory {
    void *block;
    const float *weights; /* whose `inverse` the block is; NULL: new weights */
};

enum { MOST = 3 };

/* Matrices with the same inputs, and what makes these: a norm, or rows of a matrix. */
struct inputs {
    const float **matrices[MOST];
    size_t rows[MOST];
    size_t K;
    const double *hessian;
    const float **norm; /* (K) */
    enum nn_dtype norm_dtype;
    const float **maker; /* (makers, columns), in place of a norm */
    size_t makers, columns;
    size_t heads, shared; /* of K: heads, of which `shared` in a row come from the same rows */
};

/* Memory that the struct owns; NULL: out of memory. */
static void *own(struct quantize_awq *awq, size_t count, size_t element, const float *weights) {
    struct quantize_awq_memory *more = realloc(awq->memory, (awq->count + 1) * sizeof *awq->memory);
    if (more == NULL) {
        return NULL;
    }
    awq->memory = more;
    void *block = calloc(count, element);
    if (block != NULL) {
        awq->memory[awq->count++] = (struct quantize_awq_memory){block, weights};
    }
    return block;
}

/* The row of the maker that makes input k: itself, or the one that its head shares. */
static size_t made_by(const struct inputs *in, size_t k) {
    if (in->heads == 0) {
        return k;
    }
    size_t size = in->K / in->heads;
    return k / size / in->shared * size + k % size;
}

/* The norm divided by s, as it will be stored; s becomes the exact quotient. */
static enum status divide_norm(struct quantize_awq *awq, const struct inputs *in, float *s) {
    float *to = own(awq, in->K, sizeof *to, NULL);
    if (to == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t k = 0; k < in->K; k++) {
        float norm = (*in->norm)[k], quotient = norm / s[k];
        uint32_t stored;
        nn_dtype_store(&stored, &quotient, 1, in->norm_dtype);
        nn_dtype_load(&to[k], &stored, 1, in->norm_dtype);
        if (!isnormal(to[k]) || !isnormal(norm / to[k])) {
            to[k] = norm;
        }
        s[k] = norm == to[k] ? 1.0f : norm / to[k];
    }
    *in->norm = to;
    return STATUS_OK;
}

static enum status divide_maker(struct quantize_awq *awq, const struct inputs *in, const float *s) {
    size_t columns = in->columns;
    float *to = own(awq, in->makers * columns, sizeof *to, NULL);
    if (to == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t k = 0; k < in->K; k++) { /* inputs that share a row share s */
        size_t row = made_by(in, k);
        for (size_t c = 0; c < columns; c++) {
            to[row * columns + c] = (*in->maker)[row * columns + c] / s[k];
        }
    }
    *in->maker = to;
    return STATUS_OK;
}

static enum status leave(const struct inputs *in, float *s) {
    for (size_t k = 0; k < in->K; k++) {
        s[k] = 1.0f;
    }
    return STATUS_OK;
}

static enum status multiply(struct quantize_awq *awq, const struct inputs *in, size_t i,
                            const float *s) {
    size_t K = in->K, count = in->rows[i] * K;
    float *to = own(awq, count, sizeof *to, NULL);
    double *inverse = own(awq, K, sizeof *inverse, to), mean = 0.0;
    if (to == NULL || inverse == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t at = 0; at < count; at++) {
        to[at] = (*in->matrices[i])[at] * s[at % K];
    }
    for (size_t k = 0; k < K; k++) {
        mean += in->hessian[k * K + k] / (double)K;
    }
    for (size_t k = 0; k < K; k++) {
        double square = in->hessian[k * K + k] + GPTQ_DAMPING * mean;
        inverse[k] = square > 0.0 ? (double)s[k] / sqrt(square) : 1.0;
    }
    *in->matrices[i] = to;
    return STATUS_OK;
}

static void choose(const struct inputs *in, const struct low_bit_layout *layout, float *s,
                   double *scratch, size_t *same) {
    struct awq_matrix matrices[MOST];
    struct awq_problem problem = {
        .matrices = matrices, .K = in->K, .layout = *layout, .hessian = in->hessian, .same = same};
    size_t group = layout->group;
    problem.layout.group = group == 0 || group > in->K ? in->K : group;
    for (; problem.count < MOST && in->matrices[problem.count] != NULL; problem.count++) {
        matrices[problem.count] =
            (struct awq_matrix){*in->matrices[problem.count], in->rows[problem.count]};
    }
    for (size_t k = 0; k < in->K; k++) {
        same[k] = made_by(in, k);
    }
    awq_choose(&problem, s, scratch);
}

static enum status scale(struct quantize_awq *awq, const struct inputs *in,
                         const struct low_bit_layout *layout, struct error *error) {
    float *s = malloc(in->K * sizeof *s);
    double *scratch = malloc(3 * in->K * sizeof *scratch);
    size_t *same = malloc(in->K * sizeof *same);
    enum status status =
        s != NULL && scratch != NULL && same != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        choose(in, layout, s, scratch, same);
        status = in->norm != NULL    ? divide_norm(awq, in, s)
                 : in->maker != NULL ? divide_maker(awq, in, s)
                                     : leave(in, s);
    }
    for (size_t i = 0; i < MOST && in->matrices[i] != NULL && status == STATUS_OK; i++) {
        status = multiply(awq, in, i, s);
    }
    free(s);
    free(scratch);
    free(same);
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "no memory for AWQ's new weights");
}

enum status quantize_awq_scale(struct quantize_awq *awq, struct decoder_session *session,
                               size_t layer, const struct low_bit_layout *layout,
                               struct error *error) {
    const struct llama2_config *c = &session->checkpoint.config;
    const struct llama2_stored_layer *stored = &session->checkpoint.weights.layers[layer];
    struct llama2_layer *l = &session->fp32.weights.layers[layer];
    size_t queries = c->NH * c->HS, values = c->KVH * c->HS;
    /* What divides a matrix comes before what multiplies it, whose new weights stay. */
    const struct inputs all[] = {
        {.matrices = {&l->wo},
         .rows = {c->C},
         .K = queries,
         .maker = l->bv == NULL ? &l->wv : NULL,
         .makers = values,
         .columns = c->C,
         .heads = c->NH,
         .shared = c->NH / c->KVH},
        {.matrices = {&l->wq, &l->wk, &l->wv},
         .rows = {queries, values, values},
         .K = c->C,
         .norm = &l->attention_norm,
         .norm_dtype = stored->attention_norm.dtype},
        {.matrices = {&l->w2},
         .rows = {c->C},
         .K = c->hidden,
         .maker = l->b3 == NULL ? &l->w3 : NULL,
         .makers = c->hidden,
         .columns = c->C},
        {.matrices = {&l->w1, &l->w3},
         .rows = {c->hidden, c->hidden},
         .K = c->C,
         .norm = &l->ffn_norm,
         .norm_dtype = stored->ffn_norm.dtype},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct inputs in = all[i];
        in.hessian = calibration_of(&session->engine, *in.matrices[0]).hessian;
        TRY(scale(awq, &in, layout, error));
    }
    return STATUS_OK;
}

const double *quantize_awq_inverse(const struct quantize_awq *awq, const float *weights) {
    for (size_t i = 0; i < awq->count; i++) {
        if (awq->memory[i].weights == weights) {
            return awq->memory[i].block;
        }
    }
    return NULL;
}

void quantize_awq_free(struct quantize_awq *awq) {
    for (size_t i = 0; i < awq->count; i++) {
        free(awq->memory[i].block);
    }
    free(awq->memory);
    *awq = (struct quantize_awq){0};
}
