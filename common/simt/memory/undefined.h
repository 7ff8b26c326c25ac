/**
 * @file undefined.h
 * @brief Values that a thread has but must not use: of memory that nothing has written, or of a
 *        lane that a shuffle does not reach.
 *
 * Loading such a value and dropping it is no fault, and libraries do so on purpose. So registers
 * carry it along: a frame has a cell for each of its rows and predicates, with the lanes that are
 * undefined and the origin of the value, the instruction that brought it. Instructions pass it on
 * (core/schedule/undefined_step.c), and memory of the block does so, too: bytes that receive it
 * count as not written. It is a fault where a thread uses it: as an address, to decide a branch, in
 * an atomic operation, a store to global memory, a function of the system.
 *
 * A warp has no cells until it meets such a value, and pays nothing until then.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_UNDEFINED_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_UNDEFINED_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/simt/core/exec.h"
#include "common/simt/memory/run.h"

/** The undefined lanes of a row or predicate. */
struct simt_undefined_cell {
    uint32_t lanes;
    uint32_t origin; /**< simt_undefined_note(); of the value that came last */
};

/** Where undefined values came from: one load or shuffle of one warp. */
struct simt_undefined_origin {
    const struct simt_instruction *instruction; /**< NULL: the entry is free */
    const struct simt_block *home; /**< shared memory: whose; NULL counts as the warp's block */
    enum ptx_space space;          /**< of the bytes; PTX_REGISTER: a shuffle */
    uint32_t warp;
    uint32_t lanes; /**< that received such a value */
    bool racing;    /**< of bytes that another thread writes without being ordered */
    uint32_t bytes;
    uint32_t mask;       /**< shuffle: the lanes named in the mask */
    uint32_t ended;      /**< shuffle: the lanes that have returned or never were */
    uint32_t other_mask; /**< shuffle: the lanes at `other`, when it ran */
    const struct simt_instruction *other; /**< shuffle: where the first lane's source was instead;
                                             NULL: not known */
    uint64_t addresses[SIMT_LANES];       /**< shuffle: the lane whose value was wanted */
};

/** The origins of a block. */
struct simt_undefined;

/** @return NULL when memory is short. */
struct simt_undefined *simt_undefined_create(void);
void simt_undefined_free(struct simt_undefined *undefined);

/** A new block begins. */
void simt_undefined_reset(struct simt_undefined *undefined);

/**
 * @brief Enters where values come from.
 *
 * Of an instruction that a warp runs repeatedly each lane's first value is kept.
 * @return the entry's number, for cells; later entries may replace it
 */
uint32_t simt_undefined_note(struct simt_undefined *undefined,
                             const struct simt_undefined_origin *origin);

/** @return the entry of that number. */
struct simt_undefined_origin *simt_undefined_entry(struct simt_undefined *undefined,
                                                   uint32_t origin);

/** @return the entry of an instruction of a warp; NULL: there is none. */
struct simt_undefined_origin *simt_undefined_last(struct simt_undefined *undefined,
                                                  const struct simt_instruction *instruction,
                                                  uint32_t warp);

/**
 * @brief Lanes of a row of the running function become undefined, in addition to others.
 * @return false when memory is short
 */
bool simt_undefined_set(struct simt_warp *warp, uint32_t row, uint32_t lanes, uint32_t origin);

/** Lanes of a row become defined. */
void simt_undefined_clear(struct simt_warp *warp, uint32_t row, uint32_t lanes);

/** @return the undefined lanes of a row of the running function; *origin is set where there are
 *  some. */
uint32_t simt_undefined_lanes(const struct simt_warp *warp, uint32_t row, uint32_t *origin);

/** Bytes of the block's shared memory, or of its threads' local memory (the address is the place in
 *  simt_block.local), receive an undefined value: for the message of a later load. */
void simt_undefined_keep(struct simt_warp *warp, enum ptx_space space, uint64_t address,
                         uint32_t bytes, uint32_t origin);

/** @return true when bytes hold an undefined value that was kept; *origin is where it came from. */
bool simt_undefined_kept(const struct simt_warp *warp, enum ptx_space space, uint64_t address,
                         uint32_t bytes, uint32_t *origin);

/** How an undefined value is used; the message says so. */
enum simt_undefined_use {
    SIMT_USE_NONE, /**< that it is read is the fault, as by an atomic operation */
    SIMT_USE_ADDRESS,
    SIMT_USE_BRANCH,
    SIMT_USE_STORE,
    SIMT_USE_STORE_FOR_PEER, /**< in the shared memory of another block */
    SIMT_USE_UPDATE,
    SIMT_USE_BARRIER,
    SIMT_USE_CALL,
    SIMT_USE_PRINT
};

/** Reports the use of an undefined value by a lane. */
void simt_undefined_fail(struct simt_warp *warp, const struct simt_instruction *instruction,
                         uint32_t lane, const struct simt_undefined_origin *origin,
                         enum simt_undefined_use use);

#endif
