/**
 * @file parts.h
 * @brief What the files of lab 02's bench share.
 */
#ifndef WARPBOOK_LABS_02_GPU_MATMUL_BENCH_PARTS_H_
#define WARPBOOK_LABS_02_GPU_MATMUL_BENCH_PARTS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/bench/roofline.h"
#include "common/device/device.h"

/** The command line, and the GPU. */
struct bench_setup {
    bool quick;
    struct device_properties properties;
    struct roofline roofs;
};

/**
 * @brief Prints the table of all steps of the ladder, each size for itself, and appends records.
 * @return STATUS_MISMATCH when a step gives a wrong result, after the tables are complete
 */
MUST_CHECK enum status bench_ladder(const struct bench_setup *setup, struct error *error);

#endif
