#include "common/simt/memory/access/pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum {
    SECTOR_SHIFT = 5,
    SECTOR_BYTES = 1 << SECTOR_SHIFT,
    LINE_SHIFT = 7,
    WORD_SHIFT = 2,
    BANKS = 32,
    ROW_BYTES = 4 * BANKS, /* bytes of one wavefront */
    MAX_WORDS = 8
};

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

/* The lowest lane of each different value among the lanes of the mask. A few values are looked for
 * one after the other; where there are more, each lane is compared with those above it, and no
 * comparison waits for the one before. */
static uint32_t leaders_of(const int32_t values[SIMT_LANES], uint32_t mask) {
    enum { FEW = 4 };
    uint32_t leaders = 0, repeated = 0;
    for (uint32_t n = 0; n < FEW && mask != 0; n++) {
        uint32_t lane = (uint32_t)__builtin_ctz(mask);
        leaders |= 1u << lane;
        mask &= ~equal_lanes(values, values[lane]);
    }
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        repeated |= equal_lanes(values, values[lane]) & ~1u << lane;
    }
    return leaders | (mask & ~repeated);
}

/* Numbers of the units of 2^shift bytes that the lanes touch, up to a constant. */
static void units_of(const struct simt_pattern *pattern, uint32_t phase, uint32_t shift,
                     int32_t units[SIMT_LANES]) {
    for (size_t n = 0; n < SIMT_LANES; n++) {
        units[n] = (pattern->relative[n] + (int32_t)phase) >> shift;
    }
}

static uint32_t count_units(const struct simt_pattern *pattern, uint32_t mask, uint32_t phase,
                            uint32_t shift) {
    int32_t units[SIMT_LANES];
    units_of(pattern, phase, shift, units);
    return (uint32_t)__builtin_popcount(leaders_of(units, mask));
}

static uint32_t list_sectors(struct simt_pattern *pattern, const struct simt_pattern_key *key) {
    int32_t units[SIMT_LANES];
    uint32_t count = 0;
    units_of(pattern, key->phase, SECTOR_SHIFT, units);
    for (uint32_t rest = leaders_of(units, key->mask); rest != 0; rest &= rest - 1) {
        pattern->sectors[count++] = units[__builtin_ctz(rest)];
    }
    return count;
}

static void count_sectors(struct simt_pattern *pattern, const struct simt_pattern_key *key) {
    uint32_t distinct = (uint32_t)__builtin_popcount(simt_pattern_leaders(pattern));
    pattern->cost = list_sectors(pattern, key);
    pattern->least = (distinct * key->bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

uint32_t simt_pattern_lines(const struct simt_pattern *pattern, uint32_t phase) {
    return count_units(pattern, (uint32_t)pattern->key, phase, LINE_SHIFT);
}

/* Numbers of the units that the lanes of a pattern touch, and the least and the greatest of them.
 */
struct units {
    int32_t of[SIMT_LANES];
    int32_t low, high;
};

/* As busiest_bank(), where the units lie far apart. */
static uint32_t busiest_bank_of_many(const int32_t units[SIMT_LANES], uint32_t group,
                                     uint32_t banks) {
    uint8_t counts[BANKS] = {0};
    uint32_t most = 0;
    for (uint32_t rest = leaders_of(units, group); rest != 0; rest &= rest - 1) {
        uint32_t bank = (uint32_t)units[__builtin_ctz(rest)] % banks;
        counts[bank]++;
        most = counts[bank] > most ? counts[bank] : most;
    }
    return most;
}

/* The most that are the same bank of a few units. */
static uint32_t busiest_of_few(const uint32_t *list, uint32_t count) {
    uint32_t most = 1;
    for (uint32_t n = 1; n < count; n++) {
        uint32_t same = 1;
        for (uint32_t before = 0; before < n; before++) {
            same += list[before] == list[n];
        }
        most = same > most ? same : most;
    }
    return most;
}

/* Of each bank a bit for each of its units; each round takes one off every bank. */
static uint32_t busiest_of_rows(uint64_t rows[BANKS]) {
    uint32_t rounds = 0;
    for (uint64_t any = 1; any != 0; rounds++) {
        any = 0;
        for (uint32_t bank = 0; bank < BANKS; bank++) {
            rows[bank] &= rows[bank] - 1;
            any |= rows[bank];
        }
    }
    return rounds;
}

/* Wavefronts of one group: as many as the busiest bank has different units. Often there are few of
 * these, each of many lanes. */
static uint32_t busiest_bank(const struct units *u, uint32_t group, uint32_t banks) {
    enum { ROWS = 64, FEW = 4, SOON = 2, MANY = 16 };
    const int32_t *units = u->of;
    uint32_t shift = (uint32_t)__builtin_ctz(banks); /* a division would take as long as all else */
    int64_t first = u->low & ~((int64_t)banks - 1);
    uint32_t few[FEW], count = 0, rest = group;
    for (; count < FEW && rest != 0; count++) {
        int32_t unit = units[__builtin_ctz(rest)];
        few[count] = (uint32_t)unit & (banks - 1);
        rest &= ~equal_lanes(units, unit);
        if (count == SOON && __builtin_popcount(rest) > MANY) {
            break; /* hardly so few */
        }
    }
    if (rest == 0) {
        return busiest_of_few(few, count);
    }
    if (u->high - first >= (int64_t)ROWS * banks) {
        return busiest_bank_of_many(units, group, banks);
    }
    uint64_t rows[BANKS] = {0};
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        uint32_t unit = (uint32_t)units[n] - (uint32_t)first;
        rows[unit & (banks - 1)] |= (uint64_t)(group >> n & 1) << (unit >> shift) % ROWS;
    }
    return busiest_of_rows(rows);
}

/* Whether every lane, or else its neighbour at a distance of 1 or of 2, can be left out. */
static bool lanes_pair_up(const int32_t units[SIMT_LANES], uint32_t mask) {
    for (uint32_t distance = 1; distance <= 2; distance++) {
        bool pairs = true;
        for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            uint32_t other = lane ^ distance;
            pairs = pairs && ((mask >> other & 1) == 0 || units[other] == units[lane]);
        }
        if (pairs) {
            return true;
        }
    }
    return false;
}

