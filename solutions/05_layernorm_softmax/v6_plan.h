/**
 * @file v6_plan.h
 * @brief v6: what its files share on the host.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_V6_PLAN_H_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_V6_PLAN_H_

#include <stddef.h>

#include "solutions/05_layernorm_softmax/ladder.h"

/** Launches a plan; each type's in its own file. */
void rows_v6_fp32(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream);
void rows_v6_fp16(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream);
void rows_v6_bf16(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream);

/** @return blocks of so much shared memory and so many threads that the GPU holds at once. */
size_t rows_v6_blocks_at_once(int shared_bytes, int threads);

#endif
