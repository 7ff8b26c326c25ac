#include "grader/selftest/honest_ways.h"
#include "labs/10_llama2_decoder/decoder.h"

enum status __real_decoder_prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                                   size_t position, struct error *error);
enum status __wrap_decoder_prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                                   size_t position, struct error *error);
enum status __real_decoder_step(struct decoder *decoder, size_t position, struct error *error);
enum status __wrap_decoder_step(struct decoder *decoder, size_t position, struct error *error);

static device_stream stream_of_last;

enum status __real_decoder_create(struct decoder **decoder, const struct decoder_model *model,
                                  const struct decoder_io *io, size_t batch, device_stream stream,
                                  struct error *error);
enum status __wrap_decoder_create(struct decoder **decoder, const struct decoder_model *model,
                                  const struct decoder_io *io, size_t batch, device_stream stream,
                                  struct error *error);

enum status __wrap_decoder_create(struct decoder **decoder, const struct decoder_model *model,
                                  const struct decoder_io *io, size_t batch, device_stream stream,
                                  struct error *error) {
    stream_of_last = stream;
    return __real_decoder_create(decoder, model, io, batch, stream, error);
}

struct decoder_prefill_arguments {
    struct decoder *decoder;
    const int32_t *tokens;
    size_t count;
    size_t position;
};

static enum status do_decoder_prefill(const void *arguments, device_stream stream,
                                      struct error *error) {
    const struct decoder_prefill_arguments *a = arguments;
    (void)stream;
    return __real_decoder_prefill(a->decoder, a->tokens, a->count, a->position, error);
}

enum status __wrap_decoder_prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                                   size_t position, struct error *error) {
    const struct decoder_prefill_arguments a = {decoder, tokens, count, position};
    return honest_around(do_decoder_prefill, &a, stream_of_last, false, error);
}

struct decoder_step_arguments {
    struct decoder *decoder;
    size_t position;
};

static enum status do_decoder_step(const void *arguments, device_stream stream,
                                   struct error *error) {
    const struct decoder_step_arguments *a = arguments;
    (void)stream;
    return __real_decoder_step(a->decoder, a->position, error);
}

enum status __wrap_decoder_step(struct decoder *decoder, size_t position, struct error *error) {
    const struct decoder_step_arguments a = {decoder, position};
    return honest_around(do_decoder_step, &a, stream_of_last, false, error);
}
