/**
 * @file memory_harness.h
 * @brief One warp, made by hand, that runs single memory instructions: for tests and benches.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_MEMORY_HARNESS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_ACCESS_MEMORY_HARNESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/memory/access/access.h"
#include "common/simt/memory/run.h"
#include "common/testing/fixture.h"

/** Registers by number: 16 of each size. R128 takes two rows. */
enum { R64 = 0, R32 = 16, R16 = 32, R128 = 48, HARNESS_REGISTERS = 64 };

enum { HARNESS_WARPS = 4, HARNESS_SHARED = 8192, HARNESS_LOCAL = 256, HARNESS_PARAMETERS = 64 };

/** A block of four warps with memory around it. Members may be changed between instructions. */
struct harness {
    struct simt_memory *memory;
    struct simt_run run;
    struct simt_block block;
    struct simt_warp warps[HARNESS_WARPS];
    struct simt_warp *warp; /**< the one that runs: warps[0] at first */
    struct simt_counters counters;
    struct ptx_module module;
    struct ptx_function function;
    struct ptx_register registers[HARNESS_REGISTERS];
    struct simt_global_shadow *global_shadow;
    char *files[2];
    unsigned char parameters[HARNESS_PARAMETERS];
};

/** An instruction with everything it points to. */
struct harness_instruction {
    char text[96];
    char opcode[96];
    struct ptx_instruction source;
    struct ptx_operand operands[4];
    struct ptx_operand elements[2][SIMT_MAX_VECTOR];
    struct simt_instruction decoded;
};

/** Registers of an instruction; a count of 0 is "none". */
struct harness_operands {
    int dst[SIMT_MAX_VECTOR];
    size_t dst_count;
    int address;
    int64_t offset;
    int src[SIMT_MAX_VECTOR]; /**< data of a store or atomic, all elements */
    size_t src_count;
    int compare; /**< third operand of cas, or 0: none */
};

/** Makes the block; false when memory is short. */
bool harness_create(struct harness *harness, enum simt_check check);

void harness_free(struct harness *harness);

/** A test that sees a harness with these checks as `h`. */
#define HARNESS_TEST(suite, name, check) \
    FIXTURE_TEST(suite, name, struct harness, h, harness_create(h, check), harness_free(h))

/** Another block takes the place of the one before: same launch, empty shared memory. */
void harness_next_block(struct harness *harness, uint64_t order);

/** Sets the active lanes of the running warp. */
void harness_mask(struct harness *harness, uint32_t mask);

/** @return the row of a register of the running warp. */
union simt_row *harness_row(const struct harness *harness, int number);

/** Allocates device memory; 0 when that fails. */
uint64_t harness_alloc(struct harness *harness, size_t bytes);

/** @return where the host finds a device address. */
unsigned char *harness_host(const struct harness *harness, uint64_t address);

/** Decodes an instruction. @return false when the family does not know it */
bool harness_decode(struct harness *harness, struct harness_instruction *instruction,
                    const char *opcode, const struct harness_operands *operands);

/** Decodes and runs one. @return true when it is known and no fault came up */
bool harness_run(struct harness *harness, const char *opcode,
                 const struct harness_operands *operands);

/** Row R64 (or R32) of the address register: first + lane * stride. */
void harness_addresses(struct harness *harness, int number, uint64_t first, int64_t stride);

#endif
