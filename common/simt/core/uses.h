/**
 * @file uses.h
 * @brief Which of the function's PTX registers every instruction reads and writes.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_USES_H_
#define WARPBOOK_COMMON_SIMT_CORE_USES_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/code.h"

/**
 * Of instruction n: reads are list[start[2n] .. start[2n+1]-1], writes
 * list[start[2n+1] .. start[2n+2]-1]; numbers are indices into function->registers.
 * A guard is read; so is what a guarded instruction writes, which may keep its value.
 */
struct simt_uses {
    uint32_t *start; /**< (2 * instructions + 1) */
    uint32_t *list;
};

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY; simt_uses_free() in both cases */
MUST_CHECK enum status simt_uses_find(struct simt_uses *uses, const struct simt_code *code);

void simt_uses_free(struct simt_uses *uses);

#endif
