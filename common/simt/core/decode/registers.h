/**
 * @file registers.h
 * @brief How many 32-bit registers ptxas would give a thread, judged from the PTX alone.
 *
 * PTX has as many registers as it likes. What a thread needs at once is found
 * by liveness over the basic blocks (64-bit registers count twice, predicates
 * not). ptxas adds a few, and moves loads up, away from their first use, which
 * keeps more values alive; but not so far that fewer warps would fit.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DECODE_REGISTERS_H_
#define WARPBOOK_COMMON_SIMT_CORE_DECODE_REGISTERS_H_

#include "common/base/status.h"
#include "common/simt/core/code.h"

/** Sets code->estimated_registers, for all functions but its own callees.
 *  @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_estimate_registers(struct simt_code *code);

#endif
