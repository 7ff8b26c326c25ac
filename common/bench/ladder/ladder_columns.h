/**
 * @file ladder_columns.h
 * @brief One table of a ladder's bench: all steps on one shape. Private to the driver.
 */
#ifndef WARPBOOK_COMMON_BENCH_LADDER_LADDER_COLUMNS_H_
#define WARPBOOK_COMMON_BENCH_LADDER_LADDER_COLUMNS_H_

#include "common/bench/ladder/ladder_bench.h"

/**
 * @brief Measures, prints and records all steps on @p shape.
 * @param plot whether --plot, if given, is about this table
 * @return STATUS_MISMATCH, after the table, when a step is wrong; else the first failure
 */
MUST_CHECK enum status ladder_table(const struct ladder_bench *bench,
                                    const struct ladder_setup *setup,
                                    const struct ladder_shape *shape, bool plot,
                                    struct error *error);

#endif
