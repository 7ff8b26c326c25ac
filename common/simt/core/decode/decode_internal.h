/**
 * @file decode_internal.h
 * @brief What the files of the decoder share.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DECODE_DECODE_INTERNAL_H_
#define WARPBOOK_COMMON_SIMT_CORE_DECODE_DECODE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/core/code.h"

/** A shared or local variable of the function, with its offset in its space. */
struct placed_variable {
    const char *name;
    enum ptx_space space;
    uint64_t offset;
};

/** State of decoding one function. */
struct decoder {
    struct simt_code *code;
    const struct ptx_function *function;
    const struct simt_linker *linker;
    const struct ptx_instruction *source; /**< being decoded */
    uint32_t *register_rows;              /**< by register: row offset, or predicate number */
    struct placed_variable *placed;
    size_t placed_count;
    size_t fill_capacity;
    uint32_t *sources; /**< of the instruction being decoded: its own or a longer list */
    size_t source_limit;
    uint32_t discard_row; /**< offset + 1 of the row behind `_`; 0: none yet */
};

/** @return offset of @p bytes more of the frame. */
uint32_t decode_take_rows(struct decoder *decoder, uint32_t bytes);

/** Finds or makes the row of a constant. */
MUST_CHECK enum status decode_constant(struct decoder *decoder, bool wide, uint64_t value,
                                       uint32_t *offset);

/** @return true when the first operand is written. */
bool decode_has_destination(const struct ptx_instruction *instruction);

/** @return true when source number @p source is read from 8-byte lanes. */
bool decode_source_is_wide(const struct ptx_instruction *instruction, size_t source);

/** Resolves all operands of an instruction that is no call and no branch. */
MUST_CHECK enum status decode_operands(struct decoder *decoder, const struct ptx_instruction *in,
                                       struct simt_instruction *out);

/** Decodes control flow: bra, brx, call, ret, exit, trap, bar. @return false: another family's */
MUST_CHECK enum status decode_flow(struct decoder *decoder, const struct ptx_instruction *in,
                                   struct simt_instruction *out, bool *known);

/** Decodes ld.param and st.param of a function's frame. @return STATUS_OK with *known false: not
 * one */
MUST_CHECK enum status decode_frame_parameter(struct decoder *decoder,
                                              const struct ptx_instruction *in,
                                              struct simt_instruction *out, bool *known);

/** @return the function's own parameter of that name, or NULL. */
const struct simt_parameter *decode_find_parameter(const struct decoder *decoder, const char *name);

/** Finds the offset of a shared or local variable in its space. @return false: there is none */
bool decode_variable_offset(const struct decoder *decoder, const char *symbol, uint64_t *offset);

/** Sets the origins of all instructions that have been decoded. @return STATUS_OK or
 *  STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status decode_origins(struct decoder *decoder, const struct ptx_module *module);

/* Basic blocks of a decoded function, and where control goes from each. */

/** Blocks in the order of the text. Successors of block b: edges[edge_start[b] ..
 * edge_start[b+1]-1].
 */
struct simt_blocks {
    size_t count;
    uint32_t *first;      /**< (count + 1): instructions of block b are first[b] .. first[b+1]-1 */
    uint32_t *edge_start; /**< (count + 1) */
    uint32_t *edges;
    uint32_t *of; /**< (instructions): number of the block */
};

/**
 * @brief Finds the blocks; sets code->leader.
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY; simt_blocks_free() in both cases
 */
MUST_CHECK enum status simt_blocks_find(struct simt_blocks *blocks, const struct simt_code *code);

void simt_blocks_free(struct simt_blocks *blocks);

/* What is known of the alignment of registers before a kernel runs. */

/** Of each row of a frame. */
struct simt_alignment {
    uint8_t *zeros;         /**< (row_bytes / SIMT_ROW32): low bits that are always 0, at most 12 */
    const uint64_t **value; /**< (the same): of a constant; NULL: not one */
};

/**
 * @brief Follows constants, addresses of variables, sums, products and shifts through a function.
 *
 * Looks at no order: a register has the alignment that all its definitions share.
 *
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status simt_alignment_find(struct simt_alignment *alignment,
                                           const struct simt_code *code);

void simt_alignment_free(struct simt_alignment *alignment);

/** @return low bits of the row at @p offset that are always 0. */
static inline uint32_t simt_alignment_zeros(const struct simt_alignment *a, uint32_t offset) {
    return a->zeros[offset / SIMT_ROW32];
}

/** @return true and the constant that the row at @p offset holds. */
static inline bool simt_alignment_constant(const struct simt_alignment *a, uint32_t offset,
                                           uint64_t *value) {
    const uint64_t *constant = a->value[offset / SIMT_ROW32];
    if (constant != NULL) {
        *value = *constant;
    }
    return constant != NULL;
}

/*
 * What a PTX instruction becomes on the GPU: how many machine instructions, how long
 * until its result is there.
 *
 * PTX is not machine code: a move between registers vanishes, a division
 * becomes twenty instructions. The numbers are round figures seen in the
 * machine code that ptxas of nvcc 13 makes for sm_90.
 */

/** Sets `machine` and `latency` of every instruction, and code->sums; after simt_join_accesses().
 *  @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_set_costs(struct simt_code *code);

/*
 * How many 32-bit registers ptxas would give a thread, judged from the PTX alone.
 *
 * PTX has as many registers as it likes. What a thread needs at once is found
 * by liveness over the basic blocks (64-bit registers count twice, predicates
 * not). ptxas adds a few, and moves loads up, away from their first use, which
 * keeps more values alive; but not so far that fewer warps would fit.
 */

/** Sets code->estimated_registers, for all functions but its own callees.
 *  @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_estimate_registers(struct simt_code *code);

/* Finds which PTX registers every instruction reads and writes: simt_code.uses. */

/** Sets code->uses. @return STATUS_OK or STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status simt_uses_find(struct simt_code *code);

void simt_uses_free(struct simt_code *code);

/** Sets repeats_base and base of the instructions that have one; after simt_order_blocks() and
 *  simt_uses_find(). */
void simt_find_bases(struct simt_code *code);

#endif
