#include "labs/08_bert_classifier/problem/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/words.h"

struct encoder_tensor {
    const float *host;
    const void *device;
    void *owned; /* to free; the first of q, k and v owns the memory of all three */
    size_t floats;
};

enum { OTHER_TENSORS = 5, LAYER_TENSORS = 16 };

/* ---- The model ---- */

/* Copies tensors of equal size into one contiguous allocation. */
static enum status copy_in(struct encoder_net *net, const float **to, const float *const *parts,
                           size_t count, size_t floats, struct error *error) {
    char *memory = NULL;
    TRY(device_alloc((void **)&memory, count * floats * sizeof(float), error));
    for (size_t i = 0; i < count; i++) {
        char *part = memory + i * floats * sizeof(float);
        void *owned = i == 0 ? memory : NULL;
        net->tensors[net->count++] = (struct encoder_tensor){parts[i], part, owned, floats};
        TRY(device_write(part, parts[i], floats * sizeof(float), NULL, error));
    }
    *to = (const float *)memory;
    return STATUS_OK;
}

static enum status copy_one(struct encoder_net *net, const float **to, const float *from,
                            size_t floats, struct error *error) {
    return copy_in(net, to, &from, 1, floats, error);
}

static enum status copy_linear(struct encoder_net *net, struct encoder_linear *to,
                               const struct bert_linear *from, size_t out, size_t in,
                               struct error *error) {
    TRY(copy_one(net, &to->weight, from->weight, out * in, error));
    return copy_one(net, &to->bias, from->bias, out, error);
}

static enum status copy_norm(struct encoder_net *net, struct nn_norm *to, const float *weight,
                             const float *bias, struct error *error) {
    to->eps = net->random.config.norm_eps;
    TRY(copy_one(net, &to->weight, weight, net->model.C, error));
    return copy_one(net, &to->bias, bias, net->model.C, error);
}

static enum status copy_layer(struct encoder_net *net, struct encoder_layer *to,
                              const struct bert_layer *from, struct error *error) {
    size_t C = net->model.C, hidden = net->model.hidden;
    const float *const weights[] = {from->q.weight, from->k.weight, from->v.weight};
    const float *const biases[] = {from->q.bias, from->k.bias, from->v.bias};
    TRY(copy_in(net, &to->qkv.weight, weights, 3, C * C, error));
    TRY(copy_in(net, &to->qkv.bias, biases, 3, C, error));
    TRY(copy_linear(net, &to->out, &from->attention_out, C, C, error));
    TRY(copy_norm(net, &to->attention, from->attention_norm_weight, from->attention_norm_bias,
                  error));
    TRY(copy_linear(net, &to->up, &from->up, hidden, C, error));
    TRY(copy_linear(net, &to->down, &from->down, C, hidden, error));
    return copy_norm(net, &to->feed_forward, from->output_norm_weight, from->output_norm_bias,
                     error);
}

static enum status copy_model(struct encoder_net *net, struct error *error) {
    const struct bert_config *c = &net->random.config;
    const struct bert_weights *w = &net->random.weights;
    net->model = (struct encoder_model){.C = c->C,
                                        .hidden = c->hidden,
                                        .L = c->L,
                                        .NH = c->NH,
                                        .V = c->V,
                                        .T = c->T,
                                        .types = c->types,
                                        .activation = c->activation,
                                        .layers = net->layers};
    TRY(copy_one(net, &net->model.word_embedding, w->word_embedding, c->V * c->C, error));
    TRY(copy_one(net, &net->model.position_embedding, w->position_embedding, c->T * c->C, error));
    TRY(copy_one(net, &net->model.type_embedding, w->type_embedding, c->types * c->C, error));
    TRY(copy_norm(net, &net->model.embedding, w->embedding_norm_weight, w->embedding_norm_bias,
                  error));
    for (size_t l = 0; l < c->L; l++) {
        TRY(copy_layer(net, &net->layers[l], &w->layers[l], error));
    }
    return STATUS_OK;
}

