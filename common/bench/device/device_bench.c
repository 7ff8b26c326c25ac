#include "common/bench/device/device_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bench/device/device_kernels.h"
#include "common/simt/simt.h"

struct device_bench_options device_bench_defaults(void) {
    return (struct device_bench_options){.warmup = 3,
                                         .warmup_seconds = 0.05,
                                         .min_runs = 10,
                                         .max_runs = 1000,
                                         .min_seconds = 0.2,
                                         .flush_l2 = false};
}

struct device_bench_options device_bench_probe(void) {
    struct device_bench_options options = device_bench_defaults();
    options.warmup_seconds = 0.04;
    options.min_seconds = 0.03;
    return options;
}

struct bench_gpu bench_gpu_of(const struct device_properties *p) {
    return (struct bench_gpu){.name = p->record_name,
                              .modelled = p->modelled,
                              .mhz = 1e-3 * p->clock_khz,
                              .memory_mhz = 1e-3 * p->memory_clock_khz,
                              .driver = p->driver,
                              .runtime = p->runtime};
}

const char *device_bench_headline(const struct device_properties *p, char *text, size_t size) {
    if (p->modelled) {
        snprintf(text, size, "modelled for %s (%s): no GPU was timed", p->name, p->record_name);
    } else {
        snprintf(text, size, "measured on %s (%.0f MHz, driver for CUDA %d.%d)", p->name,
                 1e-3 * p->clock_khz, p->driver / 1000, p->driver % 1000 / 10);
    }
    return text;
}

struct device_stopwatch {
    struct device_properties gpu;
    device_stream stream;
    device_event start, stop;
    void *sweep; /* NULL: the cache is left alone */
    size_t sweep_bytes;
    struct device_clock *d_clock; /* NULL on simt */
    double probe_ms;              /* the shortest so far; 0: none */
};

static enum status set_up(struct device_stopwatch *w, bool flush, device_stream stream,
                          struct error *error) {
    void *clock = NULL;
    *w = (struct device_stopwatch){.stream = stream};
    enum status status = device_properties(&w->gpu, error);
    if (status == STATUS_OK) {
        status = device_event_create(&w->start, error);
    }
    if (status == STATUS_OK) {
        status = device_event_create(&w->stop, error);
    }
    if (status == STATUS_OK && flush) {
        w->sweep_bytes = 2 * w->gpu.l2_bytes / 16 * 16;
        status = device_alloc(&w->sweep, w->sweep_bytes, error);
    }
    if (status == STATUS_OK && !w->gpu.modelled) {
        status = device_alloc(&clock, sizeof *w->d_clock, error);
        w->d_clock = clock;
    }
    return status;
}

static void take_down(struct device_stopwatch *w) {
    device_event_destroy(w->start);
    device_event_destroy(w->stop);
    device_free(w->sweep);
    device_free(w->d_clock);
}

/* Reads what the last device_read_clock() counted. */
static enum status read_mhz(const struct device_stopwatch *w, double *mhz, struct error *error) {
    struct device_clock clock;
    enum status status = device_read(&clock, w->d_clock, sizeof clock, w->stream, error);
    if (status == STATUS_OK && clock.nanoseconds > 0) {
        *mhz = 1e3 * (double)clock.cycles / (double)clock.nanoseconds;
    }
    return status;
}

/* Who asks simt for the longest launch of a run means one of the run's own. */
static void forget_sweep(void) {
    struct simt_api simt;
    struct simt_profile ignored;
    if (simt_find(&simt)) {
        (void)simt.take_longest(&ignored);
    }
}

static enum status sweep(const struct device_stopwatch *w, struct error *error) {
    if (w->sweep == NULL) {
        return STATUS_OK;
    }
    enum status status = device_sweep(w->sweep, w->sweep_bytes, w->stream, error);
    forget_sweep();
    return status;
}

/*
 * One run between two events. While the GPU reads its clock, the host gets
 * ahead of it, so that its own time to launch is not measured.
 */
static enum status run_once(const struct device_stopwatch *w, device_bench_function *function,
                            void *argument, double *ms, double *mhz, struct error *error) {
    enum status status = STATUS_OK;
    if (w->d_clock != NULL) {
        status = device_read_clock(w->d_clock, w->stream, error);
    }
    if (status == STATUS_OK) {
        status = device_event_record(w->start, w->stream, error);
    }
    if (status == STATUS_OK) {
        status = function(argument, w->stream, error);
    }
    if (status == STATUS_OK) {
        status = device_event_record(w->stop, w->stream, error);
    }
    if (status == STATUS_OK) {
        status = device_event_elapsed(w->start, w->stop, ms, error);
    }
    return status == STATUS_OK && w->d_clock != NULL ? read_mhz(w, mhz, error) : status;
}

static enum status warm_up(const struct device_stopwatch *w,
                           const struct device_bench_options *options,
                           device_bench_function *function, void *argument, struct error *error) {
    double begun = bench_now();
    enum status status = STATUS_OK;
    for (int i = 0; status == STATUS_OK &&
                    (i < options->warmup || bench_now() - begun < options->warmup_seconds);
         i++) {
        status = function(argument, w->stream, error);
        if (status == STATUS_OK) {
            status = device_synchronize(w->stream, error);
        }
    }
    return status;
}

