/**
 * @file tensor_flops.h
 * @brief Which of the counted operations tensor cores did.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_TENSOR_FLOPS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_TENSOR_FLOPS_H_

#include "common/simt/memory/counters.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @return operations that only tensor cores can have done: those beyond what the other units' warp
 *         instructions do with all of their lanes
 */
static inline double simt_tensor_flops(const struct simt_counters *c) {
    const double each = 2.0 * 32; /* a fused multiply-add in each lane of a warp */
    double others =
        each * (double)(c->instructions[SIMT_CLASS_FLOAT] + c->instructions[SIMT_CLASS_DOUBLE] +
                        c->instructions[SIMT_CLASS_SPECIAL]);
    double rest = (double)c->flops - others;
    return c->instructions[SIMT_CLASS_TENSOR] > 0 && rest > 0.0 ? rest : 0.0;
}

/** @return whether operands of that format are integers, whose products are no flops */
static inline int simt_tensor_is_integer(enum simt_tensor_format format) {
    return format == SIMT_TENSOR_INT8 || format == SIMT_TENSOR_INT4;
}

/** @return what tensor cores multiplied and added in all formats but the integers' */
static inline double simt_tensor_float_operations(const struct simt_counters *c) {
    double sum = 0.0;
    for (int format = 0; format < SIMT_TENSOR_FORMATS; format++) {
        sum += simt_tensor_is_integer((enum simt_tensor_format)format)
                   ? 0.0
                   : (double)c->tensor_operations[format];
    }
    return sum;
}

/** @return of simt_tensor_flops(), those of operands that are shorter than fp32: all but doubles'
 */
static inline double simt_short_tensor_flops(const struct simt_counters *c) {
    double all = simt_tensor_float_operations(c);
    double doubles = all > 0.0 ? (double)c->tensor_operations[SIMT_TENSOR_F64] / all : 0.0;
    return simt_tensor_flops(c) * (1.0 - doubles);
}

#ifdef __cplusplus
}
#endif

#endif
