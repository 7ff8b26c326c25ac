/**
 * @file parts.h
 * @brief What the files of lab 04's bench share.
 */
#ifndef WARPBOOK_LABS_04_SGEMM_BENCH_PARTS_H_
#define WARPBOOK_LABS_04_SGEMM_BENCH_PARTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/bench/roofline.h"
#include "common/device/cublas.h"
#include "common/device/device.h"
#include "labs/04_sgemm/sgemm.h"

struct bench_shape {
    size_t M, N, K;
};

/** The command line, and the GPU. */
struct bench_setup {
    bool quick;
    bool all;                        /**< also steps that take long */
    const struct bench_shape *shape; /**< NULL: the default list */
    enum sgemm_form form;
    const char *step; /**< the only one to measure, or NULL */
    const char *plot; /**< SVG file of the roofline, or NULL */
    struct device_properties gpu;
    struct roofline roofs;
    struct cublas *cublas; /**< NULL where it is not installed */
    char peer[64];         /**< its name */
};

/**
 * @brief Reads "M,N,K".
 * @return STATUS_OK, or STATUS_INVALID_ARGUMENT for anything else, also above SGEMM_MAX_SIZE
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

/** Prints what the last step does for a BERT, against the first, and appends the records. */
MUST_CHECK enum status bench_model(const struct bench_setup *setup, struct error *error);

#endif
