/**
 * @file request.h
 * @brief The common path of ld, st and atom: one lookup for a whole warp.
 *
 * A request holds the lanes' addresses relative to the first active one. Most
 * of the time its pattern is known and all lanes stay inside the allocation
 * that the instruction used before; then no loop over lanes is needed. Otherwise
 * simt_request_split() looks at each lane, finds the fault if there is one, and
 * runs the remaining lanes in groups.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_REQUEST_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_REQUEST_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "common/simt/memory/access/access.h"
#include "common/simt/memory/access/pattern.h"
#include "common/simt/memory/race/byte_bits.h"
#include "common/simt/memory/race/history_words.h"

#define SIMT_HOT static inline __attribute__((always_inline))
#define SIMT_COLD __attribute__((noinline, cold))
#define SIMT_LIKELY(condition) __builtin_expect(!!(condition), 1)

/** simt_instruction.detail[0] of ld, st and atom. */
enum {
    SIMT_BYTES_SHIFT = 0,    /**< of one lane, all elements */
    SIMT_ELEMENT_SHIFT = 8,  /**< bytes of one element */
    SIMT_COUNT_SHIFT = 16,   /**< number of elements */
    SIMT_FIELD_MASK = 0x7f,  /**< of the three above */
    SIMT_SYSTEM = 1 << 23,   /**< strong: of the scope of all devices */
    SIMT_STRONG = 1 << 24,   /**< not part of a race */
    SIMT_SIGNED = 1 << 25,   /**< loads extend the sign */
    SIMT_NARROW = 1 << 26,   /**< the address is a row of 4-byte lanes */
    SIMT_ACQUIRES = 1 << 27, /**< orders this agent after what others released */
    SIMT_RELEASES_BLOCK = 1 << 28,
    SIMT_RELEASES_DEVICE = 1 << 29,
    SIMT_BLIND = 1 << 30,  /**< atom.exch */
    SIMT_LOOKS = INT32_MIN /**< acquires inside the block alone: between blocks with what follows,
                                see simt_sync_met() */
};

struct simt_request {
    struct simt_warp *warp;
    const struct simt_instruction *instruction;
    struct simt_pattern *pattern;
    const uint32_t *lanes;     /**< the mask expanded */
    const uint64_t *addresses; /**< given by the caller of simt_access_resolve(), or NULL */
    unsigned char **places;    /**< simt_access_resolve(): receives the host addresses, or NULL */
    struct simt_block *home;   /**< shared memory: whose; else the warp's block */
    unsigned char *host;       /**< of the first active lane */
    uint64_t first;            /**< address of the first active lane, in its space; shared memory:
                                    the offset in that of its block */
    uint32_t mask, bytes;
    enum ptx_space space;
    enum simt_access_kind kind;
    bool narrow;             /**< base row of 4-byte lanes */
    bool strong;             /**< not part of a race */
    bool blind;              /**< an update that does not depend on the old value: exch */
    bool counted;            /**< in sectors or wavefronts */
    bool async;              /**< by the async proxy */
    bool early;              /**< async: as in struct simt_access */
    bool part;               /**< not the first part: no request of its own */
    bool far;                /**< the lanes lie too far apart for 32 bits */
    bool complete;           /**< no need to ask whether the bytes were written */
    bool dropped;            /**< a wild address with checks off: `host` is scratch memory */
    const int32_t *relative; /**< (SIMT_LANES) bytes from the first active lane; inactive ones: 0 */
    int32_t offsets[SIMT_LANES]; /**< these, where the pattern does not hold them */
};

/** What an atomic operation does to what is there. */
enum simt_update {
    SIMT_UPDATE_NOTHING,
    SIMT_UPDATE_COUNTS, /**< an integer changes by a little */
    SIMT_UPDATE_CHANGES
};

/** A request to global memory in a block with a clock (block_clock.h), before its data move.
 *  @param in_l1 all of it was found there */
void simt_block_clock_request(const struct simt_request *request, bool in_l1);

/** The same for each lane of atom and red. */
void simt_block_clock_update(const struct simt_request *request, uint32_t lane,
                             enum simt_update how);

/** Moves the data of the lanes of a resolved request. */
typedef void simt_move(const struct simt_request *request);

/** Full checks of a request inside its bounds. @return false after simt_fail() */
bool simt_request_check(const struct simt_request *request);

