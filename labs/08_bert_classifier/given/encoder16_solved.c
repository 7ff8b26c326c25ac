/* The 16-bit encoder with lab 12's solution. */
#include "labs/08_bert_classifier/given/encoder16.h"

enum status encoder16_create(struct encoder16 **encoder, const struct encoder_model *model,
                             enum nn_dtype dtype, size_t max_tokens, device_stream stream,
                             struct error *error) {
    return encoder16_create_with(encoder, model, dtype, gemm16, max_tokens, stream, error);
}
