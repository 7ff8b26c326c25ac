/**
 * @file fault.h
 * @brief What went wrong in a kernel, said so that a beginner can find it.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_FAULT_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_FAULT_H_

#include <stdint.h>
#include <stdio.h>

struct simt_warp;
struct simt_instruction;

enum simt_fault_kind {
    SIMT_FAULT_NONE,
    SIMT_FAULT_OUT_OF_BOUNDS,
    SIMT_FAULT_MISALIGNED,
    SIMT_FAULT_FREED,
    SIMT_FAULT_UNINITIALISED,
    SIMT_FAULT_SHARED_RACE,
    SIMT_FAULT_COPY,       /**< bytes that an asynchronous copy is on its way to */
    SIMT_FAULT_BLOCK_RACE, /**< threads of one block, in global memory */
    SIMT_FAULT_GLOBAL_RACE,
    SIMT_FAULT_BARRIER,
    SIMT_FAULT_ENDLESS,
    SIMT_FAULT_UNSUPPORTED,
    SIMT_FAULT_TRAP,
    SIMT_FAULT_ASSERT
};

/** One fault: its place, its thread, and a description. */
struct simt_fault {
    enum simt_fault_kind kind;
    char kernel[256];
    char file[256]; /**< "" when the build has no -lineinfo */
    uint32_t line;
    uint32_t block[3], thread[3];
    uint64_t address;
    uint64_t order; /**< position of the block in the grid: the lowest of several faults wins */
    char text[768]; /**< what happened, one or more sentences, no newline at the end */
};

/**
 * @brief Reports a fault of one lane: fills in kernel, source line, block and thread, and stops
 *        the block. Only the first fault of a block is kept.
 * @param format printf format of what happened: "writes 4 bytes at 0x..., ..."
 */
void simt_fail(struct simt_warp *warp, const struct simt_instruction *instruction, uint32_t lane,
               enum simt_fault_kind kind, uint64_t address, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/** Prints a fault on several lines: what, kernel, file:line, block and thread. */
void simt_fault_print(const struct simt_fault *fault, FILE *stream);

#endif
