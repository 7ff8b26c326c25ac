/**
 * @file bench_internal.h
 * @brief Shared by the files of lab 10's bench: options, the model, a stage's figures.
 */
#ifndef WARPBOOK_LABS_10_LLAMA2_DECODER_BENCH_BENCH_INTERNAL_H_
#define WARPBOOK_LABS_10_LLAMA2_DECODER_BENCH_BENCH_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bench/ladder/ladder_bench.h"
#include "common/bench/models/stored_model.h"
#include "common/programs/decoder/decoder_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The command line. */
struct options {
    const char *stage, *shape, *checkpoint, *dtype; /**< NULL: what the bench chooses */
    int context, steps, prompt, threads;            /**< 0: what the bench chooses */
};

/** Rows of the table: decoding after a short context, and after a long one. */
enum { SHORT, LONG, CONTEXTS };

/** What all stages are asked to do. */
struct bench_plan {
    size_t prompt;            /**< tokens of the prefill, the most of one call */
    size_t steps;             /**< tokens that are decoded and timed */
    size_t context[CONTEXTS]; /**< tokens before the first of them */
    size_t contexts;          /**< 1 or 2 */
};

/**
 * Reads that are timed beside the cost of a long context, a launch each. "More": the keys and
 values of the long context beyond the short one.

 */
enum bench_read {
    READ_MORE,          /**< those alone */
    READ_WEIGHTS,       /**< the layers' matrices */
    READ_WEIGHTS_MORE,  /**< both, layer by layer */
    READ_WEIGHTS_SHORT, /**< matrices, and all keys and values of the short context */
    READ_WEIGHTS_LONG,  /**< the same of the long one */
    READS
};

/** State of the bench. */
struct bench {
    const struct ladder_setup *driver; /**< its options are this struct */
    struct options options;
    const struct decoder_stages *stages;
    double read_bytes_per_s;   /**< of the probe */
    struct stored_model model; /**< of one table */
    enum nn_dtype dtype;       /**< of the computation */
    struct bench_plan plan;
    int32_t *tokens; /**< (T) */
    float
        *reference[2]; /**< (V): logits of the first stage, after the prompt and after one token */
    float *scratch;    /**< (V) */
    const char *first; /**< that stage; NULL: none yet */
    struct bench_timing reads[READS]; /**< of this model and plan */
};

/** Figures of one stage. */
struct bench_result {
    const struct decoder_stage *stage;
    bool modelled;
    struct bench_timing prefill, decode[CONTEXTS];
    double launches;       /**< of one token, with a graph's and with copies; NAN: unknown */
    char no_launches[160]; /**< why unknown, or which ones are missing */
    double difference;     /**< of the logits from the first stage's; NAN: it is the first */
};

/** @return bytes of weights that a token reads. */
double bench_weight_bytes(const struct bench *b);

/** @return bytes of the keys and values of @p rows tokens, in all layers. */
double bench_cache_bytes(const struct bench *b, double rows);

/** @return tokens whose keys and values a timed token reads, on average. */
double bench_rows_read(const struct bench_plan *plan, size_t context);

/** Times a stage: prefill and decoding; compares logits with the first stage's. */
MUST_CHECK enum status bench_measure(struct bench *b, const struct decoder_stage *stage,
                                     struct bench_result *result, struct error *error);

/** Counts the launches of one token. */
MUST_CHECK enum status bench_count_launches(struct bench *b, const struct decoder_stage *stage,
                                            struct bench_result *result, struct error *error);

/** Prints the table's head, a stage's rows, and the notes below. */
void bench_print_head(const struct bench *b);
void bench_print_result(const struct bench *b, const struct bench_result *result);
void bench_print_foot(const struct bench *b, const struct bench_result *results, size_t count);

/** Appends a stage's records. */
MUST_CHECK enum status bench_record(const struct bench *b, const struct bench_result *result,
                                    struct error *error);

/** @return a record of a stage, without times and figures; it keeps the pointers. */
struct bench_record bench_record_of(const struct bench *b, const struct bench_result *result,
                                    const struct bench_gpu *gpu, const char *op, const char *shape);

/**
 * @brief The cost of the long context on a stage, beside the time of reading its keys and values:
 times bench.reads, prints a table and appends its records.
 *
 * Call it when no stage's model is on the device: its reads take as much memory as a model's layers
 and cache.

 */
MUST_CHECK enum status bench_context(struct bench *b, const struct bench_result *result,
                                     struct error *error);

#ifdef __cplusplus
}
#endif

#endif
