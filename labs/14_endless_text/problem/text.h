/**
 * @file text.h
 * @brief A text whose tokens are fed one after the other through endless_attention(): random
 * inputs, the results in double, and device memory.
 */
#ifndef WARPBOOK_LABS_14_ENDLESS_TEXT_PROBLEM_TEXT_H_
#define WARPBOOK_LABS_14_ENDLESS_TEXT_PROBLEM_TEXT_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/testing/device_buffer.h"
#include "labs/14_endless_text/endless_text.h"

#ifdef __cplusplus
extern "C" {
#endif

struct endless_text_spec {
    size_t NH, KVH, HS, rotary, sinks, window;
    enum nn_dtype dtype;
    enum nn_rope_layout layout;
    float loudness; /**< size of the scores; 0: about 1 */
    size_t skew;    /**< elements that every pointer is past a 256-byte boundary */
};

/** Inputs of the call, in device memory. */
enum endless_text_input {
    ENDLESS_POSITION,
    ENDLESS_ANGLES,
    ENDLESS_Q,
    ENDLESS_K_NEW,
    ENDLESS_V_NEW,
    ENDLESS_TEXT_INPUTS
};

struct endless_text {
    struct endless_text_spec spec;
    struct endless_attention call;
    struct device_buffer in[ENDLESS_TEXT_INPUTS], k, v, out;
    struct rng rng;
    size_t position, tokens; /**< of the next token; most tokens of a text */
    float *q;                /**< host: (NH*HS), of the last token */
    float *k_all, *v_all;    /**< (tokens, KVH*HS): of all tokens, as stored, not rotated */
    double *rotated;         /**< (HS) */
    double *scores, *terms;  /**< (sinks + window): and the size of a score's products */
    double *want;            /**< (NH*HS): of the last token */
    float *got;
    double largest_score, largest_value;
    /** Squares of what outputs move by with each score and each weight, for a rounding of 1: of all
        outputs together, and of one. */
    double drift, largest_drift;
    char name[200];
};

/** Creates device memory for texts of up to @p tokens tokens. The cache holds NaN. */
MUST_CHECK enum status endless_text_create(struct endless_text *t,
                                           const struct endless_text_spec *spec, size_t tokens,
                                           uint64_t seed, bool guarded, struct error *error);

/** Begins a new text: position 0. The cache keeps what the old one has left. */
void endless_text_restart(struct endless_text *t);

/** Draws the next token: inputs on the device, NaN in out. */
MUST_CHECK enum status endless_text_next(struct endless_text *t, struct error *error);

/**
 * @brief Computes the result of the last token anew from all keys and values of the text, by
 * places, and checks out, the canaries and the inputs.
 *
 * Tolerance. A rotated element has the error of two fp32 products, a score that of a dot product of
 * length HS; a result is an average of values, so it errs by the scores' error times a value, and
 * by its own sums'. In 16 bits keys and values are rounded, in whichever of their forms is kept.
 *
 * @param text receives the mistake, or ""
 */
MUST_CHECK enum status endless_text_check(struct endless_text *t, char *text, size_t size,
                                          struct error *error);

/** Frees; allowed after endless_text_create() has failed. */
void endless_text_free(struct endless_text *t);

#ifdef __cplusplus
}
#endif

#endif
