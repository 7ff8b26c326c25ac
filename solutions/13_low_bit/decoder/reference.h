/**
 * @file reference.h
 * @brief The low-bit decoder written out in double on the CPU, with keys and values of 8 bits.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_REFERENCE_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_REFERENCE_H_

#include <stdint.h>

#include "common/nn/low_bit.h"
#include "labs/10_llama2_decoder/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A layer's matrices on the host; gate_up has the gate's rows first. */
struct reference_layer {
    struct low_bit_matrix qkv, out, gate_up, down;
    float *attention_norm, *ffn_norm; /**< (C) */
};

/** A model on the host; of `sizes` only sizes and numbers are read, no weights. */
struct reference_model {
    struct decoder_model sizes;
    uint16_t *embedding; /**< (V, C) bf16 */
    struct reference_layer *layers;
    float *final_norm;
    struct low_bit_matrix classifier;
};

/** What it remembers: keys and values as stored, scale times bits. */
struct reference_cache {
    double *k, *v; /**< (L, T, KVH*HS) */
    bool rounded;  /**< whether they have 8 bits; else none are lost */
};

/** @brief logits (V) of a token at a position, after those before it. */
MUST_CHECK enum status reference_token(const struct reference_model *m,
                                       const struct reference_cache *cache, int32_t token,
                                       size_t position, double *logits);

#ifdef __cplusplus
}
#endif

#endif
