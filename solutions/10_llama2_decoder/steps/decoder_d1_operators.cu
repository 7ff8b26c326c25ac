/**
 * @file decoder_d1_operators.cu
 * @brief d1: as the starter does. Each operator is a launch, a prompt is fed token by token, and
 * tokens are sampled on the host.
 *
 * Launches a layer: two of attention, three products, a norm, a gate, two sums: 9.
 */
#include "labs/03_resident_weights/given/operators.h"
#include "solutions/10_llama2_decoder/steps/ladder.h"

/* x += y. */
static enum status add_to_x(const struct decoder *d, struct error *error) {
    return launch_residual(d->x, d->x, d->y, d->model->C, d->stream, error);
}

static enum status layer(const struct decoder *d, size_t l, size_t longest, struct error *error) {
    const struct decoder_model *m = d->model;
    const struct decoder_layer *w = &m->layers[l];
    float *gate = d->gate_up, *up = d->gate_up + m->hidden;
    TRY(decoder_attend(d, l, longest, error));
    TRY(decoder_multiply(d, d->y, w->out, d->heads, m->C, m->NH * m->HS, NULL, NULL, error));
    TRY(add_to_x(d, error));
    TRY(launch_rmsnorm(d->y, d->x, w->ffn_norm, 1, m->C, m->eps, d->stream, error));
    TRY(decoder_multiply(d, gate, w->gate_up, d->y, 2 * m->hidden, m->C, NULL, NULL, error));
    TRY(launch_silu_gate(gate, gate, up, m->hidden, d->stream, error));
    TRY(decoder_multiply(d, d->y, w->down, gate, m->C, m->hidden, NULL, NULL, error));
    return add_to_x(d, error);
}

static enum status classify(const struct decoder *d, struct error *error) {
    const struct decoder_model *m = d->model;
    TRY(launch_rmsnorm(d->y, d->x, m->final_norm, 1, m->C, m->eps, d->stream, error));
    return decoder_multiply(d, d->io.logits, m->classifier, d->y, m->V, m->C, NULL, NULL, error);
}

const struct decoder_path decoder_path_operators = {layer, classify};

enum status decoder_d1_prefill(struct decoder *d, const int32_t *tokens, size_t count,
                               size_t position, struct error *error) {
    return decoder_one_by_one(d, &decoder_path_operators, tokens, count, position, error);
}

enum status decoder_d1_step(struct decoder *d, size_t position, struct error *error) {
    return decoder_step_from_host(d, &decoder_path_operators, position, error);
}
