#include "grader/11_training/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "grader/11_training/calls.h"
#include "grader/harness/secret_weights.h"
#include "grader/harness/seed.h"
#include "grader/isolation/link.h"
#include "grader/isolation/remote.h"

static size_t vocabulary_of(const struct train_config *config) {
    return config->task == TRAIN_LM ? config->llama2.V : config->bert.V;
}

static enum status out_of_memory(struct error *error) {
    return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
}

/* ---- Batches ---- */

enum status training_job_create(struct training_job *job, const struct training_spec *spec,
                                struct rng *rng, struct error *error) {
    *job = (struct training_job){.spec = *spec, .seed = grader_secret(rng)};
    job->dropout = grader_secret(rng);
    bool classes = spec->config.task == TRAIN_CLASSIFY;
    job->starts = calloc(spec->B + 1, sizeof *job->starts);
    job->batches = calloc(spec->steps, sizeof *job->batches);
    if (job->starts == NULL || job->batches == NULL) {
        return out_of_memory(error);
    }
    for (size_t b = 0; b < spec->B; b++) {
        job->starts[b + 1] = job->starts[b] + spec->lengths[b];
    }
    job->rows = (size_t)job->starts[spec->B];
    job->labels_a_batch = classes ? spec->B : job->rows;
    job->ids = calloc(job->rows * spec->steps, sizeof *job->ids);
    job->labels = calloc(job->labels_a_batch * spec->steps, sizeof *job->labels);
    if (job->ids == NULL || job->labels == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < spec->steps; i++) {
        job->batches[i] = (struct train_batch){.ids = job->ids + i * job->rows,
                                               .starts = job->starts,
                                               .B = spec->B,
                                               .labels = job->labels + i * job->labels_a_batch};
    }
    training_job_renew(job, rng);
    return STATUS_OK;
}

void training_job_renew(struct training_job *job, struct rng *rng) {
    const struct train_config *config = &job->spec.config;
    size_t V = vocabulary_of(config);
    struct rng text = grader_text_rng(rng);
    size_t classes = config->task == TRAIN_CLASSIFY ? config->bert.labels : V;
    for (size_t i = 0; i < job->rows * job->spec.steps; i++) {
        job->ids[i] = (int32_t)rng_below(&text, V);
    }
    for (size_t i = 0; i < job->labels_a_batch * job->spec.steps; i++) {
        job->labels[i] = (int32_t)rng_below(&text, classes);
    }
}

void training_job_free(struct training_job *job) {
    free(job->ids);
    free(job->labels);
    free(job->starts);
    free(job->batches);
    *job = (struct training_job){0};
}

static void free_tensors(float **tensors, size_t count) {
    for (size_t i = 0; i < count && tensors != NULL; i++) {
        free(tensors[i]);
    }
    free(tensors);
}

void training_result_free(struct training_result *result) {
    free_tensors(result->weights, result->tensors);
    free_tensors(result->moments, result->tensors);
    *result = (struct training_result){0};
}

/* ---- The reference ---- */

/* A model on the reference's engine. */
struct reference_model {
    struct train_engine engine;
    struct train_model *model;
};

static enum status reference_model_create(struct reference_model *m,
                                          const struct train_config *config, struct error *error) {
    TRY(train_reference_create(&m->engine));
    return train_model_create(&m->model, config, &m->engine, error);
}

/* Also of one whose creation failed. */
static void reference_model_free(struct reference_model *m) {
    train_model_free(m->model);
    train_engine_destroy(&m->engine);
}

static enum status read_weights(const struct train_model *model, struct training_result *result,
                                struct error *error) {
    const struct train_parameter *list = train_model_parameters(model, &result->tensors);
    result->weights = calloc(result->tensors, sizeof *result->weights);
    if (result->weights == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < result->tensors; i++) {
        result->weights[i] = calloc(list[i].count, sizeof **result->weights);
        if (result->weights[i] == NULL) {
            return out_of_memory(error);
        }
        TRY(train_model_read(model, TRAIN_WEIGHTS, &list[i], result->weights[i], error));
    }
    return STATUS_OK;
}

static enum status run_reference(struct training_job *job, struct reference_model *own,
                                 struct training_result *result, struct error *error) {
    TRY(reference_model_create(own, &job->spec.config, error));
    const struct training_steps_call call = {.model = own->model,
                                             .batches = job->batches,
                                             .steps = job->spec.steps,
                                             .labels = job->labels_a_batch,
                                             .seed = job->dropout,
                                             .rate = job->spec.rate,
                                             .first = 1};
    TRY(train_model_draw(own->model, job->seed, error));
    TRY(training_steps(&call, error));
    TRY(train_model_take_loss(own->model, &result->loss, &result->norm, error));
    return read_weights(own->model, result, error);
}

