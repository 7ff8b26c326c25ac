/**
 * @file decoder_d5_drawn_here.cu
 * @brief d5: the token is sampled on the device, so the host waits for nothing.
 *
 * Changes since d4: two launches of sampling.cu instead of V numbers copied to the host, a sum or a
 * sort there, and a token copied back; the embedding reads the token in device memory.
 * Why: the GPU was idle from the last product of a token to the first kernel of the next. Now the
 * host may enqueue steps as far ahead as it likes.
 */
#include "solutions/10_llama2_decoder/steps/ladder.h"

enum status decoder_draw_and_run(const struct decoder *d, size_t position, size_t longest,
                                 struct error *error) {
    TRY(sample_token(d->io.sampling, d->io.logits, d->model->V, d->io.token, d->draw_workspace,
                     d->stream, error));
    TRY(decoder_embed_drawn(d, position, error));
    return decoder_run_token(d, &decoder_path_stream, longest, error);
}

enum status decoder_d5_step(struct decoder *d, size_t position, struct error *error) {
    return decoder_draw_and_run(d, position, position + 1, error);
}
