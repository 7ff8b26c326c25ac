/* Llama2: RMSNorm, no biases, rotary embedding of whole heads, SwiGLU. */
#include <stdio.h>

#include "common/train/models/train_decoder.h"

static bool has_sizes(const struct llama2_config *c) {
    enum { MOST_LAYERS = 1024 };
    const size_t sizes[] = {c->C, c->hidden, c->L, c->NH, c->KVH, c->HS, c->V, c->T};
    return train_sizes_fit(sizes, sizeof sizes / sizeof *sizes) && c->L <= MOST_LAYERS &&
           c->NH % c->KVH == 0 && c->HS % 2 == 0;
}

static enum status check(const struct train_config *config, struct error *error) {
    const struct llama2_config *c = &config->llama2;
    if (!has_sizes(c)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "Llama2 sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, "
                         "KVH %zu, HS %zu, V %zu, T %zu",
                         c->C, c->hidden, c->L, c->NH, c->KVH, c->HS, c->V, c->T);
    }
    if (c->C % TRAIN_ALIGNMENT != 0 || c->KVH * c->HS % TRAIN_ALIGNMENT != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "C %zu, KVH * HS %zu: training needs multiples of %d", c->C,
                         c->KVH * c->HS, TRAIN_ALIGNMENT);
    }
    return STATUS_OK;
}

static struct train_decoder_shape shape(const struct train_config *config) {
    const struct llama2_config *c = &config->llama2;
    return (struct train_decoder_shape){.C = c->C,
                                        .hidden = c->hidden,
                                        .L = c->L,
                                        .NH = c->NH,
                                        .KVH = c->KVH,
                                        .HS = c->HS,
                                        .V = c->V,
                                        .T = c->T,
                                        .rotary = c->HS,
                                        .layout = c->rope_layout,
                                        .theta = c->rope_theta,
                                        .eps = c->norm_eps,
                                        .gated = true};
}

static void list_layer(struct train_listing *l, const struct llama2_config *c,
                       struct train_decoder_layer *layer) {
    size_t queries = c->NH * c->HS, keys = c->KVH * c->HS;
    train_listing_add(l, "self_attn.q_proj.weight", queries, c->C, &layer->qkv.weight);
    train_listing_add(l, "self_attn.k_proj.weight", keys, c->C, NULL);
    train_listing_add(l, "self_attn.v_proj.weight", keys, c->C, NULL);
    train_listing_add(l, "self_attn.o_proj.weight", c->C, queries, &layer->attention_out.weight);
    train_listing_add(l, "mlp.gate_proj.weight", c->hidden, c->C, &layer->up.weight);
    train_listing_add(l, "mlp.up_proj.weight", c->hidden, c->C, NULL);
    train_listing_add(l, "mlp.down_proj.weight", c->C, c->hidden, &layer->down.weight);
    train_listing_add(l, "input_layernorm.weight", c->C, 0, &layer->attention_norm.weight);
    train_listing_add(l, "post_attention_layernorm.weight", c->C, 0, &layer->ffn_norm.weight);
}

static void list(const struct train_config *config, struct train_listing *l,
                 struct train_decoder_places *places) {
    const struct llama2_config *c = &config->llama2;
    l->scope[0] = '\0';
    train_listing_add(l, "model.embed_tokens.weight", c->V, c->C, &places->embedding);
    for (size_t i = 0; i < c->L; i++) {
        snprintf(l->scope, sizeof l->scope, "model.layers.%zu.", i);
        list_layer(l, c, &places->layers[i]);
    }
    l->scope[0] = '\0';
    train_listing_add(l, "model.norm.weight", c->C, 0, &places->final_norm.weight);
    if (config->tied) {
        places->classifier = places->embedding;
    } else {
        train_listing_add(l, "lm_head.weight", c->V, c->C, &places->classifier);
    }
}

const struct train_decoder_family train_llama2_family = {shape, check, list};
