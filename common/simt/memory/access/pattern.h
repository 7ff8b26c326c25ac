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
enum simt_cost {
    SIMT_COST_NONE,
    SIMT_COST_SECTORS,
    SIMT_COST_WAVEFRONTS,
    SIMT_COST_LOCAL,
    SIMT_COST_CONSTANT
};

enum simt_shape {
    SIMT_SHAPE_OTHER,
    SIMT_SHAPE_EIGHTS,     /**< all 32 lanes; of each eighth lane and the seven behind it each
                                directly after the previous one */
    SIMT_SHAPE_CONTIGUOUS, /**< all 32 lanes, each directly after the previous one */
    SIMT_SHAPE_SAME        /**< all active lanes at one address */
};

/** What is known of simt_pattern.words. */
enum simt_words_state {
    SIMT_WORDS_SET = 1,     /**< they are those of this pattern */
    SIMT_WORDS_WHOLE = 2,   /**< they are whole */
    SIMT_WORDS_PUT_OFF = 4, /**< a read of them may be put off */
    SIMT_WORDS_SEEN = 8     /**< a request to shared memory has been checked by them */
};

/** What most requests look at comes first, in one line of the CPU's cache. */
struct simt_pattern {
    _Alignas(64) uint64_t key; /**< see simt_pattern_pack(); 0: empty */
    uint64_t uses[4];  /**< requests since it was built, by sector of the first address in its line:
                            everything that is counted follows from these and from `lanes` */
    uint64_t lanes;    /**< that took part in these uses */
    uint32_t site;     /**< of the instruction */
    int32_t low, high; /**< least and greatest of `relative` */
    uint8_t misalignment; /**< the low bits of all of `relative` or-ed */
    uint8_t shape;        /**< enum simt_shape */
    bool listed;          /**< among those that were used since they were counted last */
    uint8_t words_state;  /**< enum simt_words_state, together */
    uint64_t base_serial; /**< a base register of this serial points where `relative` says; 0: it is
                               not known for any */
    uint64_t serial;      /**< different for every pattern that was built */
    uint32_t base_mask;   /**< the lanes for which `base_serial` holds */
    uint32_t
        quick_low; /**< of accesses to shared memory for which `base_serial` holds: the first */
    uint32_t quick_count;         /**< address may be one of so many from here on; 0: look closer */
    int32_t relative[SIMT_LANES]; /**< bytes from the first active lane; 0 for inactive ones */
    struct simt_word_map *words;  /**< full checks: set when they are asked for */
    uint32_t leaders;             /**< see simt_pattern_leaders(); 0: not worked out yet */
    uint32_t cost;                /**< sectors or wavefronts */
    uint32_t least;               /**< the same if the addresses lay side by side */
    uint8_t lines[4];             /**< of global requests, by sector of the first address in its
                                       line; 0: not worked out yet */
    int32_t sectors[SIMT_LANES];  /**< (cost): which, from that of the first address; of global
                                       requests only */
};

enum { SIMT_TWO_LANES = 3 };

enum { SIMT_PATTERN_SLOTS = 2048, SIMT_EXTENT_SLOTS = 64 };

/** A map of words that patterns use in turn. */
struct simt_words_place {
    struct simt_word_map map;
    struct simt_words_place *next; /**< while no pattern uses it */
};

/** Sectors of which a load has found all in L1. */
struct simt_found {
    uint64_t changes; /**< simt_l1_changes() since when they are there; 0: nothing is known */
    int64_t base;     /**< of the first address */
    uint32_t cost;
    int32_t sectors[SIMT_LANES]; /**< as a pattern has them */
};

enum { SIMT_FOUND_SLOTS = 64 };

