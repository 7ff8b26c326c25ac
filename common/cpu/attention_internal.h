/**
 * @file attention_internal.h
 * @brief What attention.c and attention_few.c share.
 */
#ifndef WARPBOOK_COMMON_CPU_ATTENTION_INTERNAL_H_
#define WARPBOOK_COMMON_CPU_ATTENTION_INTERNAL_H_

#include "common/cpu/cpu_operators.h"

/** One sequence of an attention call. */
struct sequence {
    const struct nn_attention *a; /**< heads, strides, scale */
    const float *q, *k, *v;       /**< of its first token, all heads */
    const uint8_t *mask;          /**< (S) or NULL */
    size_t T, S;
    float *out; /**< (T, NH, HS) */
    float *lse; /**< (T, NH) or NULL */
};

/** Fewer queries a key head than these are computed without packing. */
enum { ATTENTION_FEW = 8 };

/**
 * @brief scores (keys) become e^(scale score - max of all scale scores).
 * @param max receives that maximum, 0 without keys
 * @return their sum
 */
float cpu_attention_exponentiate(float *scores, float scale, size_t keys, float *max);

/** All queries of the heads that read @p kv_head. @param scores scratch, (S) */
void cpu_attend_few(float *scores, const struct sequence *s, size_t kv_head);

#endif