/** Saves what a store to global memory replaces, so that the launch can be run again. */
void simt_request_save(const struct simt_request *request);

/** While a launch that ended in a race is run again: before the checks of a request, and after them
 *  where its bytes may be the racing ones. See witness.h. */
void simt_request_expect(const struct simt_request *request);
void simt_request_witness(const struct simt_request *request);

/* While a launch that ended in a race is run again, to see whether values of races are used; see
 * harmless.h. */

/** Before the checks of a request. @return the lanes that read what another thread writes without
 *  being ordered */
uint32_t simt_harmless_reads(const struct simt_request *request);

/** @return true when all words of a lane are known to race. */
bool simt_harmless_covers(const struct simt_request *request, uint32_t lane);

/** A lane races with another thread of its block. @return false: that counts */
bool simt_harmless_note(const struct simt_request *request, uint32_t lane,
                        const struct simt_race *race);

/** Whether a request reaches the shared memory of another block of the cluster. */
SIMT_HOT bool simt_request_is_remote(const struct simt_request *request) {
    return request->home != request->warp->block;
}

/* Whether the bytes that a pattern covers are written: false also where that takes longer to find.
 * Its addresses are multiples of 4. */
SIMT_HOT bool simt_pattern_written(const struct simt_pattern *pattern, const uint64_t *written,
                                   uint64_t first, uint32_t bytes) {
    switch ((enum simt_shape)pattern->shape) {
    case SIMT_SHAPE_SAME:
        return byte_bits_all(written, first, bytes);
    case SIMT_SHAPE_CONTIGUOUS:
        return byte_bits_all(written, first, (size_t)SIMT_LANES * bytes);
    default:
        return bytes == 4 && byte_bits_all_words(written, first, pattern->relative);
    }
}

/**
 * @brief Full checks of a read by all lanes: whether it is of the many that take no time, and puts
 *        it off. See simt_request_check().
 * @param pattern of the read; its words are whole where it says so
 * @param first   offset in the block's own shared memory
 * @param bytes   of a lane
 */
SIMT_HOT bool simt_shadow_reads(const struct simt_warp *warp, struct simt_pattern *pattern,
                                uint64_t first, uint32_t bytes) {
    struct simt_shadow *shadow = warp->block->shadow;
    if (!shadow->is_simple || (pattern->words_state & SIMT_WORDS_WHOLE) == 0 ||
        (!shadow->is_full && !simt_pattern_written(pattern, shadow->written, first, bytes))) {
        return false;
    }
    pattern->words_state |= SIMT_WORDS_PUT_OFF;
    return simt_history_put_off(shadow->history, &shadow->agents[warp->index], first,
                                pattern->words);
}

/** Takes a request apart that is not inside one allocation. */
void simt_request_split(const struct simt_request *request, simt_move *move);

/** Names the shared memory of a request: "shared memory", "the shared memory of block (1,0,0)".
 *  @return @p text */
const char *simt_request_shared_text(const struct simt_request *request, char *text, size_t size);

/** Reports a lane's access to the shared memory of a block whose threads have all returned. */
void simt_request_fault_over(const struct simt_request *request, uint32_t lane, uint64_t offset);

/** Reports a lane's access that is out of bounds or misaligned. */
void simt_request_fault(const struct simt_request *request, uint32_t lane, enum ptx_space space,
                        uint64_t address);

/** @return "reads", "writes" or "updates". */
const char *simt_request_verb(const struct simt_request *request);

/** Finds the allocation of the lane at @p address, for the lookup of the common path. */
bool simt_request_lookup(const struct simt_request *request, struct simt_extent *extent,
                         uint64_t address);

SIMT_HOT uint32_t simt_field(const struct simt_instruction *instruction, uint32_t shift) {
    return instruction->detail[0] >> shift & SIMT_FIELD_MASK;
}

/* detail[1] has three bits for each element: log2 of its register's size. */
SIMT_HOT uint32_t simt_register_bytes(const struct simt_instruction *instruction,
                                      uint32_t element) {
    return 1u << (instruction->detail[1] >> 3 * element & 7);
}

SIMT_HOT uint32_t simt_first_lane(uint32_t mask) {
    return (uint32_t)__builtin_ctz(mask);
}

