/**
 * @file vector_math.h
 * @brief exp, erfc-based GELU, tanh and the logistic function in fp32, without branches or calls:
 *        a loop over them becomes vector code in functions marked CPU_CLONES.
 *
 * Relative errors, measured against double over all of the range, in units of 2^-24: exp 1.6, silu
 * 4, tanh 3; GELU's and its slope's are in vector_math_test.c. The polynomials were fitted in the
 * least-maximum sense to the intervals named at each.
 */
#ifndef WARPBOOK_COMMON_CPU_VECTOR_MATH_H_
#define WARPBOOK_COMMON_CPU_VECTOR_MATH_H_

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/base/cpu.h"

/* 2^n, for n from -126 to 127. */
CPU_INLINE float power_of_2(int32_t n) {
    int32_t bits = (n + 127) * (1 << 23);
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/** e^x; 0 below -87.3 (no denormals), infinity above 88.7; NaN stays NaN. */
CPU_INLINE float vector_exp(float x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float clamped = x < -87.3f ? -87.3f : x > 88.8f ? 88.8f : x;
    float n = (clamped * 1.44269504f + round) - round;
    /* ln 2 in two parts: n times the first is exact */
    float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.39505404e-3f; /* (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2 */
    p = p * r + 8.36891788e-3f;
    p = p * r + 4.16662051e-2f;
    p = p * r + 1.66665185e-1f;
    p = p * r + 5.00000010e-1f;
    p = (p * r) * r + r + 1.0f;
    /* in two factors, because 2^128 is too large for one; NaN has any n */
    int32_t whole = clamped == clamped ? (int32_t)n : 0, half = whole / 2;
    float result = p * power_of_2(half) * power_of_2(whole - half);
    return x < -87.3f ? 0.0f : result;
}

/** 1 / (1 + e^-x). */
CPU_INLINE float vector_sigmoid(float x) {
    return 1.0f / (1.0f + vector_exp(-x));
}

/** x / (1 + e^-x). */
CPU_INLINE float vector_silu(float x) {
    return x / (1.0f + vector_exp(-x));
}

CPU_INLINE float vector_tanh(float x) {
    float z = x * x;
    float p = -5.69857680e-3f; /* (tanh(x) / x - 1) / x^2 on |x| <= 0.63 */
    p = p * z + 2.06381577e-2f;
    p = p * z - 5.37413652e-2f;
    p = p * z + 1.33314950e-1f;
    p = p * z - 3.33332859e-1f;
    float small = x + x * z * p;
    float large = 1.0f - 2.0f / (vector_exp(2.0f * fabsf(x)) + 1.0f);
    return fabsf(x) < 0.625f ? small : copysignf(large, x);
}

/**
 * The upper tail of the normal distribution, Q(x) = erfc(x / sqrt 2) / 2 for x >= 0, given
 * e^(-x^2 / 2). With t = x / sqrt 2, erfc(t) = e^(-t^2) P((t - 3) / (t + 3)) / (1 + 2t).
 */
CPU_INLINE float normal_tail(float x, float gauss) {
    float t = x * 0.707106781f;
    float inverse = 1.0f / ((t + 3.0f) * (2.0f * t + 1.0f)); /* of both, by one division */
    float q = (t - 3.0f) * (2.0f * t + 1.0f) * inverse;
    float p = -1.61929624e-4f; /* for t from 0 to 10.3 */
    p = p * q + 2.23362994e-3f;
    p = p * q + 2.21322882e-3f;
    p = p * q - 2.40257374e-2f;
    p = p * q + 6.83589331e-2f;
    p = p * q - 1.19218076e-1f;
    p = p * q + 1.29642512e-1f;
    p = p * q - 4.75662004e-2f;
    p = p * q - 1.35621062e-1f;
    p = p * q + 1.25300810f;
    return 0.5f * gauss * p * (t + 3.0f) * inverse;
}

/** Phi(x), the normal distribution, without cancellation in the tail. */
CPU_INLINE float vector_normal(float x, float gauss) {
    float magnitude = fabsf(x) > 14.5f ? 14.5f : fabsf(x); /* gauss is 0 there */
    float tail = normal_tail(magnitude, gauss);
    return x < 0.0f ? tail : 1.0f - tail;
}

/** x Phi(x): GELU. */
CPU_INLINE float vector_gelu(float x) {
    return x * vector_normal(x, vector_exp(-0.5f * x * x));
}

/** Phi(x) + x phi(x): the derivative of GELU. */
CPU_INLINE float vector_gelu_slope(float x) {
    float gauss = vector_exp(-0.5f * x * x);
    return vector_normal(x, gauss) + x * 0.398942280f * gauss;
}

/** GELU's approximation by tanh: 0.5 (1 + tanh u) = 1 / (1 + e^-2u). */
CPU_INLINE float vector_gelu_tanh(float x) {
    float u = 0.797884561f * (x + 0.044715f * x * x * x);
    return x / (1.0f + vector_exp(-2.0f * u));
}

#endif
