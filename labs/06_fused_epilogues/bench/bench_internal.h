/**
 * @file bench_internal.h
 * @brief The part of lab 06's bench that needs no GPU.
 */
#ifndef WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_BENCH_INTERNAL_H_
#define WARPBOOK_LABS_06_FUSED_EPILOGUES_BENCH_BENCH_INTERNAL_H_

#include "common/bench/ladder/ladder_bench.h"

/** Prints how errors grow over layers when activations are stored in fp16; on the host. */
MUST_CHECK enum status bench_error(const struct ladder_setup *setup, struct error *error);

#endif
