/**
 * @file decode_bench.h
 * @brief Stages side by side: Llama2's decode speed on several engines, and what their copies cost.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_DECODE_BENCH_H_
#define WARPBOOK_COMMON_BENCH_MODELS_DECODE_BENCH_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/checkpoints/llama2/llama2c.h"
#include "common/device/device.h"
#include "common/models/engine.h"
#include "common/models/llama2_random.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The model to decode with: a file, or random weights of a known shape. */
struct decode_model {
    const struct llama2_config *config;
    const struct llama2_weights *weights;
    char name[256]; /**< "110M shape, random weights", "stories260K.bin" */
    struct llama2c_checkpoint checkpoint;
    struct llama2_random random;
};

/** Parses "15m", "110m", "1.1b". @return STATUS_INVALID_ARGUMENT for anything else */
MUST_CHECK enum status decode_shape_parse(const char *text, enum llama2_shape *shape,
                                          struct error *error);

/** @return bytes of host memory that random weights of the shape take. */
double decode_shape_bytes(enum llama2_shape shape);

/** Opens a llama2.c checkpoint, or with @p path NULL makes random weights of @p shape. */
MUST_CHECK enum status decode_model_open(struct decode_model *model, const char *path,
                                         enum llama2_shape shape, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void decode_model_close(struct decode_model *model);

/** One stage. The first block is the caller's, the second is filled. */
struct decode_stage {
    const char *name; /**< as the table shows it: "lab 01, 8 threads" */
    const struct engine *engine;
    int threads;    /**< of the CPU */
    bool on_device; /**< its time is the device's clock: measured on a GPU, modelled on simt */

    struct bench_timing timing; /**< of one token, nothing traced */
    double copy_ms, alloc_ms;   /**< of one token, traced: see device_trace() */
    double traced_ms;           /**< of the same traced token, all of it */
    double bytes_to_device, bytes_to_host, allocations; /**< for one token */
    float *logits;                                      /**< (V), freed by decode_bench() */
};

/** What all rows of a table share. */
struct decode_bench {
    const char *lab, *subject;                  /**< of the records */
    const struct device_properties *properties; /**< of the GPU, or simt's */
    size_t steps;                               /**< tokens to decode, at least 1 */
};

/**
 * @brief Measures all stages on one model, prints the tables, appends the records.
 *
 * Logits of each stage are compared with the first one's.
 *
 * @return STATUS_MISMATCH when they differ
 */
MUST_CHECK enum status decode_bench(const struct decode_bench *bench,
                                    const struct decode_model *model, struct decode_stage *stages,
                                    size_t count, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
