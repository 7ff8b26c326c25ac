/**
 * @file word_map.h
 * @brief The words that a pattern covers, in runs, and which lane touches each of them.
 *
 * With it the checks look at the words of a request eight at a time instead of
 * lane by lane. Many requests are never looked at in this way, so a map is worked
 * out when it is asked for.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_RACE_WORD_MAP_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_RACE_WORD_MAP_H_

#include <stdbool.h>
#include <stdint.h>

/** In place of a lane: more than one. */
enum { SIMT_SEVERAL_LANES = 32 };

enum { SIMT_MAP_RUNS = 32, SIMT_MAP_WORDS = 128, SIMT_MAP_SPARE = 8 };

/** Words of 4 bytes that follow one another. */
struct simt_word_run {
    int32_t offset; /**< bytes from the first active lane's address */
    uint32_t words;
};

struct simt_word_map {
    int32_t relative[32]; /**< the lanes: see struct simt_footprint */
    uint32_t mask, bytes, phase;
    bool whole;         /**< for sure: there are runs */
    bool known;         /**< worked out: what follows */
    uint32_t run_count; /**< 0: words are covered in part, or there are too many */
    uint32_t crowded;   /**< lanes whose address another active lane has, too */
    struct simt_word_run runs[SIMT_MAP_RUNS];
    uint8_t lanes[SIMT_MAP_SPARE + SIMT_MAP_WORDS + SIMT_MAP_SPARE]; /**< from SIMT_MAP_SPARE on:
                                            (words of all runs) a lane or SIMT_SEVERAL_LANES; the
                                            rest is there to be read, not used */
};

/** The lanes of a request, in bytes. */
struct simt_footprint {
    const int32_t *relative; /**< (32) from the first active lane's address */
    uint32_t mask;           /**< active lanes */
    uint32_t bytes;          /**< of one lane */
    uint32_t phase;          /**< the first active lane's address modulo 4 */
};

/** Notes the lanes of a map that is to be worked out when it is asked for. */
void simt_word_map_set(struct simt_word_map *map, const struct simt_footprint *footprint);

/** Works a map out. */
void simt_word_map_build(struct simt_word_map *map);

/** Works a map out, if that has not been done. */
static inline void simt_word_map_find(struct simt_word_map *map) {
    if (!map->known) {
        simt_word_map_build(map);
    }
}

#endif
