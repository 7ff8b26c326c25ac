/* The parameters of a model: their list, and reading and writing them. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/hash.h"
#include "common/base/rng.h"
#include "common/train/models/train_model_internal.h"

/* ---- The list ---- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Adds the elements of a tensor to the count. */
static bool extend(struct train_listing *l, size_t rows, size_t columns, size_t *count) {
    size_t padded;
    return checked_multiply(rows, columns > 0 ? columns : 1, count) &&
           checked_add(*count, TRAIN_ALIGNMENT - 1, &padded) &&
           checked_add(l->elements, padded / TRAIN_ALIGNMENT * TRAIN_ALIGNMENT, &l->elements);
}

void train_listing_add(struct train_listing *l, const char *name, size_t rows, size_t columns,
                       size_t *place) {
    bool decays = columns > 0;
    if (decays != l->decaying || l->overflows) {
        return;
    }
    size_t offset = l->elements, count;
    l->overflows = !extend(l, rows, columns, &count);
    if (l->overflows) {
        return;
    }
    if (place != NULL) {
        *place = offset;
    }
    if (l->list != NULL) {
        struct train_parameter *parameter = &l->list[l->count];
        *parameter = (struct train_parameter){.rows = rows,
                                              .columns = columns,
                                              .count = count,
                                              .offset = offset,
                                              .decays = decays,
                                              .NH = l->NH};
        snprintf(parameter->name, sizeof parameter->name, "%s%s", l->scope, name);
    }
    l->count++;
}

/* Adds name + ".weight" or ".bias". */
static void add_suffixed(struct train_listing *l, const char *name, const char *suffix, size_t rows,
                         size_t columns, size_t *place) {
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", name, suffix);
    train_listing_add(l, whole, rows, columns, place);
}

void train_listing_add_linear(struct train_listing *l, const char *name, size_t N, size_t K,
                              struct train_linear_place *place) {
    add_suffixed(l, name, "weight", N, K, place != NULL ? &place->weight : NULL);
    add_suffixed(l, name, "bias", N, 0, place != NULL ? &place->bias : NULL);
}

void train_listing_add_norm(struct train_listing *l, const char *name, size_t C,
                            struct train_norm_place *place) {
    add_suffixed(l, name, "weight", C, 0, &place->weight);
    add_suffixed(l, name, "bias", C, 0, &place->bias);
}

/* Lists the matrices, then the vectors. */
static void list_all(struct train_model *m, struct train_listing *listing) {
    listing->decaying = true;
    m->architecture->list(m, listing);
    m->decayed = listing->elements;
    listing->decaying = false;
    m->architecture->list(m, listing);
    m->elements = listing->elements;
}

enum status train_parameters_list(struct train_model *m, struct error *error) {
    struct train_listing counted = {0};
    list_all(m, &counted);
    size_t bytes;
    if (counted.overflows || !checked_multiply(counted.elements, sizeof(double), &bytes)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the model has more parameters than memory can hold");
    }
    m->parameters = calloc(counted.count, sizeof *m->parameters);
    if (m->parameters == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a list of %zu tensors",
                         counted.count);
    }
    struct train_listing listing = {.list = m->parameters};
    list_all(m, &listing);
    m->parameter_count = listing.count;
    return STATUS_OK;
}

const struct train_parameter *train_model_parameters(const struct train_model *m, size_t *count) {
    *count = m->parameter_count;
    return m->parameters;
}

const struct train_parameter *train_model_find(const struct train_model *m, const char *name) {
    for (size_t i = 0; i < m->parameter_count; i++) {
        if (strcmp(m->parameters[i].name, name) == 0) {
            return &m->parameters[i];
        }
    }
    return NULL;
}

/* ---- Reading and writing ---- */

/* A run of a tensor's elements that lies in one rank's memory. */
struct piece {
    size_t first, count; /* elements of the tensor */
    void *at;            /* resident; NULL: another rank's, which cannot be reached */
    bool own;
};

