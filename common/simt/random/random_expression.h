/**
 * @file random_expression.h
 * @brief Random expressions of CUDA C, from templates.
 *
 * A template is text in which `$` and one character stand for a part still to be chosen:
 *
 *     a A  h H  i I  l L     expression of 8, 16, 32, 64 bits; capital: unsigned
 *     f d x y                of float, double, __half, __nv_bfloat16
 *     ?                      condition
 *     4 5 6                  shift count below 16, 32, 64
 *     k                      any 32-bit constant; n: one that is not 0
 *     r                      rounding: rn rz ru rd
 *     M                      mask of the lanes that run this code together
 *     N                      number of the kernel
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_EXPRESSION_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_EXPRESSION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/simt/random/random_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Letters of the types that a variable can have, in the order of their bits in a set. */
#define RANDOM_TYPES "aAhHiIlLfdxy"
enum { RANDOM_TYPE_COUNT = 12, RANDOM_VARIABLES = 24 };

/** Set of types, a bit for each letter of RANDOM_TYPES. */
typedef uint32_t random_types;

/** @return the set that has only @p letter. */
random_types random_type_set(char letter);

/** @return how the type is written, as "u32". */
const char *random_type_name(char letter);

struct random_variable {
    char type;     /**< letter */
    char name[12]; /**< as "s64_1" */
};

/** A kernel or device function while it is written. */
struct random_writer {
    struct rng rng;
    uint64_t seed;
    struct random_text text;
    random_types types; /**< that the kernel uses */
    struct random_variable variables[RANDOM_VARIABLES];
    size_t variable_count;
    const char *mask; /**< text of $M; NULL where lanes have parted */
};

/** @return a number below @p bound. */
unsigned random_below(struct random_writer *writer, unsigned bound);

/** @return true in @p percent of all cases. */
bool random_chance(struct random_writer *writer, unsigned percent);

/** @return one letter of the types in use. */
char random_type(struct random_writer *writer);

/** Writes a constant of the type. */
void random_constant(struct random_writer *writer, char type);

/** Writes an expression; @p depth 0: a variable or a constant. */
void random_expression(struct random_writer *writer, char type, unsigned depth);

/** Writes a template; its parts have @p depth. */
void random_fill(struct random_writer *writer, const char *template, unsigned depth);

/** @return true when all types that the template names are in use. */
bool random_fits(const struct random_writer *writer, const char *template);

#ifdef __cplusplus
}
#endif

#endif
