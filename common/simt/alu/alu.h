/**
 * @file alu.h
 * @brief Shared by the arithmetic families: how an opcode finds its handler.
 *
 * A family holds tables of (key, handler). The key is the opcode; for floating
 * point the modifiers that every operation may have (rounding, .ftz, .sat ...)
 * are taken out first and become flags, which the entry must allow.
 */
#ifndef WARPBOOK_COMMON_SIMT_ALU_ALU_H_
#define WARPBOOK_COMMON_SIMT_ALU_ALU_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simt/core/exec.h"

/** Elements of an array. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum alu_flag {
    ALU_FTZ = 1,
    ALU_SAT = 2,
    ALU_RELU = 4,
    ALU_NAN = 8,
    ALU_XORSIGN = 16,
    ALU_APPROX = 32,
    ALU_FULL = 64,
    ALU_SATFINITE = 128,
};

/** Rounding modes. The first four are also the values of MXCSR's rounding field. */
enum alu_rounding {
    ALU_NEAREST,    /**< .rn, .rni: ties to even */
    ALU_DOWN,       /**< .rm, .rmi */
    ALU_UP,         /**< .rp, .rpi */
    ALU_ZERO,       /**< .rz, .rzi */
    ALU_AWAY,       /**< .rna: ties away from zero */
    ALU_NO_ROUNDING /**< no modifier */
};

/** An opcode with the common modifiers taken out. */
struct alu_form {
    char key[48]; /**< "add.f32" */
    uint32_t flags;
    enum alu_rounding rounding;
    bool to_integer; /**< the modifier was .rni .rzi .rmi .rpi */
};

/** @return false when the key does not fit or a modifier is doubled. */
bool alu_form_parse(const struct ptx_instruction *source, struct alu_form *form);

struct alu_entry {
    const char *key;
    simt_handler *run;
};

/** @return the handler under @p key, or NULL. */
simt_handler *alu_find(const struct alu_entry *entries, size_t count, const char *key);

/** Sets the handler under the whole opcode, and its class. @return false when there is none. */
bool alu_decode_entry(const struct alu_entry *entries, size_t count, enum simt_class op_class,
                      const struct simt_decoding *decoding, struct simt_instruction *out);

/** How a floating-point operation may be rounded. */
enum alu_rounding_rule {
    ALU_ROUNDING_OPTIONAL, /**< none is .rn */
    ALU_ROUNDING_REQUIRED, /**< a mode */
    ALU_ROUNDING_NONE,
    ALU_NEAREST_OPTIONAL, /**< .rn or none */
    ALU_NEAREST_REQUIRED  /**< .rn */
};

/** A floating-point operation. */
struct alu_float_entry {
    const char *key;
    simt_handler *plain, *ftz;
    simt_handler *general; /**< for all other flags, and for rounding other than to nearest */
    uint32_t allowed;      /**< enum alu_flag */
    uint32_t required;     /**< flags that must be there */
    enum alu_rounding_rule rounding;
    uint8_t op_class, flops;
};

/**
 * @brief Finds the entry that allows an instruction's modifiers, and sets its handler.
 *
 * detail[0] receives the flags, detail[1] the rounding.
 *
 * @return false when there is none
 */
bool alu_decode_float(const struct alu_float_entry *entries, size_t count,
                      const struct simt_decoding *decoding, struct simt_instruction *out);

/**
 * @return the type with which an instruction reads or writes one operand: it is
 *         not the instruction's in shift amounts, products of mul.wide, results of popc ...
 * @param operand its number in the text, the destination being 0
 */
enum ptx_type alu_operand_type(const struct ptx_instruction *source, size_t operand);

/**
 * @return false when a register's lanes are wider or narrower than the
 *         instruction reads there (8 bytes against 4): no handler expects that
 */
bool alu_operands_fit(const struct simt_decoding *decoding);

/** @return bits of operand @p operand's register; of the instruction's type when it is none. */
size_t alu_register_bits(const struct simt_decoding *decoding, size_t operand);

/** Parts of simt_decode_integer. */
simt_decode_family alu_decode_arithmetic;
simt_decode_family alu_decode_carry;
simt_decode_family alu_decode_bits;
/** Parts of simt_decode_float. */
simt_decode_family alu_decode_f32;
simt_decode_family alu_decode_f64;
simt_decode_family alu_decode_special;
/** Parts of simt_decode_convert. */
simt_decode_family alu_decode_cvt;
simt_decode_family alu_decode_move;

#endif
