#include "labs/06_fused_epilogues/problem/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const buffer_names[FUSED_BUFFERS] = {
    "in", "weight", "bias", "residual", "norm.weight", "norm.bias", "sum", "out"};

/* The one that is written in place. */
static enum fused_buffer target_of(const struct fused_case *c) {
    return c->op == FUSED_ADD_KEEP_NORM ? FUSED_SUM : FUSED_OUT;
}

static void name_case(struct fused_case *c) {
    snprintf(c->name, sizeof c->name, "%s, shape M=%zu N=%zu K=%zu%s%s%s", fused_op_name(c->op),
             c->rows, c->shape.N, c->shape.K, c->in_place ? ", in place" : "",
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

/* Whether a buffer has the different rows over and over. */
static bool has_rows(enum fused_buffer which) {
    return which == FUSED_IN || which == FUSED_RESIDUAL || which >= FUSED_SUM;
}

/* All rows on the device, each a mix. */
static enum status put_mixed(const struct fused_case *c, struct device_buffer *buffer,
                             const float *values, struct error *error) {
    const size_t columns = buffer->count / c->rows;
    float *all = malloc(buffer->count * sizeof *all + 1);
    if (all == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the inputs");
    }
    for (size_t m = 0; m < c->rows; m++) {
        fused_mix_row(&c->mixes[m], values, columns, all + m * columns);
    }
    enum status status = device_buffer_put(buffer, all, error);
    free(all);
    return status;
}

/* count values, `floats` of them over and over. */
static enum status put_repeated(struct device_buffer *buffer, const float *values, size_t floats,
                                struct error *error) {
    const size_t count = buffer->count;
    float *all = malloc(count * sizeof *all + 1);
    if (all == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the inputs");
    }
    for (size_t i = 0; i < count; i += floats) {
        memcpy(all + i, values, (count - i < floats ? count - i : floats) * sizeof *all);
    }
    enum status status = device_buffer_put(buffer, all, error);
    free(all);
    return status;
}

enum status fused_case_put(struct fused_case *c, struct error *error) {
    for (int i = 0; i < FUSED_BUFFERS; i++) {
        size_t floats;
        const float *values = values_of(c, (enum fused_buffer)i, &floats);
        if (c->mixed && has_rows((enum fused_buffer)i) && values != NULL) {
            TRY(put_mixed(c, &c->buffers[i], values, error));
            continue;
        }
        TRY(values != NULL && floats > 0 ? put_repeated(&c->buffers[i], values, floats, error)
                                         : device_buffer_put(&c->buffers[i], NULL, error));
    }
    return STATUS_OK;
}

static enum status make_buffers(struct fused_case *c, bool guarded, struct error *error) {
    for (int i = 0; i < FUSED_BUFFERS; i++) {
        size_t count;
        (void)values_of(c, (enum fused_buffer)i, &count);
        if (has_rows((enum fused_buffer)i) && c->shape.M > 0) {
            count = count / c->shape.M * c->rows;
        }
        TRY(device_buffer_create(&c->buffers[i], count, guarded, c->skew, error));
    }
    return STATUS_OK;
}

static float *pointer_of(const struct fused_case *c, enum fused_buffer which, const float *host) {
    return host != NULL ? c->buffers[which].data : NULL;
}

static enum status draw_mixes(struct fused_case *c, struct rng *rng, struct error *error) {
    if (!c->mixed) {
        return STATUS_OK;
    }
    if (c->mixes == NULL) {
        c->mixes = calloc(c->rows, sizeof *c->mixes);
    }
    if (c->mixes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the inputs");
    }
    c->own_rng = rng_create(rng_u64(rng));
    for (size_t m = 0; m < c->rows; m++) {
        c->mixes[m] = fused_mix_draw(c->shape.M, &c->own_rng);
    }
    return STATUS_OK;
}

enum status fused_case_create(struct fused_case *c, struct rng *rng, bool guarded,
                              struct error *error) {
    c->rows = c->rows > 0 ? c->rows : c->shape.M;
    name_case(c);
    TRY(fused_data_create(&c->data, c->op, c->shape, c->flavour, rng, error));
    TRY(draw_mixes(c, rng, error));
    c->in_place = c->in_place && c->data.problem.residual != NULL;
    TRY(make_buffers(c, guarded, error));
    const struct fused_problem *p = &c->data.problem;
    c->problem = *p;
    c->problem.M = c->rows;
    c->problem.in = c->buffers[FUSED_IN].data;
    c->problem.weight = pointer_of(c, FUSED_WEIGHT, p->weight);
    c->problem.bias = pointer_of(c, FUSED_BIAS, p->bias);
    c->problem.residual = pointer_of(c, c->in_place ? target_of(c) : FUSED_RESIDUAL, p->residual);
    c->problem.norm.weight = pointer_of(c, FUSED_NORM_WEIGHT, p->norm.weight);
    c->problem.norm.bias = pointer_of(c, FUSED_NORM_BIAS, p->norm.bias);
    c->problem.sum = c->op == FUSED_ADD_KEEP_NORM ? c->buffers[FUSED_SUM].data : NULL;
    c->problem.out = c->buffers[FUSED_OUT].data;
    return fused_case_put(c, error);
}

enum status fused_case_redraw(struct fused_case *c, struct rng *rng, struct error *error) {
    fused_data_free(&c->data);
    TRY(fused_data_create(&c->data, c->op, c->shape, c->flavour, rng, error));
    TRY(draw_mixes(c, rng, error));
    return fused_case_put(c, error);
}

void fused_case_free(struct fused_case *c) {
    for (int i = 0; i < FUSED_BUFFERS; i++) {
        device_buffer_free(&c->buffers[i]);
    }
    fused_data_free(&c->data);
    free(c->mixes);
    c->mixes = NULL;
}

static enum status check_inputs(const struct fused_case *c, char *text, size_t size,
                                struct error *error) {
    for (int i = 0; i < FUSED_SUM && text[0] == '\0'; i++) {
        bool intact, changed;
        TRY(device_buffer_get(&c->buffers[i], NULL, &intact, &changed, error));
        if (!intact) {
            snprintf(text, size, "wrote outside of the output");
        } else if (changed) {
            snprintf(text, size, "changed its input %s", buffer_names[i]);
        }
    }
    return STATUS_OK;
}

/* Mixed rows that are all looked at; else so many, drawn. */
enum { ALL_MIXED = 1024, SOME_MIXED = 512 };

static enum status check_mixed(struct fused_case *c, const float *got, char *text, size_t size,
                               struct error *error) {
    const size_t N = c->shape.N, rows = c->rows <= ALL_MIXED ? c->rows : SOME_MIXED;
    double *scratch = malloc(2 * N * sizeof *scratch + 1);
    if (scratch == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the results");
    }
    for (size_t i = 0; i < rows && text[0] == '\0'; i++) {
        size_t m = rows == c->rows ? i : rng_below(&c->own_rng, c->rows);
        fused_compare_mix(&c->data, &c->mixes[m], m, got + m * N, scratch, text, size);
    }
    free(scratch);
    return STATUS_OK;
}

/* got: host, room for all rows. */
static enum status check_output(struct fused_case *c, enum fused_buffer which, float *got,
                                char *text, size_t size, struct error *error) {
    const size_t M = c->shape.M;
    bool intact, changed;
    TRY(device_buffer_get(&c->buffers[which], got, &intact, &changed, error));
    if (!intact) {
        snprintf(text, size, "wrote outside of the output");
    }
    if (c->mixed && text[0] == '\0') {
        return check_mixed(c, got, text, size, error);
    }
    for (size_t m = 0; m < c->rows && m + M <= c->rows && text[0] == '\0'; m += M) {
        fused_compare(&c->data, got + m * c->shape.N, which == FUSED_SUM, text, size);
    }
    return STATUS_OK;
}

static enum status check_all(struct fused_case *c, float *got, char *text, size_t size,
                             struct error *error) {
    TRY(check_inputs(c, text, size, error));
    if (text[0] == '\0' && c->op == FUSED_ADD_KEEP_NORM) {
        TRY(check_output(c, FUSED_SUM, got, text, size, error));
    }
    return text[0] == '\0' ? check_output(c, FUSED_OUT, got, text, size, error) : STATUS_OK;
}

enum status fused_case_check(struct fused_case *c, char *text, size_t size, struct error *error) {
    float *got = malloc(c->rows * c->shape.N * sizeof(float) + 1);
    text[0] = '\0';
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the results");
    }
    enum status status = check_all(c, got, text, size, error);
    free(got);
    return status;
}

enum status fused_workspace_check(const void *workspace, device_stream stream, char *text,
                                  size_t size, struct error *error) {
    unsigned char *bytes = malloc(FUSED_ZERO_BYTES);
    text[0] = '\0';
    if (bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for the workspace's zeros");
    }
    enum status status = device_read(bytes, workspace, FUSED_ZERO_BYTES, stream, error);
    for (size_t i = 0; i < FUSED_ZERO_BYTES && status == STATUS_OK && text[0] == '\0'; i++) {
        if (bytes[i] != 0) {
            snprintf(text, size, "byte %zu of the workspace must be left zero, is %d", i, bytes[i]);
        }
    }
    free(bytes);
    return status;
}
