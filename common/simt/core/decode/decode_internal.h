/**
 * @file decode_internal.h
 * @brief What the files of the decoder share.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_DECODE_DECODE_INTERNAL_H_
#define WARPBOOK_COMMON_SIMT_CORE_DECODE_DECODE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/** Finds the offset of a shared or local variable in its space. @return false: there is none */
bool decode_variable_offset(const struct decoder *decoder, const char *symbol, uint64_t *offset);

/** Sets the origins of all instructions that have been decoded. @return STATUS_OK or
 *  STATUS_OUT_OF_MEMORY */
MUST_CHECK enum status decode_origins(struct decoder *decoder, const struct ptx_module *module);

#endif
