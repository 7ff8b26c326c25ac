/**
 * @file stages.h
 * @brief The low-bit decoder as stages of `generate` and `perplexity`: one for each type of
 * weights.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_STAGES_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_STAGES_H_

#include "common/nn/low_bit.h"
#include "common/programs/decoder/decoder_stages.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a stage stores a model's matrices. */
struct low_bit_stage {
    enum low_bit_type type;
    size_t group; /**< INT4 */
};

/**
 * @brief Makes the engine: lab 10's, on the low-bit decoder.
 *
 * Matrices are rounded to nearest when a model is loaded: int8 and e4m3 by row, int4 in groups with
 * zero points and scales in bf16; the embedding, but not a classifier that shares it, becomes bf16.
 * A matrix that the checkpoint stores in as many bits and such groups keeps its numbers
 * (stored_numbers.h), and a line on standard error says how many did.
 * Memory beside the model's: one matrix in fp32 and one of few bits.
 */
MUST_CHECK enum status engine_low_bit_create(struct engine *engine,
                                             const struct low_bit_stage *stage,
                                             struct error *error);

/** @return the stages, 13_int8 the last and so the programs' own choice. */
const struct decoder_stages *low_bit_stages(void);

#ifdef __cplusplus
}
#endif

#endif