/* The moments of ZeRO-1 lie where each rank has its part. @param first where the piece begins */
static struct piece piece_of(const struct train_model *m, enum train_state state,
                             const struct train_parameter *parameter, size_t first) {
    bool moments = state == TRAIN_M || state == TRAIN_V;
    const void *array = state == TRAIN_WEIGHTS    ? m->weights
                        : state == TRAIN_GRADIENT ? m->gradient
                        : state == TRAIN_M        ? m->m
                                                  : m->v;
    size_t left = parameter->count - first, at = parameter->offset + first;
    struct piece piece = {.first = first, .count = left, .own = true};
    if (moments && m->part > 0) {
        size_t end = (at / m->part + 1) * m->part;
        piece.count = end - at < left ? end - at : left;
        piece.own = at / m->part == m->first / m->part;
        piece.at = train_moment_at(m, array, at);
        return piece;
    }
    piece.at = train_at(array, at, m->engine->weights);
    return piece;
}

/* Numbers on the host, of one type or the other. */
struct numbers {
    float *f32; /* NULL: use f64 */
    double *f64;
};

/* Where element i of the arrays is in a checkpoint's tensor. */
static size_t outside(const struct train_parameter *p, size_t i) {
    if (p->NH == 0) {
        return i;
    }
    size_t width = p->columns > 0 ? p->columns : 1, HS = p->rows / 3 / p->NH;
    size_t row = i / width, part = row / (p->NH * HS), head = row / HS % p->NH;
    return ((3 * head + part) * HS + row % HS) * width + i % width;
}

/* Converts from the weights' type. */
static void convert_out(struct numbers to, const void *from, enum train_type type,
                        const struct train_parameter *p) {
    for (size_t k = 0; k < p->count; k++) {
        size_t i = outside(p, k);
        double value = type == TRAIN_F64 ? ((const double *)from)[k] : ((const float *)from)[k];
        if (to.f64 != NULL) {
            to.f64[i] = value;
        } else {
            to.f32[i] = (float)value;
        }
    }
}

static void convert_in(void *to, struct numbers from, enum train_type type,
                       const struct train_parameter *p) {
    for (size_t k = 0; k < p->count; k++) {
        size_t i = outside(p, k);
        double value = from.f64 != NULL ? from.f64[i] : (double)from.f32[i];
        if (type == TRAIN_F64) {
            ((double *)to)[k] = value;
        } else {
            ((float *)to)[k] = (float)value;
        }
    }
}

/* Host memory for a tensor in the engine's type. */
static void *host_copy(const struct train_model *m, const struct train_parameter *parameter,
                       struct error *error) {
    void *memory = malloc(parameter->count * train_type_bytes(m->engine->weights));
    if (memory == NULL) {
        error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a copy of %s", parameter->name);
    }
    return memory;
}

/* Describes a failure of the engine to copy a tensor. */
static enum status copied(const struct train_model *m, const char *verb,
                          const struct train_parameter *parameter, enum status status,
                          struct error *error) {
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "engine %s cannot %s %s: %s", m->engine->name, verb,
                           parameter->name, status_message(status));
}

static enum status put(struct train_model *m, enum train_state state,
                       const struct train_parameter *parameter, const void *values) {
    const struct train_engine *e = m->engine;
    size_t element = train_type_bytes(e->weights);
    struct piece piece = {.count = 0};
    for (size_t k = 0; k < parameter->count; k += piece.count) {
        piece = piece_of(m, state, parameter, k);
        if (piece.own) {
            TRY(e->write(e->context, piece.at, (const char *)values + k * element,
                         piece.count * element));
        }
    }
    void *to = train_at(m->weights, parameter->offset, e->weights);
    if (state != TRAIN_WEIGHTS || m->copy == NULL) {
        return STATUS_OK;
    }
    return e->convert(e->context, train_at(m->copy, parameter->offset, e->activations), to,
                      parameter->count);
}

