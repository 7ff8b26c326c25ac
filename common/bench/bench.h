/**
 * @file bench.h
 * @brief The timer and the record format of every bench.
 *
 * A bench warms up, then times each run separately and reports median, minimum
 * and maximum. One record is one JSON object on one line of
 * results/bench.jsonl; notebooks and reports read nothing else.
 */
#ifndef WARPBOOK_COMMON_BENCH_BENCH_H_
#define WARPBOOK_COMMON_BENCH_BENCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Version of the record format. It rises when a field changes its meaning or is removed. It does
 * not rise for a new field: readers treat a missing field as null, and a missing
 * `device.modelled` as false.
 */
enum { BENCH_SCHEMA = 1 };

/** @return seconds of a clock that never goes back. */
double bench_now(void);

struct bench_options {
    int warmup;         /**< runs that are not timed, at least 0 */
    int min_runs;       /**< at least 1 */
    int max_runs;       /**< at least min_runs */
    double min_seconds; /**< runs continue past min_runs until their times add up to this */
    bool flush_cache;   /**< sweep a buffer larger than the last-level cache before each run */
};

/** @return warm-up 2, 5 to 1000 runs, 0.2 s, no flush. */
struct bench_options bench_defaults(void);

/** Times of single runs. */
struct bench_timing {
    double median_ms, min_ms, max_ms;
    int runs;
    double clock_mhz; /**< the GPU's clock during the measurement; 0: not known, or a CPU */
};

typedef enum status bench_function(void *argument);

/**
 * @brief Times @p function.
 * @return STATUS_OK, the first failure of @p function, or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bench_run(const struct bench_options *options, bench_function *function,
                                 void *argument, struct bench_timing *timing);

/** @return median, minimum and maximum of @p count samples in seconds; sorts @p seconds. */
struct bench_timing bench_summarise(double *seconds, int count);

/** The GPU of a record; bench_gpu_of() in device_bench.h makes it from device_properties(). */
struct bench_gpu {
    const char *name;       /**< "NVIDIA H200", or "simt:h200" */
    bool modelled;          /**< times come from simt's model; never show them as measured */
    double mhz, memory_mhz; /**< as the driver reports them; 0: not known */
    int driver, runtime;    /**< CUDA versions, 13000 for 13.0; driver 0: simt */
};

/** One measured row. Strings that are NULL and numbers that are NAN are written as null. */
struct bench_record {
    const char *lab;             /**< "01_cpu_matmul" */
    const char *subject;         /**< "labs" or "solutions" */
    const char *stage;           /**< "v3_cache_blocked" */
    const char *op;              /**< "matmul", "decode" */
    const char *shape;           /**< "512x512x512" */
    const char *dtype;           /**< "fp32" */
    int threads;                 /**< of the CPU */
    const struct bench_gpu *gpu; /**< NULL: the CPU */
    struct bench_timing timing;
    double bytes;       /**< least bytes that must move; NAN: not given */
    double flops;       /**< NAN: not given */
    const char *peer;   /**< "OpenBLAS 0.3.21 Cooperlake", or NULL */
    double peer_ratio;  /**< speed relative to the peer, 1 = equal; NAN: no peer */
    const char *figure; /**< end-to-end figure's name: "tokens_per_second", or NULL */
    double figure_value;
};

/** @return @p name: this machine's CPU as /proc/cpuinfo names it, or "unknown CPU". */
const char *bench_cpu_name(char *name, size_t size);

/** @return CPUs this process may run on, at least 1. */
int bench_cpu_count(void);

/**
 * @brief Path of the results file: $WARPBOOK_RESULTS, else results/NAME under the workspace
 *        when started by `bazel run` ($BUILD_WORKSPACE_DIRECTORY), else results/NAME here.
 */
const char *bench_results_path(const char *name, char *path, size_t size);

/**
 * @brief The git commit that is checked out: $WARPBOOK_COMMIT, else read from the workspace's .git.
 * @return @p hash, or NULL when it cannot be found
 */
const char *bench_commit(char *hash, size_t size);

/** Appends the record, with schema, time, git commit, device and derived rates, to bench.jsonl. */
MUST_CHECK enum status bench_append(const struct bench_record *record, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
