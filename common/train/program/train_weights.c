#include "common/train/program/train_weights.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/decoder/decoder_shards.h"
#include "common/checkpoints/safetensors/safetensors_write.h"

enum { NAME_BYTES = 128, KINDS = 3 };

static size_t rank_of(const struct train_parameter *p) {
    return p->columns > 0 ? 2 : 1;
}

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* ---- Loading ---- */

/* The name as first checkpoints have it: LayerNorm.gamma and .beta. False: it is the same. */
static bool old_name(const char *name, char out[NAME_BYTES]) {
    static const char NORM[] = "LayerNorm.";
    const char *at = strstr(name, NORM);
    if (at == NULL) {
        return false;
    }
    int length = (int)(at - name + (long)sizeof NORM - 1);
    snprintf(out, NAME_BYTES, "%.*s%s", length, name,
             strcmp(name + length, "weight") == 0 ? "gamma" : "beta");
    return true;
}

/* The tensor under one of the names that it may have, or NULL. */
static const struct decoder_located *find(const struct decoder_shards *shards, const char *name) {
    char old[NAME_BYTES];
    const char *names[2] = {name, starts_with(name, "bert.") ? name + 5 : name};
    const struct decoder_located *found = NULL;
    for (int i = 0; i < 2 && found == NULL; i++) {
        found = decoder_shards_find(shards, names[i]);
        if (found == NULL && old_name(names[i], old)) {
            found = decoder_shards_find(shards, old);
        }
    }
    return found;
}

/* Whether a tensor stands behind BERT's encoder. */
static bool is_head(const char *name) {
    return starts_with(name, "bert.pooler.") || starts_with(name, "classifier.") ||
           starts_with(name, "cls.");
}

static bool same_shape(const struct safetensors_tensor *t, const struct train_parameter *p) {
    return t->rank == rank_of(p) && t->shape[0] == p->rows &&
           (t->rank == 1 || t->shape[1] == p->columns);
}

static enum status shape_error(const char *path, const struct safetensors_tensor *t,
                               const struct train_parameter *p, struct error *error) {
    char got[SAFETENSORS_SHAPE_BYTES], want[SAFETENSORS_SHAPE_BYTES];
    const size_t shape[2] = {p->rows, p->columns};
    return error_set(error, STATUS_MISMATCH, "%s: tensor \"%s\" has shape %s, the model %s", path,
                     p->name, safetensors_shape_text(t->shape, t->rank, got),
                     safetensors_shape_text(shape, rank_of(p), want));
}

static enum status load_values(struct train_model *model, const struct train_parameter *p,
                               const struct decoder_located *found, struct error *error) {
    float *values = malloc(p->count * sizeof *values);
    if (values == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for tensor \"%s\"", p->name);
    }
    enum status status = safetensors_read_f32(found->tensor, values);
    if (status != STATUS_OK) {
        error_set(error, status, "%s: tensor \"%s\": its type is none of F32, F16 and BF16",
                  found->shard->path, p->name);
    } else {
        status = train_model_write(model, TRAIN_WEIGHTS, p, values, error);
    }
    free(values);
    return status;
}

static enum status load_one(struct train_model *model, const struct train_parameter *p,
                            const struct decoder_shards *shards, struct train_missing *missing,
                            struct error *error) {
    const struct decoder_located *found = find(shards, p->name);
    bool other = found != NULL && !same_shape(found->tensor, p);
    if (is_head(p->name) && (found == NULL || (other && starts_with(p->name, "classifier.")))) {
        if (missing->count++ == 0) {
            snprintf(missing->first, sizeof missing->first, "%s", p->name);
        }
        return STATUS_OK;
    }
    if (found == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "%s: tensor \"%s\" is missing", shards->path,
                         p->name);
    }
    return other ? shape_error(found->shard->path, found->tensor, p, error)
                 : load_values(model, p, found, error);
}

