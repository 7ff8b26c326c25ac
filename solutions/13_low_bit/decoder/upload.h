/**
 * @file upload.h
 * @brief Takes a matrix of few bits from the host to the device, into the decoder's order.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_UPLOAD_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_UPLOAD_H_

#include "solutions/13_low_bit/decoder/low_bit_decoder.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Copies a matrix of the host to the device and puts it into the decoder's order; waits.
 * @param matrix host
 * @param out    receives device memory, which device_free() frees
 * @return as low_bit_decoder_prepare(), and what device_alloc() says
 */
MUST_CHECK enum status low_bit_decoder_upload(const struct low_bit_matrix *matrix, bool paired,
                                              const void **out, device_stream stream,
                                              struct error *error);

#ifdef __cplusplus
}
#endif

#endif
