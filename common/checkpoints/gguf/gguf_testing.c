#include "common/checkpoints/gguf/gguf_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/gguf/gguf_llama2.h"
#include "common/nn/dtype.h"

enum { ALIGNMENT = 32, BYTES = 256 };

void gguf_put(struct gguf_file *file, const void *data, size_t size) {
    if (file->size + size > file->capacity) {
        file->capacity = 2 * (file->size + size) + 1024;
        file->data = realloc(file->data, file->capacity);
        if (file->data == NULL) {
            abort();
        }
    }
    if (size > 0) {
        memcpy(file->data + file->size, data, size);
    }
    file->size += size;
}

static void put_u32(struct gguf_file *file, uint32_t value) {
    gguf_put(file, &value, sizeof value);
}

static void put_u64(struct gguf_file *file, uint64_t value) {
    gguf_put(file, &value, sizeof value);
}

void gguf_put_string(struct gguf_file *file, const char *text, size_t length) {
    put_u64(file, length);
    gguf_put(file, text, length);
}

static void put_key(struct gguf_file *file, const char *key, uint32_t type) {
    gguf_put_string(file, key, strlen(key));
    put_u32(file, type);
}

void gguf_put_head(struct gguf_file *file, uint32_t version, uint64_t tensors, uint64_t values) {
    gguf_put(file, "GGUF", 4);
    put_u32(file, version);
    put_u64(file, tensors);
    put_u64(file, values);
}

void gguf_put_text(struct gguf_file *file, const char *key, const char *text) {
    put_key(file, key, GGUF_STRING);
    gguf_put_string(file, text, strlen(text));
}

void gguf_put_u32(struct gguf_file *file, const char *key, uint32_t value) {
    put_key(file, key, GGUF_UINT32);
    put_u32(file, value);
}

void gguf_put_f32(struct gguf_file *file, const char *key, float value) {
    put_key(file, key, GGUF_FLOAT32);
    gguf_put(file, &value, sizeof value);
}

void gguf_put_bool(struct gguf_file *file, const char *key, bool value) {
    put_key(file, key, GGUF_BOOL);
    gguf_put(file, &(unsigned char){value}, 1);
}

void gguf_put_array(struct gguf_file *file, const char *key, enum gguf_value_type type,
                    uint64_t count) {
    put_key(file, key, GGUF_ARRAY);
    put_u32(file, type);
    put_u64(file, count);
}

