/**
 * @file row_ops.h
 * @brief Handlers made from one expression: 32 lanes a row, blended where lanes are inactive.
 *
 * ROW_OP1/2/3 define a handler whose destination lane is EXPRESSION of x, y, z,
 * the source lanes cast to their types. The loops carry no dependence: rows are
 * either the same or apart, hence the ivdep, without which a destination that is
 * also a source would make the compiler's run-time check choose the scalar loop.
 * Everything is evaluated in all lanes, so EXPRESSION must be harmless for any
 * operands.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_ROW_OPS_H_
#define WARPBOOK_COMMON_SIMT_ALU_ROW_OPS_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/simt/core/exec.h"

/** `for` over the lanes, free of dependences between iterations. */
#define ROW_EACH_LANE(i) _Pragma("GCC ivdep") for (size_t i = 0; i < SIMT_LANES; i++)

/** Stores LOADS + EXPRESSION into every active lane; for the inside of a handler. */
#define ROW_STORE(OUT, OUT_VIEW, LOADS, EXPRESSION)                  \
    do {                                                             \
        if (simt_full(warp)) {                                       \
            ROW_EACH_LANE(i) {                                       \
                LOADS d->OUT_VIEW[i] = (OUT)(EXPRESSION);            \
            }                                                        \
        } else {                                                     \
            const uint32_t *active = warp->lanes;                    \
            ROW_EACH_LANE(i) {                                       \
                LOADS const OUT value = (OUT)(EXPRESSION);           \
                d->OUT_VIEW[i] = active[i] ? value : d->OUT_VIEW[i]; \
            }                                                        \
        }                                                            \
    } while (0)

#define ROW_HANDLER(NAME) \
    static void NAME(struct simt_warp *warp, const struct simt_instruction *instruction)

#define ROW_DESTINATION union simt_row *d = simt_row(warp, instruction->dst[0])
#define ROW_SOURCE(row, n) const union simt_row *row = simt_row(warp, instruction->src[n])

/** dst = EXPRESSION(x). TX: type of x; VX: the view of its row. */
#define ROW_OP1(NAME, OUT, OUT_VIEW, TX, VX, EXPRESSION)                  \
    ROW_HANDLER(NAME) {                                                   \
        ROW_DESTINATION;                                                  \
        ROW_SOURCE(a, 0);                                                 \
        ROW_STORE(OUT, OUT_VIEW, const TX x = (TX)a->VX[i];, EXPRESSION); \
    }

/** dst = EXPRESSION(x, y). */
#define ROW_OP2(NAME, OUT, OUT_VIEW, TX, VX, TY, VY, EXPRESSION)                       \
    ROW_HANDLER(NAME) {                                                                \
        ROW_DESTINATION;                                                               \
        ROW_SOURCE(a, 0);                                                              \
        ROW_SOURCE(b, 1);                                                              \
        ROW_STORE(OUT, OUT_VIEW, const TX x = (TX)a->VX[i]; const TY y = (TY)b->VY[i]; \
                  , EXPRESSION);                                                       \
    }

/** dst = EXPRESSION(x, y, z). */
#define ROW_OP3(NAME, OUT, OUT_VIEW, TX, VX, TY, VY, TZ, VZ, EXPRESSION)               \
    ROW_HANDLER(NAME) {                                                                \
        ROW_DESTINATION;                                                               \
        ROW_SOURCE(a, 0);                                                              \
        ROW_SOURCE(b, 1);                                                              \
        ROW_SOURCE(c, 2);                                                              \
        ROW_STORE(OUT, OUT_VIEW, const TX x = (TX)a->VX[i]; const TY y = (TY)b->VY[i]; \
                  const TZ z = (TZ)c->VZ[i];, EXPRESSION);                             \
    }

/** Writes a finished row of 4-byte lanes where lanes are active. */
static inline void row_commit32(const struct simt_warp *warp, uint32_t offset,
                                const uint32_t values[SIMT_LANES]) {
    uint32_t *d = simt_row(warp, offset)->u32;

    ROW_EACH_LANE(i) {
        d[i] = warp->lanes[i] ? values[i] : d[i];
    }
}

/** Writes a finished row of 8-byte lanes where lanes are active. */
static inline void row_commit64(const struct simt_warp *warp, uint32_t offset,
                                const uint64_t values[SIMT_LANES]) {
    uint64_t *d = simt_row(warp, offset)->u64;

    ROW_EACH_LANE(i) {
        d[i] = warp->lanes[i] ? values[i] : d[i];
    }
}

/** Sets predicate @p number to @p bits in the active lanes; -1: nowhere. */
static inline void row_commit_predicate(const struct simt_warp *warp, int32_t number,
                                        uint32_t bits) {
    if (number >= 0) {
        warp->predicates[number] = (warp->predicates[number] & ~warp->mask) | (bits & warp->mask);
    }
}

/** @return source @p n, a predicate, with its negation applied. */
static inline uint32_t row_predicate(const struct simt_warp *warp,
                                     const struct simt_instruction *instruction, size_t n) {
    const uint32_t bits = warp->predicates[instruction->src[n]];

    return instruction->src_negated[n] ? ~bits : bits;
}

static inline uint32_t row_bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float row_float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t row_bits_of_double(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double row_double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