/* Fills seconds and mhz, at most max_runs of them; *count receives how many. */
static enum status measure(const struct device_stopwatch *w,
                           const struct device_bench_options *options,
                           device_bench_function *function, void *argument, double *seconds,
                           double *mhz, int *count, struct error *error) {
    double total = 0.0;
    for (*count = 0; *count < options->max_runs; (*count)++) {
        double ms = 0.0;
        if (*count >= options->min_runs && total >= options->min_seconds) {
            break;
        }
        TRY(sweep(w, error));
        TRY(run_once(w, function, argument, &ms, &mhz[*count], error));
        seconds[*count] = 1e-3 * ms;
        total += 1e-3 * ms;
    }
    return STATUS_OK;
}

/* A profiler's run is not timed, and simt's time is the same in every run: one is enough, behind
 * one that fills the cache. */
static void shorten(struct device_bench_options *options) {
    options->warmup = options->warmup > 0 && !options->flush_l2 ? 1 : 0;
    options->warmup_seconds = 0.0;
    options->min_runs = 1;
    options->max_runs = 1;
}

/* Warms up, measures, summarises. `samples` has room for two of each run. */
static enum status time_runs(const struct device_stopwatch *w,
                             const struct device_bench_options *options,
                             device_bench_function *function, void *argument, double *samples,
                             struct bench_timing *timing, struct error *error) {
    int count = 0;
    double *mhz = samples + options->max_runs;
    enum status status = warm_up(w, options, function, argument, error);
    if (status == STATUS_OK) {
        status = measure(w, options, function, argument, samples, mhz, &count, error);
    }
    if (status == STATUS_OK) {
        *timing = bench_summarise(samples, count);
        /* A median is a median: of MHz, without the factor from seconds to milliseconds. */
        timing->clock_mhz = 1e-3 * bench_summarise(mhz, count).median_ms;
    }
    return status;
}

enum status device_bench_run(const struct device_bench_options *options,
                             device_bench_function *function, void *argument, device_stream stream,
                             struct bench_timing *timing, struct error *error) {
    struct device_bench_options chosen = *options;
    struct device_stopwatch watch;
    *timing = (struct bench_timing){0};
    if (options->warmup < 0 || options->min_runs < 1 || options->max_runs < options->min_runs) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "a bench of %d to %d runs after %d of warm-up", options->min_runs,
                         options->max_runs, options->warmup);
    }
    enum status status = set_up(&watch, options->flush_l2, stream, error);
    if (status == STATUS_OK && (watch.gpu.modelled || getenv("WARPBOOK_PROFILED") != NULL)) {
        shorten(&chosen);
    }
    double *samples = calloc(2 * (size_t)chosen.max_runs, sizeof *samples);
    if (status == STATUS_OK && samples == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a bench's times");
    }
    if (status == STATUS_OK) {
        status = time_runs(&watch, &chosen, function, argument, samples, timing, error);
    }
    free(samples);
    take_down(&watch);
    return status;
}

enum status device_stopwatch_create(struct device_stopwatch **watch, bool flush_l2,
                                    device_stream stream, struct error *error) {
    *watch = calloc(1, sizeof **watch);
    if (*watch == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a stopwatch");
    }
    enum status status = set_up(*watch, flush_l2, stream, error);
    if (status != STATUS_OK) {
        device_stopwatch_free(*watch);
        *watch = NULL;
    }
    return status;
}

void device_stopwatch_free(struct device_stopwatch *watch) {
    if (watch != NULL) {
        take_down(watch);
        free(watch);
    }
}

enum status device_stopwatch_prepare(struct device_stopwatch *watch, struct error *error) {
    TRY(sweep(watch, error));
    return device_synchronize(watch->stream, error);
}

enum status device_stopwatch_run(struct device_stopwatch *watch, device_bench_function *function,
                                 void *argument, double *ms, struct error *error) {
    enum { LEAD = 4 }; /* times 20 us: who has just been woken up launches slowly */
    double mhz;
    for (int i = 0; i < LEAD && watch->d_clock != NULL; i++) {
        TRY(device_read_clock(watch->d_clock, watch->stream, error));
    }
    return run_once(watch, function, argument, ms, &mhz, error);
}

/* A launch that is waited for, in ms. */
static enum status probe(const struct device_stopwatch *w, double *ms, struct error *error) {
    double begun = bench_now();
    if (w->d_clock != NULL) {
        TRY(device_read_clock(w->d_clock, w->stream, error));
    }
    TRY(device_synchronize(w->stream, error));
    *ms = 1e3 * (bench_now() - begun);
    return STATUS_OK;
}

enum status device_stopwatch_settle(struct device_stopwatch *watch, double seconds, double *ms,
                                    struct error *error) {
    enum { IN_A_ROW = 3 };
    const double begun = bench_now(), slower = 1.5;
    int good = 0;
    do {
        double one;
        TRY(probe(watch, &one, error));
        bool first = watch->probe_ms == 0.0;
        good = first || one <= slower * watch->probe_ms ? good + 1 : 0;
        watch->probe_ms = first ? one : fmin(watch->probe_ms, one);
        *ms = 1e3 * (bench_now() - begun);
    } while (good < IN_A_ROW && *ms < 1e3 * seconds);
    return STATUS_OK;
}

const char *device_bench_verb(const struct device_properties *properties) {
    return properties->modelled ? "modelled" : "measured";
}
