/**
 * @file bench_internal.h
 * @brief The parts of lab 05's bench beside the ladder.
 */
#ifndef WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_BENCH_INTERNAL_H_
#define WARPBOOK_LABS_05_LAYERNORM_SOFTMAX_BENCH_BENCH_INTERNAL_H_

#include "common/bench/ladder/ladder_bench.h"

/** The last step in BERT and Llama2, against the first. */
MUST_CHECK enum status bench_models(const struct ladder_setup *setup, struct error *error);

/** Prints how far three ways of computing a variance in fp32 are off, from small means to large. */
void bench_stability(void);

#endif