struct simt_access_cache {
    struct simt_pattern patterns[SIMT_PATTERN_SLOTS];
    struct simt_words_place places[SIMT_PATTERN_SLOTS]; /**< the first ones */
    struct simt_words_place *free;                      /**< nobody needs these */
    struct simt_words_place *waiting; /**< reads of these were put off, and no pattern uses them */
    struct simt_words_place *waiting_last; /**< of these, where there are some */
    struct simt_words_chunk *chunks;       /**< memory for more */
    uint32_t chunk_count;
    uint64_t serial; /**< of the last pattern that was built */
    struct simt_extent extents[SIMT_EXTENT_SLOTS];
    struct simt_found found[SIMT_FOUND_SLOTS]; /**< by base */
    uint16_t used[SIMT_PATTERN_SLOTS]; /**< slots used since they were counted, `used_count` */
    uint32_t used_count;
    uint16_t learned[SIMT_PATTERN_SLOTS]; /**< slots that have a pattern, `learned_count` */
    uint32_t learned_count;
    struct simt_access_cache *next; /**< while no launch uses it */
};

/** A pattern is used for the first time since they were counted. */
static inline void simt_pattern_list(struct simt_access_cache *cache,
                                     struct simt_pattern *pattern) {
    pattern->listed = true;
    cache->used[cache->used_count++] = (uint16_t)(pattern - cache->patterns);
}

/** Everything but the relative addresses and the site, in one number. */
struct simt_pattern_key {
    uint32_t mask;
    uint32_t bytes; /**< of one lane, 1 to 32 */
    enum simt_cost cost;
    enum simt_access_kind kind;
    bool alike;      /**< all lanes at one address */
    bool part;       /**< counted as a request already: the rest of one that was split */
    uint32_t phase;  /**< first address modulo a sector or a bank */
    uint32_t joined; /**< of the instruction: bytes that count instead, 0, or SIMT_JOINED_RIDER */
};

static inline uint64_t simt_pattern_pack(const struct simt_pattern_key *key) {
    return (uint64_t)key->mask | (uint64_t)key->bytes << 32 | (uint64_t)key->cost << 40 |
           (uint64_t)key->alike << 43 | (uint64_t)key->kind << 44 | (uint64_t)key->part << 47 |
           (uint64_t)key->phase << 48 | (uint64_t)key->joined << 56;
}

static inline struct simt_pattern_key simt_pattern_unpack(uint64_t packed) {
    return (struct simt_pattern_key){.mask = (uint32_t)packed,
                                     .bytes = (uint32_t)(packed >> 32) & 0xff,
                                     .cost = (enum simt_cost)(packed >> 40 & 7),
                                     .alike = (packed >> 43 & 1) != 0,
                                     .kind = (enum simt_access_kind)(packed >> 44 & 7),
                                     .part = (packed >> 47 & 1) != 0,
                                     .phase = (uint32_t)(packed >> 48) & 0xff,
                                     .joined = (uint32_t)(packed >> 56)};
}

/**
 * @brief The mask of a pattern's key for a request whose lanes are all at one address: which of
 *        several lanes they are makes no difference where the cost does not depend on it.
 * @param width bytes of a lane, or those of a joined access
 */
static inline uint32_t simt_pattern_mask(uint32_t mask, enum simt_cost cost, uint32_t width) {
    bool several = (mask & (mask - 1)) != 0;
    bool same = cost == SIMT_COST_NONE || cost == SIMT_COST_CONSTANT || cost == SIMT_COST_SECTORS ||
                (cost == SIMT_COST_WAVEFRONTS && width <= 8);
    return several && same ? SIMT_TWO_LANES : mask;
}

/** Works a pattern out; `key`, `site` and `relative` are set. */
void simt_pattern_build(struct simt_pattern *pattern);

/** @return how many aligned pieces of 128 bytes the lanes touch when the first address lies
 *  @p phase bytes behind the start of one. */
uint32_t simt_pattern_lines(const struct simt_pattern *pattern, uint32_t phase);

/** Counts the uses of a pattern, and forgets them. @param sites by number, or NULL */
void simt_pattern_tally(struct simt_pattern *pattern, struct simt_counters *counters,
                        struct simt_site *sites);

/** @return one lane for each different address: the lowest of those of the key's mask. */
uint32_t simt_pattern_leaders(struct simt_pattern *pattern);

#endif
