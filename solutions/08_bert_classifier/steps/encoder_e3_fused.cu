/**
 * @file encoder_e3_fused.cu
 * @brief Lab 06's operators: matmuls with fused epilogues.
 *
 * Changes since e2: bias, activation, residual and LayerNorm are the matmuls'
 * epilogues. A layer is q, k and v; attention; out with LayerNorm; up with
 * GELU; down with LayerNorm.
 *
 * Why: single operators write and read back 36C floats a row and layer (single_operators.cu); fused
 * ones 6C: a residual, a sum and a result for each LayerNorm.
 *
 * Launches: 7 a layer (two for a matmul with LayerNorm), up to 9 where few rows
 * make lab 04 split K. FLOPs: as e2.
 */
#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "solutions/08_bert_classifier/steps/ladder.h"

enum status encoder_linear(const struct encoder *e, float *out, const float *in,
                           const struct encoder_linear *layer, size_t rows, size_t N, size_t K,
                           struct error *error) {
    const struct fused_problem problem = {.op = FUSED_LINEAR,
                                          .M = rows,
                                          .N = N,
                                          .K = K,
                                          .in = in,
                                          .weight = layer->weight,
                                          .bias = layer->bias,
                                          .out = out};
    return fused_epilogues(&problem, e->workspace, e->stream, error);
}

/* inner (rows, hidden) = f(x * weight^T + bias). */
static enum status activate(const struct encoder *e, const float *x,
                            const struct encoder_linear *up, size_t rows, struct error *error) {
    const struct encoder_model *m = e->model;
    const struct fused_problem problem = {.op = FUSED_LINEAR_ACTIVATION,
                                          .M = rows,
                                          .N = m->hidden,
                                          .K = m->C,
                                          .f = m->activation,
                                          .in = x,
                                          .weight = up->weight,
                                          .bias = up->bias,
                                          .out = e->inner};
    return fused_epilogues(&problem, e->workspace, e->stream, error);
}

/* x = LayerNorm(x + in * weight^T + bias). */
static enum status close_sublayer(const struct encoder *e, float *x, const float *in,
                                  const struct encoder_linear *layer, const struct nn_norm *norm,
                                  size_t rows, size_t K, struct error *error) {
    const struct fused_problem problem = {.op = FUSED_LINEAR_ADD_NORM,
                                          .M = rows,
                                          .N = e->model->C,
                                          .K = K,
                                          .in = in,
                                          .weight = layer->weight,
                                          .bias = layer->bias,
                                          .residual = x,
                                          .norm = *norm,
                                          .out = x};
    return fused_epilogues(&problem, e->workspace, e->stream, error);
}

enum status encoder_after_attention(const struct encoder *e, float *x,
                                    const struct encoder_layer *layer, size_t rows,
                                    struct error *error) {
    TRY(close_sublayer(e, x, e->attended, &layer->out, &layer->attention, rows, e->model->C,
                       error));
    TRY(activate(e, x, &layer->up, rows, error));
    return close_sublayer(e, x, e->inner, &layer->down, &layer->feed_forward, rows,
                          e->model->hidden, error);
}

enum status encoder_layer_fused(const struct encoder *e, const struct encoder_layer *layer,
                                const struct encoder_view *view, struct error *error) {
    size_t C = e->model->C;
    TRY(encoder_linear(e, e->qkv, e->x, &layer->qkv, view->rows, 3 * C, C, error));
    TRY(encoder_attend(e, view, error));
    return encoder_after_attention(e, e->x, layer, view->rows, error);
}

enum status encoder_e3_fused(struct encoder *e, const struct encoder_batch *batch,
                             struct error *error) {
    return encoder_run_packed(e, batch, encoder_layer_fused, error);
}
