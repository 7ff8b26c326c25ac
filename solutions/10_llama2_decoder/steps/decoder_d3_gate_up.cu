/**
 * @file decoder_d3_gate_up.cu
 * @brief d3: gate and up in one kernel, which writes silu(gate) * up.
 *
 * Changes since d2: a warp reads row n of the gate and row n of up side by side (stream.cuh): 5
 * launches a layer. Why: a launch less, and 3 * hidden numbers of traffic less, which is little.
 */
#include "solutions/10_llama2_decoder/steps/ladder.h"

static enum status layer(const struct decoder *d, size_t l, size_t longest, struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    TRY(decoder_attend(d, l, longest, error));
    TRY(decoder_multiply(d, d->x, w->out, d->heads, m->C, m->NH * m->HS, NULL, d->x, error));
    TRY(decoder_stream_gate_up(d, l, error));
    return decoder_multiply(d, d->x, w->down, d->gate_up, m->C, m->hidden, NULL, d->x, error);
}

static enum status classify(const struct decoder *d, struct error *error) {
    return decoder_path_fused.classify(d, error);
}

const struct decoder_path decoder_path_gate_up = {layer, classify};

enum status decoder_d3_prefill(struct decoder *d, const int32_t *tokens, size_t count,
                               size_t position, struct error *error) {
    return decoder_one_by_one(d, &decoder_path_gate_up, tokens, count, position, error);
}

enum status decoder_d3_step(struct decoder *d, size_t position, struct error *error) {
    return decoder_step_from_host(d, &decoder_path_gate_up, position, error);
}
