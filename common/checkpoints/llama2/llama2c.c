#include "common/checkpoints/llama2/llama2c.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/checked.h"
#include "common/base/file_kind.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are read in place: the host must be little-endian"
#endif

enum { HEADER_FIELDS = 7, HEADER_BYTES = HEADER_FIELDS * sizeof(int32_t) };

/* First word of the newer formats, versions 1 and 2 ("ak42"). */
enum { VERSIONED_MAGIC = 0x616b3432 };

/* The format does not store these; every reader assumes these values. */
static const float ROPE_THETA = 10000.0f;
static const float NORM_EPS = 1e-5f;

/* Blocks of the file, in its order. A block of the layers holds that tensor of all L layers. */
enum block {
    EMBEDDING,
    ATTENTION_NORM,
    WQ,
    WK,
    WV,
    WO,
    FFN_NORM,
    W1,
    W2,
    W3,
    FINAL_NORM,
    ROPE_TABLES,
    CLASSIFIER,
    BLOCKS
};

/* Where each block is, in floats after the header. */
struct layout {
    size_t offset[BLOCKS + 1]; /* of its first float; the last entry is the total */
    size_t item[BLOCKS];       /* floats of one layer; outside the layers, of the whole block */
};

static bool is_layer_block(enum block block) {
    return block >= ATTENTION_NORM && block <= W3;
}

/* A layer's pointer to its tensor in a block. */
static const float **layer_slot(struct llama2_layer *layer, enum block block) {
    const float **const slots[BLOCKS] = {
        [ATTENTION_NORM] = &layer->attention_norm,
        [WQ] = &layer->wq,
        [WK] = &layer->wk,
        [WV] = &layer->wv,
        [WO] = &layer->wo,
        [FFN_NORM] = &layer->ffn_norm,
        [W1] = &layer->w1,
        [W2] = &layer->w2,
        [W3] = &layer->w3,
    };
    return slots[block];
}

/* Computes where the blocks of a checked configuration are; false if a size overflows. */
static bool layout_compute(const struct llama2_config *c, bool shared, struct layout *layout) {
    const size_t q_width = c->NH * c->HS;
    const size_t kv_width = c->KVH * c->HS;
    const size_t shapes[BLOCKS][2] = {
        [EMBEDDING] = {c->V, c->C},
        [ATTENTION_NORM] = {1, c->C},
        [WQ] = {q_width, c->C},
        [WK] = {kv_width, c->C},
        [WV] = {kv_width, c->C},
        [WO] = {c->C, q_width},
        [FFN_NORM] = {1, c->C},
        [W1] = {c->hidden, c->C},
        [W2] = {c->C, c->hidden},
        [W3] = {c->hidden, c->C},
        [FINAL_NORM] = {1, c->C},
        [ROPE_TABLES] = {c->T, c->HS},
        [CLASSIFIER] = {shared ? 0 : c->V, c->C},
    };
    size_t end = 0;
    for (enum block block = 0; block < BLOCKS; block++) {
        layout->offset[block] = end;
        size_t count;
        if (!checked_multiply(shapes[block][0], shapes[block][1], &layout->item[block]) ||
            !checked_multiply(layout->item[block], is_layer_block(block) ? c->L : 1, &count) ||
            !checked_add(end, count, &end)) {
            return false;
        }
    }
    layout->offset[BLOCKS] = end;
    return true;
}

/* Bytes of the whole file; false if they overflow. */
static bool layout_bytes(const struct layout *layout, size_t *bytes) {
    return checked_multiply(layout->offset[BLOCKS], sizeof(float), bytes) &&
           checked_add(*bytes, HEADER_BYTES, bytes);
}

/* Reads the seven numbers: each at least 1, but vocab_size may be negative. */
static enum status read_header(const unsigned char *data, struct llama2_config *config,
                               bool *shared, struct error *error) {
    static const char *const names[HEADER_FIELDS] = {
        "dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len"};
    enum { VOCAB_SIZE = 5 };
    int32_t fields[HEADER_FIELDS];
    memcpy(fields, data, sizeof fields);
    int64_t sizes[HEADER_FIELDS]; /* wide enough for -INT32_MIN */
    for (int i = 0; i < HEADER_FIELDS; i++) {
        sizes[i] = i == VOCAB_SIZE && fields[i] < 0 ? -(int64_t)fields[i] : fields[i];
        if (i == VOCAB_SIZE && sizes[i] == 0) {
            return error_set(error, STATUS_BAD_FORMAT, "vocab_size is 0, must not be");
        }
        if (sizes[i] < 1) {
            return error_set(error, STATUS_BAD_FORMAT, "%s is %" PRId64 ", must be at least 1",
                             names[i], sizes[i]);
        }
    }
    *shared = fields[VOCAB_SIZE] > 0;
    *config = (struct llama2_config){
        .C = (size_t)sizes[0],
        .hidden = (size_t)sizes[1],
        .L = (size_t)sizes[2],
        .NH = (size_t)sizes[3],
        .KVH = (size_t)sizes[4],
        .HS = (size_t)(sizes[0] / sizes[3]),
        .V = (size_t)sizes[5],
        .T = (size_t)sizes[6],
        .rope_theta = ROPE_THETA,
        .norm_eps = NORM_EPS,
        .rope_layout = NN_ROPE_INTERLEAVED,
    };
    return STATUS_OK;
}

