#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"

#include <assert.h>

/* An extent of a shape, by its meaning in struct gpt_neox_config. */
enum extent { NONE, CHANNELS, THREE_CHANNELS, HIDDEN, VOCABULARY };

enum kind { ALWAYS, ATTENTION_BIAS };

#define STORED(member) offsetof(struct gpt_neox_stored_layer, member)
#define PLAIN(member) offsetof(struct gpt_neox_layer, member)
#define IN_LAYER(member) \
    1, STORED(member), { \
        PLAIN(member)    \
    }
#define OUTSIDE(member)                                    \
    1, offsetof(struct gpt_neox_stored_weights, member), { \
        offsetof(struct gpt_neox_weights, member)          \
    }

static const struct decoder_entry layer_entries[] = {
    {"input_layernorm.weight", ALWAYS, CHANNELS, NONE, false, IN_LAYER(attention_norm)},
    {"input_layernorm.bias", ALWAYS, CHANNELS, NONE, false, IN_LAYER(attention_norm_bias)},
    {"post_attention_layernorm.weight", ALWAYS, CHANNELS, NONE, false, IN_LAYER(ffn_norm)},
    {"post_attention_layernorm.bias", ALWAYS, CHANNELS, NONE, false, IN_LAYER(ffn_norm_bias)},
    {"attention.query_key_value.weight",
     ALWAYS,
     THREE_CHANNELS,
     CHANNELS,
     false,
     3,
     STORED(qkv),
     {PLAIN(wq), PLAIN(wk), PLAIN(wv)}},
    {"attention.query_key_value.bias",
     ATTENTION_BIAS,
     THREE_CHANNELS,
     NONE,
     false,
     3,
     STORED(qkv_bias),
     {PLAIN(bq), PLAIN(bk), PLAIN(bv)}},
    {"attention.dense.weight", ALWAYS, CHANNELS, CHANNELS, false, IN_LAYER(wo)},
    {"attention.dense.bias", ATTENTION_BIAS, CHANNELS, NONE, false, IN_LAYER(bo)},
    {"mlp.dense_h_to_4h.weight", ALWAYS, HIDDEN, CHANNELS, false, IN_LAYER(up)},
    {"mlp.dense_h_to_4h.bias", ALWAYS, HIDDEN, NONE, false, IN_LAYER(up_bias)},
    {"mlp.dense_4h_to_h.weight", ALWAYS, CHANNELS, HIDDEN, false, IN_LAYER(down)},
    {"mlp.dense_4h_to_h.bias", ALWAYS, CHANNELS, NONE, false, IN_LAYER(down_bias)},
};

static const struct decoder_entry embedding = {
    "gpt_neox.embed_in.weight", ALWAYS, VOCABULARY, CHANNELS, false, OUTSIDE(embedding)};
static const struct decoder_entry final_entries[] = {
    {"gpt_neox.final_layer_norm.weight", ALWAYS, CHANNELS, NONE, false, OUTSIDE(final_norm)},
    {"gpt_neox.final_layer_norm.bias", ALWAYS, CHANNELS, NONE, false, OUTSIDE(final_norm_bias)},
    {"embed_out.weight", ALWAYS, VOCABULARY, CHANNELS, false, OUTSIDE(classifier)},
};

static bool has(const void *config, int kind) {
    const struct gpt_neox_config *c = config;
    return kind != ATTENTION_BIAS || c->attention_bias;
}

static size_t extent_of(const void *config, int extent) {
    const struct gpt_neox_config *c = config;
    switch ((enum extent)extent) {
    case CHANNELS:
        return c->C;
    case THREE_CHANNELS:
        return 3 * c->C;
    case HIDDEN:
        return c->hidden;
    case VOCABULARY:
        return c->V;
    default:
        return 1;
    }
}

static const struct decoder_family family = {
    .scope = "gpt_neox.layers.",
    .layer = layer_entries,
    .layer_count = sizeof layer_entries / sizeof *layer_entries,
    .embedding = &embedding,
    .final = final_entries,
    .final_count = sizeof final_entries / sizeof *final_entries,
    .stored_layers = offsetof(struct gpt_neox_stored_weights, layers),
    .stored_layer_bytes = sizeof(struct gpt_neox_stored_layer),
    .plain_layers = offsetof(struct gpt_neox_weights, layers),
    .plain_layer_bytes = sizeof(struct gpt_neox_layer),
    .has = has,
    .extent = extent_of,
};
static_assert(sizeof(struct gpt_neox_stored_layer) <= DECODER_SCRATCH_BYTES, "a scratch layer");

enum status gpt_neox_tensors_visit(const struct gpt_neox_config *config, bool shared_classifier,
                                   struct gpt_neox_stored_weights *stored,
                                   struct gpt_neox_weights *plain, decoder_weight_visitor *visit,
                                   void *context) {
    return decoder_tensors_visit(&family, config, config->L, shared_classifier, stored, plain,
                                 visit, context);
}