/* Addresses from a row of 4-byte lanes: they wrap at 32 bits. */
SIMT_HOT void simt_request_narrow(struct simt_request *request, const uint32_t base[SIMT_LANES]) {
    uint32_t first = base[simt_first_lane(request->mask)];
    request->relative = request->offsets;
    for (size_t n = 0; n < SIMT_LANES; n++) {
        request->offsets[n] = (int32_t)((base[n] - first) & request->lanes[n]);
    }
    request->first = first + (uint32_t)request->instruction->immediate;
    request->first &= UINT32_MAX;
}

/* Sets `offsets` and `far` from 64-bit addresses. */
#ifdef __AVX2__
SIMT_HOT void simt_request_spread(struct simt_request *request, const uint64_t base[SIMT_LANES],
                                  uint64_t first) {
    const __m256i start = _mm256_set1_epi64x((long long)first);
    __m256i far = _mm256_setzero_si256();
    for (size_t n = 0; n < SIMT_LANES; n += 8) {
        const __m256i *from = (const __m256i *)(const void *)(base + n);
        __m256 a = _mm256_castsi256_ps(_mm256_sub_epi64(_mm256_loadu_si256(from), start));
        __m256 b = _mm256_castsi256_ps(_mm256_sub_epi64(_mm256_loadu_si256(from + 1), start));
        __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)); /* low words of 64 bits */
        __m256i high = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
        __m256i lanes = _mm256_loadu_si256((const __m256i *)(const void *)(request->lanes + n));
        low = _mm256_and_si256(_mm256_permute4x64_epi64(low, 0xd8), lanes);
        high = _mm256_and_si256(_mm256_permute4x64_epi64(high, 0xd8), lanes);
        far = _mm256_or_si256(far, _mm256_xor_si256(high, _mm256_srai_epi32(low, 31)));
        _mm256_storeu_si256((__m256i *)(void *)(request->offsets + n), low);
    }
    request->far = _mm256_testz_si256(far, far) == 0;
}
#else
SIMT_HOT void simt_request_spread(struct simt_request *request, const uint64_t base[SIMT_LANES],
                                  uint64_t first) {
    uint64_t far = 0;
    for (size_t n = 0; n < SIMT_LANES; n++) {
        uint64_t relative = (base[n] - first) & (uint64_t)(int64_t)(int32_t)request->lanes[n];
        request->offsets[n] = (int32_t)relative;
        far |= relative + ((uint64_t)1 << 31);
    }
    request->far = far >> 32 != 0;
}
#endif

SIMT_HOT void simt_request_wide(struct simt_request *request, const uint64_t base[SIMT_LANES],
                                int64_t offset) {
    uint64_t first = base[simt_first_lane(request->mask)];
    request->relative = request->offsets;
    simt_request_spread(request, base, first);
    request->first = first + (uint64_t)offset;
}

/* A generic address determines its space; offsets in a space start at zero. */
SIMT_HOT enum ptx_space simt_generic_space(uint64_t *address) {
    static const enum ptx_space spaces[] = {PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_PARAM};
    uint64_t window = *address >> 56;
    if (window == 0 || window >= sizeof spaces / sizeof *spaces) {
        return PTX_GLOBAL;
    }
    *address &= ((uint64_t)1 << 56) - 1;
    return spaces[window];
}

SIMT_HOT enum simt_cost simt_cost_of(enum ptx_space space) {
    switch (space) {
    case PTX_GLOBAL:
        return SIMT_COST_SECTORS;
    case PTX_SHARED:
        return SIMT_COST_WAVEFRONTS;
    case PTX_LOCAL:
        return SIMT_COST_LOCAL;
    case PTX_CONST:
    case PTX_PARAM:
        return SIMT_COST_CONSTANT;
    default:
        return SIMT_COST_NONE;
    }
}

/** Puts the pattern of a request into a slot whose old content has been counted. */
void simt_request_learn(const struct simt_request *request, size_t slot, uint64_t key);

/* Instructions that follow one another, and the phases of one, lie in different slots. */
SIMT_HOT size_t simt_request_slot(const struct simt_request *request, uint32_t phase) {
    return (size_t)request->instruction->site + (size_t)33 * phase;
}

#ifdef __AVX2__
/* Whether no lane differs: one test in place of a sum of differences. */
SIMT_HOT bool simt_lanes_equal(const int32_t a[SIMT_LANES], const int32_t b[SIMT_LANES]) {
    __m256i difference = _mm256_setzero_si256();
    for (size_t n = 0; n < SIMT_LANES; n += 8) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(a + n));
        __m256i y = _mm256_loadu_si256((const __m256i *)(const void *)(b + n));
        difference = _mm256_or_si256(difference, _mm256_xor_si256(x, y));
    }
    return _mm256_testz_si256(difference, difference) != 0;
}

