/**
 * @file bench_internal.h
 * @brief Shared by the files of lab 09's bench.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_BENCH_BENCH_INTERNAL_H_
#define WARPBOOK_LABS_09_KV_CACHE_BENCH_BENCH_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/bench/ladder/ladder_bench.h"
#include "common/bench/models/decode_model.h"
#include "common/bench/models/stored_model.h"

/** The command line and the GPU, with what is chosen by them. */
struct bench_setup {
    const struct ladder_setup *driver;   /**< its options are this struct */
    const char *shape_text, *dtype_text; /**< --shape, or NULL; --dtype */
    enum nn_dtype dtype;                 /**< of stage 09; the stages before it compute in fp32 */
    struct llama2_config config;         /**< of the model */
    char shape[64];                      /**< "110M shape" */
    struct llama2_config products; /**< sizes of the timed operators; on simt they can be larger */
    char products_shape[64];
};

/** A stage of the course that decodes. */
struct bench_stage {
    const char *name;
    bool stored; /**< uses stored weights, in setup->dtype; else fp32 */
    enum status (*create)(struct engine *engine, struct error *error);
};

/** A model on a stage. */
struct bench_lane {
    struct engine engine;
    struct llama2 *llama2;
};

/** @return the stages 03, 04, 07 and 09 in this order. */
const struct bench_stage *bench_stages(void);
enum { STAGE_03, STAGE_04, STAGE_07, STAGE_09 };

/** Creates the model on a stage, for up to @p batch tokens a call. */
MUST_CHECK enum status bench_lane_open(struct bench_lane *lane, const struct bench_stage *stage,
                                       struct stored_model *model, const struct bench_setup *setup,
                                       size_t batch, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void bench_lane_close(struct bench_lane *lane);

/**
 * @brief Runs tokens and waits: @p seconds by the device's clock.
 * @param logits host, (V)
 */
MUST_CHECK enum status bench_forward(const struct bench_lane *lane, const int32_t *tokens,
                                     size_t count, size_t position, float *logits, double *seconds,
                                     struct error *error);

/** @return a record in a dtype, without times and figures; it keeps the pointers. */
struct bench_record bench_record_of(const struct bench_gpu *gpu, const char *stage, const char *op,
                                    const char *shape, enum nn_dtype dtype);

/**
 * @brief Fails with STATUS_MISMATCH, naming @p what, unless logits (V) agree: to 1e-3 of the
 *        largest in fp32, to 16 roundings more in 16 bits.
 */
MUST_CHECK enum status bench_check_logits(const struct bench_setup *setup, const float *got,
                                          const float *want, const char *what, double *difference,
                                          struct error *error);

/** Time per token against position, three ways: prints, appends the records, writes the plot. */
MUST_CHECK enum status bench_positions(const struct bench_setup *setup, struct stored_model *model,
                                       struct error *error);

/** The operators at the model's shapes: prints and appends the records. */
MUST_CHECK enum status bench_operators(const struct bench_setup *setup, struct error *error);

/** Decoding, stage by stage: prints and appends the records. */
MUST_CHECK enum status bench_decode(const struct bench_setup *setup, struct stored_model *model,
                                    struct error *error);

/** A curve: milliseconds over tokens of context. */
struct bench_curve {
    const char *name;
    const char *class; /**< CSS class of its lines in the plot */
    size_t tokens[32];
    double ms[32];
    size_t count;
};

/** Writes the curves, logarithmic both ways, as an SVG file. */
MUST_CHECK enum status bench_plot(const struct bench_setup *setup, const struct bench_curve *curves,
                                  size_t count, const char *path, struct error *error);

#endif
