/**
 * @file undo.h
 * @brief Memory as it was before a launch, so that the launch can be run again.
 *
 * A page is saved before the first store into it; several host threads may do
 * so at the same time. What was written so far is saved with the bytes.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_SPACE_UNDO_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_SPACE_UNDO_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/memory/space/memory.h"

struct simt_undo;

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY. @p memory must outlive it. */
MUST_CHECK enum status simt_undo_create(struct simt_undo **undo, struct simt_memory *memory);

void simt_undo_free(struct simt_undo *undo);

/**
 * @brief Saves the pages of some bytes, unless they are saved already.
 * @param address of device memory, or of host memory that kernels may use
 */
void simt_undo_save(struct simt_undo *undo, uint64_t address, size_t bytes);

/** Brings back what was saved. @return STATUS_OK; STATUS_OUT_OF_MEMORY: a page could not be saved,
 *  and nothing is brought back */
MUST_CHECK enum status simt_undo_roll_back(struct simt_undo *undo);

/** Discards the saved pages: the launch is valid. */
void simt_undo_commit(struct simt_undo *undo);

#endif