/* Refuses a file with a layer behind the model's last one: its config.json is another model's. */
static enum status check_layers(const struct train_parameter *list, size_t count,
                                const struct decoder_shards *shards, struct error *error) {
    static const char *const queries[] = {"bert.encoder.layer.%zu.attention.self.query.weight",
                                          "model.layers.%zu.self_attn.q_proj.weight",
                                          "gpt_neox.layers.%zu.attention.query_key_value.weight"};
    char next[NAME_BYTES];
    const char *query = queries[starts_with(list[0].name, "bert.")       ? 0
                                : starts_with(list[0].name, "gpt_neox.") ? 2
                                                                         : 1];
    size_t L = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(next, sizeof next, query, L);
        L += strcmp(list[i].name, next) == 0;
    }
    snprintf(next, sizeof next, query, L);
    return find(shards, next) == NULL
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH,
                           "%s: there is a tensor \"%s\", but \"num_hidden_layers\" in config.json "
                           "is %zu",
                           shards->path, next, L);
}

enum status train_weights_load(struct train_model *model, const char *folder,
                               struct train_missing *missing, struct error *error) {
    struct decoder_shards shards;
    size_t count;
    const struct train_parameter *list = train_model_parameters(model, &count);
    *missing = (struct train_missing){0};
    TRY(decoder_shards_open(&shards, folder, error));
    enum status status = check_layers(list, count, &shards, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = load_one(model, &list[i], &shards, missing, error);
    }
    decoder_shards_close(&shards);
    return status;
}

/* ---- Writing ---- */

/* The tensors of a file: for each kind (weights, moments) all parameters. */
struct writer {
    const struct train_model *model;
    const struct train_parameter *list; /* (count) */
    size_t count;
    enum train_state states[KINDS];
    const char *prefixes[KINDS];
    size_t kinds;
    enum safetensors_dtype dtype;
    struct safetensors_tensor *tensors; /* (kinds, count) */
    char (*names)[NAME_BYTES];
    float *values; /* a tensor before it is rounded to 16 bits */
};

static enum status fill(void *context, size_t index, void *data, struct error *error) {
    const struct writer *w = context;
    const struct train_parameter *p = &w->list[index % w->count];
    enum train_state state = w->states[index / w->count];
    if (w->dtype == SAFETENSORS_F64) {
        return train_model_read_f64(w->model, state, p, data, error);
    }
    if (w->dtype == SAFETENSORS_F32) {
        return train_model_read(w->model, state, p, data, error);
    }
    TRY(train_model_read(w->model, state, p, w->values, error));
    nn_dtype_store(data, w->values, p->count, w->dtype == SAFETENSORS_F16 ? NN_F16 : NN_BF16);
    return STATUS_OK;
}

static void describe(struct writer *w, size_t kind, size_t i) {
    static const size_t bytes[] = {[SAFETENSORS_F32] = 4,
                                   [SAFETENSORS_F16] = 2,
                                   [SAFETENSORS_BF16] = 2,
                                   [SAFETENSORS_F64] = 8};
    const struct train_parameter *p = &w->list[i];
    size_t index = kind * w->count + i;
    snprintf(w->names[index], NAME_BYTES, "%s%s", w->prefixes[kind], p->name);
    w->tensors[index] = (struct safetensors_tensor){
        .name = w->names[index],
        .dtype = w->dtype,
        .rank = rank_of(p),
        .shape = {p->rows, p->columns},
        .count = p->count,
        .bytes = p->count * bytes[w->dtype],
    };
}

static enum status take_memory(struct writer *w, struct error *error) {
    size_t largest = 1;
    for (size_t i = 0; i < w->count; i++) {
        largest = w->list[i].count > largest ? w->list[i].count : largest;
    }
    w->tensors = calloc(w->kinds * w->count, sizeof *w->tensors);
    w->names = calloc(w->kinds * w->count, sizeof *w->names);
    w->values = malloc(largest * sizeof *w->values);
    return w->tensors != NULL && w->names != NULL && w->values != NULL
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors", w->count);
}