SIMT_HOT bool simt_lanes_zero(const int32_t a[SIMT_LANES]) {
    __m256i any = _mm256_setzero_si256();
    for (size_t n = 0; n < SIMT_LANES; n += 8) {
        any = _mm256_or_si256(any, _mm256_loadu_si256((const __m256i *)(const void *)(a + n)));
    }
    return _mm256_testz_si256(any, any) != 0;
}
#else
SIMT_HOT bool simt_lanes_equal(const int32_t a[SIMT_LANES], const int32_t b[SIMT_LANES]) {
    return memcmp(a, b, SIMT_LANES * sizeof *a) == 0;
}

SIMT_HOT bool simt_lanes_zero(const int32_t a[SIMT_LANES]) {
    static const int32_t zeros[SIMT_LANES];
    return simt_lanes_equal(a, zeros);
}
#endif

/* Kinds of cost lie apart. Of shared memory, where the first address is a multiple of 4: the slot
 * less the site. */
enum {
    SIMT_COST_SLOTS = SIMT_PATTERN_SLOTS / 4,
    SIMT_SHARED_SLOT = SIMT_COST_SLOTS * SIMT_COST_WAVEFRONTS
};

SIMT_HOT uint32_t simt_request_phase(uint64_t first, enum simt_cost cost) {
    return cost == SIMT_COST_SECTORS ? first & 31 : first & 3;
}

SIMT_HOT size_t simt_request_pattern(const struct simt_request *request, enum simt_cost cost) {
    size_t apart = (size_t)SIMT_COST_SLOTS * cost; /* cp.async reads one kind, writes another */
    uint32_t phase = simt_request_phase(request->first, cost);
    return (simt_request_slot(request, phase) + apart) % SIMT_PATTERN_SLOTS;
}

/* Sets the pattern: remembered or worked out. */
SIMT_HOT void simt_request_match(struct simt_request *request, enum ptx_space space) {
    enum simt_cost cost = request->counted ? simt_cost_of(space) : SIMT_COST_NONE;
    uint32_t phase = simt_request_phase(request->first, cost);
    size_t slot = simt_request_pattern(request, cost);
    struct simt_pattern *pattern = &request->warp->block->cache->patterns[slot];
    bool alike = simt_lanes_zero(request->offsets);
    uint32_t width = request->bytes | request->instruction->joined;
    uint64_t key = simt_pattern_pack(&(struct simt_pattern_key){
        .mask = alike ? simt_pattern_mask(request->mask, cost, width) : request->mask,
        .alike = alike,
        .bytes = request->bytes,
        .cost = cost,
        .kind = request->kind,
        .part = request->part,
        .phase = phase,
        .joined = request->instruction->joined});
    bool known = pattern->key == key && pattern->site == request->instruction->site &&
                 (alike || simt_lanes_equal(pattern->relative, request->offsets));
    if (!SIMT_LIKELY(known)) {
        simt_request_learn(request, slot, key);
    }
    request->pattern = pattern;
}

SIMT_HOT bool simt_request_place_global(struct simt_request *request, uint64_t low, uint64_t end) {
    size_t slot = simt_request_slot(request, 0) % SIMT_EXTENT_SLOTS;
    struct simt_extent *extent = &request->warp->block->cache->extents[slot];
    if (!SIMT_LIKELY(low >= extent->begin && end <= extent->end && low <= end)) {
        if (!simt_request_lookup(request, extent, low) || low < extent->begin ||
            end > extent->end || low > end) {
            return false;
        }
    }
    request->host = extent->host + (request->first - extent->begin);
    request->complete = extent->complete;
    return true;
}

/* Each thread's local memory follows that of the previous thread. */
SIMT_HOT void simt_request_place_local(struct simt_request *request) {
    const struct simt_block *block = request->warp->block;
    int32_t stride = (int32_t)block->local_bytes;
    int32_t first = (int32_t)simt_first_lane(request->mask);
    size_t thread = (size_t)request->warp->index * SIMT_LANES + (size_t)first;
    request->host = block->local + thread * block->local_bytes + request->first;
    for (int32_t n = 0; n < SIMT_LANES; n++) {
        int32_t apart = ((n - first) * stride) & (int32_t)request->lanes[n];
        request->offsets[n] = request->relative[n] + apart;
    }
    request->relative = request->offsets;
}

