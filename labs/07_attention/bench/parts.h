/**
 * @file parts.h
 * @brief What the files of lab 07's bench share.
 */
#ifndef WARPBOOK_LABS_07_ATTENTION_BENCH_PARTS_H_
#define WARPBOOK_LABS_07_ATTENTION_BENCH_PARTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/bench/bench.h"
#include "common/bench/device/device_bench.h"
#include "common/device/device.h"
#include "labs/07_attention/attention.h"

/** One problem of the bench: T = S, NH = KVH. */
struct bench_shape {
    enum nn_dtype dtype;
    size_t B, NH, T, HS;
    bool causal;
};

/** The command line, and the GPU. */
struct bench_setup {
    bool quick;
    bool all;                        /**< also steps that take seconds a call */
    const struct bench_shape *shape; /**< NULL: the default list */
    const char *step;                /**< the only one to measure, or NULL */
    struct device_properties gpu;
};

/** How a batch of sequences of different lengths lies in memory. */
enum bench_form {
    FORM_FULL,   /**< every sequence has T tokens */
    FORM_MASKED, /**< lengths[b] of T tokens each, the others hidden by a mask */
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

/** @return floating-point operations that the formula needs, hidden pairs left out. */
double bench_case_flops(const struct bench_case *c);

/** @return bytes of q, k, v and out. */
double bench_case_bytes(const struct bench_case *c);

/**
 * @brief Compares what out holds with the double oracle, at queries spread over all.
 * @return STATUS_MISMATCH, naming the step, when they differ
 */
MUST_CHECK enum status bench_case_verify(const struct bench_case *c, const char *step,
                                         struct error *error);

/** Frees; a zero-initialised one is allowed. */
void bench_case_free(struct bench_case *c);

/** Runs the step once, verifies, and times it. */
MUST_CHECK enum status bench_case_time(const struct bench_setup *setup, struct bench_case *c,
                                       const struct attention_step *step,
                                       struct bench_timing *timing, struct error *error);

/** @return STATUS_INVALID_ARGUMENT, naming what there is, when the ladder has no such step. */
MUST_CHECK enum status bench_check_step(const char *name, struct error *error);

/** Prints the table of all steps for every shape and appends the records. */
MUST_CHECK enum status bench_ladder(const struct bench_setup *setup, struct error *error);

/** Lengths as texts have them, padded against packed: prints, and appends the records. */
MUST_CHECK enum status bench_lengths(const struct bench_setup *setup, struct error *error);

/** One product for q, k and v against three: prints, and appends the records. */
MUST_CHECK enum status bench_projection(const struct bench_setup *setup, struct error *error);

/** BERT with the first step and the last one, padded and packed: prints, and appends the records.
 */
MUST_CHECK enum status bench_model(const struct bench_setup *setup, struct error *error);

/** Draws (B) lengths from 1 to T, most of them short, the longest T; the same every time. */
void bench_draw_lengths(int32_t *lengths, size_t B, size_t T);

#endif
