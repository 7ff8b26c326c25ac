/**
 * @file pattern.h
 * @brief How the lanes' addresses lie to one another, and what the hardware does for it.
 *
 * Most instructions repeat the same pattern with another start: its cost and
 * its extremes are worked out once and remembered.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_PATTERN_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_PATTERN_H_

#include <stdint.h>

#include "common/simt/memory/access.h"

/** What a pattern's cost is: nothing, sectors, wavefronts, or sectors of interleaved words. */
enum simt_cost { SIMT_COST_NONE, SIMT_COST_SECTORS, SIMT_COST_WAVEFRONTS, SIMT_COST_LOCAL };

enum simt_shape {
    SIMT_SHAPE_OTHER,
    SIMT_SHAPE_CONTIGUOUS, /**< all 32 lanes, each right behind the one before */
    SIMT_SHAPE_SAME        /**< all active lanes at one address */
};

struct simt_pattern {
    uint64_t key;                 /**< see simt_pattern_key(); 0: empty */
    int32_t relative[SIMT_LANES]; /**< bytes from the first active lane; 0 for inactive ones */
    int32_t low, high;            /**< least and greatest of `relative` */
    uint32_t misalignment;        /**< all of `relative` or-ed */
    uint32_t leaders;             /**< see simt_pattern_leaders(); 0: not worked out yet */
    uint32_t active;              /**< number of lanes */
    uint32_t cost;                /**< sectors or wavefronts */
    uint32_t excess;              /**< wavefronts beyond what the size needs */
    enum simt_shape shape;
};

enum { SIMT_PATTERN_SLOTS = 512, SIMT_EXTENT_SLOTS = 64 };

struct simt_access_cache {
    struct simt_pattern patterns[SIMT_PATTERN_SLOTS];
    struct simt_extent extents[SIMT_EXTENT_SLOTS];
};

/** Everything but the relative addresses. @param phase first address modulo a sector or a bank */
static inline uint64_t simt_pattern_key(uint32_t mask, uint32_t bytes, enum simt_cost cost,
                                        uint32_t phase) {
    return (uint64_t)mask | (uint64_t)bytes << 32 | (uint64_t)cost << 40 | (uint64_t)phase << 48;
}

/** Works a pattern out; `key` and `relative` are set. */
void simt_pattern_build(struct simt_pattern *pattern);

/** @return one lane for each different address: the lowest. */
uint32_t simt_pattern_leaders(struct simt_pattern *pattern);

#endif
