#include "labs/15_many_gpus/given/load.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum { ALIGNMENT = 256 };

/* The same walk over all matrices twice: first the sizes are added up, then they are copied. */
struct loader {
    const struct llama2_decoder_model *whole;
    struct many_shape shape;
    int rank, ranks;
    many_cut_function *cut;
    char *memory; /* device; NULL: only sizes */
    size_t bytes;
    float *row;     /* host, (longest row): of a file, in fp32 */
    char *staging;  /* host, (largest matrix of the part) */
    size_t largest; /* bytes of it */
};

/* A tensor of the file, and how the contract calls it. */
struct source {
    const struct decoder_stored_tensor *tensor;
    enum many_matrix matrix; /* MANY_MATRICES: the whole tensor is on every rank */
};

static struct many_part part_of(const struct loader *l, const struct source *source) {
    struct many_part part = {.rows = source->tensor->rows, .columns = source->tensor->columns};
    if (source->matrix != MANY_MATRICES) {
        l->cut(source->matrix, &l->shape, l->rank, l->ranks, &part);
    }
    return part;
}

/* Rows and columns of a stored tensor, in the wanted type, one row after the other. @return the end
 */
static char *copy_part(struct loader *l, char *to, const struct source *source,
                       enum nn_dtype dtype) {
    const struct decoder_stored_tensor *t = source->tensor;
    const struct many_part part = part_of(l, source);
    size_t from_bytes = nn_dtype_bytes(t->dtype), to_bytes = part.columns * nn_dtype_bytes(dtype);
    for (size_t r = 0; r < part.rows; r++, to += to_bytes) {
        const char *from =
            (const char *)t->data + ((part.row + r) * t->columns + part.column) * from_bytes;
        if (t->dtype == dtype) {
            memcpy(to, from, to_bytes);
        } else {
            nn_dtype_load(l->row, from, part.columns, t->dtype);
            nn_dtype_store(to, l->row, part.columns, dtype);
        }
    }
    return to;
}

static enum status check_part(const struct loader *l, const struct source *source,
                              struct error *error) {
    const struct decoder_stored_tensor *t = source->tensor;
    const struct many_part p = part_of(l, source);
    bool inside = p.row <= t->rows && p.rows <= t->rows - p.row && p.column <= t->columns &&
                  p.columns <= t->columns - p.column;
    return inside ? STATUS_OK
                  : error_set(error, STATUS_INVALID_ARGUMENT,
                              "many_cut(): rows %zu to %zu and columns %zu to %zu of a matrix "
                              "(%zu, %zu)",
                              p.row, p.row + p.rows, p.column, p.column + p.columns, t->rows,
                              t->columns);
}

/* One matrix on the device: one to three tensors of the same columns, one behind the other. */
static enum status take(struct loader *l, const void **address, enum nn_dtype dtype,
                        const struct source *sources, int count, struct error *error) {
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        TRY(check_part(l, &sources[i], error));
        const struct many_part part = part_of(l, &sources[i]);
        bytes += part.rows * part.columns * nn_dtype_bytes(dtype);
    }
    char *at = l->memory == NULL ? NULL : l->memory + l->bytes;
    *address = at;
    l->bytes += ceil_div(bytes, (size_t)ALIGNMENT) * ALIGNMENT;
    l->largest = bytes > l->largest ? bytes : l->largest;
    if (at == NULL || bytes == 0) {
        return STATUS_OK;
    }
    char *to = l->staging;
    for (int i = 0; i < count; i++) {
        to = copy_part(l, to, &sources[i], dtype);
    }
    return device_write(at, l->staging, bytes, NULL, error);
}

static enum status take_layer(struct loader *l, struct decoder_layer *to,
                              const struct llama2_stored_layer *w, struct error *error) {
    const enum nn_dtype dtype = l->whole->dtype;
    const struct source attention_norm = {&w->attention_norm, MANY_MATRICES};
    const struct source ffn_norm = {&w->ffn_norm, MANY_MATRICES};
    const struct source qkv[] = {{&w->wq, MANY_Q}, {&w->wk, MANY_K}, {&w->wv, MANY_V}};
    const struct source gate_up[] = {{&w->w1, MANY_GATE}, {&w->w3, MANY_UP}};
    const struct source out = {&w->wo, MANY_OUT}, down = {&w->w2, MANY_DOWN};
    TRY(take(l, (const void **)&to->attention_norm, NN_F32, &attention_norm, 1, error));
    TRY(take(l, &to->qkv, dtype, qkv, 3, error));
    TRY(take(l, &to->out, dtype, &out, 1, error));
    TRY(take(l, (const void **)&to->ffn_norm, NN_F32, &ffn_norm, 1, error));
    TRY(take(l, &to->gate_up, dtype, gate_up, 2, error));
    return take(l, &to->down, dtype, &down, 1, error);
}

