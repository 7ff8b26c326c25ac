#include "common/bench/bench.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct bench_options bench_defaults(void) {
    return (struct bench_options){
        .warmup = 2, .min_runs = 5, .max_runs = 1000, .min_seconds = 0.2, .flush_cache = false};
}

static int compare_seconds(const void *left, const void *right) {
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

struct bench_timing bench_summarise(double *seconds, int count) {
    if (count < 1) {
        return (struct bench_timing){0};
    }
    qsort(seconds, (size_t)count, sizeof *seconds, compare_seconds);
    double middle = 0.5 * (seconds[(count - 1) / 2] + seconds[count / 2]);
    return (struct bench_timing){.median_ms = 1e3 * middle,
                                 .min_ms = 1e3 * seconds[0],
                                 .max_ms = 1e3 * seconds[count - 1],
                                 .runs = count};
}

int bench_cpu_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int count = CPU_COUNT(&set);
        return count > 0 ? count : 1;
    }
    /* More CPUs than the set has room for. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* Memory that is swept before each run, so that the run finds none of its data in a cache. */
struct sweep {
    unsigned char *memory; /* NULL: no sweep */
    size_t size;
};

static enum status sweep_create(struct sweep *sweep, bool wanted) {
    enum { LEAST = 64 << 20 };
    *sweep = (struct sweep){0};
    if (!wanted) {
        return STATUS_OK;
    }
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    sweep->size = cache > LEAST / 2 ? 2 * (size_t)cache : LEAST;
    sweep->memory = calloc(1, sweep->size);
    return sweep->memory != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static void sweep_run(struct sweep *sweep) {
    for (size_t i = 0; sweep->memory != NULL && i < sweep->size; i += 64) {
        ((volatile unsigned char *)sweep->memory)[i]++;
    }
}

/* Times the runs: seconds (max_runs) receives the time of each, *count their number. */
static enum status measure(const struct bench_options *options, bench_function *function,
                           void *argument, struct sweep *sweep, double *seconds, int *count) {
    double total = 0.0;
    for (*count = 0; *count < options->max_runs; (*count)++) {
        if (*count >= options->min_runs && total >= options->min_seconds) {
            break;
        }
        sweep_run(sweep);
        double start = bench_now();
        TRY(function(argument));
        seconds[*count] = bench_now() - start;
        total += seconds[*count];
    }
    return STATUS_OK;
}

static enum status measure_swept(const struct bench_options *options, bench_function *function,
                                 void *argument, double *seconds, struct bench_timing *timing) {
    struct sweep sweep;
    int count = 0;
    TRY(sweep_create(&sweep, options->flush_cache));
    enum status status = measure(options, function, argument, &sweep, seconds, &count);
    free(sweep.memory);
    TRY(status);
    *timing = bench_summarise(seconds, count);
    return STATUS_OK;
}

enum status bench_run(const struct bench_options *options, bench_function *function, void *argument,
                      struct bench_timing *timing) {
    *timing = (struct bench_timing){0};
    if (options->warmup < 0 || options->min_runs < 1 || options->max_runs < options->min_runs) {
        return STATUS_INVALID_ARGUMENT;
    }
    for (int i = 0; i < options->warmup; i++) {
        TRY(function(argument));
    }
    double *seconds = malloc((size_t)options->max_runs * sizeof *seconds);
    enum status status = seconds != NULL
                             ? measure_swept(options, function, argument, seconds, timing)
                             : STATUS_OUT_OF_MEMORY;
    free(seconds);
    return status;
}