static void add_group(struct simt_pattern *pattern, const struct units *units, uint32_t mask,
                      uint32_t banks) {
    if (mask != 0) {
        pattern->cost += busiest_bank(units, mask, banks);
        pattern->least++;
    }
}

/*
 * 8-byte accesses go by half warps, 16-byte ones by quarters: 128 bytes at a
 * time. Two such groups go together when lanes pair up in both of them, as in a
 * broadcast. Joined accesses lie at one offset in aligned pieces of 8 or 16 bytes.
 */
static void count_wavefronts(struct simt_pattern *pattern, const struct simt_pattern_key *key) {
    struct units units;
    uint32_t bytes = key->joined > 0 ? key->joined : key->bytes;
    uint32_t shift = bytes <= 4 ? WORD_SHIFT : (uint32_t)__builtin_ctz(bytes);
    uint32_t banks = ROW_BYTES >> shift;
    uint32_t group = banks == SIMT_LANES ? UINT32_MAX : (1u << banks) - 1;
    uint32_t phase = key->joined > 0 ? 0 : key->phase;
    units_of(pattern, phase, shift, units.of);
    units.low = (pattern->low + (int32_t)phase) >> shift;
    units.high = (pattern->high + (int32_t)phase) >> shift;
    if (banks == SIMT_LANES) {
        add_group(pattern, &units, key->mask, banks);
        return;
    }
    for (uint32_t begin = 0; begin < SIMT_LANES; begin += 2 * banks) {
        uint32_t low = key->mask & group << begin;
        uint32_t high = key->mask & group << (begin + banks);
        if (lanes_pair_up(units.of, low | high)) {
            add_group(pattern, &units, low | high, banks);
        } else {
            add_group(pattern, &units, low, banks);
            add_group(pattern, &units, high, banks);
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
static void count_local_sectors(struct simt_pattern *pattern, const struct simt_pattern_key *key) {
    int32_t words[SIMT_LANES];
    int32_t sectors[SIMT_LANES * MAX_WORDS];
    uint32_t each = key->bytes <= 4 ? 1 : key->bytes / 4;
    uint32_t count = 0;
    units_of(pattern, key->phase, WORD_SHIFT, words);
    for (uint32_t rest = key->mask; rest != 0; rest &= rest - 1) {
        int32_t lane = __builtin_ctz(rest);
        for (uint32_t n = 0; n < each; n++) {
            int32_t sector = (words[lane] + (int32_t)n) * 4 + lane / 8;
            if (!contains(sectors, count, sector)) {
                sectors[count++] = sector;
            }
        }
    }
    pattern->cost = count;
    for (uint32_t eighth = 0; eighth < SIMT_LANES; eighth += 8) {
        pattern->least += (key->mask >> eighth & 0xff) != 0 ? each : 0;
    }
}

/* Whether of each eighth lane and the seven behind it each lies directly after the previous one. */
static bool eights_follow(const int32_t relative[SIMT_LANES], uint32_t bytes) {
    uint32_t difference = 0;
    for (uint32_t first = 0; first < SIMT_LANES; first += 8) {
        uint32_t begin = (uint32_t)relative[first];
        for (uint32_t n = 0; n < 8; n++) {
            difference |= (uint32_t)relative[first + n] ^ (begin + n * bytes);
        }
    }
    return difference == 0;
}

static enum simt_shape shape_of(const struct simt_pattern *pattern,
                                const struct simt_pattern_key *key) {
    const int32_t *relative = pattern->relative;
    if (pattern->low == 0 && pattern->high == 0) {
        return SIMT_SHAPE_SAME;
    }
    if (key->mask != UINT32_MAX || (int64_t)pattern->high - pattern->low > INT32_MAX ||
        !eights_follow(relative, key->bytes)) {
        return SIMT_SHAPE_OTHER; /* no difference of two lanes of the others wraps */
    }
    bool follow = true;
    for (uint32_t n = 8; n < SIMT_LANES; n += 8) {
        follow = follow && relative[n] - relative[n - 8] == (int32_t)(8 * key->bytes);
    }
    return follow ? SIMT_SHAPE_CONTIGUOUS : SIMT_SHAPE_EIGHTS;
}

static void find_extremes(struct simt_pattern *pattern) {
    pattern->low = 0;
    pattern->high = 0;
    pattern->misalignment = 0;
    for (size_t n = 0; n < SIMT_LANES; n++) {
        int32_t relative = pattern->relative[n];
        pattern->low = relative < pattern->low ? relative : pattern->low;
        pattern->high = relative > pattern->high ? relative : pattern->high;
        pattern->misalignment |= (uint8_t)relative;
    }
}

void simt_pattern_build(struct simt_pattern *pattern) {
    const struct simt_pattern_key key = simt_pattern_unpack(pattern->key);
    find_extremes(pattern);
    pattern->shape = (uint8_t)shape_of(pattern, &key);
    pattern->leaders = 0;
    memset(pattern->lines, 0, sizeof pattern->lines);
    pattern->words_state = 0;
    pattern->cost = 0;
    pattern->least = 0;
    switch (key.cost) {
    case SIMT_COST_SECTORS:
        count_sectors(pattern, &key);
        break;
    case SIMT_COST_WAVEFRONTS:
        if (key.joined != SIMT_JOINED_RIDER) {
            count_wavefronts(pattern, &key);
        }
        break;
    case SIMT_COST_LOCAL:
        count_local_sectors(pattern, &key);
        break;
    case SIMT_COST_NONE:
    case SIMT_COST_CONSTANT:
        break;
    }
}

uint32_t simt_pattern_leaders(struct simt_pattern *pattern) {
    if (pattern->leaders == 0) {
        pattern->leaders = leaders_of(pattern->relative, (uint32_t)pattern->key);
    }
    return pattern->leaders;
}

/*
 * What the uses of a pattern add to the counters of the launch and of the site.
 */

/* A pattern with the number of its uses: of all, and of those that are requests of their own. */
struct tally {
    struct simt_pattern *pattern;
    struct simt_pattern_key key;
    uint64_t uses, requests;
};

static uint64_t count_lines(const struct tally *t) {
    uint64_t lines = 0;
    for (uint32_t sector = 0; sector < 4; sector++) {
        if (t->pattern->uses[sector] > 0) {
            uint8_t *each = &t->pattern->lines[sector];
            *each = *each > 0 ? *each
                              : (uint8_t)simt_pattern_lines(t->pattern, 32 * sector + t->key.phase);
            lines += t->pattern->uses[sector] * *each;
        }
    }
    return lines;
}

static void count_global(const struct tally *t, struct simt_counters *counters) {
    uint64_t sectors = t->uses * t->pattern->cost;
    counters->global_lines += count_lines(t);
    counters->l2_sectors += sectors;
    counters->global_bytes += t->pattern->lanes * t->key.bytes;
    if (t->key.kind == SIMT_READ) {
        counters->global_load_requests += t->requests;
        counters->global_load_sectors += sectors;
    } else {
        counters->global_store_requests += t->requests;
        counters->global_store_sectors += sectors;
    }
}

static void count_shared(const struct tally *t, struct simt_counters *counters) {
    uint64_t wavefronts = t->uses * t->pattern->cost;
    counters->shared_bank_conflicts += wavefronts - t->uses * t->pattern->least;
    if (t->key.kind == SIMT_READ) {
        counters->shared_load_requests += t->requests;
        counters->shared_load_wavefronts += wavefronts;
    } else {
        counters->shared_store_requests += t->requests;
        counters->shared_store_wavefronts += wavefronts;
    }
}

static void count_atomic(const struct tally *t, struct simt_counters *counters) {
    uint64_t places = (uint64_t)__builtin_popcount(simt_pattern_leaders(t->pattern));
    counters->atomic_requests += t->requests;
    counters->atomic_lanes += t->pattern->lanes;
    counters->l2_sectors += t->key.cost == SIMT_COST_SECTORS ? t->uses * t->pattern->cost : 0;
    if (t->key.cost != SIMT_COST_NONE) {
        counters->atomic_serial += t->pattern->lanes - t->uses * places;
    }
    if (t->key.cost == SIMT_COST_WAVEFRONTS && places > 1) { /* as a load's: they read, too */
        counters->atomic_serial += t->uses * t->pattern->cost;
    }
}

/* A cache of constants gives a warp one address at a time. */
static void count_constant(const struct tally *t, struct simt_counters *counters) {
    uint64_t places = (uint64_t)__builtin_popcount(simt_pattern_leaders(t->pattern));
    counters->constant_serial += t->uses * (places - 1);
}

/* Whether a place in the program is looked at by what it did there. */
static bool has_site(const struct simt_pattern_key *key) {
    return key->cost != SIMT_COST_NONE && key->cost != SIMT_COST_CONSTANT &&
           key->joined != SIMT_JOINED_RIDER;
}

static void count_site(const struct tally *t, struct simt_site *site) {
    uint64_t cost = t->uses * t->pattern->cost;
    uint64_t least = t->uses * t->pattern->least;
    site->requests += t->requests;
    site->lanes += t->pattern->lanes;
    if (t->key.cost == SIMT_COST_WAVEFRONTS) {
        site->wavefronts += cost;
        site->least_wavefronts += least;
    } else {
        site->sectors += cost;
        site->least_sectors += least;
    }
    if (t->key.cost == SIMT_COST_SECTORS && t->key.kind != SIMT_ATOMIC) {
        site->lines += count_lines(t);
    }
}

void simt_pattern_tally(struct simt_pattern *pattern, struct simt_counters *counters,
                        struct simt_site *sites) {
    struct tally t = {.pattern = pattern, .key = simt_pattern_unpack(pattern->key)};
    for (int sector = 0; sector < 4; sector++) {
        t.uses += pattern->uses[sector];
    }
    t.requests = t.key.part ? 0 : t.uses;
    if (t.uses == 0 || t.key.joined == SIMT_JOINED_RIDER ||
        (t.key.cost == SIMT_COST_NONE && t.key.kind != SIMT_ATOMIC)) {
        /* nothing that is counted */
    } else if (t.key.kind == SIMT_ATOMIC) {
        count_atomic(&t, counters);
    } else if (t.key.cost == SIMT_COST_CONSTANT) {
        count_constant(&t, counters);
    } else if (t.key.cost == SIMT_COST_SECTORS) {
        count_global(&t, counters);
    } else if (t.key.cost == SIMT_COST_WAVEFRONTS) {
        count_shared(&t, counters);
    } else {
        counters->local_requests += t.requests;
        counters->local_sectors += t.uses * pattern->cost;
        counters->l2_sectors += t.uses * pattern->cost;
    }
    if (sites != NULL && has_site(&t.key)) {
        count_site(&t, &sites[pattern->site]);
    }
    memset(pattern->uses, 0, sizeof pattern->uses);
    pattern->lanes = 0;
}
