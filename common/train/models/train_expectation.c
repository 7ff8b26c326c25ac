#include "common/train/models/train_expectation.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/expectation.h"
#include "common/testing/testing.h"
#include "common/train/models/model_testing.h"
#include "common/train/program/schedule.h"

static const char RECORDING[] = "common/train/models/expectations/train.json";

/* A tensor whose gradient is below NOTHING of the whole gradient has only rounding errors of terms
   that cancel. Its errors are given as shares of BESIDE_NOTHING of the whole gradient. */
static const double NOTHING = 1e-9, BESIDE_NOTHING = 1e-3;

/* ---- The recording ---- */

static size_t size_of(const cJSON *object, const char *key) {
    return (size_t)recording_number(object, key);
}

static enum train_task task_of(const cJSON *one) {
    const char *task = recording_string(one, "task");
    return strcmp(task, "classify") == 0 ? TRAIN_CLASSIFY
           : strcmp(task, "mlm") == 0    ? TRAIN_MLM
                                         : TRAIN_LM;
}

static struct train_config config_of(const cJSON *one) {
    const cJSON *s = recording_member(one, "sizes");
    enum train_task task = task_of(one);
    struct train_config config = {.task = task,
                                  .most_sequences = size_of(one, "batch"),
                                  .most_rows = size_of(one, "batch") * size_of(s, "T"),
                                  .tied = cJSON_IsTrue(recording_member(s, "tied"))};
    if (task != TRAIN_LM) {
        config.bert = (struct bert_config){.C = size_of(s, "C"),
                                           .hidden = size_of(s, "hidden"),
                                           .L = size_of(s, "L"),
                                           .NH = size_of(s, "NH"),
                                           .V = size_of(s, "V"),
                                           .T = size_of(s, "T"),
                                           .types = size_of(s, "types"),
                                           .labels = size_of(s, "labels"),
                                           .norm_eps = (float)recording_number(s, "norm_eps"),
                                           .activation = NN_GELU};
        return config;
    }
    config.llama2 = (struct llama2_config){.C = size_of(s, "C"),
                                           .hidden = size_of(s, "hidden"),
                                           .L = size_of(s, "L"),
                                           .NH = size_of(s, "NH"),
                                           .KVH = size_of(s, "KVH"),
                                           .HS = size_of(s, "HS"),
                                           .V = size_of(s, "V"),
                                           .T = size_of(s, "T"),
                                           .rope_theta = (float)recording_number(s, "rope_theta"),
                                           .norm_eps = (float)recording_number(s, "norm_eps"),
                                           .rope_layout = NN_ROPE_HALVES};
    return config;
}

/* ---- A run ---- */

struct run {
    cJSON *root;
    const cJSON *one;
    struct train_config config;
    struct train_model *model;

    /* The current batch. */
    int32_t *ids, *labels, *starts;
    size_t B, label_count;
};

static void run_free(struct run *r) {
    train_model_free(r->model);
    free(r->ids);
    free(r->labels);
    free(r->starts);
    cJSON_Delete(r->root);
}

static bool run_create(struct run *r, const struct train_engine *engine, const char *name) {
    struct error error = {0};
    *r = (struct run){.root = expectation_load(RECORDING)};
    r->one = r->root != NULL ? recording_case(r->root, RECORDING, name) : NULL;
    if (r->one == NULL) {
        return false;
    }
    r->config = config_of(r->one);
    r->ids = calloc(r->config.most_rows, sizeof *r->ids);
    r->labels = calloc(r->config.most_rows, sizeof *r->labels);
    r->starts = calloc(r->config.most_sequences + 1, sizeof *r->starts);
    bool good = r->ids != NULL && r->labels != NULL && r->starts != NULL;
    if (!good || train_model_create(&r->model, &r->config, engine, &error) != STATUS_OK) {
        TEST_FAIL("no model for %s: %s", name, error.message);
        return false;
    }
    return model_testing_fill(r->model);
}

/* Appends numbers. @return the new count */
static size_t append(int32_t *to, size_t at, size_t capacity, const cJSON *numbers) {
    const cJSON *item;
    cJSON_ArrayForEach(item, numbers) {
        if (at < capacity) {
            to[at++] = (int32_t)item->valuedouble;
        }
    }
    return at;
}

/* The batch of a step, counted from 0; after the last sequence the batches begin again. */
static struct train_batch batch_of(struct run *r, size_t step) {
    const cJSON *sequences = recording_member(r->one, "sequences"),
                *labels = recording_member(r->one, "labels");
    size_t B = r->config.most_sequences, most = r->config.most_rows, rows = 0, labelled = 0;
    size_t first = step * B % (size_t)cJSON_GetArraySize(sequences);
    r->label_count = 0;
    for (size_t b = 0; b < B; b++) {
        const cJSON *of = cJSON_GetArrayItem(labels, (int)(first + b));
        rows = append(r->ids, rows, most, cJSON_GetArrayItem(sequences, (int)(first + b)));
        r->starts[b + 1] = (int32_t)rows;
        if (cJSON_IsNumber(of)) {
            r->labels[labelled++] = (int32_t)of->valuedouble;
        } else {
            labelled = append(r->labels, labelled, most, of);
        }
    }
    for (size_t i = 0; i < labelled; i++) {
        r->label_count += r->labels[i] >= 0;
    }
    return (struct train_batch){.ids = r->ids, .starts = r->starts, .B = B, .labels = r->labels};
}