enum status encoder_net_create(struct encoder_net *net, const struct bert_config *config,
                               uint64_t seed, size_t max_tokens, struct error *error) {
    *net = (struct encoder_net){0};
    size_t tensors = OTHER_TENSORS + config->L * LAYER_TENSORS;
    net->layers = calloc(config->L, sizeof *net->layers);
    net->tensors = calloc(tensors, sizeof *net->tensors);
    if (net->layers == NULL || net->tensors == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(bert_random_create(&net->random, config, seed));
    if (max_tokens > 0) {
        TRY(engine_reference_create(&net->reference));
        TRY(bert_create(&net->bert, config, &net->random.weights, &net->reference, max_tokens,
                        error));
    }
    TRY(copy_model(net, error));
    return device_synchronize(NULL, error);
}

static bool tensor_intact(const struct encoder_tensor *tensor, float *scratch) {
    size_t bytes = tensor->floats * sizeof(float);
    return device_read(scratch, tensor->device, bytes, NULL, NULL) == STATUS_OK &&
           memcmp(scratch, tensor->host, bytes) == 0;
}

bool encoder_net_intact(const struct encoder_net *net) {
    size_t most = 0;
    for (size_t i = 0; i < net->count; i++) {
        most = net->tensors[i].floats > most ? net->tensors[i].floats : most;
    }
    float *scratch = malloc(most * sizeof *scratch + 1);
    bool intact = scratch != NULL;
    for (size_t i = 0; i < net->count && intact; i++) {
        intact = tensor_intact(&net->tensors[i], scratch);
    }
    free(scratch);
    return intact;
}

void encoder_net_free(struct encoder_net *net) {
    for (size_t i = 0; i < net->count; i++) {
        device_free(net->tensors[i].owned);
    }
    bert_free(net->bert);
    engine_destroy(&net->reference);
    bert_random_free(&net->random);
    free(net->tensors);
    free(net->layers);
    *net = (struct encoder_net){0};
}

/* ---- A batch ---- */

/* A list for the encoder, in page-locked memory, which it shares with the grader. */
static enum status allocate_list(const int32_t **list, size_t count, struct error *error) {
    void *memory = NULL;
    TRY(device_alloc_host(&memory, count * sizeof **list, error));
    *list = memory;
    return STATUS_OK;
}

static enum status allocate_lists(struct encoder_case *c, const struct encoder_spec *spec,
                                  struct error *error) {
    size_t rows = c->batch.rows;
    c->ids = calloc(rows, sizeof *c->ids);
    c->types = calloc(rows, sizeof *c->types);
    c->starts = calloc(spec->B + 1, sizeof *c->starts);
    c->want = calloc(rows * c->net->model.C, sizeof *c->want);
    if (c->ids == NULL || c->types == NULL || c->starts == NULL || c->want == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(allocate_list(&c->batch.ids, rows, error));
    if (spec->types) {
        TRY(allocate_list(&c->batch.types, rows, error));
    }
    return allocate_list(&c->batch.starts, spec->B + 1, error);
}

static enum status allocate_batch(struct encoder_case *c, const struct encoder_spec *spec,
                                  bool guarded, struct error *error) {
    size_t C = c->net->model.C;
    TRY(allocate_lists(c, spec, error));
    TRY(device_buffer_create(&c->first, spec->B * C, guarded, 0, error));
    c->batch.first = c->first.data;
    if (spec->hidden) {
        TRY(device_buffer_create(&c->hidden, c->batch.rows * C, guarded, 0, error));
        c->batch.hidden = c->hidden.data;
    }
    return STATUS_OK;
}

static void fill_starts(struct encoder_case *c, const struct encoder_spec *spec) {
    for (size_t b = 0; b < spec->B; b++) {
        size_t length = (size_t)spec->lengths[b];
        c->batch.longest = length > c->batch.longest ? length : c->batch.longest;
        c->starts[b + 1] = c->starts[b] + spec->lengths[b];
    }
    memcpy((void *)c->batch.starts, c->starts, (spec->B + 1) * sizeof *c->starts);
}

void encoder_case_renew(struct encoder_case *c, struct rng *rng) {
    const struct encoder_model *m = &c->net->model;
    bool types = c->batch.types != NULL;
    for (size_t i = 0; i < c->batch.rows; i++) {
        c->ids[i] = (int32_t)rng_below(rng, m->V);
        c->types[i] = types ? (int32_t)rng_below(rng, m->types) : 0;
    }
    memcpy((void *)c->batch.ids, c->ids, c->batch.rows * sizeof *c->ids);
    if (types) {
        memcpy((void *)c->batch.types, c->types, c->batch.rows * sizeof *c->types);
    }
}

static void name_case(struct encoder_case *c, const struct encoder_spec *spec) {
    const struct encoder_model *m = &c->net->model;
    int length =
        snprintf(c->name, sizeof c->name, "C=%zu hidden=%zu L=%zu NH=%zu, %zu sequence%s of", m->C,
                 m->hidden, m->L, m->NH, spec->B, plural(spec->B));
    uint64_t tokens = 0;
    for (size_t b = 0; b < spec->B && b < 8; b++) {
        tokens += (uint64_t)spec->lengths[b];
        length += snprintf(c->name + length, sizeof c->name - (size_t)length, " %d",
                           (int)spec->lengths[b]);
    }
    snprintf(c->name + length, sizeof c->name - (size_t)length, "%s token%s%s%s",
             spec->B > 8 ? " ..." : "", plural(tokens), spec->types ? ", with types" : "",
             spec->hidden ? ", hidden wanted" : "");
}

enum status encoder_case_create(struct encoder_case *c, const struct encoder_net *net,
                                const struct encoder_spec *spec, struct rng *rng, bool guarded,
                                bool unchecked, struct error *error) {
    size_t rows = 0;
    for (size_t b = 0; b < spec->B; b++) {
        rows += (size_t)spec->lengths[b];
    }
    *c = (struct encoder_case){.net = net, .batch = {.B = spec->B, .rows = rows}};
    name_case(c, spec);
    TRY(allocate_batch(c, spec, guarded, error));
    fill_starts(c, spec);
    encoder_case_renew(c, rng);
    const struct bert_input input = {
        .ids = c->ids, .types = spec->types ? c->types : NULL, .B = spec->B, .starts = c->starts};
    const struct bert_output output = {.hidden = c->want};
    enum status status = unchecked ? STATUS_OK : bert_forward(net->bert, &input, &output);
    return status == STATUS_OK ? status
                               : error_set(error, status, "%s: the reference does not run: %s",
                                           c->name, status_message(status));
}

void encoder_case_free(struct encoder_case *c) {
    device_free_host((void *)c->batch.ids);
    device_free_host((void *)c->batch.types);
    device_free_host((void *)c->batch.starts);
    device_buffer_free(&c->first);
    device_buffer_free(&c->hidden);
    free(c->ids);
    free(c->types);
    free(c->starts);
    free(c->want);
    *c = (struct encoder_case){0};
}

enum status encoder_case_reset(struct encoder_case *c, struct error *error) {
    TRY(device_buffer_put(&c->first, NULL, error));
    if (c->batch.hidden != NULL) {
        TRY(device_buffer_put(&c->hidden, NULL, error));
    }
    return device_synchronize(NULL, error);
}

/* Compares one token's row; false, with text, when it differs. */
static bool row_is_right(const char *what, size_t b, size_t t, const float *got, const float *want,
                         size_t C, char *text, size_t size) {
    double largest = 0.0, worst = -1.0;
    size_t where = 0;
    for (size_t c = 0; c < C; c++) {
        double difference = isfinite(got[c]) ? fabs((double)got[c] - (double)want[c]) : INFINITY;
        largest = fmax(largest, fabs((double)want[c]));
        if (difference > worst) {
            worst = difference;
            where = c;
        }
    }
    if (worst <= ENCODER_TOLERANCE * largest) {
        return true;
    }
    snprintf(text, size,
             "%s: sequence %zu, token %zu, channel %zu: got %.9g, want %.9g, difference %.3g, "
             "tolerance %.3g",
             what, b, t, where, (double)got[where], (double)want[where], worst,
             ENCODER_TOLERANCE * largest);
    return false;
}

/* All rows of hidden, or the first of each sequence. */
static void check_rows(const struct encoder_case *c, const char *what, bool all, const float *got,
                       char *text, size_t size) {
    size_t C = c->net->model.C;
    for (size_t b = 0; b < c->batch.B; b++) {
        size_t start = (size_t)c->starts[b], end = all ? (size_t)c->starts[b + 1] : start + 1;
        for (size_t row = start; row < end; row++) {
            const float *row_got = got + (all ? row : b) * C;
            if (!row_is_right(what, b, row - start, row_got, c->want + row * C, C, text, size)) {
                return;
            }
        }
    }
}

/* @param got host memory of the buffer's size */
static enum status read_and_check(const struct encoder_case *c, const struct device_buffer *buffer,
                                  float *got, const char *what, bool all, char *text, size_t size,
                                  struct error *error) {
    bool intact, changed;
    TRY(device_buffer_get(buffer, got, &intact, &changed, error));
    if (intact) {
        check_rows(c, what, all, got, text, size);
    } else {
        snprintf(text, size, "%s: wrote outside of the output", what);
    }
    return STATUS_OK;
}

static enum status check_buffer(const struct encoder_case *c, const struct device_buffer *buffer,
                                const char *what, bool all, char *text, size_t size,
                                struct error *error) {
    float *got = malloc(buffer->count * sizeof *got + 1);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = read_and_check(c, buffer, got, what, all, text, size, error);
    free(got);
    return status;
}

enum status encoder_case_check(const struct encoder_case *c, char *text, size_t size,
                               struct error *error) {
    text[0] = '\0';
    TRY(check_buffer(c, &c->first, "first", false, text, size, error));
    if (text[0] == '\0' && c->batch.hidden != NULL) {
        TRY(check_buffer(c, &c->hidden, "hidden", true, text, size, error));
    }
    return STATUS_OK;
}