/* Shared memory: the lanes stay inside the variable that the address comes from. */
SIMT_HOT bool simt_request_stays(const struct simt_request *request, uint64_t low, uint64_t end) {
    const struct simt_origin *origin = request->instruction->origin;
    return SIMT_LIKELY(origin == NULL || (low >= origin->begin && end <= origin->end)) ||
           request->warp->block->run->check == SIMT_CHECK_OFF;
}

/* Sets the place of the first lane; false when the lanes are not all inside. */
SIMT_HOT bool simt_request_place(struct simt_request *request, enum ptx_space space) {
    const struct simt_block *block = request->warp->block;
    const struct simt_pattern *pattern = request->pattern;
    uint64_t low = request->first + (uint64_t)(int64_t)pattern->low;
    uint64_t end = request->first + (uint64_t)(int64_t)pattern->high + request->bytes;
    switch (space) {
    case PTX_SHARED:
        request->host = request->home->shared + request->first;
        return low <= end && end <= request->home->shared_bytes &&
               simt_request_stays(request, low, end);
    case PTX_LOCAL:
        if (low > end || end > block->local_bytes) {
            return false;
        }
        simt_request_place_local(request);
        return true;
    case PTX_PARAM:
        request->host = (unsigned char *)(uintptr_t)block->run->parameters + request->first;
        return request->kind == SIMT_READ && low <= end && end <= block->run->parameter_bytes;
    default:
        return simt_request_place_global(request, low, end);
    }
}

/** Asks the caches for the sectors of a counted request to global memory. */
void simt_request_cache(const struct simt_request *request);

SIMT_HOT void simt_request_count(const struct simt_request *request, enum ptx_space space) {
    struct simt_pattern *pattern = request->pattern;
    pattern->uses[request->first / 32 % 4]++;
    pattern->lanes += (uint32_t)__builtin_popcount(request->mask);
    if (!SIMT_LIKELY(pattern->listed)) {
        simt_pattern_list(request->warp->block->cache, pattern);
    }
    if (space == PTX_GLOBAL && request->warp->block->caches.modelled) {
        simt_request_cache(request);
    }
}

/* The rest of simt_request_resolve() for a request with a pattern. */
SIMT_HOT bool simt_request_finish(struct simt_request *request, enum ptx_space space) {
    enum simt_check check = request->warp->block->run->check;
    uint32_t low_bits = (uint32_t)request->first | request->pattern->misalignment;
    if (check != SIMT_CHECK_OFF && (low_bits & (request->bytes - 1)) != 0) {
        return false;
    }
    if (!SIMT_LIKELY(simt_request_place(request, space))) {
        return false;
    }
    if ((check & SIMT_CHECK_ACCESSES) != 0 && !simt_request_check(request)) {
        return false;
    }
    if (space == PTX_GLOBAL && request->kind != SIMT_READ &&
        (check & (SIMT_CHECK_ACCESSES | SIMT_CHECK_SAMPLED)) == SIMT_CHECK_SAMPLED) {
        simt_request_save(request);
    }
    simt_request_count(request, space);
    return true;
}

/**
 * @brief Finds the place of all lanes, checks and counts.
 * @param space request->space, as a constant where the caller knows it
 * @return false when a check failed (warp->fault is set) or the request must be split
 */
SIMT_HOT bool simt_request_resolve(struct simt_request *request, enum ptx_space space) {
    if (request->far) {
        return false;
    }
    simt_request_match(request, space);
    return simt_request_finish(request, space);
}

/*
 * Where a base register points. Unrolled loops access memory by one register and many offsets: the
 * first access compares the lanes' addresses with its pattern, and the others, while nothing has
 * written the register and the same lanes are active, only look whether their pattern was built
 * for, or compared with, the same addresses.
 */

/* Sets the start and the pattern of a request. @return false: its addresses have to be looked at */
SIMT_HOT bool simt_request_recall(struct simt_request *request, enum ptx_space space) {
    const struct simt_instruction *in = request->instruction;
    const struct simt_base *base = &request->warp->bases[in->base];
    enum simt_cost cost = simt_cost_of(space);
    if (!in->repeats_base || base->mask != request->mask) {
        return false;
    }
    request->first = base->first + (uint64_t)in->immediate;
    request->first &= request->narrow ? UINT32_MAX : UINT64_MAX;
    size_t slot = simt_request_pattern(request, cost);
    struct simt_pattern *pattern = &request->warp->block->cache->patterns[slot];
    request->pattern = pattern;
    request->relative = pattern->relative;
    return pattern->base_serial == base->serial && pattern->base_mask == request->mask &&
           pattern->site == in->site &&
           simt_pattern_unpack(pattern->key).phase == simt_request_phase(request->first, cost);
}

