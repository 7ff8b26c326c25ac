/**
 * @file sync.h
 * @brief Fences and the ordering side of ld, st and atom, as the race checks see them.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_SYNC_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_SYNC_H_

#include "common/simt/memory/access/request.h"

/** The ordering flags of simt_instruction.detail[0]. */
enum { SIMT_ORDERS = (int)((unsigned)SIMT_ACQUIRES | SIMT_RELEASES_BLOCK | SIMT_RELEASES_DEVICE) };

/** Before the access: what it releases. */
void simt_sync_release(struct simt_warp *warp, uint32_t flags);

/** After the access: what it acquires. */
void simt_sync_acquire(struct simt_warp *warp, uint32_t flags);

/** @return the ordering flags that an instruction's modifiers stand for; fences too. */
uint32_t simt_sync_flags(const struct ptx_instruction *source);

#endif
