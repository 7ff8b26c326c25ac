/**
 * @file instruction_class.h
 * @brief The classes of warp instructions that the report counts. Apart from the rest, as programs
 *        that only read counters need nothing else of the emulator.
 */
#ifndef WARPBOOK_COMMON_SIMT_CORE_INSTRUCTION_CLASS_H_
#define WARPBOOK_COMMON_SIMT_CORE_INSTRUCTION_CLASS_H_

/** Classes of warp instructions, as the report counts them. */
enum simt_class {
    SIMT_CLASS_INTEGER,
    SIMT_CLASS_FLOAT, /**< fp32, fp16 and bf16 arithmetic */
    SIMT_CLASS_DOUBLE,
    SIMT_CLASS_SPECIAL, /**< ex2, lg2, rcp, rsqrt, sin, cos, tanh, sqrt, division */
    SIMT_CLASS_CONVERT,
    SIMT_CLASS_MOVE,
    SIMT_CLASS_PREDICATE, /**< setp, selp, predicate logic */
    SIMT_CLASS_CONTROL,
    SIMT_CLASS_GLOBAL,
    SIMT_CLASS_SHARED,
    SIMT_CLASS_LOCAL,
    SIMT_CLASS_CONSTANT, /**< constant memory and parameters */
    SIMT_CLASS_ATOMIC,
    SIMT_CLASS_WARP, /**< shuffle, vote, match, redux */
    SIMT_CLASS_BARRIER,
    SIMT_CLASS_TENSOR, /**< mma, wmma, ldmatrix */
    SIMT_CLASS_OTHER,
    SIMT_CLASS_COUNT
};

#endif
