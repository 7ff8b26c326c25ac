/**
 * @file pattern.h
 * @brief The pattern of the lanes' addresses, and the sectors and wavefronts it takes.
 *
 * Most instructions repeat the same pattern with another start: its cost and
 * its extremes are worked out once and remembered.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_PATTERN_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_PATTERN_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/memory/access/access.h"
#include "common/simt/memory/race/word_map.h"

/** What a pattern's cost is: nothing, sectors, wavefronts, or sectors of interleaved words. */
enum simt_cost { SIMT_COST_NONE, SIMT_COST_SECTORS, SIMT_COST_WAVEFRONTS, SIMT_COST_LOCAL };

enum simt_shape {
    SIMT_SHAPE_OTHER,
    SIMT_SHAPE_CONTIGUOUS, /**< all 32 lanes, each directly after the previous one */
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
    int32_t sectors[SIMT_LANES];  /**< (cost): which, from that of the first address; of global
                                       requests only */
    uint32_t least;               /**< the same if the addresses lay side by side */
    enum simt_shape shape;
    uint32_t site;    /**< of the instruction */
    bool listed;      /**< among those that were used since they were counted last */
    uint64_t uses[4]; /**< requests since it was built, by sector of the first address in its line:
                           everything that is counted follows from these */
    bool has_words;   /**< `words` are those of this pattern */
    struct simt_word_map *words; /**< full checks: set when they are asked for */
};

enum { SIMT_PATTERN_SLOTS = 512, SIMT_EXTENT_SLOTS = 64 };

/** A map of words that patterns use in turn. */
struct simt_words_place {
    struct simt_word_map map;
    struct simt_words_place *next; /**< while no pattern uses it */
};

struct simt_access_cache {
    struct simt_pattern patterns[SIMT_PATTERN_SLOTS];
    struct simt_words_place places[SIMT_PATTERN_SLOTS]; /**< the first ones */
    struct simt_words_place *free;                      /**< nobody needs these */
    struct simt_words_place *waiting; /**< reads of these were put off, and no pattern uses them */
    struct simt_words_chunk *chunks;  /**< memory for more */
    uint32_t chunk_count;
    struct simt_extent extents[SIMT_EXTENT_SLOTS];
    uint16_t used[SIMT_PATTERN_SLOTS]; /**< slots used since they were counted, `used_count` */
    uint32_t used_count;
};

/** Everything but the relative addresses and the site, in one number. */
struct simt_pattern_key {
    uint32_t mask;
    uint32_t bytes; /**< of one lane, 1 to 32 */
    enum simt_cost cost;
    enum simt_access_kind kind;
    bool part;       /**< counted as a request already: the rest of one that was split */
    uint32_t phase;  /**< first address modulo a sector or a bank */
    uint32_t joined; /**< of the instruction: bytes that count instead, 0, or SIMT_JOINED_RIDER */
};

static inline uint64_t simt_pattern_pack(const struct simt_pattern_key *key) {
    return (uint64_t)key->mask | (uint64_t)key->bytes << 32 | (uint64_t)key->cost << 40 |
           (uint64_t)key->kind << 44 | (uint64_t)key->part << 47 | (uint64_t)key->phase << 48 |
           (uint64_t)key->joined << 56;
}

static inline struct simt_pattern_key simt_pattern_unpack(uint64_t packed) {
    return (struct simt_pattern_key){.mask = (uint32_t)packed,
                                     .bytes = (uint32_t)(packed >> 32) & 0xff,
                                     .cost = (enum simt_cost)(packed >> 40 & 0xf),
                                     .kind = (enum simt_access_kind)(packed >> 44 & 7),
                                     .part = (packed >> 47 & 1) != 0,
                                     .phase = (uint32_t)(packed >> 48) & 0xff,
                                     .joined = (uint32_t)(packed >> 56)};
}

/** Works a pattern out; `key`, `site` and `relative` are set. */
void simt_pattern_build(struct simt_pattern *pattern);

/** @return how many aligned pieces of 128 bytes the lanes touch when the first address lies
 *  @p phase bytes behind the start of one. */
uint32_t simt_pattern_lines(const struct simt_pattern *pattern, uint32_t phase);

/** Counts the uses of a pattern, and forgets them. @param sites by number, or NULL */
void simt_pattern_tally(struct simt_pattern *pattern, struct simt_counters *counters,
                        struct simt_site *sites);

/** @return one lane for each different address: the lowest. */
uint32_t simt_pattern_leaders(struct simt_pattern *pattern);

#endif