enum status training_job_reference(struct training_job *job, struct training_result *result,
                                   struct error *error) {
    struct reference_model own = {0};
    *result = (struct training_result){0};
    enum status status = run_reference(job, &own, result, error);
    reference_model_free(&own);
    return status;
}

/* ---- The worker ---- */

/* All parameters in their order. *all: for free() */
static enum status draw_all(const struct training_job *job, struct reference_model *m, float **all,
                            size_t *count, struct error *error) {
    size_t tensors, at = 0;
    TRY(reference_model_create(m, &job->spec.config, error));
    TRY(train_model_draw(m->model, job->seed, error));
    const struct train_parameter *list = train_model_parameters(m->model, &tensors);
    *count = 0;
    for (size_t i = 0; i < tensors; i++) {
        *count += list[i].count;
    }
    *all = malloc(*count * sizeof **all);
    if (*all == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < tensors; i++) {
        TRY(train_model_read(m->model, TRAIN_WEIGHTS, &list[i], *all + at, error));
        at += list[i].count;
    }
    return STATUS_OK;
}

/* The subject's model has parameters that lie in its device's memory alone. */
static enum status place_secret(const struct training_job *job, struct training_create_call *call,
                                struct error *error) {
    struct reference_model m = {0};
    float *all = NULL;
    size_t count = 0;
    void *given = NULL;
    enum status status = draw_all(job, &m, &all, &count, error);
    reference_model_free(&m);
    if (status == STATUS_OK) {
        status = secret_weights_send(all, count * sizeof *all, &given, error);
    }
    free(all);
    call->seed = SECRET_WEIGHTS_OTHERS;
    call->given = given;
    status =
        status == STATUS_OK ? remote_call("training_create", call, sizeof *call, error) : status;
    device_free(given);
    return status;
}

enum status training_job_place(const struct training_job *job, bool without_own, bool secret,
                               void **model, struct error *error) {
    struct training_create_call call = {.config = job->spec.config,
                                        .dtype = job->spec.dtype,
                                        .seed = job->seed,
                                        .without_own = without_own};
    TRY(secret && remote_has_device() ? place_secret(job, &call, error)
                                      : remote_call("training_create", &call, sizeof call, error));
    *model = call.model;
    return STATUS_OK;
}

/* The batches in the arena of the worker in use. */
static enum status send_batches(const struct training_job *job, const struct train_batch **batches,
                                struct error *error) {
    size_t steps = job->spec.steps;
    void *ids, *labels, *starts, *list;
    TRY(remote_copy(&ids, job->ids, job->rows * steps * sizeof *job->ids, error));
    TRY(remote_copy(&labels, job->labels, job->labels_a_batch * steps * sizeof *job->labels,
                    error));
    TRY(remote_copy(&starts, job->starts, (job->spec.B + 1) * sizeof *job->starts, error));
    TRY(remote_alloc(&list, steps * sizeof **batches, error));
    struct train_batch *sent = list;
    for (size_t i = 0; i < steps; i++) {
        sent[i] = (struct train_batch){.ids = (int32_t *)ids + i * job->rows,
                                       .starts = starts,
                                       .B = job->spec.B,
                                       .labels = (int32_t *)labels + i * job->labels_a_batch};
    }
    *batches = sent;
    return STATUS_OK;
}

enum status training_job_steps(const struct training_job *job, void *model, uint64_t first,
                               double *ms, struct error *error) {
    struct training_steps_call call = {.model = model,
                                       .steps = job->spec.steps,
                                       .labels = job->labels_a_batch,
                                       .seed = job->dropout,
                                       .rate = job->spec.rate,
                                       .first = first};
    TRY(send_batches(job, &call.batches, error));
    return ms == NULL ? remote_call("training_steps", &call, sizeof call, error)
                      : remote_call_timed("training_steps", &call, sizeof call, NULL, ms, error);
}

/* One tensor, copied out of the arena. */
static enum status fetch(struct training_tensor_call *call, float **values, struct error *error) {
    void *room;
    TRY(remote_alloc(&room, call->count * sizeof **values, error));
    call->values = room;
    TRY(remote_call("training_tensor", call, sizeof *call, error));
    *values = malloc(call->count * sizeof **values);
    if (*values == NULL) {
        return out_of_memory(error);
    }
    memcpy(*values, room, call->count * sizeof **values);
    return STATUS_OK;
}

static enum status fetch_state(void *model, enum train_state state,
                               const struct train_parameter *list, size_t count, float ***tensors,
                               struct error *error) {
    *tensors = calloc(count, sizeof **tensors);
    if (*tensors == NULL) {
        return out_of_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        struct training_tensor_call call = {
            .model = model, .state = state, .index = i, .count = list[i].count};
        TRY(fetch(&call, &(*tensors)[i], error));
    }
    return STATUS_OK;
}

