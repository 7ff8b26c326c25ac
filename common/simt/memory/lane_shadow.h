/**
 * @file lane_shadow.h
 * @brief Which lane wrote a word of shared memory: races inside a warp.
 *
 * Lanes of a warp may run apart, so what one lane stored another may read only
 * after the two have met: __syncwarp(), any other warp-wide operation, a
 * barrier. A word of 4 bytes remembers the lane that wrote it since its warp
 * met last. Lenient: parts of a word, words that several lanes stored at once,
 * and writes after reads are not watched, and one meeting of some lanes counts
 * for all of the warp.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_LANE_SHADOW_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_LANE_SHADOW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct simt_lane_shadow;

/** @return STATUS_OK or STATUS_OUT_OF_MEMORY. */
MUST_CHECK enum status simt_lane_shadow_create(struct simt_lane_shadow **shadow,
                                               size_t shared_bytes, uint32_t warps);

void simt_lane_shadow_free(struct simt_lane_shadow *shadow);

/** The lanes of one warp, or of every warp, have met. */
void simt_lane_shadow_meet(struct simt_lane_shadow *shadow, uint32_t warp);
void simt_lane_shadow_meet_all(struct simt_lane_shadow *shadow);

/**
 * @brief Remembers a store.
 * @param relative offsets of the lanes from @p offset; all are inside
 * @param bytes    of each lane
 * @param alone    no two lanes store to the same place
 */
void simt_lane_shadow_write(struct simt_lane_shadow *shadow, uint32_t warp, size_t offset,
                            const int32_t relative[32], uint32_t lanes, size_t bytes, bool alone);

/**
 * @brief Looks for a lane that reads what another one wrote since they met.
 * @param writer receives that other lane
 * @return the reading lane, or -1
 */
int simt_lane_shadow_read(const struct simt_lane_shadow *shadow, uint32_t warp, size_t offset,
                          const int32_t relative[32], uint32_t lanes, size_t bytes,
                          uint32_t *writer);

#ifdef __cplusplus
}
#endif

#endif
