/**
 * @file random_statement.h
 * @brief Random statements: where a kernel is decides what may stand there.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_STATEMENT_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_STATEMENT_H_

#include "common/simt/random/random_expression.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
