/**
 * @file lane_access.h
 * @brief Addresses and accesses of instructions that move tiles: ldmatrix, wmma.load, cp.async,
 *        mbarrier.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_OPS_LANE_ACCESS_H_
#define WARPBOOK_COMMON_SIMT_CORE_OPS_LANE_ACCESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/access/access.h"

/** @return true when operand @p n is an address in a 32-bit register. */
bool simt_lane_address_is_narrow(const struct simt_decoding *decoding, size_t n);

/** @return the space that a modifier names (shared::cta too); PTX_GENERIC: none does. */
enum ptx_space simt_lane_space(const struct ptx_instruction *source);

/** Reads the addresses of all lanes. @param row offset of the base's row */
void simt_lane_addresses(const struct simt_warp *warp, uint32_t row, bool narrow, int64_t offset,
                         uint64_t addresses[SIMT_LANES]);

/**
 * @brief simt_access_resolve() for some lanes, whether they are active or not.
 *
 * A matrix is moved by the warp as a whole: which lane reads which part is not
 * for the program to see.
 */
bool simt_lane_resolve(struct simt_warp *warp, const struct simt_instruction *instruction,
                       const struct simt_access *access, uint32_t lanes,
                       unsigned char *host[SIMT_LANES]);

/**
 * @brief Active lanes wait for their asynchronous copies, of all groups but their last `pending`:
 *        what has come counts as written now. With full checks; else they have come at once.
 * @param pending or SIMT_COPIES_ALL
 */
void simt_lane_wait_for_copies(struct simt_warp *warp, uint32_t pending);

/** @return true when all 32 lanes are active; else the launch fails, with a word on why. */
bool simt_lane_require_all(struct simt_warp *warp, const struct simt_instruction *instruction);

/** Makes an instruction one that all lanes of the warp run together; detail[0] is taken. */
void simt_lane_synchronise(struct simt_instruction *instruction);

#endif
