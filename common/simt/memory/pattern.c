#include "common/simt/memory/pattern.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { SECTOR_SHIFT = 5, WORD_SHIFT = 2, BANKS = 32, MAX_WORDS = 8 };

/* Lanes whose value equals the given one. */
static uint32_t equal_lanes(const int32_t values[SIMT_LANES], int32_t value) {
    uint32_t equal = 0;
#ifdef __AVX2__
    const __m256i wanted = _mm256_set1_epi32(value);
    for (int n = 0; n < SIMT_LANES; n += 8) {
        __m256i eight = _mm256_loadu_si256((const __m256i *)(const void *)(values + n));
        __m256i same = _mm256_cmpeq_epi32(eight, wanted);
        equal |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(same)) << n;
    }
#else
    for (int n = 0; n < SIMT_LANES; n++) {
        equal |= (uint32_t)(values[n] == value) << n;
    }
#endif
    return equal;
}

/* The lowest lane of each different value among the lanes of the mask. */
static uint32_t leaders_of(const int32_t values[SIMT_LANES], uint32_t mask) {
    uint32_t leaders = 0;
    while (mask != 0) {
        uint32_t lane = (uint32_t)__builtin_ctz(mask);
        leaders |= 1u << lane;
        mask &= ~equal_lanes(values, values[lane]);
    }
    return leaders;
}

static uint32_t key_mask(const struct simt_pattern *pattern) {
    return (uint32_t)pattern->key;
}

static uint32_t key_bytes(const struct simt_pattern *pattern) {
    return (uint32_t)(pattern->key >> 32) & 0xff;
}

static int32_t key_phase(const struct simt_pattern *pattern) {
    return (int32_t)(pattern->key >> 48);
}

/* Numbers of the units of 2^shift bytes that the lanes touch, up to a constant. */
static void units_of(const struct simt_pattern *pattern, uint32_t shift,
                     int32_t units[SIMT_LANES]) {
    int32_t phase = key_phase(pattern);
    for (size_t n = 0; n < SIMT_LANES; n++) {
        units[n] = (pattern->relative[n] + phase) >> shift;
    }
}

static void count_sectors(struct simt_pattern *pattern) {
    int32_t sectors[SIMT_LANES];
    units_of(pattern, SECTOR_SHIFT, sectors);
    pattern->cost = (uint32_t)__builtin_popcount(leaders_of(sectors, key_mask(pattern)));
}

/* Wavefronts of one group: as many as the busiest bank has different units. */
static uint32_t busiest_bank(const int32_t units[SIMT_LANES], uint32_t group, uint32_t banks) {
    uint8_t counts[BANKS] = {0};
    uint32_t most = 0;
    for (uint32_t rest = leaders_of(units, group); rest != 0; rest &= rest - 1) {
        uint32_t bank = (uint32_t)units[__builtin_ctz(rest)] % banks;
        counts[bank]++;
        most = counts[bank] > most ? counts[bank] : most;
    }
    return most;
}

/* 8-byte accesses go by half warps, 16-byte ones by quarters: 128 bytes at a time. */
static void count_wavefronts(struct simt_pattern *pattern) {
    int32_t units[SIMT_LANES];
    uint32_t bytes = key_bytes(pattern);
    uint32_t shift = bytes <= 4 ? WORD_SHIFT : (uint32_t)__builtin_ctz(bytes);
    uint32_t lanes = (uint32_t)SIMT_LANES >> (shift - WORD_SHIFT);
    uint32_t group = lanes == SIMT_LANES ? UINT32_MAX : (1u << lanes) - 1;
    units_of(pattern, shift, units);
    for (uint32_t begin = 0; begin < SIMT_LANES; begin += lanes) {
        uint32_t mask = key_mask(pattern) & group << begin;
        if (mask != 0) {
            uint32_t wavefronts = busiest_bank(units, mask, lanes);
            pattern->cost += wavefronts;
            pattern->excess += wavefronts - 1;
        }
    }
}

static bool contains(const int32_t *list, uint32_t count, int32_t value) {
    for (uint32_t n = 0; n < count; n++) {
        if (list[n] == value) {
            return true;
        }
    }
    return false;
}

/* Local memory is interleaved: word w of lane l is word 32 w + l, so 8 lanes share a sector. */
static void count_local_sectors(struct simt_pattern *pattern) {
    int32_t words[SIMT_LANES];
    int32_t sectors[SIMT_LANES * MAX_WORDS];
    uint32_t bytes = key_bytes(pattern);
    uint32_t each = bytes <= 4 ? 1 : bytes / 4;
    uint32_t count = 0;
    units_of(pattern, WORD_SHIFT, words);
    for (uint32_t rest = key_mask(pattern); rest != 0; rest &= rest - 1) {
        int32_t lane = __builtin_ctz(rest);
        for (uint32_t n = 0; n < each; n++) {
            int32_t sector = (words[lane] + (int32_t)n) * 4 + lane / 8;
            if (!contains(sectors, count, sector)) {
                sectors[count++] = sector;
            }
        }
    }
    pattern->cost = count;
}

static enum simt_shape shape_of(const struct simt_pattern *pattern) {
    if (pattern->low == 0 && pattern->high == 0) {
        return SIMT_SHAPE_SAME;
    }
    bool contiguous = key_mask(pattern) == UINT32_MAX;
    for (int32_t n = 0; n < SIMT_LANES; n++) {
        contiguous = contiguous && pattern->relative[n] == n * (int32_t)key_bytes(pattern);
    }
    return contiguous ? SIMT_SHAPE_CONTIGUOUS : SIMT_SHAPE_OTHER;
}

static void find_extremes(struct simt_pattern *pattern) {
    pattern->low = 0;
    pattern->high = 0;
    pattern->misalignment = 0;
    for (size_t n = 0; n < SIMT_LANES; n++) {
        int32_t relative = pattern->relative[n];
        pattern->low = relative < pattern->low ? relative : pattern->low;
        pattern->high = relative > pattern->high ? relative : pattern->high;
        pattern->misalignment |= (uint32_t)relative;
    }
}

void simt_pattern_build(struct simt_pattern *pattern) {
    find_extremes(pattern);
    pattern->active = (uint32_t)__builtin_popcount(key_mask(pattern));
    pattern->shape = shape_of(pattern);
    pattern->leaders = 0;
    pattern->cost = 0;
    pattern->excess = 0;
    switch ((enum simt_cost)(pattern->key >> 40 & 0xff)) {
    case SIMT_COST_SECTORS:
        count_sectors(pattern);
        break;
    case SIMT_COST_WAVEFRONTS:
        count_wavefronts(pattern);
        break;
    case SIMT_COST_LOCAL:
        count_local_sectors(pattern);
        break;
    case SIMT_COST_NONE:
        break;
    }
}

uint32_t simt_pattern_leaders(struct simt_pattern *pattern) {
    if (pattern->leaders == 0) {
        pattern->leaders = leaders_of(pattern->relative, key_mask(pattern));
    }
    return pattern->leaders;
}
