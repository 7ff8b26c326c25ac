/**
 * @file quantize_awq.h
 * @brief Multiplies the matrices of a Llama2's layers by AWQ's scales, and divides by them the
 * norms and matrices that make their inputs: the model computes what it did before.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_AWQ_H_
#define WARPBOOK_COMMON_PROGRAMS_DECODER_QUANTIZE_AWQ_H_

#include "common/base/status.h"
#include "common/nn/low_bit.h"
#include "common/programs/decoder/decoder_session.h"

/** New weights, and for each matrix what awq_quantize() wants to know. Starts as zeros. */
struct quantize_awq {
    struct quantize_awq_memory *memory; /**< all that was allocated */
    size_t count;
};

/**
 * @brief Scales a layer. Its weights in the session's fp32 become new ones, which the session does
 *        not own.
 *
 * q, k and v share a scale, which goes into the norm before them; gate and up likewise. What wo
 * multiplies is divided in wv, where heads that share values share a scale; what w2 multiplies in
 * w3. Where wv or w3 has a bias, which is not rounded, wo or w2 stays as it is.
 * @param session its engine has gathered the inputs of the layer's matrices
 * @param layout  type, group (0: the row), scales and zero points; sizes are not read
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status quantize_awq_scale(struct quantize_awq *awq, struct decoder_session *session,
                                          size_t layer, const struct low_bit_layout *layout,
                                          struct error *error);

/** @return for awq_quantize(): (K); @p weights are those of the session now. */
const double *quantize_awq_inverse(const struct quantize_awq *awq, const float *weights);

void quantize_awq_free(struct quantize_awq *awq);

#endif
