/**
 * @file decoder_d2_fused.cu
 * @brief d2: lab 09's product includes the norm before it and the residual sum after it.
 *
 * Changes since d1: two sums and a norm a layer are fused into products: 6 launches instead of 9.
 * Why: for one token they move some kilobytes each; their cost is the launch.
 */
#include "labs/03_resident_weights/given/operators.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"

static enum status layer(const struct decoder *d, size_t l, size_t longest, struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    float *gate = d->gate_up, *up = d->gate_up + m->hidden;
    TRY(decoder_attend(d, l, longest, error));
    TRY(decoder_multiply(d, d->x, w->out, d->heads, m->C, m->NH * m->HS, NULL, d->x, error));
    TRY(decoder_multiply(d, gate, w->gate_up, d->x, 2 * m->hidden, m->C, w->ffn_norm, NULL, error));
    TRY(launch_silu_gate(gate, gate, up, m->hidden, d->stream, error));
    return decoder_multiply(d, d->x, w->down, gate, m->C, m->hidden, NULL, d->x, error);
}

static enum status classify(const struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    return decoder_multiply(d, d->io.logits, m->classifier, d->x, m->V, m->C, m->final_norm, NULL,
                            error);
}

const struct decoder_path decoder_path_fused = {layer, classify};

enum status decoder_d2_prefill(struct decoder *d, const int32_t *tokens, size_t count,
                               size_t position, struct error *error) {
    return decoder_one_by_one(d, &decoder_path_fused, tokens, count, position, error);
}

enum status decoder_d2_step(struct decoder *d, size_t position, struct error *error) {
    return decoder_step_from_host(d, &decoder_path_fused, position, error);
}
