/**
 * @file encoder16_kernels.h
 * @brief The kernels of the 16-bit encoder that no lab before has: rows, but for the products.
 */
#ifndef WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENCODER16_KERNELS_H_
#define WARPBOOK_LABS_08_BERT_CLASSIFIER_GIVEN_ENCODER16_KERNELS_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/nn/dtype.h"
#include "common/nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Starts a copy of page-locked host memory, which stays as it is until the copy is done. */
MUST_CHECK enum status encoder16_send(int32_t *to, const int32_t *host, size_t count,
                                      device_stream stream, struct error *error);

/** to[i] = from[i], rounded to nearest even. @param to device, (count) @param from device, fp32 */
MUST_CHECK enum status encoder16_round(void *to, const float *from, size_t count,
                                       enum nn_dtype dtype, device_stream stream,
                                       struct error *error);

/** Where the rows of a batch come from; device. */
struct encoder16_tokens {
    const float *word, *position, *type;    /**< tables of C columns, fp32 */
    const int32_t *ids, *positions, *types; /**< (rows): rows of the tables */
};

/** out (rows, C) = LayerNorm(word + position + type). @param norm device pointers, fp32 */
MUST_CHECK enum status encoder16_embed(void *out, const struct encoder16_tokens *tokens,
                                       const struct nn_norm *norm, size_t rows, size_t C,
                                       enum nn_dtype dtype, device_stream stream,
                                       struct error *error);

/**
 * @brief out (rows, C) = LayerNorm(in), in fp32 whatever the types.
 * @param type     of in: 16 bits
 * @param out_type of out: 16 bits, or NN_F32
 * @param norm     device pointers, fp32
 */
MUST_CHECK enum status encoder16_norm(void *out, enum nn_dtype out_type, const void *in,
                                      enum nn_dtype type, const struct nn_norm *norm, size_t rows,
                                      size_t C, device_stream stream, struct error *error);

/** Rows to gather, and where to; device. */
struct encoder16_rows {
    void *out;      /**< (B, C) */
    const void *in; /**< (rows, C) */
};

/** out[b] = in[starts[b]] of one or two matrices. @param starts device, (B) @param element bytes */
MUST_CHECK enum status encoder16_gather(const struct encoder16_rows *matrices, unsigned count,
                                        const int32_t *starts, size_t B, size_t C, size_t element,
                                        device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
