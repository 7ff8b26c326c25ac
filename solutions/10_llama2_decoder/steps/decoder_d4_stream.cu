/**
 * @file decoder_d4_stream.cu
 * @brief d4: the streaming kernel for the other products, too.
 *
 * Changes since d3: attention's output, down and the classifier use stream.cuh's kernel instead of
 * lab 09's. Why: each warp has rows of its own, so that no block waits for its slowest warp between
 * two rows, and 128 KiB a multiprocessor are in flight while the previous kernel ends.
 */
#include "solutions/10_llama2_decoder/steps/ladder.h"

static enum status layer(const struct decoder *d, size_t l, size_t longest, struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    TRY(decoder_attend(d, l, longest, error));
    TRY(decoder_stream_multiply(d, d->x, w->out, d->heads, m->C, m->NH * m->HS, NULL, d->x, error));
    TRY(decoder_stream_gate_up(d, l, error));
    return decoder_stream_multiply(d, d->x, w->down, d->gate_up, m->C, m->hidden, NULL, d->x,
                                   error);
}

static enum status classify(const struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    return decoder_stream_multiply(d, d->io.logits, m->classifier, d->x, m->V, m->C, m->final_norm,
                                   NULL, error);
}

const struct decoder_path decoder_path_stream = {layer, classify};

enum status decoder_d4_prefill(struct decoder *d, const int32_t *tokens, size_t count,
                               size_t position, struct error *error) {
    return decoder_one_by_one(d, &decoder_path_stream, tokens, count, position, error);
}

enum status decoder_d4_step(struct decoder *d, size_t position, struct error *error) {
    return decoder_step_from_host(d, &decoder_path_stream, position, error);
}
