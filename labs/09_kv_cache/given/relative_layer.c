#include "labs/09_kv_cache/given/relative_layer.h"

#include <math.h>

#include "labs/03_resident_weights/given/operators.h"

/* out (N) = rows first .. first + N - 1 of weight (rows, C) * RMSNorm(x), plus bias if there is. */
static enum status multiply_normed_x(const struct relative_layer *r, float *out, const void *weight,
                                     const float *bias, size_t first, size_t N, const float *norm) {
    size_t C = r->config->C;
    const struct kv_linear linear = {.N = N,
                                     .K = C,
                                     .dtype = r->dtype,
                                     .weight = (const unsigned char *)weight +
                                               first * C * nn_dtype_bytes(r->dtype),
                                     .in = r->x,
                                     .norm = norm,
                                     .eps = r->config->norm_eps,
                                     .out = out};
    TRY(r->linear(&linear, r->stream, NULL));
    return bias == NULL ? STATUS_OK : launch_bias_add(out, bias + first, 1, N, r->stream, NULL);
}

/* x += weight (C, K) * in (K), plus bias if there is. */
static enum status add_product_to_x(const struct relative_layer *r, const void *weight,
                                    const float *bias, const float *in, size_t K) {
    const struct kv_linear linear = {.N = r->config->C,
                                     .K = K,
                                     .dtype = r->dtype,
                                     .weight = weight,
                                     .in = in,
                                     .residual = r->x,
                                     .out = r->x};
    TRY(r->linear(&linear, r->stream, NULL));
    return bias == NULL ? STATUS_OK : launch_bias_add(r->x, bias, 1, r->config->C, r->stream, NULL);
}

static enum status rotate(const struct relative_layer *r, float *x, size_t heads, size_t position) {
    const struct llama2_config *c = r->config;
    size_t stride = heads * c->HS;
    return r->frequencies != NULL
               ? launch_rope_table(x, 1, heads, c->HS, stride, position, r->frequencies,
                                   c->rope_layout, r->stream, NULL)
               : launch_rope(x, 1, heads, c->HS, stride, position, c->rope_theta, c->rope_layout,
                             r->stream, NULL);
}

/* heads = attention of q over the last keys of the cache. */
static enum status attend(const struct relative_layer *r, size_t position) {
    const struct llama2_config *c = r->config;
    bool windowed = c->window > 0 && r->number >= c->full_layers && c->window <= position;
    size_t keys = windowed ? c->window : position + 1, kv_width = c->KVH * c->HS;
    size_t first = position + 1 - keys;
    float factor = c->rope.attention_scale > 0.0f ? c->rope.attention_scale : 1.0f;
    const struct nn_attention attention = {
        .q = r->q,
        .k = r->k + first * kv_width,
        .v = r->v + first * kv_width,
        .B = 1,
        .T = 1,
        .S = keys,
        .NH = c->NH,
        .KVH = c->KVH,
        .HS = c->HS,
        .q_stride = c->NH * c->HS,
        .kv_stride = kv_width,
        .causal = true,
        .scale = factor / sqrtf((float)c->HS),
    };
    return launch_attention(r->heads, &attention, r->stream, NULL);
}

/* q, and a row of the cache, from the normed x. */
static enum status project(const struct relative_layer *r, size_t position) {
    const struct llama2_config *c = r->config;
    const struct llama2_device_layer *w = r->weights;
    size_t q_width = c->NH * c->HS, kv_width = c->KVH * c->HS;
    float *k = r->k + position * kv_width, *v = r->v + position * kv_width;
    const float *norm = w->attention_norm;
    TRY(multiply_normed_x(r, r->q, w->qkv, w->qkv_bias, 0, q_width, norm));
    TRY(multiply_normed_x(r, k, w->qkv, w->qkv_bias, q_width, kv_width, norm));
    TRY(multiply_normed_x(r, v, w->qkv, w->qkv_bias, q_width + kv_width, kv_width, norm));
    TRY(rotate(r, r->q, c->NH, position));
    return rotate(r, k, c->KVH, position);
}

enum status relative_layer_run(const struct relative_layer *r, size_t position) {
    const struct llama2_config *c = r->config;
    const struct llama2_device_layer *w = r->weights;
    float *gate = r->gate_up;
    TRY(project(r, position));
    TRY(attend(r, position));
    TRY(add_product_to_x(r, w->out, w->out_bias, r->heads, c->NH * c->HS));
    TRY(multiply_normed_x(r, gate, w->gate_up, w->gate_up_bias, 0, 2 * c->hidden, w->ffn_norm));
    TRY(launch_silu_gate(gate, gate, gate + c->hidden, c->hidden, r->stream, NULL));
    return add_product_to_x(r, w->down, w->down_bias, gate, c->hidden);
}
