#include "common/checkpoints/bert/bert_tensors.h"

#include <stdio.h>

/* State while all tensors are visited. After the first failure no more visitors are called. */
struct walk {
    bert_tensor_visitor *visit;
    void *context;
    enum status status;
    bool outside;   /* of the encoder: the name has no "bert." prefix */
    char scope[64]; /* "encoder.layer.3." */
};

/* Visits SCOPE + module + suffix; shape (rows, columns), or (rows) when columns is 0. */
static void visit_tensor(struct walk *walk, const char *module, const char *suffix,
                         const char *old_suffix, size_t rows, size_t columns, const float **slot) {
    if (walk->status != STATUS_OK) {
        return;
    }
    char name[192];
    char old_name[192];
    snprintf(name, sizeof name, "%s%s%s", walk->scope, module, suffix);
    if (old_suffix != NULL) {
        snprintf(old_name, sizeof old_name, "%s%s%s", walk->scope, module, old_suffix);
    }
    const struct bert_tensor tensor = {
        .name = name,
        .old_name = old_suffix != NULL ? old_name : NULL,
        .outside = walk->outside,
        .rank = columns > 0 ? 2 : 1,
        .shape = {rows, columns},
        .slot = slot,
    };
    walk->status = walk->visit(walk->context, &tensor);
}

static void visit_linear(struct walk *walk, const char *module, size_t rows, size_t columns,
                         struct bert_linear *linear) {
    visit_tensor(walk, module, ".weight", NULL, rows, columns, &linear->weight);
    visit_tensor(walk, module, ".bias", NULL, rows, 0, &linear->bias);
}

static void visit_norm(struct walk *walk, const char *module, size_t C, const float **weight,
                       const float **bias) {
    visit_tensor(walk, module, ".LayerNorm.weight", ".LayerNorm.gamma", C, 0, weight);
    visit_tensor(walk, module, ".LayerNorm.bias", ".LayerNorm.beta", C, 0, bias);
}

static void visit_embeddings(struct walk *walk, const struct bert_config *c,
                             struct bert_weights *w) {
    visit_tensor(walk, "embeddings.word_embeddings", ".weight", NULL, c->V, c->C,
                 &w->word_embedding);
    visit_tensor(walk, "embeddings.position_embeddings", ".weight", NULL, c->T, c->C,
                 &w->position_embedding);
    visit_tensor(walk, "embeddings.token_type_embeddings", ".weight", NULL, c->types, c->C,
                 &w->type_embedding);
    visit_norm(walk, "embeddings", c->C, &w->embedding_norm_weight, &w->embedding_norm_bias);
}

static void visit_layer(struct walk *walk, const struct bert_config *c, struct bert_layer *layer) {
    visit_linear(walk, "attention.self.query", c->C, c->C, &layer->q);
    visit_linear(walk, "attention.self.key", c->C, c->C, &layer->k);
    visit_linear(walk, "attention.self.value", c->C, c->C, &layer->v);
    visit_linear(walk, "attention.output.dense", c->C, c->C, &layer->attention_out);
    visit_norm(walk, "attention.output", c->C, &layer->attention_norm_weight,
               &layer->attention_norm_bias);
    visit_linear(walk, "intermediate.dense", c->hidden, c->C, &layer->up);
    visit_linear(walk, "output.dense", c->C, c->hidden, &layer->down);
    visit_norm(walk, "output", c->C, &layer->output_norm_weight, &layer->output_norm_bias);
}

enum status bert_tensors_visit(const struct bert_config *config, struct bert_heads heads,
                               struct bert_weights *weights, bert_tensor_visitor *visit,
                               void *context) {
    struct walk walk = {.visit = visit, .context = context};
    visit_embeddings(&walk, config, weights);
    struct bert_layer scratch = {0};
    for (size_t l = 0; l < config->L && walk.status == STATUS_OK; l++) {
        snprintf(walk.scope, sizeof walk.scope, "encoder.layer.%zu.", l);
        visit_layer(&walk, config, weights->layers != NULL ? &weights->layers[l] : &scratch);
    }
    walk.scope[0] = '\0';
    if (heads.pooler) {
        visit_linear(&walk, "pooler.dense", config->C, config->C, &weights->pooler);
    }
    walk.outside = true;
    if (heads.classifier) {
        visit_linear(&walk, "classifier", config->labels, config->C, &weights->classifier);
    }
    return walk.status;
}
