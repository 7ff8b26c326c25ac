/* Stage 08's engine with another encoder, whose type is the functions' context. */
#include "labs/08_bert_classifier/given/engine16.h"

#include "labs/08_bert_classifier/given/encoder16.h"
#include "labs/08_bert_classifier/given/engine.h"

static enum status create(const void *dtype, struct encoder **encoder,
                          const struct encoder_model *model, size_t max_tokens,
                          device_stream stream, struct error *error) {
    struct encoder16 *made;
    enum status status =
        encoder16_create(&made, model, *(const enum nn_dtype *)dtype, max_tokens, stream, error);
    *encoder = (struct encoder *)made;
    return status;
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
    static const enum nn_dtype dtypes[] = {NN_F16, NN_BF16};
    if (dtype != NN_F16 && dtype != NN_BF16) {
        *engine = (struct engine){0};
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the 16-bit encoder computes in fp16 or bf16");
    }
    const struct encoder_functions functions = {create, run, release, &dtypes[dtype == NN_BF16]};
    return engine_encoder_create_with(engine, &functions, error);
}