/* Checks that channels, query heads and key heads divide each other. */
static enum status check_heads(const struct llama2_config *c, struct error *error) {
    if (c->C % c->NH != 0) {
        return error_set(error, STATUS_BAD_FORMAT, "dim is %zu, must be a multiple of n_heads, %zu",
                         c->C, c->NH);
    }
    if (c->HS % 2 != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "head size dim / n_heads is %zu / %zu = %zu, must be even", c->C, c->NH,
                         c->HS);
    }
    if (c->NH % c->KVH != 0) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "n_heads is %zu, must be a multiple of n_kv_heads, %zu", c->NH, c->KVH);
    }
    return STATUS_OK;
}

/* Checks the length of the file against its header. */
static enum status check_length(const struct llama2_config *c, const struct layout *layout,
                                bool fits, size_t size, struct error *error) {
    size_t bytes;
    if (!fits || !layout_bytes(layout, &bytes)) {
        return error_set(error, STATUS_OVERFLOW,
                         "sizes overflow: dim %zu, hidden_dim %zu, n_layers %zu, vocab_size %zu, "
                         "seq_len %zu; is this a llama2.c checkpoint?",
                         c->C, c->hidden, c->L, c->V, c->T);
    }
    if (size != bytes) {
        return error_set(error, size < bytes ? STATUS_TRUNCATED : STATUS_MISMATCH,
                         "header says %zu bytes, file has %zu", bytes, size);
    }
    return STATUS_OK;
}

/* Sets the weights' pointers into the file; allocates the layers' structs only. */
static enum status point_weights(struct llama2c_checkpoint *checkpoint, const float *floats,
                                 const struct layout *layout, struct error *error) {
    struct llama2_weights *weights = &checkpoint->weights;
    size_t L = checkpoint->config.L;
    weights->layers = calloc(L, sizeof *weights->layers);
    if (weights->layers == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu layers", L);
    }
    for (enum block block = ATTENTION_NORM; block <= W3; block++) {
        for (size_t l = 0; l < L; l++) {
            *layer_slot(&weights->layers[l], block) =
                floats + layout->offset[block] + l * layout->item[block];
        }
    }
    weights->embedding = floats + layout->offset[EMBEDDING];
    weights->final_norm = floats + layout->offset[FINAL_NORM];
    weights->classifier =
        checkpoint->shared_classifier ? weights->embedding : floats + layout->offset[CLASSIFIER];
    return STATUS_OK;
}

/* Refuses the newer formats, and files too short for a header. */
static enum status check_beginning(const unsigned char *data, size_t size, struct error *error) {
    uint32_t magic = 0;
    if (size >= sizeof magic) {
        memcpy(&magic, data, sizeof magic);
    }
    if (magic == VERSIONED_MAGIC) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "llama2.c format version 1 or later (magic \"ak42\") is not supported; "
                         "export with --version 0");
    }
    if (size < HEADER_BYTES) {
        return error_set(error, STATUS_TRUNCATED, "header needs %d bytes, file has %zu",
                         (int)HEADER_BYTES, size);
    }
    return STATUS_OK;
}

enum status llama2c_parse(struct llama2c_checkpoint *checkpoint, const void *data, size_t size,
                          struct error *error) {
    *checkpoint = (struct llama2c_checkpoint){0};
    if ((uintptr_t)data % _Alignof(float) != 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "checkpoint in memory is not 4-byte aligned");
    }
    struct llama2c_checkpoint found = {0};
    struct layout layout;
    TRY(check_beginning(data, size, error));
    TRY(read_header(data, &found.config, &found.shared_classifier, error));
    TRY(check_heads(&found.config, error));
    bool fits = layout_compute(&found.config, found.shared_classifier, &layout);
    TRY(check_length(&found.config, &layout, fits, size, error));
    TRY(point_weights(&found, (const float *)data + HEADER_FIELDS, &layout, error));
    *checkpoint = found;
    return STATUS_OK;
}

