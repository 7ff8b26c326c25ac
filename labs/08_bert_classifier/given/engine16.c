/* Stage 08's engine with another encoder: which one takes its type from the function. */
#include "labs/08_bert_classifier/given/engine16.h"

#include "labs/08_bert_classifier/given/encoder16.h"
#include "labs/08_bert_classifier/given/engine.h"

static enum status create(struct encoder **encoder, const struct encoder_model *model,
                          enum nn_dtype dtype, size_t max_tokens, device_stream stream,
                          struct error *error) {
    struct encoder16 *made;
    enum status status = encoder16_create(&made, model, dtype, max_tokens, stream, error);
    *encoder = (struct encoder *)made;
    return status;
}

static enum status create_fp16(struct encoder **encoder, const struct encoder_model *model,
                               size_t max_tokens, device_stream stream, struct error *error) {
    return create(encoder, model, NN_F16, max_tokens, stream, error);
}

static enum status create_bf16(struct encoder **encoder, const struct encoder_model *model,
                               size_t max_tokens, device_stream stream, struct error *error) {
    return create(encoder, model, NN_BF16, max_tokens, stream, error);
}

static enum status run(struct encoder *encoder, const struct encoder_batch *batch,
                       struct error *error) {
    return encoder16_run((struct encoder16 *)encoder, batch, error);
}

static void release(struct encoder *encoder) {
    encoder16_free((struct encoder16 *)encoder);
}

enum status engine_encoder16_create(struct engine *engine, enum nn_dtype dtype,
                                    struct error *error) {
    static const struct encoder_functions fp16 = {create_fp16, run, release};
    static const struct encoder_functions bf16 = {create_bf16, run, release};
    if (dtype != NN_F16 && dtype != NN_BF16) {
        *engine = (struct engine){0};
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the 16-bit encoder computes in fp16 or bf16");
    }
    return engine_encoder_create_with(engine, dtype == NN_F16 ? &fp16 : &bf16, error);
}
