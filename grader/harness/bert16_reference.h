/**
 * @file bert16_reference.h
 * @brief The reference for a BERT in bf16: it rounds what the encoder in 16 bits keeps in 16 bits.
 *
 * Two encoders that round at the same places differ by sums in another order, and by the attention
 * kernel's own roundings; against an fp32 model both are many times as far off, which would leave
 * room for products of fewer bits.
 */
#ifndef WARPBOOK_GRADER_HARNESS_BERT16_REFERENCE_H_
#define WARPBOOK_GRADER_HARNESS_BERT16_REFERENCE_H_

#include "common/base/status.h"
#include "common/checkpoints/bert/bert_random.h"
#include "common/models/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Rounds the layers' matrices and their biases to bf16, in place. */
void bert16_round_weights(struct bert_random *model);

/**
 * @brief Makes the CPU reference with these roundings: products' results and attention's; hidden
 *        states, but for the last layer's. What a LayerNorm reads stays fp32.
 * @param layers of the one model that runs on it, which runs whole batches
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status bert16_reference_create(struct engine *engine, size_t layers);

#ifdef __cplusplus
}
#endif

#endif