/* The reference's model serves for the list of tensors alone. */
static enum status fetch_all(const struct training_job *job, void *model,
                             struct reference_model *own, struct training_result *result,
                             struct error *error) {
    TRY(reference_model_create(own, &job->spec.config, error));
    const struct train_parameter *list = train_model_parameters(own->model, &result->tensors);
    TRY(fetch_state(model, TRAIN_WEIGHTS, list, result->tensors, &result->weights, error));
    return fetch_state(model, TRAIN_M, list, result->tensors, &result->moments, error);
}

static enum status fetch_tensors(const struct training_job *job, void *model,
                                 struct training_result *result, struct error *error) {
    struct reference_model own = {0};
    enum status status = fetch_all(job, model, &own, result, error);
    reference_model_free(&own);
    return status;
}

enum status training_job_result(const struct training_job *job, void *model, bool tensors,
                                struct training_result *result, struct error *error) {
    struct training_loss_call call = {model, 0.0, 0.0};
    *result = (struct training_result){0};
    TRY(remote_call("training_loss", &call, sizeof call, error));
    result->loss = call.loss;
    result->norm = call.norm;
    return tensors ? fetch_tensors(job, model, result, error) : STATUS_OK;
}

/* Most elements between two tensors. */
enum { PADDING = 64 };

static void compare_copy(const float *weights, const uint16_t *copy, size_t count, char *text,
                         size_t size) {
    for (size_t i = 0; i < count; i++) {
        uint16_t rounded;
        float got, want;
        nn_dtype_store(&rounded, &weights[i], 1, NN_BF16);
        nn_dtype_load(&want, &rounded, 1, NN_BF16);
        nn_dtype_load(&got, &copy[i], 1, NN_BF16);
        if (!(got == want)) {
            snprintf(text, size, "copy of weight %zu in bf16: got %.9g, want %.9g", i, (double)got,
                     (double)want);
            return;
        }
    }
}

enum status training_job_check_copy(const struct training_job *job, void *model, char *text,
                                    size_t size, struct error *error) {
    struct reference_model own = {0};
    struct training_copy_call call = {.model = model};
    void *weights, *copy;
    size_t tensors = 0, least = 0;
    text[0] = '\0';
    enum status status = reference_model_create(&own, &job->spec.config, error);
    const struct train_parameter *list =
        status == STATUS_OK ? train_model_parameters(own.model, &tensors) : NULL;
    for (size_t i = 0; i < tensors; i++) {
        least += list[i].count;
    }
    reference_model_free(&own);
    TRY(status);
    call.count = least + tensors * PADDING;
    TRY(remote_alloc(&weights, call.count * sizeof *call.weights, error));
    TRY(remote_alloc(&copy, call.count * sizeof *call.copy, error));
    call.weights = weights;
    call.copy = copy;
    const size_t most = call.count;
    TRY(remote_call("training_copy", &call, sizeof call, error));
    if (call.count < least || call.count > most) {
        snprintf(text, size, "a copy of %zu weights of %zu", call.count, least);
        return STATUS_OK;
    }
    compare_copy(weights, copy, call.count, text, size);
    return STATUS_OK;
}

/* ---- The verdict ---- */

/* Of a scalar: how far it may be off, as a share of it. */
static double share_of(enum nn_dtype dtype) {
    return dtype == NN_F32 ? 1e-4 : 8.0 * nn_dtype_rounding(dtype);
}

static bool close_number(const char *what, double got, double want, double share, char *text,
                         size_t size) {
    bool near = isfinite(want) && fabs(got - want) <= share * fabs(want); /* not of NaN */
    if (!near) {
        snprintf(text, size, "%s: got %.9g, want %.9g, at most %.3g of it off", what, got, want,
                 share);
    }
    return near;
}

/*
 * Sums of squares: how far parameters moved, and how far they are from where they should be; the
 * same of their moments. Norms and biases have sums of their own, since matrices have most of the
 * parameters.
 */
struct moves {
    double off, want;
    double moments_off, moments_want;
};

enum { MATRICES, VECTORS, GROUPS };

static void add_moments(size_t count, const float *got, const float *want, struct moves *moves) {
    for (size_t j = 0; j < count; j++) {
        double off = (double)got[j] - (double)want[j];
        moves->moments_want += (double)want[j] * (double)want[j];
        moves->moments_off += off * off;
    }
}

