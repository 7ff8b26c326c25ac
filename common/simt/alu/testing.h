/**
 * @file testing.h
 * @brief Judges an instruction of the arithmetic families lane by lane, against a reference.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_TESTING_H_
#define WARPBOOK_COMMON_SIMT_ALU_TESTING_H_

#include "common/base/rng.h"
#include "common/simt/alu/fixture.h"

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

/** Notes a failure of the test for each of the opcodes, with @p sources sources, that is known. */
void alu_check_refused(const char *const opcodes[], size_t count, size_t sources);

#endif