static enum status write_numbers(struct train_model *m, enum train_state state,
                                 const struct train_parameter *parameter, struct numbers values,
                                 struct error *error) {
    void *host = host_copy(m, parameter, error);
    if (host == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    convert_in(host, values, m->engine->weights, parameter);
    enum status status = put(m, state, parameter, host);
    free(host);
    return copied(m, "write", parameter, status, error);
}

static enum status read_host(const struct train_model *m, enum train_state state,
                             const struct train_parameter *parameter, void *host,
                             struct numbers values) {
    const struct train_engine *e = m->engine;
    size_t element = train_type_bytes(e->weights);
    struct piece piece = {.count = 0};
    for (size_t k = 0; k < parameter->count; k += piece.count) {
        piece = piece_of(m, state, parameter, k);
        TRY(e->read(e->context, (char *)host + k * element, piece.at, piece.count * element));
    }
    convert_out(values, host, e->weights, parameter);
    return STATUS_OK;
}

static enum status read_numbers(const struct train_model *m, enum train_state state,
                                const struct train_parameter *parameter, struct numbers values,
                                struct error *error) {
    void *host = host_copy(m, parameter, error);
    if (host == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    enum status status = read_host(m, state, parameter, host, values);
    free(host);
    return copied(m, "read", parameter, status, error);
}

enum status train_model_write(struct train_model *m, enum train_state state,
                              const struct train_parameter *parameter, const float *values,
                              struct error *error) {
    return write_numbers(m, state, parameter, (struct numbers){.f32 = (float *)values}, error);
}

enum status train_model_read(const struct train_model *m, enum train_state state,
                             const struct train_parameter *parameter, float *values,
                             struct error *error) {
    return read_numbers(m, state, parameter, (struct numbers){.f32 = values}, error);
}

enum status train_model_write_f64(struct train_model *m, enum train_state state,
                                  const struct train_parameter *parameter, const double *values,
                                  struct error *error) {
    return write_numbers(m, state, parameter, (struct numbers){.f64 = (double *)values}, error);
}

enum status train_model_read_f64(const struct train_model *m, enum train_state state,
                                 const struct train_parameter *parameter, double *values,
                                 struct error *error) {
    return read_numbers(m, state, parameter, (struct numbers){.f64 = values}, error);
}

enum status train_model_checksum(const struct train_model *m, uint64_t *sum, struct error *error) {
    *sum = 0;
    for (size_t i = 0; i < m->parameter_count; i++) {
        const struct train_parameter *parameter = &m->parameters[i];
        float *values = host_copy(m, parameter, error);
        if (values == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        enum status status = train_model_read(m, TRAIN_WEIGHTS, parameter, values, error);
        *sum = *sum * 31 + checksum_bytes(values, parameter->count * sizeof *values);
        free(values);
        TRY(status);
    }
    return STATUS_OK;
}

/* ---- Initialisation ---- */

/* Standard deviation of a matrix: smaller for the 2 L matrices whose outputs add up in a language
   model's residual stream. */
static float deviation_of(const struct train_model *m, const struct train_parameter *parameter) {
    static const char *const into_stream[] = {"o_proj.weight", "down_proj.weight",
                                              "attention.dense.weight", "dense_4h_to_h.weight"};
    size_t L = m->config.is_gpt_neox ? m->config.gpt_neox.L : m->config.llama2.L;
    bool adds_up = false;
    for (size_t i = 0; i < sizeof into_stream / sizeof *into_stream; i++) {
        adds_up = adds_up || ends_with(parameter->name, into_stream[i]);
    }
    return adds_up && m->config.task == TRAIN_LM ? 0.02f / sqrtf(2.0f * (float)L) : 0.02f;
}

static void draw(struct rng *rng, const struct train_model *m,
                 const struct train_parameter *parameter, float *values) {
    if (parameter->decays) {
        rng_fill_normal(rng, values, parameter->count, deviation_of(m, parameter));
        return;
    }
    float value = ends_with(parameter->name, ".bias") ? 0.0f : 1.0f;
    for (size_t i = 0; i < parameter->count; i++) {
        values[i] = value;
    }
}

static enum status draw_and_write(struct rng *rng, struct train_model *m,
                                  const struct train_parameter *parameter, struct error *error) {
    float *values = malloc(parameter->count * sizeof *values);
    if (values == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for drawing %s",
                         parameter->name);
    }
    draw(rng, m, parameter, values);
    enum status status = train_model_write(m, TRAIN_WEIGHTS, parameter, values, error);
    free(values);
    return status;
}

enum status train_model_draw(struct train_model *m, uint64_t seed, struct error *error) {
    struct rng rng = rng_create(seed);
    for (size_t i = 0; i < m->parameter_count; i++) {
        TRY(draw_and_write(&rng, m, &m->parameters[i], error));
    }
    return STATUS_OK;
}
