#include "common/checkpoints/decoder/decoder_tensors.h"

#include <stdio.h>
#include <string.h>

/* Zeros at first: pointers to layers in it are NULL. */
union scratch {
    max_align_t alignment;
    unsigned char bytes[DECODER_SCRATCH_BYTES];
};

/* State while all tensors are visited. After the first failure no more visitors are called. */
struct walk {
    const struct decoder_family *family;
    const void *config;
    decoder_weight_visitor *visit;
    void *context;
    enum status status;
    char scope[64]; /* "model.layers.3." */
};

size_t decoder_weight_count(const struct decoder_weight *tensor) {
    return tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
}

size_t decoder_layer_tensors(const struct decoder_family *family, const void *config) {
    size_t count = 0;
    for (size_t i = 0; i < family->layer_count; i++) {
        count += family->has(config, family->layer[i].kind);
    }
    return count;
}

static void visit_entry(struct walk *walk, const struct decoder_entry *entry, void *stored,
                        void *plain) {
    const struct decoder_family *f = walk->family;
    if (walk->status != STATUS_OK || !f->has(walk->config, entry->kind)) {
        return;
    }
    char name[128];
    snprintf(name, sizeof name, "%s%s", walk->scope, entry->name);
    struct decoder_weight tensor = {
        .name = name,
        .rank = entry->columns != 0 ? 2 : 1,
        .shape = {f->extent(walk->config, entry->rows),
                  entry->columns != 0 ? f->extent(walk->config, entry->columns) : 1},
        .rope_heads = entry->rotated ? f->heads(walk->config, entry->rows) : 0,
        .parts = entry->parts,
        .stored = (void *)((char *)stored + entry->stored_offset),
    };
    for (size_t part = 0; part < entry->parts; part++) {
        tensor.plain[part] = (void *)((char *)plain + entry->plain_offset[part]);
    }
    walk->status = walk->visit(walk->context, &tensor);
}

/* Layer l of weights whose pointer to the layers is at an offset; scratch memory without one. */
static void *layer_of(void *weights, size_t offset, size_t bytes, size_t l,
                      union scratch *scratch) {
    unsigned char *layers;
    memcpy(&layers, (unsigned char *)weights + offset, sizeof layers);
    return layers != NULL ? (void *)(layers + l * bytes) : (void *)scratch;
}

enum status decoder_tensors_visit(const struct decoder_family *f, const void *config, size_t L,
                                  bool shared_classifier, void *stored, void *plain,
                                  decoder_weight_visitor *visit, void *context) {
    struct walk walk = {.family = f, .config = config, .visit = visit, .context = context};
    union scratch stored_scratch = {0}, plain_scratch = {0}, stored_layer = {0}, plain_layer = {0};
    stored = stored != NULL ? stored : &stored_scratch;
    plain = plain != NULL ? plain : &plain_scratch;
    visit_entry(&walk, f->embedding, stored, plain);
    for (size_t l = 0; l < L && walk.status == STATUS_OK; l++) {
        snprintf(walk.scope, sizeof walk.scope, "%s%zu.", f->scope, l);
        void *s = layer_of(stored, f->stored_layers, f->stored_layer_bytes, l, &stored_layer);
        void *p = layer_of(plain, f->plain_layers, f->plain_layer_bytes, l, &plain_layer);
        for (size_t i = 0; i < f->layer_count; i++) {
            visit_entry(&walk, &f->layer[i], s, p);
        }
    }
    walk.scope[0] = '\0';
    for (size_t i = 0; i < f->final_count - (shared_classifier ? 1 : 0); i++) {
        visit_entry(&walk, &f->final[i], stored, plain);
    }
    return walk.status;
}
