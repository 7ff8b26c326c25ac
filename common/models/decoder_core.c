#include "common/models/decoder_core.h"

#include "common/models/fused.h"

static enum status check_call(const struct decoder_core *c, const int32_t *tokens, size_t count,
                              size_t position) {
    if (count == 0 || count > c->batch) {
        return STATUS_INVALID_ARGUMENT;
    }
    if (c->recent == 0 && (position > c->T || count > c->T - position)) {
        return STATUS_TOO_LONG;
    }
    for (size_t t = 0; t < count; t++) {
        if (tokens[t] < 0 || (size_t)tokens[t] >= c->V) {
            return STATUS_INVALID_ARGUMENT;
        }
    }
    return STATUS_OK;
}

enum status decoder_core_forward(const struct decoder_core *c,
                                 const struct decoder_family_steps *steps, void *model, float *x,
                                 const float *embedding, const int32_t *tokens, size_t count,
                                 size_t position, float *logits) {
    const struct engine *e = c->engine;
    TRY(check_call(c, tokens, count, position));
    if (c->decoder != NULL) {
        const struct llama2_decoder_call call = {tokens, count, position, logits};
        return e->decoder_run(e->context, c->decoder, &call);
    }
    /* With sinks each token has a window of its own. */
    size_t step = c->recent > 0 ? 1 : count;
    for (size_t t = 0; t < count; t += step) {
        TRY(e->embedding(e->context, x, embedding, tokens + t, step, c->C, false));
        for (size_t l = 0; l < c->L; l++) {
            TRY(steps->layer(model, l, step, position + t));
        }
    }
    return logits != NULL ? steps->classify_last(model, step, logits) : STATUS_OK;
}

bool decoder_core_draws(const struct decoder_core *c) {
    return c->decoder != NULL && c->engine->decoder_begin != NULL;
}

enum status decoder_core_begin(const struct decoder_core *c,
                               const struct llama2_sampling *sampling) {
    const struct engine *e = c->engine;
    return decoder_core_draws(c) ? e->decoder_begin(e->context, c->decoder, sampling)
                                 : STATUS_UNSUPPORTED;
}

enum status decoder_core_next(const struct decoder_core *c, size_t position, int32_t *token) {
    const struct engine *e = c->engine;
    if (!decoder_core_draws(c)) {
        return STATUS_UNSUPPORTED;
    }
    if (position == 0) { /* there are no logits to draw from */
        return STATUS_INVALID_ARGUMENT;
    }
    return c->recent > 0 || position < c->T
               ? e->decoder_next(e->context, c->decoder, position, token)
               : STATUS_TOO_LONG;
}

enum status decoder_core_project(const struct decoder_core *c, float *out, const float *in,
                                 const float *weight, const float *bias, size_t T, size_t N,
                                 size_t K) {
    const struct engine *e = c->engine;
    return bias != NULL ? engine_linear(e, out, in, weight, bias, T, N, K)
                        : e->matmul(e->context, out, in, weight, T, N, K);
}

enum status decoder_core_attend_places(const struct decoder_core *c,
                                       const struct decoder_family_steps *steps, const void *model,
                                       const struct streaming_cache *cache,
                                       const struct decoder_places *p) {
    const struct engine *e = c->engine;
    size_t width = p->KVH * p->HS;
    TRY(steps->rotate(model, p->q, 1, p->NH, cache->seen - 1));
    TRY(e->residual(e->context, p->placed, p->k, p->zeros, cache->seen * width)); /* a copy */
    for (size_t i = 0; i < cache->count; i++) {
        const struct streaming_run *run = &cache->runs[i];
        TRY(steps->rotate(model, p->placed + run->row * width, run->rows, p->KVH, run->place));
    }
    const struct nn_attention attention = {.q = p->q,
                                           .k = p->placed,
                                           .v = p->v,
                                           .B = 1,
                                           .T = 1,
                                           .S = cache->seen,
                                           .NH = p->NH,
                                           .KVH = p->KVH,
                                           .HS = p->HS,
                                           .q_stride = p->NH * p->HS,
                                           .kv_stride = width,
                                           .scale = p->scale};
    return e->attention(e->context, p->attended, &attention);
}
