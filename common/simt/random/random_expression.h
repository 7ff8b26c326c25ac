/**
 * @file random_expression.h
 * @brief Random expressions and statements of CUDA C, from templates.
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

/** Elements of an array. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Text that grows while it is written. */

/** Zero-initialise before use; free(data) after it. */
struct random_text {
    char *data; /**< NUL-terminated; NULL while empty */
    size_t size, capacity;
    bool failed; /**< out of memory: later text is lost */
};

/** Appends @p size bytes. */
void random_text_add(struct random_text *text, const char *bytes, size_t size);

/** Appends as printf does. */
void random_text_print(struct random_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

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

/* Random statements: where a kernel is decides what may stand there. */

/** What statements at one place may do. The mask of lanes is the writer's. */
struct random_place {
    bool whole_block;   /**< all threads of the block come here: barriers are allowed */
    bool whole_warp;    /**< all 32 lanes are in the mask */
    bool in_loop;       /**< break and continue lead out of a loop whose lanes may part */
    bool in_kernel;     /**< not in a device function: out and its atomics can be reached */
    char returns;       /**< type that `return` needs; 0: no early return */
    unsigned depth;     /**< of blocks around the statement */
    unsigned functions; /**< device functions that can be called */
};

/** What a place in the kernel's own body is. */
struct random_place random_place_kernel(unsigned functions);

/** Writes about @p count statements. @p next numbers names, so that all differ. */
void random_statements(struct random_writer *writer, struct random_place place, unsigned count,
                       unsigned *next);

/** Starts a line at the place's depth. */
void random_indent(struct random_writer *writer, const struct random_place *place);

/** A device function of a kernel: `static T f_SEED_N(P, P, P, const u32 *in, u32 *cells)`. */
enum { RANDOM_PARAMETERS = 3 };
struct random_signature {
    char result;
    char parameters[RANDOM_PARAMETERS];
};

/** @return signature @p number of a kernel: types among @p types, depends on the seed only. */
struct random_signature random_signature_of(uint64_t seed, unsigned number, random_types types);

/* What random expressions are made of; the notation is above. */

struct random_template {
    char type;        /**< of the result */
    const char *text; /**< its value has exactly that type */
};

/** Expressions without side effects, that any lane may evaluate at any time. */
extern const struct random_template random_templates[];
extern const size_t random_template_count;

/** Expressions that the lanes of $M evaluate together. */
extern const struct random_template random_warp_templates[];
extern const size_t random_warp_template_count;

/** The same for complete warps only. */
extern const struct random_template random_full_warp_templates[];
extern const size_t random_full_warp_template_count;

#endif
