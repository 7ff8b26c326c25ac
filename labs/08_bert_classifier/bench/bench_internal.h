/**
 * @file bench_internal.h
 * @brief What the parts of lab 08's bench share: texts and cells, lanes, the stages' summary.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_BENCH_BENCH_INTERNAL_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_BENCH_BENCH_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/bench/ladder/ladder_bench.h"
#include "common/programs/classifier/classifier.h"
#include "common/programs/classifier/classifier_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BENCH_LABELS = 2, BENCH_MOST_BATCH = 32 };

/** Layouts of a batch. */
enum layout { DENSE, PADDED, PACKED, LAYOUTS };

/** The command line. */
struct options {
    const char *stage, *shape, *dtype; /**< NULL: all; the shape by device; all that there are */
    int batch, tokens, threads, seconds;
    bool lengths;
};

/** One row of the tables: B texts of at most T tokens. */
struct cell {
    size_t B, T;
    struct classifier_text dense[BENCH_MOST_BATCH], texts[BENCH_MOST_BATCH]; /**< ids: bench's */
    float logits[LAYOUTS][BENCH_MOST_BATCH * BENCH_LABELS]; /**< of the first stage that ran it */
    const char *first[LAYOUTS];                             /**< that stage; NULL: none yet */
};

/** The summary's figures of one stage. */
struct summary_row {
    const struct classifier_stage *stage;
    enum nn_dtype dtype;
    double ms, packed_ms, launches, difference; /**< NAN: unknown */
    char no_launches[128];                      /**< why launches are unknown */
};

struct bench {
    const struct ladder_setup *driver; /**< its options are this struct */
    struct options options;
    const struct classifier_stages *stages;
    struct classifier_model model;
    int32_t *ids; /**< (longest T): the tokens of all texts */
    struct cell *cells;
    size_t count;
    const struct cell *shown; /**< the summary's */
    struct summary_row *rows; /**< (3 * stages->count) */
    size_t rows_count;
    double begun; /**< bench_now() */
};

/** One stage in one dtype, while it is timed. */
struct lane {
    const struct classifier_stage *stage;
    enum nn_dtype dtype;
    double (*now)(void);
    bool modelled;
    double spent;       /**< seconds in slow batches */
    double pace;        /**< seconds a FLOP of the last batch; 0: none yet */
    size_t pace_tokens; /**< T of that batch */
    const struct engine *engine;
    struct classifier classifier;
};

/** A cell's figures; NAN: not run. */
struct cell_result {
    double ms[LAYOUTS];
    struct bench_timing dense; /**< of the dense layout, if it ran */
    double difference;         /**< largest of the layouts; NAN: nothing to compare with */
};

/** Creates the cells and random tokens, and chooses the summary's cell. */
MUST_CHECK enum status bench_make_cells(struct bench *b, struct error *error);

/** Prints the reviews' lengths, a line each. */
void bench_print_lengths(void);

/**
 * @brief Times a cell in all layouts, compares logits, and appends records.
 *
 * A batch that would take too long, by the lane's pace, is skipped.
 */
MUST_CHECK enum status bench_measure_cell(const struct bench *b, struct lane *lane,
                                          struct cell *cell, struct cell_result *result,
                                          struct error *error);

/** Appends a record of the launches of one layer, beside the summary's cell's time. */
MUST_CHECK enum status bench_record_launches(const struct bench *b, const struct lane *lane,
                                             const struct cell_result *result, double launches,
                                             struct error *error);

/** Counts the launches of one layer on the summary's cell, dense, into @p row. */
MUST_CHECK enum status bench_count_launches(const struct bench *b, const struct lane *lane,
                                            struct summary_row *row, struct error *error);

/** Prints the summary. */
void bench_print_summary(const struct bench *b);

#ifdef __cplusplus
}
#endif

#endif
