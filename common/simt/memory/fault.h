/**
 * @file fault.h
 * @brief What went wrong in a kernel, said so that a beginner can find it.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_FAULT_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_FAULT_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/simt/memory/race/history.h"

struct simt_warp;
struct simt_instruction;
struct simt_run;

enum simt_fault_kind {
    SIMT_FAULT_NONE,
    SIMT_FAULT_OUT_OF_BOUNDS,
    SIMT_FAULT_MISALIGNED,
    SIMT_FAULT_TEXTURE, /**< a handle that is no such object, or an object that does not fit */
    SIMT_FAULT_FREED,
    SIMT_FAULT_UNINITIALISED,
    SIMT_FAULT_SHUFFLE, /**< a value of a lane that is not there */
    SIMT_FAULT_SHARED_RACE,
    SIMT_FAULT_COPY,       /**< bytes that an asynchronous copy is on its way to */
    SIMT_FAULT_PRODUCT,    /**< registers that a wgmma still uses, or a missing wgmma.fence */
    SIMT_FAULT_PROXY,      /**< a missing fence.proxy.async */
    SIMT_FAULT_BLOCK_RACE, /**< threads of one block, in global memory */
    SIMT_FAULT_GLOBAL_RACE,
    SIMT_FAULT_STREAM_RACE, /**< of two pieces of work: threads and lines are not known */
    SIMT_FAULT_HOST_RACE,   /**< of a piece of work and the host: the same */
    SIMT_FAULT_EARLY,       /**< a dependent launch that has not waited for the one before */
    SIMT_FAULT_BARRIER,
    SIMT_FAULT_STACK, /**< calls too deep for the thread's stack */
    SIMT_FAULT_ENDLESS,
    SIMT_FAULT_UNSUPPORTED,
    SIMT_FAULT_TRAP,
    SIMT_FAULT_ASSERT
};

enum { SIMT_FAULT_CALLERS = 4 };

/** A line of the program. */
struct simt_fault_place {
    char file[256]; /**< "" when it is not known */
    uint32_t line;
};

/** The later one of two accesses that race, and what is known of the earlier one. */
struct simt_encounter {
    bool raced;     /**< there is such a pair: the members below say which */
    bool is_shared; /**< in shared memory; else in global memory */
    bool blocks;    /**< of two blocks */
    uint32_t warp, lane, bytes;
    uint64_t address; /**< shared memory: the offset in it */
    uint64_t home;    /**< shared memory: position of its block in the grid */
    struct simt_race other;
    const struct simt_instruction *instruction;
};

/** One fault: its place, its thread, and a description. */
struct simt_fault {
    enum simt_fault_kind kind;
    char kernel[1024]; /**< templates have long names */
    char file[256];    /**< "" when the build has no -lineinfo */
    uint32_t line;
    struct simt_fault_place callers[SIMT_FAULT_CALLERS]; /**< of a function that was inlined there:
                                                              the nearest call first */
    struct simt_fault_place other; /**< of the other access of a race, or of the read of an
                                        undefined value, where that is another line */
    uint32_t block[3], thread[3];
    uint64_t address;
    uint64_t order;   /**< position of the block in the grid: the lowest of several faults wins */
    char text[1024];  /**< what happened, one or more sentences, no newline at the end */
    const char *hint; /**< what to try, in place of the hint for all faults of this kind; or NULL */
    struct simt_encounter race;
    bool racing; /**< a value was used that another thread writes without being ordered */
};

/**
 * @brief Reports a fault of one lane: fills in kernel, source line, block and thread, and stops
 *        the block. Only the first fault of a block is kept.
 * @param format printf format of what happened: "writes 4 bytes at 0x..., ..."
 */
void simt_fail(struct simt_warp *warp, const struct simt_instruction *instruction, uint32_t lane,
               enum simt_fault_kind kind, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/**
 * @brief Writes where an instruction stands in the program: " at sgemm.cu:31"; nothing where that
 *        is not known.
 * @return @p text
 */
const char *simt_place_text(const struct simt_run *run, const struct simt_instruction *instruction,
                            char *text, size_t size);

/**
 * @brief Names a thread of a block of the launch: "thread (3,0,0)".
 * @param thread its number in the block
 * @return @p text
 */
const char *simt_thread_text(const struct simt_run *run, uint32_t thread, char *text, size_t size);

/** Writes the plain name of a C++ function without its parameters; the mangled one where that is
 * not easy. */
void simt_function_text(const char *mangled, char *name, size_t size);

/** The same as a place; an empty one where it is not known. */
void simt_place_find(const struct simt_run *run, const struct simt_instruction *instruction,
                     struct simt_fault_place *place);

/** @return what a kind of fault is called, "race in shared memory". */
const char *simt_fault_name(enum simt_fault_kind kind);

/** @return what to try, for all faults of a kind; NULL: nothing is known. */
const char *simt_fault_hint(enum simt_fault_kind kind);

/** Writes the kind and, where it is known, the thread: "race ...: thread (0,0,0) of ...".
 *  @return @p text */
const char *simt_fault_head(const struct simt_fault *fault, char *text, size_t size);

/** Prints a fault on several lines: what, kernel, file:line, block and thread. */
void simt_fault_print(const struct simt_fault *fault, FILE *stream);

#endif
