/**
 * @file decode_bench.h
 * @brief Compares stages: Llama2's decode speed on several engines, and the cost of their copies.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_DECODE_BENCH_H_
#define WARPBOOK_COMMON_BENCH_MODELS_DECODE_BENCH_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/bench/models/decode_model.h"
#include "common/device/device.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One stage. The caller sets the first block; decode_bench() fills in the second. */
struct decode_stage {
    const char *name; /**< in the table: "lab 01, 8 threads" */
    const struct engine *engine;
    int threads;    /**< of the CPU */
    bool on_device; /**< timed by the device's clock: measured on a GPU, modelled on simt */

    struct bench_timing timing; /**< of one token, without tracing */
    double copy_ms, alloc_ms;   /**< copies and allocations of one traced token; device_trace() */
    double traced_ms;           /**< the whole traced token */
    double bytes_to_device, bytes_to_host, allocations; /**< of one token */
    float *logits;                                      /**< (V), freed by decode_bench() */
};

/** Settings for all stages. */
struct decode_bench {
    const char *lab, *subject;                  /**< of the records */
    const struct device_properties *properties; /**< of the GPU, or simt's */
    size_t steps;                               /**< tokens to decode, at least 1 */
};

/**
 * @brief Measures all stages on one model, prints the tables, appends the records.
 *
 * The logits of each stage are compared with the first stage's.
 *
 * @return STATUS_OK; STATUS_MISMATCH when logits differ; the failure of a stage
 */
MUST_CHECK enum status decode_bench(const struct decode_bench *bench,
                                    const struct decode_model *model, struct decode_stage *stages,
                                    size_t count, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
