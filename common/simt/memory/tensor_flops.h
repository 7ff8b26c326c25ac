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

#ifdef __cplusplus
}
#endif

#endif
