#include "labs/10_llama2_decoder/problem/case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/words.h"
#include "labs/10_llama2_decoder/given/decoder_model.h"
#include "labs/10_llama2_decoder/problem/draw.h"

/* A tensor in device memory, and a copy of it from when the model was created. */
struct decoder_tensor {
    const void *device;
    unsigned char *snapshot;
    size_t bytes;
};

enum { OTHER_TENSORS = 3, LAYER_TENSORS = 6 };

double decoder_tolerance(enum nn_dtype dtype) {
    /* fp32: the order of sums. In 16 bits keys, values and a prompt's activations are rounded, too.
     */
    return dtype == NN_F32 ? 1e-4 : 16.0 * nn_dtype_rounding(dtype);
}

/* ---- The model ---- */

/* The norm of the classifier's longest row, times the final norm: its input's elements are about 1.
 */
static double logit_scale(const struct llama2_weights *w, const struct llama2_config *config) {
    double longest = 0.0;
    for (size_t v = 0; v < config->V; v++) {
        double squares = 0.0;
        for (size_t c = 0; c < config->C; c++) {
            double term = (double)w->classifier[v * config->C + c] * (double)w->final_norm[c];
            squares += term * term;
        }
        longest = fmax(longest, squares);
    }
    return sqrt(longest);
}

struct llama2_config decoder_size_config(const struct decoder_size *s) {
    return (struct llama2_config){.C = s->NH * s->HS,
                                  .hidden = s->hidden,
                                  .L = s->L,
                                  .NH = s->NH,
                                  .KVH = s->KVH,
                                  .HS = s->HS,
                                  .V = s->V,
                                  .T = s->T,
                                  .rope_theta = s->layout == NN_ROPE_HALVES ? 5e5f : 1e4f,
                                  .norm_eps = 1e-3f, /* large enough to be missed */
                                  .rope_layout = s->layout};
}

struct llama2_decoder_model decoder_net_for_engine(const struct decoder_net *net, size_t batch) {
    return (struct llama2_decoder_model){.config = &net->weights.random.config,
                                         .weights = &net->weights.stored,
                                         .dtype = net->size.dtype,
                                         .batch = batch};
}

