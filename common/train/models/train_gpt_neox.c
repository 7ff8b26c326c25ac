/* GPT-NeoX: LayerNorm and biases, partial rotary embedding, GELU; in parallel or not. */
#include <stdio.h>

#include "common/train/models/train_decoder.h"

static enum status check(const struct train_config *config, struct error *error) {
    enum { MOST_LAYERS = 1024 };
    const struct gpt_neox_config *c = &config->gpt_neox;
    const size_t sizes[] = {c->C, c->hidden, c->L, c->NH, c->HS, c->V, c->T, c->rotary};
    bool fit = train_sizes_fit(sizes, sizeof sizes / sizeof *sizes) && c->L <= MOST_LAYERS &&
               c->NH * c->HS == c->C && c->HS % 2 == 0 && c->rotary % 2 == 0 && c->rotary <= c->HS;
    if (!fit) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "GPT-NeoX sizes do not fit together: C %zu, hidden %zu, L %zu, NH %zu, HS "
                         "%zu, rotary %zu, V %zu, T %zu",
                         c->C, c->hidden, c->L, c->NH, c->HS, c->rotary, c->V, c->T);
    }
    if (c->C % TRAIN_ALIGNMENT != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "C %zu: training needs multiples of %d",
                         c->C, TRAIN_ALIGNMENT);
    }
    if (c->activation != NN_GELU || !c->attention_bias) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "training a GPT-NeoX needs the exact GELU and biases in attention");
    }
    return STATUS_OK;
}

static struct train_decoder_shape shape(const struct train_config *config) {
    const struct gpt_neox_config *c = &config->gpt_neox;
    return (struct train_decoder_shape){.C = c->C,
                                        .hidden = c->hidden,
                                        .L = c->L,
                                        .NH = c->NH,
                                        .KVH = c->NH,
                                        .HS = c->HS,
                                        .V = c->V,
                                        .T = c->T,
                                        .rotary = c->rotary,
                                        .layout = NN_ROPE_HALVES,
                                        .theta = c->rope_theta,
                                        .eps = c->norm_eps,
                                        .layernorm = true,
                                        .parallel = c->parallel};
}

static void list_layer(struct train_listing *l, const struct gpt_neox_config *c,
                       struct train_decoder_layer *layer) {
    l->NH = c->NH;
    train_listing_add_linear(l, "attention.query_key_value", 3 * c->C, c->C, &layer->qkv);
    l->NH = 0;
    train_listing_add_linear(l, "attention.dense", c->C, c->C, &layer->attention_out);
    train_listing_add_linear(l, "mlp.dense_h_to_4h", c->hidden, c->C, &layer->up);
    train_listing_add_linear(l, "mlp.dense_4h_to_h", c->C, c->hidden, &layer->down);
    train_listing_add_norm(l, "input_layernorm", c->C, &layer->attention_norm);
    train_listing_add_norm(l, "post_attention_layernorm", c->C, &layer->ffn_norm);
}

static void list(const struct train_config *config, struct train_listing *l,
                 struct train_decoder_places *places) {
    const struct gpt_neox_config *c = &config->gpt_neox;
    l->scope[0] = '\0';
    train_listing_add(l, "gpt_neox.embed_in.weight", c->V, c->C, &places->embedding);
    for (size_t i = 0; i < c->L; i++) {
        snprintf(l->scope, sizeof l->scope, "gpt_neox.layers.%zu.", i);
        list_layer(l, c, &places->layers[i]);
    }
    l->scope[0] = '\0';
    train_listing_add_norm(l, "gpt_neox.final_layer_norm", c->C, &places->final_norm);
    if (config->tied) {
        places->classifier = places->embedding;
    } else {
        train_listing_add(l, "embed_out.weight", c->V, c->C, &places->classifier);
    }
}

const struct train_decoder_family train_gpt_neox_family = {shape, check, list};
