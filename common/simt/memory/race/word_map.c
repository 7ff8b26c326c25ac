#include "common/simt/memory/race/word_map.h"

#include <stddef.h>
#include <string.h>

enum { LANES = 32, NOBODY = 255 };

/* How many active lanes come before each lane by ascending address. */
static void rank_lanes(const struct simt_word_map *f, int32_t ranks[LANES]) {
    int32_t relative[LANES];
    memcpy(relative, f->relative, sizeof relative);
    memset(ranks, 0, LANES * sizeof *ranks);
    for (uint32_t rest = f->mask; rest != 0; rest &= rest - 1) {
        int32_t lane = __builtin_ctz(rest);
        int32_t address = relative[lane];
        for (int32_t n = 0; n < LANES; n++) {
            ranks[n] += (relative[n] > address) | ((relative[n] == address) & (n > lane));
        }
    }
}

/* Active lanes by ascending address. @return their number */
static uint32_t sort_lanes(const struct simt_word_map *f, uint32_t order[LANES]) {
    uint32_t count = 0;
    bool sorted = true;
    for (uint32_t rest = f->mask; rest != 0; rest &= rest - 1) {
        order[count] = (uint32_t)__builtin_ctz(rest);
        sorted =
            sorted && (count == 0 || f->relative[order[count - 1]] <= f->relative[order[count]]);
        count++;
    }
    if (!sorted) {
        int32_t ranks[LANES];
        rank_lanes(f, ranks);
        for (uint32_t rest = f->mask; rest != 0; rest &= rest - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(rest);
            order[ranks[lane]] = lane;
        }
    }
    return count;
}

/* Runs in bytes while they grow: `words` counts bytes until the end. @return false: too many */
static bool find_runs(struct simt_word_map *map, const uint32_t order[LANES], uint32_t count) {
    for (uint32_t n = 0; n < count; n++) {
        int64_t begin = map->relative[order[n]];
        struct simt_word_run *last = map->run_count > 0 ? &map->runs[map->run_count - 1] : NULL;
        if (last == NULL || begin > (int64_t)last->offset + last->words) {
            if (map->run_count == SIMT_MAP_RUNS) {
                return false;
            }
            map->runs[map->run_count++] =
                (struct simt_word_run){.offset = (int32_t)begin, .words = map->bytes};
        } else if (begin + map->bytes > (int64_t)last->offset + last->words) {
            last->words = (uint32_t)(begin - last->offset) + map->bytes;
        }
    }
    return true;
}

/* From bytes to words. @return false when words are covered in part or are too many */
static bool count_words(struct simt_word_map *map) {
    uint32_t total = 0;
    for (uint32_t n = 0; n < map->run_count; n++) {
        struct simt_word_run *run = &map->runs[n];
        if (((uint32_t)run->offset + map->phase) % 4 != 0 || run->words % 4 != 0) {
            return false;
        }
        run->words /= 4;
        total += run->words;
    }
    return total <= SIMT_MAP_WORDS;
}

static void name_lanes(struct simt_word_map *map, const uint32_t order[LANES], uint32_t count) {
    uint32_t base = 0, run = 0;
    memset(map->lanes, NOBODY, sizeof map->lanes);
    for (uint32_t n = 0; n < count; n++) {
        int64_t begin = map->relative[order[n]];
        const struct simt_word_run *r = &map->runs[run];
        uint32_t next = begin >= (int64_t)r->offset + 4 * (int64_t)r->words; /* a lane begins it */
        base += next * r->words;
        run += next;
        uint32_t at = (uint32_t)(begin - map->runs[run].offset);
        for (uint32_t word = at / 4; word <= (at + map->bytes - 1) / 4; word++) {
            uint8_t *lane = &map->lanes[SIMT_MAP_SPARE + base + word];
            *lane = *lane == NOBODY ? (uint8_t)order[n] : SIMT_SEVERAL_LANES;
        }
    }
}

void simt_word_map_set(struct simt_word_map *map, const struct simt_footprint *f) {
    uint32_t offsets = f->phase | f->bytes;
    memcpy(map->relative, f->relative, sizeof map->relative);
    for (uint32_t n = 0; n < LANES; n++) {
        offsets |= (uint32_t)map->relative[n];
    }
    map->mask = f->mask;
    map->bytes = f->bytes;
    map->phase = f->phase;
    map->whole = offsets % 4 == 0 && f->bytes <= 4 * SIMT_MAP_WORDS / LANES;
    map->known = false;
}

void simt_word_map_build(struct simt_word_map *map) {
    uint32_t order[LANES];
    uint32_t count = sort_lanes(map, order);
    map->known = true;
    map->run_count = 0;
    map->crowded = 0;
    for (uint32_t n = 1; n < count; n++) {
        if (map->relative[order[n]] == map->relative[order[n - 1]]) {
            map->crowded |= 1u << order[n] | 1u << order[n - 1];
        }
    }
    if (find_runs(map, order, count) && count_words(map)) {
        name_lanes(map, order, count);
    } else {
        map->run_count = 0;
    }
}
