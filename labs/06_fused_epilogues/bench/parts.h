/**
 * @file parts.h
 * @brief What the files of lab 06's bench share.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_PARTS_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_PARTS_H_

#include <stdbool.h>

#include "common/bench/device/device_bench.h"
#include "common/device/device.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "labs/06_fused_epilogues/problem/oracle.h"

/** The command line, and the GPU. */
struct bench_setup {
    bool quick;
    bool all;                        /**< also steps that take long */
    const struct fused_shape *shape; /**< NULL: each operation's own */
    int op;                          /**< of enum fused_op; -1: all */
    const char *step;                /**< the only one to measure, or NULL */
    struct device_properties gpu;
};

/** @return STATUS_INVALID_ARGUMENT for what is not "M,N,K", or what the contract refuses. */
MUST_CHECK enum status bench_parse_shape(const char *text, struct fused_shape *shape,
                                         struct error *error);

/** @return STATUS_INVALID_ARGUMENT, naming what there is, for another name of an operation. */
MUST_CHECK enum status bench_parse_op(const char *text, int *op, struct error *error);

/** @return STATUS_INVALID_ARGUMENT, naming what there is, when the ladder has no such step. */
MUST_CHECK enum status bench_check_step(const char *name, struct error *error);

/**
 * @brief Is there room for a shape, and on simt the patience? To be asked before memory is taken.
 * @return STATUS_OUT_OF_MEMORY with the bytes it needs and the bytes there are;
 *         STATUS_INVALID_ARGUMENT for a shape that simt would take very long for
 */
MUST_CHECK enum status bench_check_shape(const struct bench_setup *setup,
                                         const struct fused_shape *shape, struct error *error);

/**
 * @brief Prints a table of all steps for each operation, appends the records.
 * @return STATUS_MISMATCH when a step gives a wrong result, after the tables are complete
 */
MUST_CHECK enum status bench_ladder(const struct bench_setup *setup, struct error *error);

/** Prints what BERT gains: nothing fused, one lone add fused, everything; appends the records. */
MUST_CHECK enum status bench_model(const struct bench_setup *setup, struct error *error);

/** Prints how errors grow over layers when activations are stored in fp16; on the host. */
MUST_CHECK enum status bench_error(const struct bench_setup *setup, struct error *error);

#endif
