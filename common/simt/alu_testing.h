/**
 * @file alu_testing.h
 * @brief For tests of the arithmetic families: one instruction, its rows and a warp.
 *
 * The instruction is made from its opcode alone. Operand n is register n: the
 * destination is 0 (a predicate where the opcode has one), sources follow.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_TESTING_H_
#define WARPBOOK_COMMON_SIMT_ALU_TESTING_H_

#include "common/base/rng.h"
#include "common/simt/exec.h"

enum { ALU_OPERANDS = 6, ALU_PREDICATES = 16 };

struct alu_fixture {
    _Alignas(64) union simt_row rows[ALU_OPERANDS * 2]; /**< two for each operand: 128 bits */
    uint32_t predicates[ALU_PREDICATES]; /**< operand n is predicate n; 8: q of p|q */
    char text[128], pieces[128];
    struct ptx_operand operands[ALU_OPERANDS];
    struct ptx_operand elements[4];
    struct ptx_register registers[ALU_OPERANDS];
    struct ptx_function function;
    struct ptx_instruction source;
    struct simt_instruction instruction;
    struct simt_warp warp;
};

/** Splits @p opcode; all registers get the types that the instruction asks for. */
void alu_fixture_create(struct alu_fixture *fixture, const char *opcode, size_t sources);

/** Gives operand @p n a register of another type. */
void alu_fixture_register(struct alu_fixture *fixture, size_t n, enum ptx_type type);

/** Tries all families in turn, as the decoder does. @return false when none knows it. */
bool alu_fixture_decode(struct alu_fixture *fixture);

/** Sets the active lanes. */
void alu_fixture_mask(struct alu_fixture *fixture, uint32_t mask);

/** @return row of operand @p n. */
union simt_row *alu_fixture_row(struct alu_fixture *fixture, size_t n);

/** Reads a lane of 4 or 8 bytes, whichever operand @p n has. */
uint64_t alu_fixture_lane(struct alu_fixture *fixture, size_t n, size_t lane);

/** Writes such a lane; @p value is cut to the register's width. */
void alu_fixture_set_lane(struct alu_fixture *fixture, size_t n, size_t lane, uint64_t value);

/** A reference: result of one lane from the bits of the sources, zero-extended. */
typedef uint64_t alu_reference(const void *context, const uint64_t source[4]);

/** Makes operand values; @p n is the number of the source, from 0. */
typedef uint64_t alu_operand_maker(struct rng *rng, size_t n, size_t bits);

/** Edge cases of integers half of the time, else random bits. */
alu_operand_maker alu_make_integer;
/** Edge cases of floats of 16 (fp16), 32 or 64 bits; else random bits; else moderate numbers. */
alu_operand_maker alu_make_float;
/** As alu_make_float() with 16 bits being bf16. */
alu_operand_maker alu_make_bfloat;

/**
 * @brief Runs an instruction on many rows, with full, partial and empty masks, with the
 *        destination apart and the same as each source, and compares every lane.
 * @return false after the first difference, which was noted as the test's failure
 */
bool alu_check(const char *opcode, size_t sources, alu_operand_maker *maker,
               alu_reference *reference, const void *context);

#endif
