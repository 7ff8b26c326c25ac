#include "labs/15_many_gpus/given/parts.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"

enum { ALIGNMENT = 256 };

struct many_shape many_shape_of(const struct decoder_model *m) {
    return (struct many_shape){
        .C = m->C, .hidden = m->hidden, .NH = m->NH, .KVH = m->KVH, .HS = m->HS};
}

/* All of a layer's parts, one rank's. */
struct cuts {
    struct many_part of[MANY_MATRICES];
};

static struct cuts cuts_of(const struct decoder_model *whole, int rank, int ranks,
                           many_cut_function *cut) {
    struct cuts cuts = {0};
    const struct many_shape shape = many_shape_of(whole);
    for (int m = 0; m < MANY_MATRICES; m++) {
        cut((enum many_matrix)m, &shape, rank, ranks, &cuts.of[m]);
    }
    return cuts;
}

static bool within(const struct many_part *part, size_t N, size_t K) {
    return part->row <= N && part->rows <= N - part->row && part->column <= K &&
           part->columns <= K - part->column;
}

/* Parts that the copies and the decoder below can take. */
static enum status check(const struct decoder_model *w, const struct cuts *c, struct error *error) {
    const struct many_part *q = &c->of[MANY_Q], *k = &c->of[MANY_K], *v = &c->of[MANY_V];
    const struct many_part *out = &c->of[MANY_OUT], *gate = &c->of[MANY_GATE];
    const struct many_part *up = &c->of[MANY_UP], *down = &c->of[MANY_DOWN];
    size_t heads = w->NH * w->HS, keys = w->KVH * w->HS, group = w->NH / w->KVH;
    bool inside = within(q, heads, w->C) && within(k, keys, w->C) && within(v, keys, w->C) &&
                  within(out, w->C, heads) && within(gate, w->hidden, w->C) &&
                  within(up, w->hidden, w->C) && within(down, w->C, w->hidden);
    bool fits = q->rows == k->rows * group && k->rows == v->rows && k->rows % w->HS == 0 &&
                out->columns == q->rows && gate->rows == up->rows && down->columns == gate->rows;
    return inside && fits ? STATUS_OK
                          : error_set(error, STATUS_INVALID_ARGUMENT,
                                      "many_cut(): the parts of a rank do not fit together: q %zu, "
                                      "k %zu and v %zu rows, out %zu columns; gate %zu and up %zu "
                                      "rows, down %zu columns",
                                      q->rows, k->rows, v->rows, out->columns, gate->rows, up->rows,
                                      down->columns);
}

/* ---- Memory: first the sizes are added up, then the same walk copies ---- */

struct walk {
    char *memory; /* NULL: only sizes */
    size_t bytes;
    enum nn_dtype dtype;
    cudaError_t code;
};

/* Room for bytes. */
static void *take(struct walk *w, size_t bytes) {
    void *at = w->memory == NULL ? NULL : w->memory + w->bytes;
    w->bytes += ceil_div(bytes, (size_t)ALIGNMENT) * ALIGNMENT;
    return at;
}

static void copy_area(struct walk *w, void *to, const void *whole, size_t K,
                      const struct many_part *part) {
    size_t e = nn_dtype_bytes(w->dtype), width = part->columns * e;
    if (to != NULL && w->code == cudaSuccess && width > 0 && part->rows > 0) {
        const char *from = (const char *)whole + (part->row * K + part->column) * e;
        w->code = cudaMemcpy2D(to, width, from, K * e, width, part->rows, cudaMemcpyDefault);
    }
}

/* Parts of matrices with the same columns, one behind the other. @param firsts rows of the whole
   before each of them */
static void *take_parts(struct walk *w, const void *whole, size_t K, const struct many_part *parts,
                        const size_t *firsts, int count) {
    size_t e = nn_dtype_bytes(w->dtype), rows = 0, columns = parts[0].columns;
    for (int i = 0; i < count; i++) {
        rows += parts[i].rows;
    }
    char *memory = take(w, rows * columns * e), *to = memory;
    for (int i = 0; i < count; i++) {
        copy_area(w, to, (const char *)whole + firsts[i] * K * e, K, &parts[i]);
        to = to == NULL ? NULL : to + parts[i].rows * columns * e;
    }
    return memory;
}

