/**
 * @file model_bench.h
 * @brief Times one model of random weights on several engines and compares their logits: the
 *        end-to-end effect of a lab's work.
 */
#ifndef WARPBOOK_COMMON_BENCH_MODELS_MODEL_BENCH_H_
#define WARPBOOK_COMMON_BENCH_MODELS_MODEL_BENCH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/device/device.h"
#include "common/models/bert.h"
#include "common/models/engine.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MODEL_BENCH_LOGITS = 1024, MODEL_BENCH_SENTENCES = 16, MODEL_BENCH_LABELS = 2 };

/** One row of a table: the times of the runs, and the logits of the last run. */
struct model_bench_run {
    const char *name; /**< in the table */
    struct bench_timing timing;
    float logits[MODEL_BENCH_LOGITS]; /**< the model's logits; the rest is not used */
};

/** Runs the model once on the GPU and waits for it. @param logits host, MODEL_BENCH_LOGITS */
typedef enum status model_bench_function(void *argument, float *logits);

/**
 * @brief Times a model on the device's clock: real time on a GPU, modelled time on simt.
 *
 * On a GPU: two runs to warm up, then 9 timed runs, or 3 when @p quick. On simt: one run, as
 * modelled time does not vary.
 *
 * @param run receives timing and logits; its name is kept
 * @return STATUS_OK or the first failure of @p function
 */
MUST_CHECK enum status model_bench_time(const struct device_properties *gpu, bool quick,
                                        model_bench_function *function, void *argument,
                                        struct model_bench_run *run);

/** @return BERT-base with 1000 words; if @p small: C 256, one layer, T 32, as simt needs it. */
struct bert_config model_bench_bert_config(bool small);

/** Random weights and MODEL_BENCH_SENTENCES sentences of T random words, always the same. Host. */
struct model_bench_bert {
    struct bert_random random;
    int32_t *ids; /**< (sentences, T); input points to them */
    struct bert_input input;
    char title[160]; /**< head line of a table: sizes of the model and of the batch */
    char shape[96];  /**< the sizes as records show them: "BERT C768 L12, 16x128 tokens" */
};

/** Draws weights and sentences. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status model_bench_bert_create(struct model_bench_bert *b,
                                               const struct bert_config *config,
                                               struct error *error);

/** Frees; a zero-initialised one is allowed. */
void model_bench_bert_free(struct model_bench_bert *b);

/** Times a BERT of these weights on @p engine. @param input the batch: B, T, ids */
MUST_CHECK enum status model_bench_time_bert(const struct device_properties *gpu, bool quick,
                                             const struct bert_random *random,
                                             const struct bert_input *input, struct engine *engine,
                                             struct model_bench_run *run, struct error *error);

/** A table of runs: its layout, and the fields of the records beside the times. */
struct model_bench_table {
    const char *lab, *subject; /**< as struct bench_record */
    const char *op;            /**< "bert_batch" */
    const char *shape;         /**< "BERT C768 L12, 16x128 tokens" */
    const char *figure;        /**< "sentences_per_second" */
    double units;              /**< sentences, or tokens, of one run */
    const char *dtype;         /**< NULL: "fp32" */
    enum nn_dtype activations; /**< 16 bits: logits may differ by logits_tolerance() */
    double flops;              /**< of one run; 0: not given */
    size_t logits;             /**< at most MODEL_BENCH_LOGITS */
    int width;                 /**< of the first column */
    int digits;                /**< after the point, of the speed relative to the first row */
};

/**
 * @brief Compares a row's logits with the first row's, and appends its record.
 * @param stage of the record
 * @param first the row to compare with; may be @p run
 * @return STATUS_MISMATCH, naming both rows, when logits differ by 1e-3 of the largest or more,
 * with 16-bit activations by more than logits_tolerance(); then no record is written
 */
MUST_CHECK enum status model_bench_record(const struct model_bench_table *table,
                                          const struct device_properties *gpu, const char *stage,
                                          const struct model_bench_run *run,
                                          const struct model_bench_run *first, struct error *error);

/** Prints a row (name, ms, units a second, speed relative to the first row), and records it. */
MUST_CHECK enum status model_bench_report(const struct model_bench_table *table,
                                          const struct device_properties *gpu, const char *stage,
                                          const struct model_bench_run *run,
                                          const struct model_bench_run *first, struct error *error);

/** Engines to compare in one model, and how their tables look. */
struct model_bench_engines {
    const char *lab, *subject; /**< as struct bench_record */
    const char *what;          /**< that differs, title of the first column: "matmul" */
    enum nn_dtype dtype;       /**< of the models' activations; NN_F32 is 0 */
    int width;                 /**< of the first column */
    int digits;                /**< after the point, of the speed relative to the first row */
    size_t count;              /**< at least 1 */
    const char *(*name)(size_t i);
    enum status (*create)(struct engine *engine, size_t i, struct error *error);
};

/** Times the model on @p engine, see model_bench_time(). */
typedef enum status model_bench_engine_function(void *argument, struct engine *engine,
                                                struct model_bench_run *run, struct error *error);

/**
 * @brief Prints a table of one model on each engine, and appends the records.
 * @param table what records say of the model; lab, subject, width and digits are the engines'
 * @param title line above the table, without "measured" or "modelled"
 * @param unit  "sentences/s"
 * @return the first failure; STATUS_MISMATCH as model_bench_record()
 */
MUST_CHECK enum status model_bench_compare(const struct model_bench_engines *engines,
                                           const struct model_bench_table *table,
                                           const struct device_properties *gpu, const char *title,
                                           const char *unit, model_bench_engine_function *time,
                                           void *argument, struct error *error);

/**
 * @brief The same for a BERT of model_bench_bert_config().
 * @param T tokens of each sentence; 0: the config's
 */
MUST_CHECK enum status model_bench_compare_bert(const struct model_bench_engines *engines,
                                                const struct device_properties *gpu, bool quick,
                                                size_t T, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
