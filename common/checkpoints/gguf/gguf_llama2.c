#include "common/checkpoints/gguf/gguf_llama2.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/checkpoints/decoder/decoder_load.h"
#include "common/checkpoints/decoder/decoder_stored.h"

/* ---- The configuration ---- */

static const double default_theta = 10000.0;

static enum status read_size(const struct gguf *file, const char *key, size_t fallback, size_t *out,
                             struct error *error) {
    if (gguf_value(file, key) == NULL && fallback > 0) {
        *out = fallback;
        return STATUS_OK;
    }
    if (!gguf_size(file, key, out) || *out < 1 || *out > INT32_MAX) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is %s", key,
                         gguf_value(file, key) == NULL ? "missing"
                                                       : "not a whole number from 1 to 2^31 - 1");
    }
    return STATUS_OK;
}

static enum status read_number(const struct gguf *file, const char *key, double fallback,
                               float *out, struct error *error) {
    double value = fallback;
    if (gguf_value(file, key) == NULL && fallback > 0.0) {
        *out = (float)value;
        return STATUS_OK;
    }
    if (!gguf_number(file, key, &value) || !(value > 0.0) || !isfinite((float)value)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is %s", key,
                         gguf_value(file, key) == NULL ? "missing" : "not a positive number");
    }
    *out = (float)value;
    return STATUS_OK;
}

/* The vocabulary's size is the embedding's: files need not name it. */
static enum status read_vocabulary(const struct gguf *file, size_t *V, struct error *error) {
    const struct gguf_tensor *embedding = gguf_find(file, "token_embd.weight");
    if (embedding == NULL || embedding->rank != 2 || embedding->shape[0] > INT32_MAX ||
        embedding->shape[0] < 1) {
        return error_set(error, STATUS_BAD_FORMAT, "tensor \"token_embd.weight\" is %s",
                         embedding == NULL ? "missing" : "not a matrix");
    }
    *V = embedding->shape[0];
    return STATUS_OK;
}

static enum status read_sizes(const struct gguf *file, struct llama2_config *c,
                              struct error *error) {
    const struct {
        const char *key;
        size_t *out;
    } sizes[] = {{"llama.embedding_length", &c->C},
                 {"llama.feed_forward_length", &c->hidden},
                 {"llama.block_count", &c->L},
                 {"llama.attention.head_count", &c->NH},
                 {"llama.context_length", &c->T}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TRY(read_size(file, sizes[i].key, 0, sizes[i].out, error));
    }
    TRY(read_size(file, "llama.attention.head_count_kv", c->NH, &c->KVH, error));
    TRY(read_size(file, "llama.attention.key_length", c->C / c->NH, &c->HS, error));
    TRY(read_number(file, "llama.attention.layer_norm_rms_epsilon", 0.0, &c->norm_eps, error));
    TRY(read_number(file, "llama.rope.freq_base", default_theta, &c->rope_theta, error));
    return read_vocabulary(file, &c->V, error);
}

static enum status check_heads(const struct gguf *file, const struct llama2_config *c,
                               struct error *error) {
    size_t values, rotated, channels;
    TRY(read_size(file, "llama.attention.value_length", c->HS, &values, error));
    TRY(read_size(file, "llama.rope.dimension_count", c->HS, &rotated, error));
    if (c->NH % c->KVH != 0 || c->HS % 2 != 0 || !checked_multiply(c->NH, c->HS, &channels) ||
        channels > INT32_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "%zu heads of %zu channels, %zu of keys: the last must divide the first, "
                         "and channels must be even",
                         c->NH, c->HS, c->KVH);
    }
    if (values != c->HS || rotated != c->HS) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "heads of %zu channels with values of %zu and %zu rotated channels are "
                         "not supported: all must be equal",
                         c->HS, values, rotated);
    }
    return STATUS_OK;
}

