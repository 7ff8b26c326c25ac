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

/* Memory to sweep between runs, so that a run finds none of its data in a cache. */
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

/* Fills seconds, at most max_runs of them; *count receives how many. */
static enum status measure(const struct bench_options *options, bench_function *function,
                           void *argument, struct sweep *sweep, double *seconds, int *count) {
    double total = 0.0;
    for (*count = 0; *count < options->max_runs; (*count)++) {
        if (*count >= options->min_runs && total >= options->min_seconds) {
            break;
        }
        sweep_run(sweep);
        double start = bench_now();
        enum status status = function(argument);
        seconds[*count] = bench_now() - start;
        total += seconds[*count];
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

enum status bench_run(const struct bench_options *options, bench_function *function, void *argument,
                      struct bench_timing *timing) {
    *timing = (struct bench_timing){0};
    if (options->warmup < 0 || options->min_runs < 1 || options->max_runs < options->min_runs) {
        return STATUS_INVALID_ARGUMENT;
    }
    for (int i = 0; i < options->warmup; i++) {
        enum status status = function(argument);
        if (status != STATUS_OK) {
            return status;
        }
    }
    struct sweep sweep;
    enum status status = sweep_create(&sweep, options->flush_cache);
    double *seconds = malloc((size_t)options->max_runs * sizeof *seconds);
    if (seconds == NULL) {
        status = STATUS_OUT_OF_MEMORY;
    }
    int count = 0;
    if (status == STATUS_OK) {
        status = measure(options, function, argument, &sweep, seconds, &count);
    }
    if (status == STATUS_OK) {
        *timing = bench_summarise(seconds, count);
    }
    free(seconds);
    free(sweep.memory);
    return status;
}
