/**
 * @file parts.h
 * @brief What the files of lab 05's bench share.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_PARTS_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_PARTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/bench/roofline.h"
#include "common/device/device.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"

struct bench_shape {
    size_t rows, C;
    const char *name; /**< as a model has it, "[2, 128, 2560]", or NULL */
};

/** The command line, and the GPU. */
struct bench_setup {
    bool quick;
    bool all;                        /**< also steps that take long */
    const struct bench_shape *shape; /**< NULL: the default list */
    int op, type;                    /**< of enum rows_op and rows_type; -1: the default list */
    const char *step;                /**< the only one to measure, or NULL */
    const char *plot;                /**< SVG file of the roofline, or NULL */
    struct device_properties gpu;
    struct roofline roofs;
};

/**
 * @brief Reads "ROWS,C".
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT for anything else, also what the contract refuses
 */
MUST_CHECK enum status bench_parse_shape(const char *text, struct bench_shape *shape,
                                         struct error *error);

/**
 * @brief Is there room for a shape, and on simt the patience? To be asked before memory is taken.
 * @return STATUS_OUT_OF_MEMORY with the bytes it needs and the bytes there are;
 *         STATUS_INVALID_ARGUMENT for a shape that simt would take very long for
 */
MUST_CHECK enum status bench_check_shape(const struct bench_setup *setup,
                                         const struct bench_shape *shape, struct error *error);

/** @return STATUS_INVALID_ARGUMENT, naming what there is, when the ladder has no such step. */
MUST_CHECK enum status bench_check_step(const char *name, struct error *error);

/**
 * @brief Prints the table of all steps for every shape, appends the records, writes the picture.
 * @return STATUS_MISMATCH when a step gives a wrong result, after the tables are complete
 */
MUST_CHECK enum status bench_ladder(const struct bench_setup *setup, struct error *error);

/** Prints how far three ways of computing a variance in fp32 are off, from small means to large. */
void bench_stability(void);

/** Prints what the last step does for BERT and Llama2, against the first; appends the records. */
MUST_CHECK enum status bench_model(const struct bench_setup *setup, struct error *error);

#endif
