/**
 * @file cost.h
 * @brief What a PTX instruction becomes on the GPU: how many machine instructions, how long
 * until its result is there.
 *
 * PTX is not machine code: a move between registers vanishes, a division
 * becomes twenty instructions. The numbers are round figures seen in the
 * machine code that ptxas of nvcc 13 makes for sm_90.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DECODE_COST_H_
#define WARPBOOK_COMMON_SIMT_CORE_DECODE_COST_H_

#include "common/simt/core/code.h"

/** Sets `machine` and `latency` of every instruction; after simt_join_accesses(). */
void simt_set_costs(struct simt_code *code);

#endif
