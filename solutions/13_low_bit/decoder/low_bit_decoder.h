/**
 * @file low_bit_decoder.h
 * @brief A Llama2 decoder whose matrices have 8 or 4 bits a weight and whose keys and values have
 * 8: a token is one persistent kernel, lab 10's d8.
 *
 * The matrices are int8 or e4m3 by row with scales in fp32, or int4 in groups of 32 or 128 with
 * scales in bf16 or fp16; the embedding is bf16, norms and activations are fp32. A product's input
 * has 16 bits or more, so what differs from fp32 is what the stored weights and keys say.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_DECODER_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_DECODER_H_

#include "common/nn/low_bit.h"
#include "labs/10_llama2_decoder/decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A model. `sizes` is as for lab 10, but that dtype is NN_BF16, the embedding's, and that the
 * layers' matrices and the classifier are what low_bit_decoder_prepare() made: qkv (NH + 2 KVH) *
 * HS rows, out, gate_up with `paired`, down.
 */
struct low_bit_decoder_model {
    struct decoder_model sizes;
    enum low_bit_type type;
    size_t group;              /**< INT4: 32 or 128; else not read */
    enum nn_dtype scale_dtype; /**< INT4: NN_BF16 or NN_F16; else not read */
};

struct low_bit_decoder;

/** @return bytes of a matrix in the decoder's order. @param paired as below */
size_t low_bit_decoder_prepared_bytes(const struct low_bit_layout *layout, bool paired);

/**
 * @brief Puts a matrix into the decoder's order. Starts the work on a stream; does not wait for it.
 * @param matrix   device memory, plain order; lab 13's low_bit_check_layout() takes its layout
 * @param paired   gate and up: (2 * hidden, C), rows of the gate, then of up
 * @param prepared device memory of low_bit_decoder_prepared_bytes(), 256-byte aligned
 * @return STATUS_OK; what low_bit_check_layout() says; STATUS_DEVICE
 */
MUST_CHECK enum status low_bit_decoder_prepare(const struct low_bit_matrix *matrix, bool paired,
                                               void *prepared, device_stream stream,
                                               struct error *error);

/**
 * @brief Makes a decoder for a context of T tokens. T * KVH * (2 HS + 8) bytes a layer are its
 * cache.
 *
 * @param model copied; what it points to outlives the decoder
 * @param io    as for decoder_create()
 * @return STATUS_OK; STATUS_UNSUPPORTED with a line, for a model or a GPU that the kernel does not
 *         support: heads of 64, 128 or 256, C and hidden a multiple of 8, one or an even number of
 *         queries a key head, compute capability 8.0, and 200 KiB of shared memory; what
 *         device_alloc() says
 */
MUST_CHECK enum status low_bit_decoder_create(struct low_bit_decoder **decoder,
                                              const struct low_bit_decoder_model *model,
                                              const struct decoder_io *io, device_stream stream,
                                              struct error *error);

/** As decoder_prefill() and decoder_step(): a prompt's tokens are fed one by one. */
MUST_CHECK enum status low_bit_decoder_prefill(struct low_bit_decoder *decoder,
                                               const int32_t *tokens, size_t count, size_t position,
                                               struct error *error);
MUST_CHECK enum status low_bit_decoder_step(struct low_bit_decoder *decoder, size_t position,
                                            struct error *error);

/** The kernel alone: feeds io's token, without drawing one. For benches. */
MUST_CHECK enum status low_bit_decoder_feed(struct low_bit_decoder *decoder, size_t position,
                                            struct error *error);

/** @return bytes that a token at a position reads: weights, norms, keys and values. */
size_t low_bit_decoder_bytes(const struct low_bit_decoder *decoder, size_t position);

/** Frees it; the caller has synchronised. NULL is allowed. */
void low_bit_decoder_free(struct low_bit_decoder *decoder);

#ifdef __cplusplus
}
#endif

#endif
