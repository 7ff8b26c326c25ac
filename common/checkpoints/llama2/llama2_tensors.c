#include "common/checkpoints/llama2/llama2_tensors.h"

#include <assert.h>

/* An extent of a shape, by its meaning in struct llama2_config. */
enum extent { NONE, CHANNELS, QUERIES, KEYS, HIDDEN, VOCABULARY };

/* Which of a projection's tensors. A bias exists if the configuration has it. */
enum kind { WEIGHT, QKV_BIAS, OUT_BIAS, MLP_BIAS };

#define IN_LAYER(member)                               \
    1, offsetof(struct llama2_stored_layer, member), { \
        offsetof(struct llama2_layer, member)          \
    }
#define OUTSIDE(member)                                  \
    1, offsetof(struct llama2_stored_weights, member), { \
        offsetof(struct llama2_weights, member)          \
    }

static const struct decoder_entry layer_entries[] = {
    {"input_layernorm.weight", WEIGHT, CHANNELS, NONE, false, IN_LAYER(attention_norm)},
    {"self_attn.q_proj.weight", WEIGHT, QUERIES, CHANNELS, true, IN_LAYER(wq)},
    {"self_attn.k_proj.weight", WEIGHT, KEYS, CHANNELS, true, IN_LAYER(wk)},
    {"self_attn.v_proj.weight", WEIGHT, KEYS, CHANNELS, false, IN_LAYER(wv)},
    {"self_attn.o_proj.weight", WEIGHT, CHANNELS, QUERIES, false, IN_LAYER(wo)},
    {"post_attention_layernorm.weight", WEIGHT, CHANNELS, NONE, false, IN_LAYER(ffn_norm)},
    {"mlp.gate_proj.weight", WEIGHT, HIDDEN, CHANNELS, false, IN_LAYER(w1)},
    {"mlp.down_proj.weight", WEIGHT, CHANNELS, HIDDEN, false, IN_LAYER(w2)},
    {"mlp.up_proj.weight", WEIGHT, HIDDEN, CHANNELS, false, IN_LAYER(w3)},
    {"self_attn.q_proj.bias", QKV_BIAS, QUERIES, NONE, true, IN_LAYER(bq)},
    {"self_attn.k_proj.bias", QKV_BIAS, KEYS, NONE, true, IN_LAYER(bk)},
    {"self_attn.v_proj.bias", QKV_BIAS, KEYS, NONE, false, IN_LAYER(bv)},
    {"self_attn.o_proj.bias", OUT_BIAS, CHANNELS, NONE, false, IN_LAYER(bo)},
    {"mlp.gate_proj.bias", MLP_BIAS, HIDDEN, NONE, false, IN_LAYER(b1)},
    {"mlp.down_proj.bias", MLP_BIAS, CHANNELS, NONE, false, IN_LAYER(b2)},
    {"mlp.up_proj.bias", MLP_BIAS, HIDDEN, NONE, false, IN_LAYER(b3)},
};

static const struct decoder_entry embedding = {
    "model.embed_tokens.weight", WEIGHT, VOCABULARY, CHANNELS, false, OUTSIDE(embedding)};
static const struct decoder_entry final_entries[] = {
    {"model.norm.weight", WEIGHT, CHANNELS, NONE, false, OUTSIDE(final_norm)},
    {"lm_head.weight", WEIGHT, VOCABULARY, CHANNELS, false, OUTSIDE(classifier)},
};

static bool has(const void *config, int kind) {
    const struct llama2_config *c = config;
    switch ((enum kind)kind) {
    case QKV_BIAS:
        return c->qkv_bias;
    case OUT_BIAS:
        return c->out_bias;
    case MLP_BIAS:
        return c->mlp_bias;
    default:
        return true;
    }
}

static size_t extent_of(const void *config, int extent) {
    const struct llama2_config *c = config;
    switch ((enum extent)extent) {
    case CHANNELS:
        return c->C;
    case QUERIES:
        return c->NH * c->HS;
    case KEYS:
        return c->KVH * c->HS;
    case HIDDEN:
        return c->hidden;
    case VOCABULARY:
        return c->V;
    default:
        return 1;
    }
}

static size_t heads_of(const void *config, int rows) {
    const struct llama2_config *c = config;
    return rows == QUERIES ? c->NH : c->KVH;
}

static const struct decoder_family family = {
    .scope = "model.layers.",
    .layer = layer_entries,
    .layer_count = sizeof layer_entries / sizeof *layer_entries,
    .embedding = &embedding,
    .final = final_entries,
    .final_count = sizeof final_entries / sizeof *final_entries,
    .stored_layers = offsetof(struct llama2_stored_weights, layers),
    .stored_layer_bytes = sizeof(struct llama2_stored_layer),
    .plain_layers = offsetof(struct llama2_weights, layers),
    .plain_layer_bytes = sizeof(struct llama2_layer),
    .has = has,
    .extent = extent_of,
    .heads = heads_of,
};
static_assert(sizeof(struct llama2_stored_layer) <= DECODER_SCRATCH_BYTES, "a scratch layer");

size_t llama2_layer_tensors(const struct llama2_config *config) {
    return decoder_layer_tensors(&family, config);
}

enum status llama2_tensors_visit(const struct llama2_config *config, bool shared_classifier,
                                 struct llama2_stored_weights *stored, struct llama2_weights *plain,
                                 decoder_weight_visitor *visit, void *context) {
    return decoder_tensors_visit(&family, config, config->L, shared_classifier, stored, plain,
                                 visit, context);
}
