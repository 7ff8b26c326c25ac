/**
 * @file case.h
 * @brief One attention problem with random values, its result by the double oracle, and device
 * memory.
 */
#ifndef WARPBOOK_LABS_07_ATTENTION_PROBLEM_CASE_H_
#define WARPBOOK_LABS_07_ATTENTION_PROBLEM_CASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/rng.h"
#include "common/testing/compare.h"
#include "labs/07_attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Keys that the mask excludes. */
enum attention_case_mask {
    MASK_NONE,
    MASK_PADDING, /**< keys from a random length on, a length a sequence, at least 1 */
    MASK_RANDOM,  /**< each with probability 1/2 */
    MASK_BLOCKS,  /**< runs of 64 keys, each run with probability 1/2 */
    MASK_ALL      /**< all of every second sequence, the first one included */
};

/** Layout of q, k, v and out in memory. */
enum attention_case_layout {
    LAYOUT_SEPARATE, /**< q, k, v and out contiguous */
    LAYOUT_JOINED,   /**< q, k, v thirds of one matrix, as BERT has them; needs NH = KVH, T = S */
    LAYOUT_ODD /**< strides 3 elements more than needed, pointers one element past a boundary */
};

struct attention_spec {
    enum nn_dtype dtype;
    size_t B, T, S, NH, KVH, HS;
    bool causal;
    enum attention_case_mask mask;
    enum attention_case_layout layout;
    const int32_t *starts; /**< (B + 1), host: packed; NULL: padded */
    float loudness;        /**< standard deviation of q's elements; 1 gives scores of about 1 */
};

/** Blocks of inputs: q, k, v (one, if joined), mask, starts. */
enum { ATTENTION_CASE_BLOCKS = 5 };

struct attention_case {
    struct attention_spec spec;
    struct attention_problem problem;
    float *q, *k,
        *v;        /**< host, as stored: rounded to the dtype; masked keys' as the oracle reads */
    uint8_t *mask; /**< host, (B, S), or NULL */
    double *want;  /**< host, (query tokens, NH, HS) */
    float *got;    /**< host, as want: what the last run wrote */
    void *in[ATTENTION_CASE_BLOCKS];      /**< device: each its own allocation, or NULL */
    void *in_host[ATTENTION_CASE_BLOCKS]; /**< what they hold */
    size_t in_bytes[ATTENTION_CASE_BLOCKS];
    int block[3];     /**< in which block q, k and v lie */
    size_t offset[3]; /**< bytes from its beginning */
    void *out_block;  /**< device: canaries, out, canaries */
    unsigned char *out_host;
    size_t out_bytes, guard_bytes, out_offset;
    size_t q_tokens, kv_tokens;
    char name[240];
};

/**
 * @brief Makes values, result and device memory.
 * @param seed    same seed, same values
 * @param guarded canaries around out; on simt better without: it watches the allocation's end
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the status of the device
 */
MUST_CHECK enum status attention_case_create(struct attention_case *c,
                                             const struct attention_spec *spec, uint64_t seed,
                                             bool guarded, struct error *error);

/**
 * @brief Gives a copy of a case memory of its own on the device in use; host memory is shared.
 *
 * For workers that each have a device: attention_case_unplace() frees it, before the case itself
 * goes.
 */
MUST_CHECK enum status attention_case_place(struct attention_case *c, struct error *error);

/** Frees the device memory of a copy; what was never placed is allowed. */
void attention_case_unplace(struct attention_case *c);

/**
 * @brief Other inputs, sent to the device, and their result.
 *
 * Columns of q and k change their signs together, which leaves the scores as they are; columns of
 * v change theirs with the result's. So nothing must be computed anew, and no earlier result is
 * right.
 */
MUST_CHECK enum status attention_case_renew(struct attention_case *c, struct rng *rng,
                                            struct error *error);

/** Makes out NaN, and its canaries whole. */
MUST_CHECK enum status attention_case_poison(const struct attention_case *c, device_stream stream,
                                             struct error *error);

/** Waits, and reads the result. */
MUST_CHECK enum status attention_case_read(struct attention_case *c, device_stream stream,
                                           struct error *error);

/** Poisons out, runs, waits, reads the result. */
MUST_CHECK enum status attention_case_run(struct attention_case *c, attention_function *run,
                                          device_stream stream, struct error *error);

/**
 * @brief How far a result may be from the oracle's.
 *
 * A result is an average of values, so an error of d in the scores moves it by d times a
 * value at most: fp32 scores err like a dot product of length HS (tolerance_dot_f32()), times their
 * size. In fp16 and bf16 the weights are rounded once before they multiply, and the result once:
 * each a rounding of the format, relative to the values and to the result.
 */
struct tolerance attention_case_tolerance(const struct attention_spec *spec);

/**
 * @brief The same for other values than a case's.
 * @param loudness      standard deviation of q's elements
 * @param largest_value magnitude that no element of v exceeds by much
 */
struct tolerance attention_tolerance(enum nn_dtype dtype, size_t HS, double loudness,
                                     double largest_value);

/**
 * @brief Is the last run's result right, by attention_case_tolerance()?
 * @param text receives what is wrong
 */
MUST_CHECK bool attention_case_check(const struct attention_case *c, char *text, size_t size);

/** Frees; a zero-initialised one is allowed. */
void attention_case_free(struct attention_case *c);

#ifdef __cplusplus
}
#endif

#endif