/* The mean loss of a step's batch; its gradient is added. */
static double backward(struct run *r, size_t step) {
    const struct train_batch batch = batch_of(r, step);
    return model_testing_backward(r->model, &batch, 1.0f / (float)r->label_count, 0,
                                  (uint32_t)step);
}

/* ---- Gradients ---- */

/* The largest element and the norm of a tensor. */
struct extent {
    double largest, norm;
};

static struct extent extent_of(const double *values, size_t count) {
    struct extent e = {0};
    for (size_t i = 0; i < count; i++) {
        e.largest = fmax(e.largest, fabs(values[i]));
        e.norm += values[i] * values[i];
    }
    e.norm = sqrt(e.norm);
    return e;
}

/*
 * The larger of two errors: of the norm, relative to the norm, and of the elements, relative to the
 * largest element. The largest element is taken from `got`, because not all are recorded; if it is
 * wrong, so is the norm. Both are relative to `least` if that is larger.
 */
static double tensor_error(const cJSON *recorded, const double *got, size_t count, double least) {
    const struct extent extent = extent_of(got, count);
    size_t stride = size_of(recorded, "stride"), i = 0;
    double norm = recording_number(recorded, "norm"), difference = 0.0;
    const cJSON *value;
    cJSON_ArrayForEach(value, recording_member(recorded, "values")) {
        double d = i < count ? fabs(got[i] - value->valuedouble) : INFINITY;
        difference = fmax(difference, d); /* ignores NaN, which shows in the norm */
        i += stride;
    }
    double of_norm = fabs(extent.norm - norm) / fmax(norm, least);
    double of_elements = difference / fmax(extent.largest, least);
    return of_norm <= of_elements ? of_elements : of_norm;
}

/* @return the tensor's error; infinite where there is none. */
static double check_tensor(const struct run *r, const cJSON *recorded, double tolerance) {
    const char *name = recording_string(recorded, "name");
    const struct train_parameter *parameter = train_model_find(r->model, name);
    if (parameter == NULL || parameter->count != size_of(recorded, "count")) {
        TEST_FAIL("%s is missing, or of another size", name);
        return INFINITY;
    }
    double *got = calloc(parameter->count, sizeof *got);
    enum status status = train_model_read_f64(r->model, TRAIN_GRADIENT, parameter, got, NULL);
    double whole = recording_number(r->one, "norm");
    double least =
        recording_number(recorded, "norm") < NOTHING * whole ? BESIDE_NOTHING * whole : 0.0;
    double error =
        status == STATUS_OK ? tensor_error(recorded, got, parameter->count, least) : INFINITY;
    free(got);
    if (!(error <= tolerance)) {
        TEST_FAIL("the gradient of %s is off by %.3g of its largest element or of its norm", name,
                  error);
    }
    return error;
}

void train_expectation_gradient(const struct train_engine *engine, const char *name,
                                double tolerance) {
    struct run r;
    if (run_create(&r, engine, name)) {
        double want = recording_number(r.one, "loss"), loss = backward(&r, 0), worst = 0.0;
        size_t count;
        const cJSON *recorded;
        EXPECT_NEAR(want, loss, tolerance * want);
        cJSON_ArrayForEach(recorded, recording_member(r.one, "gradient")) {
            double error = check_tensor(&r, recorded, tolerance);
            worst = error <= worst ? worst : error;
        }
        (void)train_model_parameters(r.model, &count);
        EXPECT_INT_EQ(cJSON_GetArraySize(recording_member(r.one, "gradient")), count);
        printf("%s on %s: loss off by %.2e, gradients by at most %.2e\n", name, engine->name,
               fabs(loss - want) / want, worst);
    }
    run_free(&r);
}

/* ---- Losses ---- */

static enum status update(struct run *r, size_t step) {
    const cJSON *u = recording_member(r->root, "update");
    const struct train_schedule schedule = {.decay = TRAIN_LINEAR,
                                            .rate = recording_number(u, "rate"),
                                            .warmup = size_of(u, "warmup"),
                                            .total = size_of(u, "steps")};
    const struct train_update values = {.rate = (float)train_schedule_rate(&schedule, step + 1),
                                        .beta1 = (float)recording_number(u, "beta1"),
                                        .beta2 = (float)recording_number(u, "beta2"),
                                        .eps = (float)recording_number(u, "eps"),
                                        .decay = (float)recording_number(u, "decay"),
                                        .most_norm = (float)recording_number(u, "most_norm"),
                                        .step = step + 1};
    return train_model_update(r->model, &values, NULL);
}

void train_expectation_losses(const struct train_engine *engine, const char *name, size_t steps,
                              double tolerance) {
    struct run r;
    if (run_create(&r, engine, name)) {
        const cJSON *recorded = recording_member(r.one, "losses"), *want;
        size_t step = 0;
        double worst = 0.0;
        cJSON_ArrayForEach(want, recorded) {
            if (step == steps) {
                break;
            }
            double error = fabs(backward(&r, step) - want->valuedouble) / want->valuedouble;
            EXPECT_OK(update(&r, step));
            if (!(error <= tolerance)) {
                TEST_FAIL("%s: the loss of step %zu is off by %.3g", name, step + 1, error);
            }
            worst = error <= worst ? worst : error;
            step++;
        }
        EXPECT_INT_EQ(steps, step);
        printf("%s on %s: %zu losses, off by at most %.2e\n", name, engine->name, step, worst);
    }
    run_free(&r);
}