/* Up to the next multiple of the alignment. */
static size_t padded(size_t size) {
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t tensor_bytes(size_t count, uint32_t type) {
    const struct gguf_block block = gguf_block(type);
    return block.weights > 0 ? count / block.weights * block.bytes : 0;
}

void gguf_put_tensor(struct gguf_file *file, const char *name, size_t rows, size_t columns,
                     uint32_t type) {
    gguf_put_string(file, name, strlen(name));
    put_u32(file, rows > 0 ? 2 : 1);
    put_u64(file, columns);
    if (rows > 0) {
        put_u64(file, rows);
    }
    put_u32(file, type);
    put_u64(file, file->offset);
    file->offset += padded(tensor_bytes((rows > 0 ? rows : 1) * columns, type));
}

void gguf_put_padding(struct gguf_file *file) {
    static const unsigned char zeros[ALIGNMENT] = {0};
    gguf_put(file, zeros, padded(file->size) - file->size);
}

/* ---- A model ---- */

static void put_sizes(struct gguf_file *file, const struct llama2_config *c) {
    gguf_put_text(file, "general.architecture", "llama");
    gguf_put_u32(file, "llama.embedding_length", (uint32_t)c->C);
    gguf_put_u32(file, "llama.feed_forward_length", (uint32_t)c->hidden);
    gguf_put_u32(file, "llama.block_count", (uint32_t)c->L);
    gguf_put_u32(file, "llama.attention.head_count", (uint32_t)c->NH);
    gguf_put_u32(file, "llama.attention.head_count_kv", (uint32_t)c->KVH);
    gguf_put_u32(file, "llama.attention.key_length", (uint32_t)c->HS);
    gguf_put_u32(file, "llama.context_length", (uint32_t)c->T);
    gguf_put_f32(file, "llama.attention.layer_norm_rms_epsilon", c->norm_eps);
    gguf_put_f32(file, "llama.rope.freq_base", c->rope_theta);
}

enum { SIZES = 10 };

/* One record of llama2.c's tokenizer; *at advances. */
struct record {
    float score;
    int32_t length;
    const char *text;
};

static struct record take_record(const unsigned char *data, size_t *at) {
    struct record r;
    memcpy(&r.score, data + *at, sizeof r.score);
    memcpy(&r.length, data + *at + 4, sizeof r.length);
    r.text = (const char *)data + *at + 8;
    *at += 8 + (size_t)r.length;
    return r;
}

/* As GGUF spells it: no line feeds around <s> and </s>, U+2581 for blanks. */
static void put_piece(struct gguf_file *file, size_t id, struct record r) {
    char text[1024];
    size_t length = 0;
    bool control = id == 1 || id == 2;
    for (int32_t i = 0; i < r.length; i++) {
        if (r.text[i] == ' ') {
            memcpy(text + length, "\xe2\x96\x81", 3);
            length += 3;
        } else if (!control || r.text[i] != '\n') {
            text[length++] = r.text[i];
        }
    }
    gguf_put_string(file, text, length);
}

enum { SCORED_VALUES = 6, BYTE_LEVEL_VALUES = 7 };

static void put_scored(struct gguf_file *file, size_t V, const unsigned char *data) {
    gguf_put_text(file, "tokenizer.ggml.model", "llama");
    gguf_put_array(file, "tokenizer.ggml.tokens", GGUF_STRING, V);
    for (size_t id = 0, at = 4; id < V; id++) {
        put_piece(file, id, take_record(data, &at));
    }
    gguf_put_array(file, "tokenizer.ggml.scores", GGUF_FLOAT32, V);
    for (size_t id = 0, at = 4; id < V; id++) {
        gguf_put(file, &(float){take_record(data, &at).score}, sizeof(float));
    }
    gguf_put_array(file, "tokenizer.ggml.token_type", GGUF_INT32, V);
    for (size_t id = 0; id < V; id++) {
        put_u32(file, id == 0 ? 2 : id < 3 ? 3 : id < 3 + BYTES ? 6 : 1);
    }
    gguf_put_u32(file, "tokenizer.ggml.bos_token_id", 1);
    gguf_put_u32(file, "tokenizer.ggml.eos_token_id", 2);
}

/* A byte as byte-level BPE spells it: U+0100 and on for those that cannot be printed. */
static void put_byte(struct gguf_file *file, int byte, int *others) {
    bool printable = (byte > ' ' && byte < 0x7f) || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
    int code = printable ? byte : BYTES + (*others)++;
    const char utf8[2] = {(char)(0xc0 | code >> 6), (char)(0x80 | (code & 63))};
    gguf_put_string(file, code < 0x80 ? &(char){(char)code} : utf8, code < 0x80 ? 1 : 2);
}

static void put_byte_level(struct gguf_file *file) {
    int others = 0;
    gguf_put_text(file, "tokenizer.ggml.model", "gpt2");
    gguf_put_text(file, "tokenizer.ggml.pre", "llama-bpe");
    gguf_put_array(file, "tokenizer.ggml.tokens", GGUF_STRING, GGUF_BYTE_LEVEL_TOKENS);
    for (int byte = 0; byte < BYTES; byte++) {
        put_byte(file, byte, &others);
    }
    gguf_put_string(file, "ab", 2);
    gguf_put_string(file, "<|end|>", 7);
    gguf_put_array(file, "tokenizer.ggml.token_type", GGUF_INT32, GGUF_BYTE_LEVEL_TOKENS);
    for (int id = 0; id < GGUF_BYTE_LEVEL_TOKENS; id++) {
        put_u32(file, id == GGUF_BYTE_LEVEL_TOKENS - 1 ? 3 : 1);
    }
    gguf_put_array(file, "tokenizer.ggml.merges", GGUF_STRING, 1);
    gguf_put_string(file, "a b", 3);
    gguf_put_u32(file, "tokenizer.ggml.bos_token_id", GGUF_BYTE_LEVEL_TOKENS - 1);
    gguf_put_u32(file, "tokenizer.ggml.eos_token_id", GGUF_BYTE_LEVEL_TOKENS - 1);
}

/* State of the visits: first they count, then they write entries, then data. */
struct visit {
    struct gguf_file *file;
    enum gguf_type type;
    size_t tensors;
};

static enum status count_tensor(void *context, const struct decoder_weight *t) {
    struct visit *v = context;
    v->tensors += t->rank > 0;
    return STATUS_OK;
}

static enum status put_entry(void *context, const struct decoder_weight *t) {
    struct visit *v = context;
    char name[GGUF_NAME_BYTES];
    bool matrix = t->rank == 2;
    gguf_put_tensor(v->file, gguf_llama2_name(t->name, name), matrix ? t->shape[0] : 0,
                    t->shape[matrix], matrix ? v->type : GGUF_F32);
    return STATUS_OK;
}

/* Any bytes: 0x2e is of a small scale, also as the upper half of an fp16 number. */
static void put_blocks(struct gguf_file *file, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        gguf_put(file, &(unsigned char){(unsigned char)(i % 7 == 0 ? 0x21 : 0x2e)}, 1);
    }
}

static enum status put_values(void *context, const struct decoder_weight *t) {
    struct visit *v = context;
    size_t count = decoder_weight_count(t);
    enum gguf_type type = t->rank == 2 ? v->type : GGUF_F32;
    if (type != GGUF_F32 && type != GGUF_F16 && type != GGUF_BF16) {
        put_blocks(v->file, tensor_bytes(count, type));
    } else {
        enum nn_dtype dtype = type == GGUF_F32 ? NN_F32 : type == GGUF_F16 ? NN_F16 : NN_BF16;
        void *values = malloc(count * sizeof(float));
        if (values == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
        nn_dtype_store(values, *t->plain[0], count, dtype);
        gguf_put(v->file, values, tensor_bytes(count, type));
        free(values);
    }
    gguf_put_padding(v->file);
    return STATUS_OK;
}

enum status gguf_testing_llama2(struct gguf_file *file, const struct llama2_config *config,
                                const struct llama2_weights *weights, enum gguf_type type,
                                const unsigned char *tokenizer, size_t tokenizer_size) {
    struct visit v = {.file = file, .type = type};
    struct llama2_weights plain = *weights; /* visitors get writable pointers */
    bool shared = weights->classifier == weights->embedding;
    *file = (struct gguf_file){0};
    TRY(llama2_tensors_visit(config, shared, NULL, &plain, count_tensor, &v));
    gguf_put_head(file, 3, v.tensors,
                  SIZES + (tokenizer_size > 0 ? SCORED_VALUES : BYTE_LEVEL_VALUES));
    put_sizes(file, config);
    if (tokenizer_size > 0) {
        put_scored(file, config->V, tokenizer);
    } else {
        put_byte_level(file);
    }
    TRY(llama2_tensors_visit(config, shared, NULL, &plain, put_entry, &v));
    gguf_put_padding(file);
    return llama2_tensors_visit(config, shared, NULL, &plain, put_values, &v);
}