static enum status write_tensors(struct writer *w, const char *path, struct error *error) {
    TRY(take_memory(w, error));
    for (size_t kind = 0; kind < w->kinds; kind++) {
        for (size_t i = 0; i < w->count; i++) {
            describe(w, kind, i);
        }
    }
    const struct safetensors_source source = {fill, w};
    return safetensors_write(path, w->tensors, w->kinds * w->count, &source, error);
}

/* Writes the file; the writer's model, states, prefixes, kinds and dtype are set. */
static enum status write_all(struct writer *w, const char *path, struct error *error) {
    w->list = train_model_parameters(w->model, &w->count);
    enum status status = write_tensors(w, path, error);
    free(w->tensors);
    free(w->names);
    free(w->values);
    return status;
}

enum status train_weights_write(const struct train_model *model, const char *path,
                                enum nn_dtype dtype, struct error *error) {
    static const enum safetensors_dtype dtypes[] = {
        [NN_F32] = SAFETENSORS_F32, [NN_F16] = SAFETENSORS_F16, [NN_BF16] = SAFETENSORS_BF16};
    struct writer w = {.model = model,
                       .states = {TRAIN_WEIGHTS},
                       .prefixes = {""},
                       .kinds = 1,
                       .dtype = dtypes[dtype]};
    return write_all(&w, path, error);
}

static struct writer moments(const struct train_model *model, enum train_type type) {
    return (struct writer){.model = model,
                           .states = {TRAIN_M, TRAIN_V, TRAIN_WEIGHTS},
                           .prefixes = {"m.", "v.", "weights."},
                           .kinds = type == TRAIN_F64 ? 3 : 2,
                           .dtype = type == TRAIN_F64 ? SAFETENSORS_F64 : SAFETENSORS_F32};
}

enum status train_moments_write(const struct train_model *model, const char *path,
                                enum train_type type, struct error *error) {
    struct writer w = moments(model, type);
    return write_all(&w, path, error);
}

/* ---- Reading the optimiser's state ---- */

/* Copies the tensor first, as its memory may be unaligned. */
static enum status read_moment(struct train_model *model, enum train_state state,
                               const struct train_parameter *p, const struct safetensors_tensor *t,
                               struct error *error) {
    void *values = malloc(t->bytes > 0 ? t->bytes : 1);
    if (values == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for tensor \"%s\"", p->name);
    }
    memcpy(values, t->data, t->bytes);
    enum status status = t->dtype == SAFETENSORS_F64
                             ? train_model_write_f64(model, state, p, values, error)
                             : train_model_write(model, state, p, values, error);
    free(values);
    return status;
}

static enum status read_kind(struct train_model *model, const struct writer *w, size_t kind,
                             const struct safetensors *file, struct error *error) {
    size_t count;
    const struct train_parameter *list = train_model_parameters(model, &count);
    for (size_t i = 0; i < count; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s%s", w->prefixes[kind], list[i].name);
        const struct safetensors_tensor *t = safetensors_find(file, name);
        if (t == NULL || t->dtype != w->dtype || !same_shape(t, &list[i])) {
            return error_set(error, STATUS_MISMATCH,
                             "tensor \"%s\" is missing, or its type or shape is not the model's",
                             name);
        }
        TRY(read_moment(model, w->states[kind], &list[i], t, error));
    }
    return STATUS_OK;
}

enum status train_moments_read(struct train_model *model, const char *path, enum train_type type,
                               struct error *error) {
    const struct writer w = moments(model, type);
    struct safetensors file;
    TRY(safetensors_open(&file, path, error));
    enum status status = STATUS_OK;
    for (size_t kind = 0; kind < w.kinds && status == STATUS_OK; kind++) {
        status = read_kind(model, &w, kind, &file, error);
    }
    safetensors_close(&file);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}
