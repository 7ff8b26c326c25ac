/**
 * @file draw.h
 * @brief Numbers that a seed draws, for choices that a program must not foresee.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DRAW_H_
#define WARPBOOK_COMMON_SIMT_CORE_DRAW_H_

#include <stdint.h>

/** @return a number that nobody guesses who does not know the seed. */
static inline uint64_t simt_draw(uint64_t seed, uint64_t number) {
    uint64_t mixed = seed + (number + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

#endif