/* What another model would compute differently. */
static enum status check_extras(const struct gguf *file, struct error *error) {
    size_t experts = 0;
    if (gguf_size(file, "llama.expert_count", &experts) && experts > 0) {
        return error_set(error, STATUS_UNSUPPORTED, "a mixture of %zu experts is not supported",
                         experts);
    }
    if (gguf_find(file, "rope_freqs.weight") != NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "tensor \"rope_freqs.weight\": Llama 3.1's scaled rotary embedding is "
                         "supported in a Hugging Face folder only; give that folder");
    }
    return STATUS_OK;
}

static enum status read_scaling(const struct gguf *file, struct llama2_config *c,
                                struct error *error) {
    struct gguf_string type = {0};
    float factor;
    if (gguf_value(file, "llama.rope.scaling.type") == NULL ||
        gguf_text_is(file, "llama.rope.scaling.type", "none")) {
        return STATUS_OK;
    }
    if (!gguf_text_is(file, "llama.rope.scaling.type", "linear")) {
        (void)gguf_text(file, "llama.rope.scaling.type", &type);
        return error_set(error, STATUS_UNSUPPORTED,
                         "\"llama.rope.scaling.type\": \"%.*s\" is not supported, only \"none\" "
                         "and \"linear\"",
                         gguf_shown(type), type.text != NULL ? type.text : "");
    }
    TRY(read_number(file, "llama.rope.scaling.factor", 1.0, &factor, error));
    c->rope = (struct llama2_rope){.scaling = LLAMA2_ROPE_LINEAR, .factor = (double)factor};
    return factor >= 1.0f
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "\"llama.rope.scaling.factor\" is %g, below 1",
                           (double)factor);
}

static enum status check_architecture(const struct gguf *file, struct error *error) {
    struct gguf_string name = {.text = ""};
    if (gguf_text_is(file, "general.architecture", "llama")) {
        return STATUS_OK;
    }
    if (!gguf_text(file, "general.architecture", &name)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"general.architecture\" is missing");
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "architecture \"%.*s\" is not supported, only \"llama\"; other models can be "
                     "given as a Hugging Face folder",
                     gguf_shown(name), name.text);
}

enum status gguf_llama2_config(const struct gguf *file, struct llama2_config *config, bool *shared,
                               struct error *error) {
    *config = (struct llama2_config){.rope_layout = NN_ROPE_INTERLEAVED};
    TRY(check_architecture(file, error));
    TRY(check_extras(file, error));
    TRY(read_sizes(file, config, error));
    TRY(check_heads(file, config, error));
    TRY(read_scaling(file, config, error));
    *shared = gguf_find(file, "output.weight") == NULL;
    return STATUS_OK;
}

/* ---- Tensors ---- */

