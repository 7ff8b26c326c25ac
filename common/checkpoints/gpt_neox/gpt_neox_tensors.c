#include "common/checkpoints/gpt_neox/gpt_neox_tensors.h"

#include <stdio.h>

/* An extent of a shape, by its meaning in struct gpt_neox_config. */
enum extent { NONE, CHANNELS, THREE_CHANNELS, HIDDEN, VOCABULARY };

struct entry {
    const char *name;
    enum extent rows, columns; /* columns NONE: a vector */
    bool attention_bias;       /* only with config->attention_bias */
    size_t parts;
    size_t stored_offset, plain_offset[3];
};

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

static const struct entry layer_entries[] = {
    {"input_layernorm.weight", CHANNELS, NONE, false, IN_LAYER(attention_norm)},
    {"input_layernorm.bias", CHANNELS, NONE, false, IN_LAYER(attention_norm_bias)},
    {"post_attention_layernorm.weight", CHANNELS, NONE, false, IN_LAYER(ffn_norm)},
    {"post_attention_layernorm.bias", CHANNELS, NONE, false, IN_LAYER(ffn_norm_bias)},
    {"attention.query_key_value.weight",
     THREE_CHANNELS,
     CHANNELS,
     false,
     3,
     STORED(qkv),
     {PLAIN(wq), PLAIN(wk), PLAIN(wv)}},
    {"attention.query_key_value.bias",
     THREE_CHANNELS,
     NONE,
     true,
     3,
     STORED(qkv_bias),
     {PLAIN(bq), PLAIN(bk), PLAIN(bv)}},
    {"attention.dense.weight", CHANNELS, CHANNELS, false, IN_LAYER(wo)},
    {"attention.dense.bias", CHANNELS, NONE, true, IN_LAYER(bo)},
    {"mlp.dense_h_to_4h.weight", HIDDEN, CHANNELS, false, IN_LAYER(up)},
    {"mlp.dense_h_to_4h.bias", HIDDEN, NONE, false, IN_LAYER(up_bias)},
    {"mlp.dense_4h_to_h.weight", CHANNELS, HIDDEN, false, IN_LAYER(down)},
    {"mlp.dense_4h_to_h.bias", CHANNELS, NONE, false, IN_LAYER(down_bias)},
};

enum { LAYER_ENTRIES = sizeof layer_entries / sizeof *layer_entries };

static const struct entry embedding = {"gpt_neox.embed_in.weight", VOCABULARY, CHANNELS, false,
                                       OUTSIDE(embedding)};
static const struct entry final_entries[] = {
    {"gpt_neox.final_layer_norm.weight", CHANNELS, NONE, false, OUTSIDE(final_norm)},
    {"gpt_neox.final_layer_norm.bias", CHANNELS, NONE, false, OUTSIDE(final_norm_bias)},
    {"embed_out.weight", VOCABULARY, CHANNELS, false, OUTSIDE(classifier)},
};

/* State while all tensors are visited. After the first failure no more visitors are called. */
struct walk {
    const struct gpt_neox_config *config;
    gpt_neox_tensor_visitor *visit;
    void *context;
    enum status status;
    char scope[64]; /* "gpt_neox.layers.3." */
};

static size_t extent_of(const struct gpt_neox_config *c, enum extent extent) {
    switch (extent) {
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

static void visit_entry(struct walk *walk, const struct entry *entry, void *stored, void *plain) {
    const struct gpt_neox_config *c = walk->config;
    if (walk->status != STATUS_OK || (entry->attention_bias && !c->attention_bias)) {
        return;
    }
    char name[128];
    snprintf(name, sizeof name, "%s%s", walk->scope, entry->name);
    struct gpt_neox_tensor tensor = {
        .name = name,
        .rank = entry->columns != NONE ? 2 : 1,
        .shape = {extent_of(c, entry->rows), extent_of(c, entry->columns)},
        .parts = entry->parts,
        .stored = (void *)((char *)stored + entry->stored_offset),
    };
    for (size_t part = 0; part < entry->parts; part++) {
        tensor.plain[part] = (void *)((char *)plain + entry->plain_offset[part]);
    }
    walk->status = walk->visit(walk->context, &tensor);
}

static void visit_layer(struct walk *walk, struct gpt_neox_stored_layer *stored,
                        struct gpt_neox_layer *plain) {
    for (size_t i = 0; i < LAYER_ENTRIES; i++) {
        visit_entry(walk, &layer_entries[i], stored, plain);
    }
}

enum status gpt_neox_tensors_visit(const struct gpt_neox_config *config, bool shared_classifier,
                                   struct gpt_neox_stored_weights *stored,
                                   struct gpt_neox_weights *plain, gpt_neox_tensor_visitor *visit,
                                   void *context) {
    struct walk walk = {.config = config, .visit = visit, .context = context};
    struct gpt_neox_stored_weights stored_scratch = {0};
    struct gpt_neox_weights plain_scratch = {0};
    struct gpt_neox_stored_layer stored_layer = {0};
    struct gpt_neox_layer plain_layer = {0};
    stored = stored != NULL ? stored : &stored_scratch;
    plain = plain != NULL ? plain : &plain_scratch;
    visit_entry(&walk, &embedding, stored, plain);
    for (size_t l = 0; l < config->L && walk.status == STATUS_OK; l++) {
        snprintf(walk.scope, sizeof walk.scope, "gpt_neox.layers.%zu.", l);
        visit_layer(&walk, stored->layers != NULL ? &stored->layers[l] : &stored_layer,
                    plain->layers != NULL ? &plain->layers[l] : &plain_layer);
    }
    walk.scope[0] = '\0';
    for (size_t i = 0; i < (shared_classifier ? 2 : 3); i++) {
        visit_entry(&walk, &final_entries[i], stored, plain);
    }
    return walk.status;
}

size_t gpt_neox_tensor_count(const struct gpt_neox_tensor *tensor) {
    return tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
}
