/* Training steps of one model: their time and their launches. */
#include <math.h>
#include <stdlib.h>

#include "common/bench/device/device_launches.h"
#include "common/bench/device/kernel_times.h"
#include "labs/11_training/bench/training_bench.h"
#include "labs/11_training/given/engine.h"

enum { WARMUP = 3, LEAST = 5, MOST = 50 };

/* How long the steps that count take together, about. */
static const double SECONDS = 2.0, QUICK_SECONDS = 0.3;

enum status bench_trainer_create(struct bench_trainer *t, const struct train_config *config,
                                 enum nn_dtype dtype, const struct training_functions *functions,
                                 const struct train_batch *batch, struct error *error) {
    *t = (struct bench_trainer){.batch = batch};
    TRY(training_engine_create_with(&t->engine, dtype, functions, error));
    t->stream = training_engine_stream(&t->engine);
    TRY(train_model_create(&t->model, config, &t->engine, error));
    return train_model_draw(t->model, 1, error);
}

void bench_trainer_free(struct bench_trainer *t) {
    train_model_free(t->model);
    train_engine_destroy(&t->engine);
    *t = (struct bench_trainer){0};
}

/* Rate 0: the weights stay, so each step has the same loss and the same norm. */
static enum status start_step(struct bench_trainer *t, struct error *error) {
    const struct train_update update = {.rate = 0.0f,
                                        .beta1 = 0.9f,
                                        .beta2 = 0.999f,
                                        .eps = 1e-8f,
                                        .decay = 0.01f,
                                        .most_norm = 1.0f,
                                        .step = 1};
    float scale = 1.0f / (float)t->batch->B;
    return train_model_step(t->model, t->batch, scale, 7, 1, &update, error);
}

/* Wakes the clock, and lets scratch memory grow. @return seconds of the last step */
static enum status warm_up(struct bench_trainer *t, int steps, double *seconds,
                           struct error *error) {
    double loss;
    for (int i = 0; i < steps; i++) {
        double start = device_now();
        TRY(start_step(t, error));
        *seconds = device_now() - start;
    }
    return train_model_take_loss(t->model, &loss, NULL, error);
}

/* @param events (count + 1): made here @param seconds (count) */
static enum status time_steps(struct bench_trainer *t, int count, device_event *events,
                              double *seconds, struct error *error) {
    for (int i = 0; i <= count; i++) {
        TRY(device_event_create(&events[i], error));
    }
    TRY(device_event_record(events[0], t->stream, error));
    for (int i = 0; i < count; i++) {
        TRY(start_step(t, error));
        TRY(device_event_record(events[i + 1], t->stream, error));
    }
    for (int i = 0; i < count; i++) {
        TRY(device_event_elapsed(events[i], events[i + 1], &seconds[i], error));
        seconds[i] *= 1e-3;
    }
    return STATUS_OK;
}

/* simt's time is the same in every step. */
static int count_of(const struct ladder_setup *setup, double seconds) {
    double count = ceil((setup->quick ? QUICK_SECONDS : SECONDS) / seconds);
    return setup->gpu.modelled ? 1 : (int)fmin(fmax(count, LEAST), MOST);
}

enum status bench_trainer_time(struct bench_trainer *t, const struct ladder_setup *setup,
                               struct bench_timing *timing, float results[2], struct error *error) {
    device_event events[MOST + 1] = {NULL};
    double seconds[MOST] = {0.0}, loss = NAN, norm = NAN;
    TRY(warm_up(t, setup->gpu.modelled ? 1 : WARMUP, &seconds[0], error));
    int count = count_of(setup, seconds[0]);
    enum status status = time_steps(t, count, events, seconds, error);
    for (int i = 0; i <= MOST; i++) {
        device_event_destroy(events[i]);
    }
    TRY(status);
    TRY(train_model_take_loss(t->model, &loss, &norm, error)); /* of all steps, and of the last */
    results[0] = (float)(loss / count);
    results[1] = (float)norm;
    *timing = bench_summarise(seconds, count);
    return STATUS_OK;
}

static enum status record_step(void *trainer, device_stream stream, struct error *error) {
    (void)stream; /* the engine's own */
    return start_step(trainer, error);
}

enum status bench_trainer_launches(struct bench_trainer *t, size_t *launches, struct error *error) {
    return device_count_launches_on(record_step, t, t->stream, launches, error);
}

enum status bench_trainer_kernels(struct bench_trainer *t, struct kernel_totals *totals,
                                  struct error *error) {
    struct kernel_times *times = NULL;
    TRY(kernel_times_create(&times, t->stream, error));
    enum status status = kernel_times_begin(times, error);
    if (status == STATUS_OK) {
        enum status called = start_step(t, error);
        status = kernel_times_end(times, called, kernel_totals_add, totals, error);
    }
    kernel_times_free(times);
    return status == STATUS_OK ? totals->status : status;
}
