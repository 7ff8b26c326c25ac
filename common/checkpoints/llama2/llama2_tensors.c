#include "common/checkpoints/llama2/llama2_tensors.h"

#include <stdio.h>

/* An extent of a shape, by its meaning in struct llama2_config. */
enum extent { NONE, CHANNELS, QUERIES, KEYS, HIDDEN, VOCABULARY };

/* Which of a projection's tensors. A bias exists if the configuration has it. */
enum kind { WEIGHT, QKV_BIAS, OUT_BIAS, MLP_BIAS };

struct entry {
    const char *name;
    enum kind kind;
    enum extent rows, columns; /* columns NONE: a vector */
    bool rotated;              /* its rows make queries or keys, which get rotary embedding */
    size_t stored_offset, plain_offset;
};

#define IN_LAYER(member) \
    offsetof(struct llama2_stored_layer, member), offsetof(struct llama2_layer, member)
#define OUTSIDE(member) \
    offsetof(struct llama2_stored_weights, member), offsetof(struct llama2_weights, member)

static const struct entry layer_entries[] = {
    {"input_layernorm", WEIGHT, CHANNELS, NONE, false, IN_LAYER(attention_norm)},
    {"self_attn.q_proj", WEIGHT, QUERIES, CHANNELS, true, IN_LAYER(wq)},
    {"self_attn.k_proj", WEIGHT, KEYS, CHANNELS, true, IN_LAYER(wk)},
    {"self_attn.v_proj", WEIGHT, KEYS, CHANNELS, false, IN_LAYER(wv)},
    {"self_attn.o_proj", WEIGHT, CHANNELS, QUERIES, false, IN_LAYER(wo)},
    {"post_attention_layernorm", WEIGHT, CHANNELS, NONE, false, IN_LAYER(ffn_norm)},
    {"mlp.gate_proj", WEIGHT, HIDDEN, CHANNELS, false, IN_LAYER(w1)},
    {"mlp.down_proj", WEIGHT, CHANNELS, HIDDEN, false, IN_LAYER(w2)},
    {"mlp.up_proj", WEIGHT, HIDDEN, CHANNELS, false, IN_LAYER(w3)},
    {"self_attn.q_proj", QKV_BIAS, QUERIES, NONE, true, IN_LAYER(bq)},
    {"self_attn.k_proj", QKV_BIAS, KEYS, NONE, true, IN_LAYER(bk)},
    {"self_attn.v_proj", QKV_BIAS, KEYS, NONE, false, IN_LAYER(bv)},
    {"self_attn.o_proj", OUT_BIAS, CHANNELS, NONE, false, IN_LAYER(bo)},
    {"mlp.gate_proj", MLP_BIAS, HIDDEN, NONE, false, IN_LAYER(b1)},
    {"mlp.down_proj", MLP_BIAS, CHANNELS, NONE, false, IN_LAYER(b2)},
    {"mlp.up_proj", MLP_BIAS, HIDDEN, NONE, false, IN_LAYER(b3)},
};

enum { LAYER_ENTRIES = sizeof layer_entries / sizeof *layer_entries };

static const struct entry embedding = {"model.embed_tokens", WEIGHT, VOCABULARY, CHANNELS, false,
                                       OUTSIDE(embedding)};
static const struct entry final_norm = {"model.norm", WEIGHT, CHANNELS,
                                        NONE,         false,  OUTSIDE(final_norm)};
static const struct entry classifier = {"lm_head", WEIGHT, VOCABULARY,
                                        CHANNELS,  false,  OUTSIDE(classifier)};

/* State while all tensors are visited. After the first failure no more visitors are called. */
struct walk {
    const struct llama2_config *config;
    llama2_tensor_visitor *visit;
    void *context;
    enum status status;
    char scope[64]; /* "model.layers.3." */
};

static bool has(const struct llama2_config *c, enum kind kind) {
    switch (kind) {
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

size_t llama2_layer_tensors(const struct llama2_config *config) {
    size_t count = 0;
    for (size_t i = 0; i < LAYER_ENTRIES; i++) {
        count += has(config, layer_entries[i].kind);
    }
    return count;
}

static size_t extent_of(const struct llama2_config *c, enum extent extent) {
    switch (extent) {
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

static void visit_entry(struct walk *walk, const struct entry *entry, void *stored, void *plain) {
    const struct llama2_config *c = walk->config;
    if (walk->status != STATUS_OK || !has(c, entry->kind)) {
        return;
    }
    char name[128];
    snprintf(name, sizeof name, "%s%s.%s", walk->scope, entry->name,
             entry->kind == WEIGHT ? "weight" : "bias");
    const struct llama2_tensor tensor = {
        .name = name,
        .rank = entry->columns != NONE ? 2 : 1,
        .shape = {extent_of(c, entry->rows), extent_of(c, entry->columns)},
        .rope_heads = !entry->rotated          ? 0
                      : entry->rows == QUERIES ? c->NH
                                               : c->KVH,
        .stored = (void *)((char *)stored + entry->stored_offset),
        .plain = (void *)((char *)plain + entry->plain_offset),
    };
    walk->status = walk->visit(walk->context, &tensor);
}

static void visit_layer(struct walk *walk, struct llama2_stored_layer *stored,
                        struct llama2_layer *plain) {
    for (size_t i = 0; i < LAYER_ENTRIES; i++) {
        visit_entry(walk, &layer_entries[i], stored, plain);
    }
}

enum status llama2_tensors_visit(const struct llama2_config *config, bool shared_classifier,
                                 struct llama2_stored_weights *stored, struct llama2_weights *plain,
                                 llama2_tensor_visitor *visit, void *context) {
    struct walk walk = {.config = config, .visit = visit, .context = context};
    struct llama2_stored_weights stored_scratch = {0};
    struct llama2_weights plain_scratch = {0};
    struct llama2_stored_layer stored_layer = {0};
    struct llama2_layer plain_layer = {0};
    stored = stored != NULL ? stored : &stored_scratch;
    plain = plain != NULL ? plain : &plain_scratch;
    visit_entry(&walk, &embedding, stored, plain);
    for (size_t l = 0; l < config->L && walk.status == STATUS_OK; l++) {
        snprintf(walk.scope, sizeof walk.scope, "model.layers.%zu.", l);
        visit_layer(&walk, stored->layers != NULL ? &stored->layers[l] : &stored_layer,
                    plain->layers != NULL ? &plain->layers[l] : &plain_layer);
    }
    walk.scope[0] = '\0';
    visit_entry(&walk, &final_norm, stored, plain);
    if (!shared_classifier) {
        visit_entry(&walk, &classifier, stored, plain);
    }
    return walk.status;
}
