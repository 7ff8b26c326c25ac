/**
 * @file linear.h
 * @brief One call of kv_linear() with random values, its result in double, and device memory.
 */
#ifndef WARPBOOK_LABS_09_KV_CACHE_PROBLEM_LINEAR_H_
#define WARPBOOK_LABS_09_KV_CACHE_PROBLEM_LINEAR_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/testing/device_buffer.h"
#include "labs/09_kv_cache/kv_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum status kv_linear_function(const struct kv_linear *linear, device_stream stream,
                                       struct error *error);

enum kv_residual {
    KV_NO_RESIDUAL,
    KV_RESIDUAL,
    KV_IN_PLACE /**< out is the residual */
};

struct kv_linear_spec {
    size_t N, K;
    enum nn_dtype dtype;
    bool norm;
    enum kv_residual residual;
    size_t skew; /**< elements that every pointer is past a 256-byte boundary */
};

struct kv_linear_case {
    struct kv_linear_spec spec;
    struct kv_linear call;
    struct device_buffer weight, in, norm, residual, out;
    float *weight_host, *in_host, *norm_host; /**< (N, K) as stored, (K), (K) */
    float *residual_host;                     /**< (N) */
    double *y;                                /**< (K): the normed input */
    double *want;                             /**< (N) */
    double size; /**< typical size of the sums, which errors are relative to */
    float *got;  /**< (N): what kv_linear_case_check() read */
    char name[160];
};

/**
 * @brief Creates values, result and device memory.
 *
 * With a norm eps is 0.25, large enough that a wrong one fails.
 */
MUST_CHECK enum status kv_linear_case_create(struct kv_linear_case *c,
                                             const struct kv_linear_spec *spec, struct rng *rng,
                                             bool guarded, struct error *error);

/** Gives a copy of a case device memory of its own on the device in use; host memory is shared. */
MUST_CHECK enum status kv_linear_case_place(struct kv_linear_case *copy, struct error *error);

/** Frees a copy's device memory. */
void kv_linear_case_unplace(struct kv_linear_case *copy);

/** Draws in and residual anew, and computes the result: on the host alone. */
void kv_linear_case_draw(struct kv_linear_case *c, struct rng *rng);

/** Copies in and residual to the device; out holds NaN, or the residual. */
MUST_CHECK enum status kv_linear_case_send(struct kv_linear_case *c, struct error *error);

/** kv_linear_case_draw() and kv_linear_case_send(): for another call. */
MUST_CHECK enum status kv_linear_case_renew(struct kv_linear_case *c, struct rng *rng,
                                            struct error *error);

/** Poisons out, or stores the residual in it, runs, and waits. */
MUST_CHECK enum status kv_linear_case_run(struct kv_linear_case *c, kv_linear_function *run,
                                          device_stream stream, struct error *error);

/**
 * @brief Reads and checks the last run's result.
 *
 * Weights are given as stored and arithmetic is fp32, so the tolerance is that of an fp32 dot
 * product for every type, plus eight roundings with a norm.
 *
 * @param text receives the mistake, or ""
 */
MUST_CHECK enum status kv_linear_case_check(struct kv_linear_case *c, char *text, size_t size,
                                            struct error *error);

/** Frees; allowed after kv_linear_case_create() has failed. */
void kv_linear_case_free(struct kv_linear_case *c);

#ifdef __cplusplus
}
#endif

#endif
