/**
 * @file trial.h
 * @brief Random problems of lab 07's bench on the GPU, their check, and the bench's further parts.
 */
#ifndef WARPBOOK_LABS_07_ATTENTION_BENCH_TRIAL_H_
#define WARPBOOK_LABS_07_ATTENTION_BENCH_TRIAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bench/ladder/ladder_bench.h"
#include "labs/07_attention/attention.h"

/** One problem of the bench: T = S, NH = KVH. */
struct bench_shape {
    enum nn_dtype dtype;
    size_t B, NH, T, HS;
    bool causal;
};

/** Seconds that each step is measured at least, on a GPU. */
#define BENCH_SECONDS 0.2
#define BENCH_QUICK_SECONDS 0.05

/** How a batch of sequences of different lengths lies in memory. */
enum bench_form {
    FORM_FULL,   /**< every sequence has T tokens */
    FORM_MASKED, /**< lengths[b] of T tokens each, the others masked */
    FORM_PACKED  /**< lengths[b] tokens each, without padding */
};

/** A problem with random values on the GPU, q, k and v as thirds of one matrix. */
struct bench_case {
    struct bench_shape shape;
    enum bench_form form;
    size_t tokens;
    const int32_t *lengths; /**< (B), or NULL */
    int32_t *starts;        /**< host, (B + 1) */
    float *qkv;             /**< host, (tokens, 3, NH, HS), as stored */
    void *d_qkv, *d_out, *d_mask, *d_starts;
    struct attention_problem problem;
};

/** Makes values and device memory. @param lengths (B), must live as long; NULL with FORM_FULL */
MUST_CHECK enum status bench_case_create(struct bench_case *c, const struct bench_shape *shape,
                                         enum bench_form form, const int32_t *lengths,
                                         struct error *error);

/** @return FLOPs of both products without masked pairs. @param lengths (B); NULL: T each */
double bench_flops(const struct bench_shape *shape, const int32_t *lengths);

/** @return bytes of q, k, v and out. */
double bench_case_bytes(const struct bench_case *c);

/** Makes out NaN, so that an element that nobody writes is found. */
MUST_CHECK enum status bench_case_poison(const struct bench_case *c, struct error *error);

/**
 * @brief Compares out with the double oracle, at queries spread over all, by attention_tolerance().
 * @param wrong receives what is wrong, or ""
 */
MUST_CHECK enum status bench_case_verify(const struct bench_case *c, char *wrong, size_t size,
                                         struct error *error);

/** Frees; a zero-initialised one is allowed. */
void bench_case_free(struct bench_case *c);

/** Times the step and verifies its result. @return STATUS_MISMATCH, naming the step, if it is wrong
 */
MUST_CHECK enum status bench_case_time(const struct ladder_setup *setup, struct bench_case *c,
                                       const struct attention_step *step,
                                       struct bench_timing *timing, struct error *error);

/** Lengths as texts have them, padded against packed: prints, and appends the records. */
MUST_CHECK enum status bench_lengths(const struct ladder_setup *setup, struct error *error);

/** One product for q, k and v against three: prints, and appends the records. */
MUST_CHECK enum status bench_projection(const struct ladder_setup *setup, struct error *error);

/** BERT with the first step and the last one, padded and packed: prints, and appends the records.
 */
MUST_CHECK enum status bench_model(const struct ladder_setup *setup, struct error *error);

/** Draws (B) lengths from 1 to T, most of them short, the longest T; the same every time. */
void bench_draw_lengths(int32_t *lengths, size_t B, size_t T);

#endif