/** For quick accesses to shared memory: sets from where to where the first address of a request,
 * whose pattern is of a base register, may lie. */
void simt_request_allow(const struct simt_request *request);

/* A request has found its pattern by its addresses: for those that repeat them. */
SIMT_HOT void simt_request_remember(const struct simt_request *request, enum ptx_space space) {
    const struct simt_instruction *in = request->instruction;
    struct simt_base *base = &request->warp->bases[in->base];
    struct simt_pattern *pattern = request->pattern;
    if (!in->has_base) {
        return;
    }
    if (!in->repeats_base || base->mask != request->mask) {
        *base = (struct simt_base){.serial = pattern->serial,
                                   .first = request->first - (uint64_t)in->immediate,
                                   .mask = request->mask};
    }
    pattern->base_serial = base->serial;
    pattern->base_mask = request->mask;
    if (space == PTX_SHARED && in->repeats_base && request->narrow && pattern->quick_count == 0) {
        simt_request_allow(request);
    }
}

/** Starts the request of an instruction whose address is src[0]. */
SIMT_HOT void simt_request_start(struct simt_request *request, struct simt_warp *warp,
                                 const struct simt_instruction *instruction, enum ptx_space space,
                                 enum simt_access_kind kind) {
    uint32_t detail = instruction->detail[0];
    request->warp = warp;
    request->home = warp->block;
    request->instruction = instruction;
    request->lanes = warp->lanes;
    request->addresses = NULL;
    request->places = NULL;
    request->mask = warp->mask;
    request->bytes = simt_field(instruction, SIMT_BYTES_SHIFT);
    request->space = space;
    request->kind = kind;
    request->narrow = (detail & SIMT_NARROW) != 0;
    request->strong = (detail & SIMT_STRONG) != 0;
    request->blind = (detail & SIMT_BLIND) != 0;
    request->counted = true;
    request->async = false;
    request->early = false;
    request->part = false;
    request->far = false;
    request->complete = false;
    request->dropped = false;
}

/* Its addresses. */
SIMT_HOT void simt_request_address(struct simt_request *request) {
    const struct simt_instruction *instruction = request->instruction;
    const union simt_row *base = simt_row(request->warp, instruction->src[0]);
    if (request->narrow) {
        simt_request_narrow(request, base->u32);
    } else {
        simt_request_wide(request, base->u64, instruction->immediate);
    }
}

/* A request to a space that the instruction names. @return as simt_request_resolve() */
SIMT_HOT bool simt_request_named(struct simt_request *request, enum ptx_space space) {
    if (!simt_request_recall(request, space)) {
        simt_request_address(request);
        if (request->far) {
            return false;
        }
        simt_request_match(request, space);
        simt_request_remember(request, space);
    }
    return simt_request_finish(request, space);
}

/** Runs an access of an instruction: `space` and `move` should be constants. */
SIMT_HOT void simt_request_run(struct simt_warp *warp, const struct simt_instruction *instruction,
                               enum ptx_space space, enum simt_access_kind kind, simt_move *move) {
    struct simt_request request;
    if (warp->mask == 0) {
        return;
    }
    simt_request_start(&request, warp, instruction, space, kind);
    if (space == PTX_GENERIC) {
        simt_request_address(&request);
        uint64_t address = request.first;
        request.space = simt_generic_space(&address);
        if (!request.far) {
            request.first = address;
        }
        if (SIMT_LIKELY(request.space == PTX_GLOBAL)
                ? SIMT_LIKELY(simt_request_resolve(&request, PTX_GLOBAL))
                : simt_request_resolve(&request, request.space)) {
            move(&request);
            return;
        }
        simt_request_start(&request, warp, instruction, space, kind);
        simt_request_address(&request);
    } else if (SIMT_LIKELY(simt_request_named(&request, space))) {
        move(&request);
        return;
    }
    if (warp->fault == NULL) {
        simt_request_split(&request, move);
    }
}

#endif
