/**
 * @file rows_decoder.h
 * @brief A step of up to eight texts at once, on the low-bit decoder's weights: each matrix is read
 * once for all of them.
 *
 * Texts have positions and keys of their own. A step is one persistent kernel from compute
 * capability 9.0 on, else a CUDA graph of nine launches a layer. The weights are those of
 * low_bit_decoder.h, int8 or int4, in the same order, so that both decoders can share them.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_DECODER_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_ROWS_DECODER_H_

#include "solutions/13_low_bit/decoder/low_bit_decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most texts at once. */
#define ROWS_MOST ((size_t)8)

/** What a step reads and writes: DEVICE memory, the same for the decoder's life. */
struct rows_io {
    float *logits;            /**< (rows, V) */
    const int32_t *tokens;    /**< (rows) */
    const int32_t *positions; /**< (rows): of those tokens, each below T */
};

/** How a step is made. */
enum rows_form {
    ROWS_FASTEST,  /**< as one persistent kernel where the GPU supports it, else by launches; inputs
                        of products are fp16 in the kernel */
    ROWS_LAUNCHES, /**< a CUDA graph of nine launches a layer; inputs have 22 bits */
};

struct rows_decoder;

/**
 * @brief Makes a decoder of `rows` texts, each with a context of T tokens.
 *
 * @param model copied; what it points to outlives the decoder
 * @param rows  1 .. ROWS_MOST
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT for rows; STATUS_UNSUPPORTED with a line, for what
 *         low_bit_decoder_create() does not support, and for e4m3; what device_alloc() says
 */
MUST_CHECK enum status rows_decoder_create(struct rows_decoder **decoder,
                                           const struct low_bit_decoder_model *model,
                                           const struct rows_io *io, size_t rows,
                                           enum rows_form form, device_stream stream,
                                           struct error *error);

/**
 * @brief Feeds each text its token at its position. What a text fed at or behind that is forgotten.
 *
 * The work is on the stream given at creation.
 * @param longest HOST: the largest of the positions, or more; below T
 */
MUST_CHECK enum status rows_decoder_feed(struct rows_decoder *decoder, size_t longest,
                                         struct error *error);

/** Frees it; the caller has synchronised. NULL is allowed. */
void rows_decoder_free(struct rows_decoder *decoder);

#ifdef __cplusplus
}
#endif

#endif
