/**
 * @file low_bit_model.h
 * @brief The matrices of a low-bit decoder's model, and which models are supported.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_MODEL_H_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_LOW_BIT_MODEL_H_

#include "solutions/13_low_bit/decoder/low_bit_decoder.h"
#include "solutions/13_low_bit/decoder/low_bit_layout.h"

enum low_bit_product {
    LOW_BIT_QKV,
    LOW_BIT_OUT,
    LOW_BIT_GATE_UP,
    LOW_BIT_DOWN,
    LOW_BIT_CLASSIFIER,
    LOW_BIT_PRODUCTS
};

/* @return sizes of the product's matrix in the decoder's order */
struct low_bit_stream low_bit_model_stream(const struct low_bit_decoder_model *m,
                                           enum low_bit_product which);

/* @return STATUS_OK, or STATUS_UNSUPPORTED with a line, as low_bit_decoder_create() does */
MUST_CHECK enum status low_bit_model_check(const struct low_bit_decoder_model *m,
                                           struct error *error);

#endif
