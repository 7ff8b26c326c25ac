/**
 * @file scratch.h
 * @brief Memory that an engine keeps from one operator to the next, and which grows as needed.
 */
#ifndef WARPBOOK_COMMON_CPU_SCRATCH_H_
#define WARPBOOK_COMMON_CPU_SCRATCH_H_

#include <stddef.h>

#include "common/base/status.h"

/** Zero-initialised when empty. */
struct cpu_scratch {
    float *memory; /**< 64-byte aligned */
    size_t floats;
};

/**
 * @brief Makes room for @p count times @p floats floats. The contents are lost.
 * @return STATUS_OK, STATUS_OVERFLOW or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status cpu_scratch_reserve(struct cpu_scratch *scratch, size_t count,
                                           size_t floats);

void cpu_scratch_free(struct cpu_scratch *scratch);

#endif