enum status llama2c_open(struct llama2c_checkpoint *checkpoint, const char *path,
                         struct error *error) {
    *checkpoint = (struct llama2c_checkpoint){0};
    struct file_view view;
    TRY(file_view_open(&view, path, error));
    enum status status = llama2c_parse(checkpoint, view.data, view.size, error);
    if (status != STATUS_OK) {
        status = file_kind_explain(error, status, path, view.data, view.size,
                                   "give llama2.c's .bin, or a folder as Hugging Face stores it");
        file_view_close(&view);
        return status;
    }
    checkpoint->view = view;
    return STATUS_OK;
}

void llama2c_close(struct llama2c_checkpoint *checkpoint) {
    free(checkpoint->weights.layers);
    file_view_close(&checkpoint->view);
    *checkpoint = (struct llama2c_checkpoint){0};
}

/* Fills the header and reads it back, because a header that the reader refuses must not be
 * written. */
static enum status write_header(const struct llama2_config *c, bool shared, unsigned char *header) {
    const size_t sizes[HEADER_FIELDS] = {c->C, c->hidden, c->L, c->NH, c->KVH, c->V, c->T};
    int32_t fields[HEADER_FIELDS];
    for (int i = 0; i < HEADER_FIELDS; i++) {
        if (sizes[i] < 1 || sizes[i] > INT32_MAX) {
            return STATUS_INVALID_ARGUMENT;
        }
        fields[i] = (int32_t)sizes[i];
    }
    if (!shared) {
        fields[5] = -fields[5];
    }
    memcpy(header, fields, HEADER_BYTES);
    struct llama2_config back;
    enum status status = read_header(header, &back, &shared, NULL);
    if (status == STATUS_OK) {
        status = check_heads(&back, NULL);
    }
    if (status != STATUS_OK || back.HS != c->HS) {
        return STATUS_INVALID_ARGUMENT;
    }
    bool storable = c->rope_theta == ROPE_THETA && c->norm_eps == NORM_EPS &&
                    c->rope_layout == NN_ROPE_INTERLEAVED;
    return storable ? STATUS_OK : STATUS_UNSUPPORTED;
}

/* Writes (T, HS/2) cosines, then (T, HS/2) sines; readers skip them and compute their own. */
static void write_rope_tables(const struct llama2_config *c, float *out) {
    size_t half = c->HS / 2;
    for (size_t t = 0; t < c->T; t++) {
        for (size_t i = 0; i < half; i++) {
            double angle = (double)t * pow(c->rope_theta, -2.0 * (double)i / (double)c->HS);
            out[t * half + i] = (float)cos(angle);
            out[(c->T + t) * half + i] = (float)sin(angle);
        }
    }
}

static void write_weights(const struct llama2_config *c, const struct llama2_weights *weights,
                          const struct layout *layout, float *out) {
    const size_t *offset = layout->offset;
    const size_t *item = layout->item;
    memcpy(out + offset[EMBEDDING], weights->embedding, item[EMBEDDING] * sizeof *out);
    for (enum block block = ATTENTION_NORM; block <= W3; block++) {
        for (size_t l = 0; l < c->L; l++) {
            memcpy(out + offset[block] + l * item[block], *layer_slot(&weights->layers[l], block),
                   item[block] * sizeof *out);
        }
    }
    memcpy(out + offset[FINAL_NORM], weights->final_norm, item[FINAL_NORM] * sizeof *out);
    write_rope_tables(c, out + offset[ROPE_TABLES]);
    memcpy(out + offset[CLASSIFIER], weights->classifier, item[CLASSIFIER] * sizeof *out);
}

enum status llama2c_serialize(const struct llama2_config *config,
                              const struct llama2_weights *weights, unsigned char **data,
                              size_t *size) {
    *data = NULL;
    *size = 0;
    bool shared = weights->classifier == weights->embedding;
    unsigned char header[HEADER_BYTES];
    TRY(write_header(config, shared, header));
    struct layout layout;
    size_t bytes;
    if (!layout_compute(config, shared, &layout) || !layout_bytes(&layout, &bytes)) {
        return STATUS_OVERFLOW;
    }
    unsigned char *memory = malloc(bytes);
    if (memory == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    memcpy(memory, header, HEADER_BYTES);
    write_weights(config, weights, &layout, (float *)(void *)memory + HEADER_FIELDS);
    *data = memory;
    *size = bytes;
    return STATUS_OK;
}
