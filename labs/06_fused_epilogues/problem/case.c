#include "labs/06_fused_epilogues/problem/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

static const char *const buffer_names[FUSED_BUFFERS] = {
    "in", "weight", "bias", "residual", "norm.weight", "norm.bias", "sum", "out"};

/* The one that is written in place. */
static enum fused_buffer target_of(const struct fused_case *c) {
    return c->op == FUSED_ADD_KEEP_NORM ? FUSED_SUM : FUSED_OUT;
}

static void name_case(struct fused_case *c) {
    snprintf(c->name, sizeof c->name, "%s, shape M=%zu N=%zu K=%zu%s%s%s", fused_op_name(c->op),
             c->shape.M, c->shape.N, c->shape.K, c->in_place ? ", in place" : "",
             c->skew > 0 ? ", pointers 4 bytes past a boundary" : "",
             c->flavour.mean != 0.0f ? ", mean far from zero" : "");
}

/* Values of a buffer on the host, NULL for none, and how many. */
static const float *values_of(const struct fused_case *c, enum fused_buffer which, size_t *count) {
    const struct fused_problem *p = &c->data.problem;
    size_t sums = p->M * p->N;
    const float *const values[FUSED_BUFFERS] = {p->in,          p->weight,    p->bias, p->residual,
                                                p->norm.weight, p->norm.bias, NULL,    NULL};
    const size_t counts[FUSED_BUFFERS] = {p->M * c->data.in_columns,
                                          p->N * p->K,
                                          p->N,
                                          sums,
                                          p->N,
                                          p->N,
                                          c->op == FUSED_ADD_KEEP_NORM ? sums : 0,
                                          sums};
    const float *own = values[which];
    if (which == target_of(c)) {
        own = c->in_place ? p->residual : NULL;
    }
    *count = own != NULL || which >= FUSED_SUM ? counts[which] : 0;
    return own;
}

/* Whether a buffer has rows, which may be there several times. */
static bool has_rows(enum fused_buffer which) {
    return which == FUSED_IN || which == FUSED_RESIDUAL || which >= FUSED_SUM;
}

static enum status put_copies(struct device_buffer *buffer, const float *values, size_t count,
                              size_t copies, struct error *error) {
    float *all = malloc(count * copies * sizeof *all + 1);
    if (all == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    for (size_t i = 0; i < copies; i++) {
        memcpy(all + i * count, values, count * sizeof *all);
    }
    enum status status = device_buffer_put(buffer, all, error);
    free(all);
    return status;
}

static enum status make_buffers(struct fused_case *c, bool guarded, struct error *error) {
    for (int i = 0; i < FUSED_BUFFERS; i++) {
        size_t count;
        const float *values = values_of(c, (enum fused_buffer)i, &count);
        size_t copies = has_rows((enum fused_buffer)i) ? c->copies : 1;
        TRY(device_buffer_create(&c->buffers[i], count * copies, guarded, c->skew, error));
        if (values != NULL) {
            TRY(put_copies(&c->buffers[i], values, count, copies, error));
        }
    }
    return STATUS_OK;
}

static float *pointer_of(const struct fused_case *c, enum fused_buffer which, const float *host) {
    return host != NULL ? c->buffers[which].data : NULL;
}

enum status fused_case_create(struct fused_case *c, struct rng *rng, bool guarded,
                              struct error *error) {
    name_case(c);
    c->copies = c->copies > 0 ? c->copies : 1;
    TRY(fused_data_create(&c->data, c->op, c->shape, c->flavour, rng, error));
    c->in_place = c->in_place && c->data.problem.residual != NULL;
    TRY(make_buffers(c, guarded, error));
    const struct fused_problem *p = &c->data.problem;
    c->problem = *p;
    c->problem.M = p->M * c->copies;
    c->problem.in = c->buffers[FUSED_IN].data;
    c->problem.weight = pointer_of(c, FUSED_WEIGHT, p->weight);
    c->problem.bias = pointer_of(c, FUSED_BIAS, p->bias);
    c->problem.residual = pointer_of(c, c->in_place ? target_of(c) : FUSED_RESIDUAL, p->residual);
    c->problem.norm.weight = pointer_of(c, FUSED_NORM_WEIGHT, p->norm.weight);
    c->problem.norm.bias = pointer_of(c, FUSED_NORM_BIAS, p->norm.bias);
    c->problem.sum = c->op == FUSED_ADD_KEEP_NORM ? c->buffers[FUSED_SUM].data : NULL;
    c->problem.out = c->buffers[FUSED_OUT].data;
    return STATUS_OK;
}

void fused_case_free(struct fused_case *c) {
    for (int i = 0; i < FUSED_BUFFERS; i++) {
        device_buffer_free(&c->buffers[i]);
    }
    fused_data_free(&c->data);
}

static enum status check_inputs(const struct fused_case *c, struct error *error) {
    for (int i = 0; i < FUSED_SUM; i++) {
        bool intact, changed;
        TRY(device_buffer_get(&c->buffers[i], NULL, &intact, &changed, error));
        if (!intact) {
            TEST_FAIL("%s: wrote outside of the output", c->name);
        } else if (changed) {
            TEST_FAIL("%s: changed its input %s", c->name, buffer_names[i]);
        }
    }
    return STATUS_OK;
}

static enum status check_output(const struct fused_case *c, enum fused_buffer which, float *got,
                                struct error *error) {
    bool intact, changed;
    char text[400];
    TRY(device_buffer_get(&c->buffers[which], got, &intact, &changed, error));
    if (!intact) {
        TEST_FAIL("%s: wrote outside of the output", c->name);
    }
    for (size_t i = 0; i < c->copies && !test_has_failed(); i++) {
        const float *copy = got + i * c->shape.M * c->shape.N;
        fused_compare(&c->data, copy, which == FUSED_SUM, text, sizeof text);
        if (text[0] != '\0') {
            TEST_FAIL("%s: %s", c->name, text);
        }
    }
    return STATUS_OK;
}

enum status fused_case_check(struct fused_case *c, struct error *error) {
    float *got = malloc(c->copies * c->shape.M * c->shape.N * sizeof(float) + 1);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = check_inputs(c, error);
    if (status == STATUS_OK && c->op == FUSED_ADD_KEEP_NORM) {
        status = check_output(c, FUSED_SUM, got, error);
    }
    if (status == STATUS_OK && !test_has_failed()) {
        status = check_output(c, FUSED_OUT, got, error);
    }
    free(got);
    return status;
}