const char *gguf_llama2_name(const char *tensor, char name[GGUF_NAME_BYTES]) {
    static const char *const names[][2] = {
        {"model.embed_tokens", "token_embd"},
        {"model.norm", "output_norm"},
        {"lm_head", "output"},
        {"input_layernorm", "attn_norm"},
        {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"},
        {"mlp.gate_proj", "ffn_gate"},
        {"mlp.down_proj", "ffn_down"},
        {"mlp.up_proj", "ffn_up"},
        {"post_attention_layernorm", "ffn_norm"},
    };
    static const char scope[] = "model.layers.";
    int length = 0;
    if (strncmp(tensor, scope, strlen(scope)) == 0) {
        const char *number = tensor + strlen(scope), *dot = strchr(number, '.');
        length = snprintf(name, GGUF_NAME_BYTES, "blk.%.*s.", (int)(dot - number), number);
        tensor = dot + 1;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t stem = strlen(names[i][0]);
        if (strncmp(tensor, names[i][0], stem) == 0 && tensor[stem] == '.') {
            snprintf(name + length, GGUF_NAME_BYTES - (size_t)length, "%s%s", names[i][1],
                     tensor + stem);
        }
    }
    return name;
}

/* The first visit checks and measures all tensors, the second places them. */
struct loader {
    const struct gguf *file;
    struct arena *arena;
    size_t bytes; /* of dequantised values */
    struct error *error;
};

static bool in_place(uint32_t type) {
    return type == GGUF_F32 || type == GGUF_F16 || type == GGUF_BF16;
}

static enum status check_tensor(void *context, const struct decoder_weight *want) {
    struct loader *l = context;
    char name[GGUF_NAME_BYTES];
    const struct gguf_tensor *t = gguf_find(l->file, gguf_llama2_name(want->name, name));
    if (t == NULL) {
        return error_set(l->error, STATUS_BAD_FORMAT, "tensor \"%s\" is missing", name);
    }
    size_t rows = want->rank == 2 ? want->shape[0] : 1, columns = want->shape[want->rank - 1];
    if (t->rank != want->rank || t->shape[t->rank - 1] != columns || t->count != rows * columns) {
        return error_set(l->error, STATUS_MISMATCH,
                         "tensor \"%s\" has %zu rows of %zu, the sizes of the file ask for %zu of "
                         "%zu",
                         name, t->rank > 1 ? t->shape[t->rank - 2] : 1, t->shape[t->rank - 1], rows,
                         columns);
    }
    const struct gguf_block block = gguf_block(t->type);
    if (block.weights == 0) {
        return error_set(l->error, STATUS_UNSUPPORTED,
                         "tensor \"%s\" has the type %s (%" PRIu32 "); supported are %s", name,
                         block.name, t->type, gguf_types_read);
    }
    size_t bytes = in_place(t->type) ? 0 : arena_footprint(t->count, sizeof(float));
    return checked_add(l->bytes, bytes, &l->bytes)
               ? STATUS_OK
               : error_set(l->error, STATUS_OVERFLOW, "size of all fp32 weights overflows");
}

static enum status place_tensor(void *context, const struct decoder_weight *want) {
    struct loader *l = context;
    char name[GGUF_NAME_BYTES];
    const struct gguf_tensor *t = gguf_find(l->file, gguf_llama2_name(want->name, name));
    if (in_place(t->type)) {
        enum nn_dtype dtype = t->type == GGUF_F32 ? NN_F32 : t->type == GGUF_F16 ? NN_F16 : NN_BF16;
        *want->stored = decoder_stored_at(want, t->data, dtype);
        return STATUS_OK;
    }
    float *values = arena_alloc(l->arena, t->count, sizeof *values);
    if (values == NULL) {
        return error_set(l->error, STATUS_OUT_OF_MEMORY, "out of memory for \"%s\"", name);
    }
    gguf_dequantize(t->type, t->data, values, t->count);
    *want->stored = decoder_stored_at(want, values, NN_F32);
    return STATUS_OK;
}

/* A file with a layer more than it says would give a model that computes something else. */
static enum status check_layers(const struct loader *l, size_t L) {
    char name[GGUF_NAME_BYTES];
    snprintf(name, sizeof name, "blk.%zu.attn_q.weight", L);
    return gguf_find(l->file, name) == NULL
               ? STATUS_OK
               : error_set(l->error, STATUS_MISMATCH,
                           "there is a tensor \"%s\", but \"llama.block_count\" is %zu", name, L);
}

enum status gguf_llama2_load(const struct gguf *file, const struct llama2_config *config,
                             bool shared, size_t most_bytes, struct llama2_stored_weights *weights,
                             struct arena *arena, struct error *error) {
    struct loader l = {.file = file, .arena = arena, .error = error};
    TRY(check_layers(&l, config->L));
    TRY(llama2_tensors_visit(config, shared, NULL, NULL, check_tensor, &l));
    if (l.bytes > 0) {
        TRY(decoder_dequantized_arena(arena, l.bytes, most_bytes, error));
    }
    TRY(llama2_tensors_visit(config, shared, weights, NULL, place_tensor, &l));
    if (shared) {
        weights->classifier = weights->embedding;
    }
    return STATUS_OK;
}