static enum status add_tensor(const struct train_model *before_training,
                              const struct train_parameter *tensor, float *before, const float *got,
                              const float *want, struct moves *moves, struct error *error) {
    TRY(train_model_read(before_training, TRAIN_WEIGHTS, tensor, before, error));
    for (size_t j = 0; j < tensor->count; j++) {
        double moved = (double)want[j] - (double)before[j];
        double off = (double)got[j] - (double)want[j];
        moves->want += moved * moved;
        moves->off += off * off;
    }
    return STATUS_OK;
}

static enum status add_tensors(const struct training_job *job, struct reference_model *own,
                               const struct training_result *got,
                               const struct training_result *want, struct moves moves[GROUPS],
                               struct error *error) {
    size_t tensors;
    TRY(reference_model_create(own, &job->spec.config, error));
    TRY(train_model_draw(own->model, job->seed, error));
    const struct train_parameter *list = train_model_parameters(own->model, &tensors);
    for (size_t i = 0; i < tensors; i++) {
        float *before = malloc(list[i].count * sizeof *before);
        enum status status =
            before == NULL
                ? STATUS_OUT_OF_MEMORY
                : add_tensor(own->model, &list[i], before, got->weights[i], want->weights[i],
                             &moves[list[i].decays ? MATRICES : VECTORS], error);
        free(before);
        TRY(status);
        if (got->moments != NULL && want->moments != NULL) {
            add_moments(list[i].count, got->moments[i], want->moments[i],
                        &moves[list[i].decays ? MATRICES : VECTORS]);
        }
    }
    return STATUS_OK;
}

static bool add_moves(const struct training_job *job, const struct training_result *got,
                      const struct training_result *want, struct moves moves[GROUPS],
                      struct error *error) {
    struct reference_model own = {0};
    enum status status = add_tensors(job, &own, got, want, moves, error);
    reference_model_free(&own);
    return status == STATUS_OK;
}

/*
 * How far two workers' moments may be apart in 16 bits behind one update, as a share of their norm.
 * They differ by what the lab's functions round, as all else is the same. On simt, in one layer:
 * right ones 0.005%, operands as signed bytes beside a scale for each 32 0.65%, as an fp8 of 4 bits
 * 3.9%. On an H200, in four layers: right ones 0.12 to 0.22% in five runs, bytes 1.7%, fp8 6.4%.
 */
static const double MOMENTS_OFF_SIMT = 0.003, MOMENTS_OFF_GPU = 0.006;

static bool close_moments(const struct moves moves[GROUPS], char *text, size_t size) {
    static const char *const names[GROUPS] = {"matrices", "norms and biases"};
    const double allowed = remote_has_device() ? MOMENTS_OFF_SIMT : MOMENTS_OFF_GPU;
    for (int i = 0; i < GROUPS; i++) {
        double off = sqrt(moves[i].moments_off), want = sqrt(moves[i].moments_want);
        if (!(off <= allowed * want)) {
            snprintf(text, size,
                     "gradients are too coarse: AdamW's moments of %s are %.3g%% of their norm "
                     "away from the baseline's, at most %.3g%%",
                     names[i], 100.0 * off / want, 100.0 * allowed);
            return false;
        }
    }
    return true;
}

/* A key's bias changes no result: its gradient is 0, and its step has any sign. */
static const double VECTORS_OFF = 0.6;

static bool close_moves(const struct moves moves[GROUPS], enum nn_dtype dtype, char *text,
                        size_t size) {
    const double allowed[GROUPS] = {dtype == NN_F32 ? 0.02 : 0.3, VECTORS_OFF};
    static const char *const names[GROUPS] = {"matrices", "norms and biases"};
    for (int i = 0; i < GROUPS; i++) {
        double off = sqrt(moves[i].off), want = sqrt(moves[i].want);
        if (!(off <= allowed[i] * want)) {
            snprintf(text, size,
                     "parameters moved elsewhere: %s are %.3g away from where they should be, of "
                     "%.3g that they moved; at most %.3g of it",
                     names[i], off, want, allowed[i]);
            return false;
        }
    }
    return true;
}

bool training_result_close(const struct training_job *job, const struct training_result *got,
                           const struct training_result *want, char *text, size_t size) {
    double share = share_of(job->spec.dtype);
    struct moves moves[GROUPS] = {{.off = 0.0}, {.off = 0.0}};
    struct error error = {0};
    if (!close_number("the loss", got->loss, want->loss, share, text, size) ||
        !close_number("the gradient's norm", got->norm, want->norm, 10.0 * share, text, size)) {
        return false;
    }
    if (got->weights == NULL || want->weights == NULL) {
        return true;
    }
    if (!add_moves(job, got, want, moves, &error)) {
        snprintf(text, size, "the grader is out of memory");
        return false;
    }
    const bool one_step = job->spec.steps == 1; /* in several, two right ones drift apart */
    return close_moves(moves, job->spec.dtype, text, size) &&
           (!one_step || close_moments(moves, text, size));
}