static enum status take_all(struct loader *l, struct many_parts *parts, struct error *error) {
    const struct llama2_stored_weights *w = l->whole->weights;
    const struct source embedding = {&w->embedding, MANY_MATRICES};
    const struct source norm = {&w->final_norm, MANY_MATRICES};
    const struct source classifier = {&w->classifier, MANY_MATRICES};
    struct decoder_model *m = &parts->model;
    for (size_t i = 0; i < l->whole->config->L; i++) {
        TRY(take_layer(l, &parts->layers[i], &w->layers[i], error));
    }
    TRY(take(l, &m->embedding, l->whole->dtype, &embedding, 1, error));
    TRY(take(l, (const void **)&m->final_norm, NN_F32, &norm, 1, error));
    if (w->classifier.data == w->embedding.data) {
        m->classifier = m->embedding;
        return STATUS_OK;
    }
    return take(l, &m->classifier, l->whole->dtype, &classifier, 1, error);
}

/* The kernels read 16 bytes at a time. */
static enum status check_width(const struct loader *l, const struct decoder_model *m,
                               struct error *error) {
    size_t element = nn_dtype_bytes(l->whole->dtype);
    if (m->NH * m->HS * element % 16 == 0 && m->hidden * element % 16 == 0) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "a model cut into %d parts has %zu channels of heads and %zu hidden channels "
                     "on a rank: in %s both must be multiples of %zu",
                     l->ranks, m->NH * m->HS, m->hidden, nn_dtype_name(l->whole->dtype),
                     16 / element);
}

static void describe(const struct loader *l, struct many_parts *parts) {
    const struct llama2_config *c = l->whole->config;
    struct many_part k, gate;
    l->cut(MANY_K, &l->shape, l->rank, l->ranks, &k);
    l->cut(MANY_GATE, &l->shape, l->rank, l->ranks, &gate);
    size_t KVH = k.rows / c->HS;
    parts->model = (struct decoder_model){
        .C = c->C,
        .hidden = gate.rows,
        .L = c->L,
        .NH = KVH * (c->NH / c->KVH),
        .KVH = KVH,
        .HS = c->HS,
        .V = c->V,
        .T = c->T,
        .eps = c->norm_eps,
        .theta = c->rope_theta,
        .layout = c->rope_layout,
        .dtype = l->whole->dtype,
        .layers = parts->layers,
    };
}

static enum status load(struct loader *l, struct many_parts *parts, struct error *error) {
    const struct llama2_config *c = l->whole->config;
    size_t longest = c->hidden > c->C ? c->hidden : c->C;
    longest = longest > c->NH * c->HS ? longest : c->NH * c->HS;
    parts->layers = calloc(c->L + 1, sizeof *parts->layers);
    l->row = malloc(longest * sizeof *l->row);
    if (parts->layers == NULL || l->row == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", c->L);
    }
    describe(l, parts);
    TRY(check_width(l, &parts->model, error));
    TRY(take_all(l, parts, error));
    parts->bytes = l->bytes;
    l->staging = malloc(l->largest + 1);
    if (l->staging == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a matrix of %zu bytes",
                         l->largest);
    }
    TRY(device_alloc(&parts->memory, l->bytes, error));
    l->memory = parts->memory;
    l->bytes = 0;
    return take_all(l, parts, error);
}

enum status many_parts_load(struct many_parts *parts, const struct llama2_decoder_model *whole,
                            int rank, int ranks, many_cut_function *cut, struct error *error) {
    const struct llama2_config *c = whole->config;
    struct loader loader = {
        .whole = whole,
        .shape = {.C = c->C, .hidden = c->hidden, .NH = c->NH, .KVH = c->KVH, .HS = c->HS},
        .rank = rank,
        .ranks = ranks,
        .cut = cut};
    memset(parts, 0, sizeof *parts);
    TRY(many_shape_check(&loader.shape, ranks, error));
    enum status status = load(&loader, parts, error);
    free(loader.row);
    free(loader.staging);
    if (status != STATUS_OK) {
        many_parts_free(parts);
    }
    return status;
}
