/* Models of published shapes with random weights: for time, which does not depend on their values.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/rng_bell.h"
#include "labs/14_endless_text/bench/endless_bench.h"

/* Weights are copies of one block of so many numbers. */
enum { PATTERN = 1 << 22, LAYER_TENSORS = 12, OTHER_TENSORS = 4 };

struct named {
    const char *name;
    size_t C, hidden, L, NH, V;
    bool llama2;
};

static const struct named shapes[] = {
    {"70m", 512, 2048, 6, 8, 50304, false},          {"160m", 768, 3072, 12, 12, 50304, false},
    {"2.8b", 2560, 10240, 32, 32, 50304, false},     {"6.9b", 4096, 16384, 32, 32, 50432, false},
    {"llama2-7b", 4096, 11008, 32, 32, 32000, true},
};

const char *large_model_name(size_t i) {
    return i < sizeof shapes / sizeof *shapes ? shapes[i].name : NULL;
}

static struct endless_model shape_of(const struct named *n) {
    struct endless_model m = {.C = n->C,
                              .hidden = n->hidden,
                              .L = n->L,
                              .NH = n->NH,
                              .KVH = n->NH,
                              .HS = n->C / n->NH,
                              .V = n->V,
                              .sinks = BENCH_SINKS,
                              .eps = 1e-5f,
                              .theta = 10000.0f,
                              .layout = NN_ROPE_HALVES,
                              .dtype = NN_BF16};
    m.rotary = n->llama2 ? m.HS : m.HS / 4;
    m.layernorm = m.parallel = !n->llama2;
    m.gated = n->llama2;
    m.activation = NN_GELU;
    return m;
}

bool large_model_shape(const char *name, struct endless_model *shape) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (strcmp(name, shapes[i].name) == 0) {
            *shape = shape_of(&shapes[i]);
            return true;
        }
    }
    return false;
}

/* Making one: the numbers on the host, as fp32 and as the model's type. */
struct maker {
    struct large_model *m;
    float *plain;
    void *stored;
};

/* A matrix of the model's type; a vector of fp32, around 1 or 0. */
static enum status add(struct maker *k, const void *numbers, size_t count, size_t element,
                       const void **to, struct error *error) {
    void **block = &k->m->blocks[k->m->count];
    TRY(device_alloc(block, count * element, error));
    k->m->count++;
    for (size_t i = 0; i < count; i += PATTERN) {
        size_t some = count - i < PATTERN ? count - i : PATTERN;
        TRY(device_write((unsigned char *)*block + i * element, numbers, some * element, NULL,
                         error));
    }
    k->m->token_bytes += (double)(count * element);
    *to = *block;
    return STATUS_OK;
}

static enum status matrix(struct maker *k, size_t rows, size_t columns, const void **to,
                          struct error *error) {
    size_t e = nn_dtype_bytes(k->m->model.dtype);
    return add(k, k->stored, rows * columns, e, to, error);
}

static enum status vector(struct maker *k, size_t count, const float **to, struct error *error) {
    const void *block;
    TRY(add(k, k->plain, count, sizeof(float), &block, error));
    *to = block;
    return STATUS_OK;
}

static enum status make_layer(struct maker *k, struct endless_layer *w, struct error *error) {
    const struct endless_model *m = &k->m->model;
    size_t q = m->NH * m->HS, all = q + 2 * m->KVH * m->HS;
    size_t up = m->gated ? 2 * m->hidden : m->hidden;
    TRY(matrix(k, all, m->C, &w->qkv, error));
    TRY(matrix(k, m->C, q, &w->out, error));
    TRY(matrix(k, up, m->C, &w->up, error));
    TRY(matrix(k, m->C, m->hidden, &w->down, error));
    for (int i = 0; i < 2; i++) {
        TRY(vector(k, m->C, &w->norms[i], error));
        TRY(m->layernorm ? vector(k, m->C, &w->norm_biases[i], error) : STATUS_OK);
    }
    if (!m->layernorm) {
        return STATUS_OK; /* a Llama2 has no biases */
    }
    TRY(vector(k, all, &w->qkv_bias, error));
    TRY(vector(k, m->C, &w->out_bias, error));
    TRY(vector(k, up, &w->up_bias, error));
    return vector(k, m->C, &w->down_bias, error);
}

static enum status make_weights(struct maker *k, struct error *error) {
    struct endless_model *m = &k->m->model;
    TRY(matrix(k, m->V, m->C, &m->embedding, error));
    k->m->token_bytes = 0.0; /* a row of it */
    TRY(matrix(k, m->V, m->C, &m->classifier, error));
    TRY(vector(k, m->C, &m->final_norm, error));
    TRY(m->layernorm ? vector(k, m->C, &m->final_norm_bias, error) : STATUS_OK);
    for (size_t l = 0; l < m->L; l++) {
        TRY(make_layer(k, &k->m->layers[l], error));
    }
    return device_synchronize(NULL, error);
}

static enum status fill(struct maker *k, struct error *error) {
    struct large_model *m = k->m;
    size_t rows = m->model.sinks + m->model.window;
    struct rng rng = rng_create(1);
    k->plain = malloc(PATTERN * sizeof *k->plain);
    k->stored = malloc(PATTERN * sizeof(float));
    m->layers = calloc(m->model.L, sizeof *m->layers);
    m->blocks = calloc(m->model.L * LAYER_TENSORS + OTHER_TENSORS, sizeof *m->blocks);
    if (k->plain == NULL || k->stored == NULL || m->layers == NULL || m->blocks == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for weights");
    }
    rng_fill_bell_rows(&rng, k->plain, 1, PATTERN);
    for (size_t i = 0; i < PATTERN; i++) {
        k->plain[i] *= 0.02f;
    }
    nn_dtype_store(k->stored, k->plain, PATTERN, m->model.dtype);
    m->model.layers = m->layers;
    m->cache_bytes = 2.0 * (double)(m->model.L * rows * m->model.KVH * m->model.HS) *
                     (double)nn_dtype_bytes(m->model.dtype);
    return make_weights(k, error);
}

enum status large_model_create(struct large_model *m, const struct endless_model *shape,
                               struct error *error) {
    *m = (struct large_model){.model = *shape};
    struct maker maker = {.m = m};
    enum status status = fill(&maker, error);
    free(maker.plain);
    free(maker.stored);
    return status;
}

void large_model_free(struct large_model *m) {
    for (size_t i = 0; i < m->count; i++) {
        device_free(m->blocks[i]);
    }
    free(m->blocks);
    free(m->layers);
    *m = (struct large_model){0};
}
