/* Stage 08's engine with the encoder in bf16; its functions' context is the product. */
#include "labs/12_tensor_cores/given/engine.h"

#include "labs/08_bert_classifier/given/encoder16.h"
#include "labs/08_bert_classifier/given/engine.h"

static enum status create(const void *product, struct encoder **encoder,
                          const struct encoder_model *model, size_t max_tokens,
                          device_stream stream, struct error *error) {
    struct encoder16 *made;
    const struct gemm16_step *step = product;
    enum status status =
        encoder16_create_with(&made, model, NN_BF16, step->run, max_tokens, stream, error);
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

enum status engine_tensor_cores_create_with(struct engine *engine,
                                            const struct gemm16_step *product,
                                            struct error *error) {
    const struct encoder_functions functions = {create, run, release, product};
    return engine_encoder_create_with(engine, &functions, error);
}

enum status engine_tensor_cores_create(struct engine *engine, struct error *error) {
    static const struct gemm16_step own = {"gemm16", gemm16};
    return engine_tensor_cores_create_with(engine, &own, error);
}
