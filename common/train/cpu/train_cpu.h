/**
 * @file train_cpu.h
 * @brief Training on the CPU in fp32: every operator vectorised and on all cores.
 *
 * Each sum is formed in an order that does not depend on the number of threads, so a run gives the
 * same bits on one thread and on many, and after it is resumed. The reference (reference/) computes
 * the same in double and is what the gradients are checked against.
 */
#ifndef WARPBOOK_COMMON_TRAIN_CPU_TRAIN_CPU_H_
#define WARPBOOK_COMMON_TRAIN_CPU_TRAIN_CPU_H_

#include "common/base/status.h"
#include "common/train/train_engine.h"

/**
 * @param threads most threads of one operator, at least 1; beside other work fewer:
 * common/cpu/team.h
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status train_cpu_create(struct train_engine *engine, int threads);

#endif
