/**
 * @file fixture.h
 * @brief One instruction of the arithmetic families, its rows and a warp, for tests and the bench.
 *
 * The instruction is made from its opcode alone. Operand n is register n: the
 * destination is 0 (a predicate where the opcode has one), sources follow.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_FIXTURE_H_
#define WARPBOOK_COMMON_SIMT_ALU_FIXTURE_H_

#include "common/simt/alu/alu.h"

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

#endif