static enum status keep(struct decoder_net *net, const void *device, size_t bytes,
                        struct error *error) {
    unsigned char *snapshot = malloc(bytes + 1);
    if (snapshot == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    net->tensors[net->count++] = (struct decoder_tensor){device, snapshot, bytes};
    return device_read(snapshot, device, bytes, NULL, error);
}

static enum status keep_layer(struct decoder_net *net, const struct decoder_layer *w,
                              struct error *error) {
    const struct decoder_model *m = &net->model;
    size_t row = m->C * nn_dtype_bytes(m->dtype), norm = m->C * sizeof(float);
    TRY(keep(net, w->attention_norm, norm, error));
    TRY(keep(net, w->qkv, (m->NH + 2 * m->KVH) * m->HS * row, error));
    TRY(keep(net, w->out, m->NH * m->HS * row, error));
    TRY(keep(net, w->ffn_norm, norm, error));
    TRY(keep(net, w->gate_up, 2 * m->hidden * row, error));
    return keep(net, w->down, m->hidden * row, error);
}

static enum status keep_all(struct decoder_net *net, struct error *error) {
    const size_t L = net->size.L;
    size_t table = net->model.V * net->model.C * nn_dtype_bytes(net->model.dtype);
    net->tensors = calloc(OTHER_TENSORS + L * LAYER_TENSORS, sizeof *net->tensors);
    if (net->tensors == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(keep(net, net->model.embedding, table, error));
    TRY(keep(net, net->model.classifier, table, error));
    TRY(keep(net, net->model.final_norm, net->model.C * sizeof(float), error));
    for (size_t l = 0; l < L; l++) {
        TRY(keep_layer(net, &net->layers[l], error));
    }
    return STATUS_OK;
}

static enum status make_device(struct decoder_net *net, struct error *error) {
    const struct llama2_decoder_model model = decoder_net_for_engine(net, net->size.T);
    TRY(llama2_device_load(&net->device, &model, NULL, error));
    net->layers = calloc(net->size.L, sizeof *net->layers);
    if (net->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    net->model = decoder_model_of(model.config, &net->device, net->layers);
    return STATUS_OK;
}

enum status decoder_net_create(struct decoder_net *net, const struct decoder_size *size,
                               uint64_t seed, bool unchecked, struct error *error) {
    const struct llama2_config config = decoder_size_config(size);
    struct rounded_llama2 *w = &net->weights;
    *net = (struct decoder_net){.size = *size};
    enum status status = rounded_llama2_create(w, &config, size->dtype, size->own_classifier, seed);
    if (status != STATUS_OK) {
        return error_set(error, status, "the grader makes no model: %s", status_message(status));
    }
    net->logit_scale = logit_scale(&w->random.weights, &w->random.config);
    TRY(make_device(net, error));
    if (unchecked) {
        return STATUS_OK;
    }
    TRY(keep_all(net, error));
    TRY(engine_reference_create(&net->reference));
    return llama2_create(&net->llama2, &w->random.config, &w->random.weights, &net->reference,
                         size->T, error);
}

bool decoder_net_intact(const struct decoder_net *net) {
    bool intact = true;
    for (size_t i = 0; i < net->count && intact; i++) {
        const struct decoder_tensor *t = &net->tensors[i];
        unsigned char *now = malloc(t->bytes + 1);
        intact = now != NULL && device_read(now, t->device, t->bytes, NULL, NULL) == STATUS_OK &&
                 memcmp(now, t->snapshot, t->bytes) == 0;
        free(now);
    }
    return intact;
}

void decoder_net_free(struct decoder_net *net) {
    for (size_t i = 0; i < net->count; i++) {
        free(net->tensors[i].snapshot);
    }
    llama2_device_free(&net->device);
    llama2_free(net->llama2);
    engine_destroy(&net->reference);
    rounded_llama2_free(&net->weights);
    free(net->layers);
    free(net->tensors);
    *net = (struct decoder_net){0};
}

/* ---- A text ---- */

static void name_case(struct decoder_case *c, size_t batch) {
    const struct decoder_size *s = &c->net->size;
    snprintf(c->name, sizeof c->name,
             "%s C=%zu hidden=%zu L=%zu NH=%zu KVH=%zu V=%zu T=%zu%s%s, batch %zu",
             nn_dtype_name(s->dtype), s->NH * s->HS, s->hidden, s->L, s->NH, s->KVH, s->V, s->T,
             s->layout == NN_ROPE_HALVES ? ", rope in halves" : "",
             s->own_classifier ? ", own classifier" : "", batch);
}

enum status decoder_case_create(struct decoder_case *c, const struct decoder_net *net,
                                const struct decoder_functions *functions, size_t batch,
                                struct rng *rng, device_stream stream, bool guarded,
                                struct error *error) {
    const size_t V = net->size.V, floats = sizeof(struct sampling) / sizeof(float);
    *c = (struct decoder_case){.net = net, .functions = *functions, .stream = stream, .rng = rng};
    name_case(c, batch);
    c->text = calloc(net->size.T, sizeof *c->text);
    c->got = calloc(V, sizeof *c->got);
    c->want = calloc(V, sizeof *c->want);
    if (c->text == NULL || c->got == NULL || c->want == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(device_buffer_create(&c->logits, V, guarded, 0, error));
    TRY(device_buffer_create(&c->token, 1, guarded, 0, error));
    TRY(device_buffer_create(&c->sampling, floats, guarded, 0, error));
    const struct decoder_io io = {c->logits.data, (int32_t *)c->token.data,
                                  (struct sampling *)c->sampling.data};
    return c->functions.create(&c->decoder, &net->model, &io, batch, stream, error);
}

void decoder_case_free(struct decoder_case *c) {
    if (c->functions.free != NULL) {
        c->functions.free(c->decoder);
    }
    device_buffer_free(&c->logits);
    device_buffer_free(&c->token);
    device_buffer_free(&c->sampling);
    free(c->text);
    free(c->got);
    free(c->want);
    *c = (struct decoder_case){0};
}

/* ---- Comparing ---- */

static void compare_logits(const struct decoder_case *c, const char *what, char *text,
                           size_t size) {
    double largest = c->net->logit_scale, worst = -1.0;
    double tolerance = decoder_tolerance(c->net->size.dtype);
    size_t where = 0;
    for (size_t i = 0; i < c->net->size.V; i++) {
        double difference =
            isfinite(c->got[i]) ? fabs((double)c->got[i] - (double)c->want[i]) : INFINITY;
        largest = fmax(largest, fabs((double)c->want[i]));
        if (difference > worst) {
            worst = difference;
            where = i;
        }
    }
    if (!(worst <= tolerance * largest)) {
        snprintf(text, size, "%s: logit %zu: got %.9g, want %.9g, difference %.3g, tolerance %.3g",
                 what, where, (double)c->got[where], (double)c->want[where], worst,
                 tolerance * largest);
    }
}

/* Reads and checks the logits; the canaries around them must be intact. */
static enum status check_logits(struct decoder_case *c, const char *what, char *text, size_t size,
                                struct error *error) {
    bool intact = true, changed = false;
    TRY(device_buffer_get(&c->logits, c->got, &intact, &changed, error));
    if (!intact) {
        snprintf(text, size, "%s: wrote outside of the logits", what);
    } else if (c->net->llama2 != NULL) {
        compare_logits(c, what, text, size);
    }
    return STATUS_OK;
}

/* Logits of the reference, after tokens position .. position + count - 1 of the text. */
static enum status ask_reference(struct decoder_case *c, size_t position, size_t count,
                                 struct error *error) {
    if (c->net->llama2 == NULL) {
        return STATUS_OK;
    }
    enum status status =
        llama2_forward(c->net->llama2, c->text + position, count, position, c->want);
    return status == STATUS_OK
               ? status
               : error_set(error, status, "the reference does not run: %s", status_message(status));
}

static enum status run_prefill(struct decoder_case *c, size_t count, size_t position,
                               struct error *error) {
    TRY(device_buffer_put(&c->logits, NULL, error));
    TRY(c->functions.prefill(c->decoder, c->text + position, count, position, error));
    return device_synchronize(c->stream, error);
}

enum status decoder_case_feed(struct decoder_case *c, size_t count, size_t position, char *text,
                              size_t size, struct error *error) {
    char what[80];
    bool intact = true, changed = false;
    snprintf(what, sizeof what, "%zu token%s fed at %zu", count, plural(count), position);
    for (size_t i = 0; i < count; i++) {
        c->text[position + i] = (int32_t)rng_below(c->rng, c->net->size.V);
    }
    c->fed = position + count;
    enum status status = run_prefill(c, count, position, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, what);
    }
    TRY(ask_reference(c, position, count, error));
    TRY(check_logits(c, what, text, size, error));
    TRY(device_buffer_get(&c->sampling, NULL, &intact, &changed, error));
    if (text[0] == '\0' && (!intact || changed)) {
        snprintf(text, size, "%s: changed how tokens are drawn", what);
    }
    return STATUS_OK;
}

static enum status put_sampling(struct decoder_case *c, const struct sampling *how,
                                struct error *error) {
    float floats[sizeof *how / sizeof(float)] = {0};
    memcpy(floats, how, sizeof floats);
    return device_buffer_put(&c->sampling, floats, error);
}

/* Reads the token; of the sampling, its state alone must have changed, by one draw. */
static enum status check_draw(struct decoder_case *c, const struct sampling *how,
                              const float *logits, const char *what, int32_t *token, char *text,
                              size_t size, struct error *error) {
    struct sampling now;
    float floats[sizeof now / sizeof(float)], drawn;
    char reason[300];
    bool token_intact = true, intact = true, changed = false;
    TRY(device_buffer_get(&c->token, &drawn, &token_intact, &changed, error));
    TRY(device_buffer_get(&c->sampling, floats, &intact, &changed, error));
    memcpy(token, &drawn, sizeof *token);
    memcpy(&now, floats, sizeof now);
    if (!token_intact || !intact) {
        snprintf(text, size, "%s: wrote outside of token or sampling", what);
    } else if (!decoder_token_allowed(logits, c->net->size.V, how, *token, reason, sizeof reason)) {
        snprintf(text, size, "%s: %s", what, reason);
    } else if (now.state != decoder_state_behind(how) || now.temperature != how->temperature ||
               now.top_p != how->top_p || now.top_k != how->top_k) {
        snprintf(text, size, "%s: the sampling's state is not the one after one draw", what);
    }
    return STATUS_OK;
}

/* Runs a step on `logits`, host memory, and checks the token that it draws. */
static enum status run_step(struct decoder_case *c, size_t position, const struct sampling *how,
                            const float *logits, const char *what, int32_t *token, char *text,
                            size_t size, struct error *error) {
    TRY(device_buffer_put(&c->logits, logits, error));
    TRY(device_buffer_put(&c->token, NULL, error));
    TRY(put_sampling(c, how, error));
    TRY(c->functions.step(c->decoder, position, error));
    TRY(device_synchronize(c->stream, error));
    return check_draw(c, how, logits, what, token, text, size, error);
}

enum status decoder_case_step_at(struct decoder_case *c, size_t position,
                                 const struct sampling *how, const float *own, char *text,
                                 size_t size, struct error *error) {
    char what[80];
    int32_t token = 0;
    float *from = malloc(c->net->size.V * sizeof *from);
    if (from == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    snprintf(what, sizeof what, "step at %zu", position);
    memcpy(from, own != NULL ? own : c->got, c->net->size.V * sizeof *from);
    enum status status = run_step(c, position, how, from, what, &token, text, size, error);
    free(from);
    if (status != STATUS_OK) {
        return error_prefix(error, status, what);
    }
    if (text[0] != '\0') {
        return STATUS_OK;
    }
    c->text[position] = token;
    c->fed = position + 1;
    TRY(ask_reference(c, position, 1, error));
    return check_logits(c, what, text, size, error);
}

enum status decoder_case_step(struct decoder_case *c, const struct sampling *how, const float *own,
                              char *text, size_t size, struct error *error) {
    return decoder_case_step_at(c, c->fed, how, own, text, size, error);
}

static enum status run_steps(const struct decoder_case *c, const struct decoder_steps_call *call,
                             int32_t *tokens, struct error *error) {
    TRY(c->steps != NULL ? c->steps(call, error)
                         : decoder_start_steps(call, c->functions.step, error));
    return device_read(tokens, call->drawn, call->count * sizeof *tokens, c->stream, error);
}

/* Starts all steps; tokens (steps) receives each step's token. */
static enum status start_steps(struct decoder_case *c, size_t steps, int32_t *tokens,
                               struct error *error) {
    const struct sampling greedy = {.state = 1};
    struct decoder_steps_call call = {.decoder = c->decoder,
                                      .position = c->fed,
                                      .count = steps,
                                      .token = (const int32_t *)c->token.data,
                                      .stream = c->stream};
    TRY(put_sampling(c, &greedy, error));
    TRY(device_alloc((void **)&call.drawn, steps * sizeof *call.drawn, error));
    enum status status = run_steps(c, &call, tokens, error);
    device_free(call.drawn);
    return status;
}

/* Whether a token's logit is the reference's largest, up to rounding. */
static bool is_best(const struct decoder_case *c, int32_t token) {
    double best = -INFINITY, largest = c->net->logit_scale;
    for (size_t i = 0; i < c->net->size.V; i++) {
        best = fmax(best, (double)c->want[i]);
        largest = fmax(largest, fabs((double)c->want[i]));
    }
    return token >= 0 && (size_t)token < c->net->size.V &&
           (double)c->want[token] >= best - 2.0 * decoder_tolerance(c->net->size.dtype) * largest;
}

enum status decoder_case_steps_at_once(struct decoder_case *c, size_t steps, char *text,
                                       size_t size, struct error *error) {
    const size_t first = c->fed;
    char what[120];
    snprintf(what, sizeof what, "%zu steps from %zu on, none of them waited for", steps, first);
    enum status status = start_steps(c, steps, c->text + first, error);
    if (status != STATUS_OK) {
        return error_prefix(error, status, what);
    }
    for (size_t i = 0; i < steps; i++) {
        int32_t token = c->text[c->fed];
        if (!is_best(c, token)) {
            snprintf(text, size, "%s: the step at %zu drew token %d, which is not the best one",
                     what, c->fed, (int)token);
            return STATUS_OK;
        }
        TRY(ask_reference(c, c->fed++, 1, error));
    }
    return check_logits(c, what, text, size, error);
}
