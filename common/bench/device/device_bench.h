/**
 * @file device_bench.h
 * @brief Timing of work on the GPU, as bench_run() times the CPU's.
 *
 * On a GPU: warm-up until its clock has risen, then each run for itself
 * between two events, median of many. On simt: one run gives the modelled
 * time, which is the same every time.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_BENCH_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_BENCH_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** On simt only `warmup` (0, or else once) and `flush_l2` are looked at. */
struct device_bench_options {
    int warmup;            /**< runs before the first that counts, at least 0 */
    double warmup_seconds; /**< go on warming up until this much time has passed */
    int min_runs;          /**< at least 1 */
    int max_runs;          /**< at least min_runs */
    double min_seconds;    /**< go on past min_runs until this much is measured */
    bool flush_l2;         /**< write twice the L2 cache's size before each run */
};

/** @return warm-up 3 and 0.05 s, 10 to 1000 runs, 0.2 s, no flush. */
struct device_bench_options device_bench_defaults(void);

/**
 * @return for a probe of a limit, which takes less than a millisecond, and whose fastest run
 * counts: warm-up 3 and 0.04 s, 10 to 1000 runs, 0.03 s, no flush
 */
struct device_bench_options device_bench_probe(void);

/** Puts the work on the stream; need not wait for it. */
typedef enum status device_bench_function(void *argument, device_stream stream,
                                          struct error *error);

/**
 * @brief Times @p function. device_open() must have succeeded.
 *
 * The clock between the events starts when the GPU gets to the work, not when
 * the host calls; a function that waits for the GPU is timed with its waits.
 *
 * @param timing receives also the GPU's clock, read just before each run
 * @return STATUS_OK; the first failure of @p function or of the device;
 *         STATUS_INVALID_ARGUMENT
 */
MUST_CHECK enum status device_bench_run(const struct device_bench_options *options,
                                        device_bench_function *function, void *argument,
                                        device_stream stream, struct bench_timing *timing,
                                        struct error *error);

/** One run at a time, for who looks at another clock meanwhile: what it needs on the device. */
struct device_stopwatch;

/**
 * @brief Makes one. device_open() must have succeeded.
 * @param flush_l2 write twice the L2 cache's size before each run
 * @param watch    receives what device_stopwatch_free() frees, or NULL
 */
MUST_CHECK enum status device_stopwatch_create(struct device_stopwatch **watch, bool flush_l2,
                                               device_stream stream, struct error *error);
void device_stopwatch_free(struct device_stopwatch *watch);

/** Does what comes before a run, and waits for it. */
MUST_CHECK enum status device_stopwatch_prepare(struct device_stopwatch *watch,
                                                struct error *error);

/** One run, as device_bench_run() makes it; waits for it. @param ms receives its milliseconds */
MUST_CHECK enum status device_stopwatch_run(struct device_stopwatch *watch,
                                            device_bench_function *function, void *argument,
                                            double *ms, struct error *error);

/**
 * @brief Waits until the GPU works for nobody else: until three launches in a row took no more than
 *        half as long again as the fastest that this stopwatch has seen.
 * @param seconds at most
 * @param ms      receives how long that took
 */
MUST_CHECK enum status device_stopwatch_settle(struct device_stopwatch *watch, double seconds,
                                               double *ms, struct error *error);

/** @return what records say of the GPU; lives as long as @p properties. */
struct bench_gpu bench_gpu_of(const struct device_properties *properties);

/**
 * @return head line of every table of GPU times, in @p text: "measured on NVIDIA H200 (1980 MHz,
 *         driver for CUDA 13.0)" or "modelled for NVIDIA H200 (simt:h200): no GPU was timed"
 */
const char *device_bench_headline(const struct device_properties *properties, char *text,
                                  size_t size);

/** @return "measured", or "modelled" on simt: what a table's title says of its times. */
const char *device_bench_verb(const struct device_properties *properties);

#ifdef __cplusplus
}
#endif

#endif
