#include "solutions/13_low_bit/decoder/random_model.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "solutions/13_low_bit/decoder/upload.h"

/* A matrix on the host, rounded to nearest. */
static enum status make_matrix(struct low_bit_matrix *m, const struct random_model_size *s,
                               size_t rows, size_t columns, struct rng *rng, struct error *error) {
    bool is_int4 = s->type == LOW_BIT_INT4;
    m->layout = (struct low_bit_layout){s->type,
                                        rows,
                                        columns,
                                        is_int4 && s->group < columns ? s->group : columns,
                                        is_int4 ? s->scale_dtype : NN_F32,
                                        is_int4 && s->has_zeros};
    float *weights = malloc(rows * columns * sizeof *weights);
    m->values = calloc(1, low_bit_values_bytes(&m->layout));
    m->scales = calloc(1, low_bit_scales_bytes(&m->layout));
    m->zeros = calloc(1, low_bit_zeros_bytes(&m->layout) + 1);
    enum status status = STATUS_OUT_OF_MEMORY;
    if (weights != NULL && m->values != NULL && m->scales != NULL && m->zeros != NULL) {
        for (size_t i = 0; i < rows * columns; i++) {
            weights[i] = (rng_uniform(rng) * 2.0f - 0.9f) * sqrtf(3.0f / (float)columns);
        }
        status = low_bit_quantize(weights, m, error);
    }
    free(weights);
    return status;
}

static enum status make_floats(float **out, size_t count, struct rng *rng) {
    *out = malloc(count * sizeof **out);
    for (size_t i = 0; *out != NULL && i < count; i++) {
        (*out)[i] = 0.5f + rng_uniform(rng);
    }
    return *out != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status make_host(struct random_model *m, struct rng *rng, struct error *error) {
    const struct random_model_size *s = &m->size;
    struct reference_model *h = &m->host;
    size_t C = s->NH * s->HS, heads = C, qkv = (s->NH + 2 * s->KVH) * s->HS;
    h->sizes = (struct decoder_model){.C = C,
                                      .hidden = s->hidden,
                                      .L = s->L,
                                      .NH = s->NH,
                                      .KVH = s->KVH,
                                      .HS = s->HS,
                                      .V = s->V,
                                      .T = s->T,
                                      .eps = 1e-3f,
                                      .theta = 1e4f,
                                      .layout = s->rope,
                                      .dtype = NN_BF16};
    h->layers = calloc(s->L, sizeof *h->layers);
    h->embedding = malloc(s->V * C * sizeof *h->embedding);
    if (h->layers == NULL || h->embedding == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < s->V * C; i++) {
        float x = rng_uniform(rng) * 2.0f - 1.0f;
        nn_dtype_store(h->embedding + i, &x, 1, NN_BF16);
    }
    for (size_t l = 0; l < s->L; l++) {
        struct reference_layer *w = &h->layers[l];
        TRY(make_floats(&w->attention_norm, C, rng));
        TRY(make_floats(&w->ffn_norm, C, rng));
        TRY(make_matrix(&w->qkv, s, qkv, C, rng, error));
        TRY(make_matrix(&w->out, s, C, heads, rng, error));
        TRY(make_matrix(&w->gate_up, s, 2 * s->hidden, C, rng, error));
        TRY(make_matrix(&w->down, s, C, s->hidden, rng, error));
    }
    TRY(make_floats(&h->final_norm, C, rng));
    return make_matrix(&h->classifier, s, s->V, C, rng, error);
}

/* ---- The device ---- */

static enum status copy_up(const void **out, const void *from, size_t bytes, struct error *error) {
    void *to = NULL;
    TRY(device_alloc(&to, bytes + 16, error));
    *out = to;
    return bytes == 0 ? STATUS_OK : device_write(to, from, bytes, NULL, error);
}

static enum status make_device(struct random_model *m, struct error *error) {
    const struct reference_model *h = &m->host;
    struct low_bit_decoder_model *d = &m->device;
    *d = (struct low_bit_decoder_model){
        .type = m->size.type, .group = m->size.group, .scale_dtype = m->size.scale_dtype};
    d->sizes = h->sizes;
    m->layers = calloc(h->sizes.L, sizeof *m->layers);
    if (m->layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    d->sizes.layers = m->layers;
    size_t norm = h->sizes.C * sizeof(float);
    for (size_t l = 0; l < h->sizes.L; l++) {
        const struct reference_layer *w = &h->layers[l];
        struct decoder_layer *to = &m->layers[l];
        TRY(copy_up((const void **)&to->attention_norm, w->attention_norm, norm, error));
        TRY(copy_up((const void **)&to->ffn_norm, w->ffn_norm, norm, error));
        TRY(low_bit_decoder_upload(&w->qkv, false, &to->qkv, NULL, error));
        TRY(low_bit_decoder_upload(&w->out, false, &to->out, NULL, error));
        TRY(low_bit_decoder_upload(&w->gate_up, true, &to->gate_up, NULL, error));
        TRY(low_bit_decoder_upload(&w->down, false, &to->down, NULL, error));
    }
    TRY(copy_up(&d->sizes.embedding, h->embedding, h->sizes.V * h->sizes.C * 2, error));
    TRY(copy_up((const void **)&d->sizes.final_norm, h->final_norm, norm, error));
    TRY(low_bit_decoder_upload(&h->classifier, false, &d->sizes.classifier, NULL, error));
    TRY(device_alloc((void **)&m->io.logits, h->sizes.V * sizeof(float), error));
    TRY(device_alloc((void **)&m->io.token, sizeof(int32_t), error));
    return device_alloc((void **)&m->io.sampling, sizeof(struct sampling), error);
}

enum status random_model_create(struct random_model *m, const struct random_model_size *size,
                                uint64_t seed, struct error *error) {
    struct rng rng = rng_create(seed);
    *m = (struct random_model){.size = *size};
    TRY(make_host(m, &rng, error));
    return make_device(m, error);
}

static void free_matrix(struct low_bit_matrix *m) {
    free(m->values);
    free(m->scales);
    free(m->zeros);
}

void random_model_free(struct random_model *m) {
    struct reference_model *h = &m->host;
    const struct decoder_model *d = &m->device.sizes;
    for (size_t l = 0; l < h->sizes.L && h->layers != NULL; l++) {
        struct reference_layer *w = &h->layers[l];
        struct low_bit_matrix *const matrices[] = {&w->qkv, &w->out, &w->gate_up, &w->down};
        for (int i = 0; i < 4; i++) {
            free_matrix(matrices[i]);
        }
        free(w->attention_norm);
        free(w->ffn_norm);
    }
    for (size_t l = 0; l < h->sizes.L && m->layers != NULL; l++) {
        const struct decoder_layer *w = &m->layers[l];
        const void *const all[] = {w->attention_norm, w->qkv,     w->out,
                                   w->ffn_norm,       w->gate_up, w->down};
        for (int i = 0; i < 6; i++) {
            device_free((void *)all[i]);
        }
    }
    const void *const all[] = {d->embedding, d->final_norm, d->classifier,
                               m->io.logits, m->io.token,   m->io.sampling};
    for (int i = 0; i < 6; i++) {
        device_free((void *)all[i]);
    }
    free_matrix(&h->classifier);
    free(h->final_norm);
    free(h->embedding);
    free(h->layers);
    free(m->layers);
}
