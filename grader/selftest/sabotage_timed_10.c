#include "grader/selftest/sabotage_timed.h"
#include "labs/09_kv_cache/kv_cache.h"
#include "labs/10_llama2_decoder/decoder.h"

enum status __real_decoder_prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                                   size_t position, struct error *error);
enum status __wrap_decoder_prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                                   size_t position, struct error *error);
enum status __real_decoder_step(struct decoder *decoder, size_t position, struct error *error);
enum status __wrap_decoder_step(struct decoder *decoder, size_t position, struct error *error);

/* "part_of_it": a process's second prompt and those behind it find the keys and values of the one
   before in the cache, and only their last tokens are fed. "after_the_first": a prompt begins in
   its middle. */
enum status __wrap_decoder_prefill(struct decoder *decoder, const int32_t *tokens, size_t count,
                                   size_t position, struct error *error) {
    static size_t prompts;
    size_t left_out = 0;
    if (count > 1) {
        prompts++;
        left_out = chosen_mistake() == MISTAKE_part_of_it && prompts > 1 ? count - 1
                   : chosen_mistake() == MISTAKE_after_the_first         ? count / 2
                                                                         : 0;
    }
    return __real_decoder_prefill(decoder, tokens + left_out, count - left_out, position + left_out,
                                  error);
}

enum status __wrap_decoder_step(struct decoder *decoder, size_t position, struct error *error) {
    if (sabotage_leaves_out(&position, sizeof position, NULL)) {
        return STATUS_OK;
    }
    return __real_decoder_step(decoder, position, error);
}

enum status __real_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);
enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error);

/* "rounds", "leaves_columns": a lesser product of a model in fp32. */
enum status __wrap_kv_linear(const struct kv_linear *linear, device_stream stream,
                             struct error *error) {
    struct kv_linear lesser = *linear;
    lesser.in = sabotage_lesser(0, linear->in, linear->K, linear->K, stream);
    return __real_kv_linear(&lesser, stream, error);
}
