#include "grader/selftest/honest_ways.h"
#include "labs/08_bert_classifier/encoder.h"

enum status __real_encoder_run(struct encoder *encoder, const struct encoder_batch *batch,
                               struct error *error);
enum status __wrap_encoder_run(struct encoder *encoder, const struct encoder_batch *batch,
                               struct error *error);

static device_stream stream_of_last;

enum status __real_encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                  size_t max_tokens, device_stream stream, struct error *error);
enum status __wrap_encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                  size_t max_tokens, device_stream stream, struct error *error);

enum status __wrap_encoder_create(struct encoder **encoder, const struct encoder_model *model,
                                  size_t max_tokens, device_stream stream, struct error *error) {
    stream_of_last = stream;
    return __real_encoder_create(encoder, model, max_tokens, stream, error);
}

struct encoder_run_arguments {
    struct encoder *encoder;
    const struct encoder_batch *batch;
};

static enum status do_encoder_run(const void *arguments, device_stream stream,
                                  struct error *error) {
    const struct encoder_run_arguments *a = arguments;
    (void)stream;
    return __real_encoder_run(a->encoder, a->batch, error);
}

enum status __wrap_encoder_run(struct encoder *encoder, const struct encoder_batch *batch,
                               struct error *error) {
    const struct encoder_run_arguments a = {encoder, batch};
    return honest_around(do_encoder_run, &a, stream_of_last, false, error);
}
