/**
 * @file occupancy.h
 * @brief How many blocks of a kernel fit on a multiprocessor at the same time.
 *
 * The least of: blocks that the hardware takes; its threads over the block's,
 * in whole warps; its shared memory over the block's (static + dynamic +
 * reserved, rounded up to the unit); its registers over the block's (each
 * warp's registers rounded up to 256, a quarter of the file a scheduler).
 * Registers are those of the machine code, where the program has some, or an estimate.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_KERNEL_OCCUPANCY_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_KERNEL_OCCUPANCY_H_

#include <stddef.h>

#include "common/simt/runtime/gpu/gpu.h"
#include "common/simt/runtime/kernel/modules.h"

/**
 * @param kernel  with its info filled in
 * @param threads a block, at least 1
 * @param dynamic bytes of dynamic shared memory
 * @return blocks; 0 when not even one fits
 */
int occupancy_blocks(const struct simt_gpu *gpu, const struct kernel *kernel, int threads,
                     size_t dynamic);

/** Registers of a multiprocessor. */
enum { OCCUPANCY_REGISTERS = 65536 };

#endif
