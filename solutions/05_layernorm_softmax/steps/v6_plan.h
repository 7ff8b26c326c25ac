/**
 * @file v6_plan.h
 * @brief v6: what its files share on the host.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_PLAN_H_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_PLAN_H_

#include <stddef.h>

#include "solutions/05_layernorm_softmax/steps/ladder.h"

/* Threads of a block whose warps work for themselves. */
enum { ROWS_LANES_BLOCK = 64 };

/* Threads of a block that has a row in registers, at most, and those a multiprocessor then holds:
 * 65,536 registers, 32 each in fp32, 40 in 16-bit types. */
enum { ROWS_MOST_THREADS_32 = 1024, ROWS_MOST_THREADS_16 = 512 };
enum { ROWS_THREADS_EACH_32 = 2048, ROWS_THREADS_EACH_16 = 1536 };

template <typename T>
inline constexpr int ROWS_MOST_THREADS = sizeof(T) == 4 ? ROWS_MOST_THREADS_32
                                                        : ROWS_MOST_THREADS_16;
template <typename T>
inline constexpr int ROWS_THREADS_EACH = sizeof(T) == 4 ? ROWS_THREADS_EACH_32
                                                        : ROWS_THREADS_EACH_16;

/* Threads of blocks with rows in shared memory that a multiprocessor holds, with 64 registers. */
enum { ROWS_SHARED_THREADS_EACH = 1024 };

/** Launches a plan; each type's in its own file. */
void rows_v6_fp32(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream);
void rows_v6_fp16(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream);
void rows_v6_bf16(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                  device_stream stream);

/** @return how many blocks with this shared memory and these threads the GPU holds at once. */
size_t rows_v6_blocks_at_once(int shared_bytes, int threads);

#endif