static void *take_whole(struct walk *w, const void *from, size_t bytes) {
    void *to = take(w, bytes);
    if (to != NULL && w->code == cudaSuccess) {
        w->code = cudaMemcpy(to, from, bytes, cudaMemcpyDefault);
    }
    return to;
}

static void walk_layer(struct walk *w, struct decoder_layer *to, const struct decoder_layer *from,
                       const struct decoder_model *m, const struct cuts *c) {
    size_t heads = m->NH * m->HS, keys = m->KVH * m->HS, norm = m->C * sizeof(float);
    const size_t qkv[] = {0, heads, heads + keys}, gate_up[] = {0, m->hidden}, none[] = {0};
    to->attention_norm = take_whole(w, from->attention_norm, norm);
    to->qkv = take_parts(w, from->qkv, m->C, &c->of[MANY_Q], qkv, 3);
    to->out = take_parts(w, from->out, heads, &c->of[MANY_OUT], none, 1);
    to->ffn_norm = take_whole(w, from->ffn_norm, norm);
    to->gate_up = take_parts(w, from->gate_up, m->C, &c->of[MANY_GATE], gate_up, 2);
    to->down = take_parts(w, from->down, m->hidden, &c->of[MANY_DOWN], none, 1);
}

static void walk_model(struct walk *w, struct many_parts *parts, const struct decoder_model *m,
                       const struct cuts *c) {
    size_t table = m->V * m->C * nn_dtype_bytes(m->dtype);
    for (size_t l = 0; l < m->L; l++) {
        walk_layer(w, &parts->layers[l], &m->layers[l], m, c);
    }
    parts->model.embedding = take_whole(w, m->embedding, table);
    parts->model.final_norm = take_whole(w, m->final_norm, m->C * sizeof(float));
    parts->model.classifier = m->classifier == m->embedding ? parts->model.embedding
                                                            : take_whole(w, m->classifier, table);
}

static enum status fill(struct many_parts *parts, const struct decoder_model *whole,
                        const struct cuts *c, struct error *error) {
    struct walk sizes = {.dtype = whole->dtype};
    walk_model(&sizes, parts, whole, c);
    parts->bytes = sizes.bytes;
    TRY(device_alloc(&parts->memory, sizes.bytes, error));
    struct walk copies = {.memory = parts->memory, .dtype = whole->dtype};
    walk_model(&copies, parts, whole, c);
    return copies.code == cudaSuccess ? STATUS_OK
                                      : error_set(error, STATUS_DEVICE, "copying weights: %s",
                                                  cudaGetErrorString(copies.code));
}

enum status many_parts_create(struct many_parts *parts, const struct decoder_model *whole, int rank,
                              int ranks, many_cut_function *cut, struct error *error) {
    const struct many_shape shape = many_shape_of(whole);
    memset(parts, 0, sizeof *parts);
    TRY(many_shape_check(&shape, ranks, error));
    const struct cuts cuts = cuts_of(whole, rank, ranks, cut);
    TRY(check(whole, &cuts, error));
    parts->model = *whole;
    parts->model.KVH = cuts.of[MANY_K].rows / whole->HS;
    parts->model.NH = parts->model.KVH * (whole->NH / whole->KVH);
    parts->model.hidden = cuts.of[MANY_GATE].rows;
    parts->layers = calloc(whole->L + 1, sizeof *parts->layers);
    if (parts->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", whole->L);
    }
    parts->model.layers = parts->layers;
    enum status status = fill(parts, whole, &cuts, error);
    if (status != STATUS_OK) {
        many_parts_free(parts);
    }
    return status;
}

void many_parts_free(struct many_parts *parts) {
    device_free(parts->memory);
    free(parts->layers);
    memset(parts, 0, sizeof *parts);
}
