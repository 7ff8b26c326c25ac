#include "common/programs/decoder/quantize_write.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/json_object.h"
#include "common/base/terminal.h"
#include "common/base/whole_folder.h"
#include "common/checkpoints/decoder/decoder_stored.h"
#include "common/checkpoints/gguf/gguf_vocabulary.h"
#include "common/checkpoints/llama2/llama2_write.h"
#include "common/programs/decoder/quantize_list.h"

enum { LARGEST_FILE = 256 << 20 };

/* A tensor of the model. */
struct source {
    struct decoder_stored_tensor stored;
    const float *plain;
    size_t rows, columns, heads; /* heads: of queries and keys, to be permuted; else 0 */
    size_t layer;
};

struct writing {
    const struct decoder_session *session;
    const struct quantize_rounding *rounding;
    struct quantize_list list;
    struct source *sources; /* (count) */
    int32_t eos;            /* of a GGUF file's vocabulary; -1: there is none */
    size_t count, capacity;
    struct progress progress;
    struct error *error;
};

/* ---- The list of tensors ---- */

struct low_bit_layout quantize_layout(const struct packed_config *c, size_t rows, size_t columns) {
    return (struct low_bit_layout){
        .type = c->bits == 4 ? LOW_BIT_INT4 : LOW_BIT_INT8,
        .rows = rows,
        .columns = columns,
        .group = c->group > 0 && c->group < columns ? c->group : columns,
        .scale_dtype = NN_BF16,
        .has_zeros = !c->symmetric,
    };
}

static struct low_bit_layout layout_of(const struct writing *w, size_t rows, size_t columns) {
    return quantize_layout(&w->rounding->config, rows, columns);
}

/* The layer of a tensor's name; embedding and classifier have none. */
static bool layer_of(const char *name, size_t *layer) {
    return sscanf(name, "model.layers.%zu.", layer) == 1;
}

static enum status list_tensor(void *context, const struct decoder_weight *t) {
    static const enum safetensors_dtype dtypes[] = {
        [NN_F32] = SAFETENSORS_F32, [NN_F16] = SAFETENSORS_F16, [NN_BF16] = SAFETENSORS_BF16};
    struct writing *w = context;
    bool interleaved = w->session->checkpoint.config.rope_layout == NN_ROPE_INTERLEAVED;
    if (w->count == w->capacity) {
        return STATUS_OVERFLOW;
    }
    struct source *source = &w->sources[w->count];
    *source = (struct source){.stored = *t->stored,
                              .plain = *t->plain[0],
                              .rows = t->shape[0],
                              .columns = t->rank == 2 ? t->shape[1] : 1,
                              .heads = interleaved ? t->rope_heads : 0};
    if (t->rank == 2 && layer_of(t->name, &source->layer)) {
        const struct low_bit_layout layout = layout_of(w, t->shape[0], t->shape[1]);
        return quantize_list_add_parts(&w->list, t->name, &layout, w->count++, w->error);
    }
    enum nn_dtype dtype = t->stored->dtype;
    struct safetensors_tensor like = {
        .dtype = dtypes[dtype], .rank = t->rank, .count = decoder_weight_count(t)};
    memcpy(like.shape, t->shape, t->rank * sizeof *like.shape);
    like.bytes = like.count * nn_dtype_bytes(dtype);
    return quantize_list_add_plain(&w->list, t->name, &like, w->count++, w->error);
}

/* ---- Values ---- */

/* Rows of queries and keys from llama2.c's order, pairs next to each other, to Hugging Face's:
   first all first ones of a head, then all second ones. */
static void permute_rows(void *out, const void *in, size_t rows, size_t bytes, size_t heads) {
    size_t size = rows / heads;
    for (size_t row = 0; row < rows; row++) {
        size_t head = row / size, at = row % size;
        size_t to = head * size + at / 2 + at % 2 * (size / 2);
        memcpy((char *)out + to * bytes, (const char *)in + row * bytes, bytes);
    }
}

/* The same in place. */
static void permute(const struct writing *w, void *data, size_t bytes, const struct source *e) {
    if (e->heads > 0) {
        permute_rows(w->list.scratch, data, e->rows, bytes, e->heads);
        memcpy(data, w->list.scratch, e->rows * bytes);
    }
}

static enum status fill_plain(const struct writing *w, const struct source *e, void *data) {
    nn_dtype_store(data, e->plain, e->rows * e->columns, e->stored.dtype);
    permute(w, data, e->columns * nn_dtype_bytes(e->stored.dtype), e);
    return STATUS_OK;
}

static enum status check_finite(const struct writing *w, const struct source *e, const char *name) {
    for (size_t i = 0; i < e->rows * e->columns; i++) {
        if (!(e->plain[i] - e->plain[i] == 0.0f)) {
            return error_set(w->error, STATUS_BAD_FORMAT,
                             "tensor \"%s\" has a weight that is not finite", name);
        }
    }
    return STATUS_OK;
}

static enum status fill(void *context, size_t index, void *data, struct error *error) {
    struct writing *w = context;
    const struct quantize_item *item = &w->list.items[index];
    const struct source *e = &w->sources[item->source];
    struct low_bit_matrix *matrix = &w->list.matrix;
    progress_update(&w->progress, index);
    if (item->part == QUANTIZE_PLAIN) {
        return fill_plain(w, e, data);
    }
    if (item->part == QUANTIZE_WORDS) {
        TRY(check_finite(w, e, w->list.tensors[index].name));
        matrix->layout = layout_of(w, e->rows, e->columns);
        TRY(w->rounding->round(w->rounding->context, e->layer, e->plain, matrix, error));
        size_t groups = low_bit_groups(&matrix->layout);
        permute(w, matrix->values, low_bit_row_bytes(&matrix->layout), e);
        permute(w, matrix->scales, groups * sizeof(uint16_t), e);
        permute(w, matrix->zeros, groups, e);
    }
    quantize_list_put_part(&w->list, item->part, data);
    return STATUS_OK;
}

/* ---- The files ---- */

static enum status write_weights(struct writing *w, const char *folder) {
    char path[FOLDER_PATH_BYTES];
    const struct safetensors_source source = {.fill = fill, .context = w};
    TRY(folder_join(path, folder, "model.safetensors", "checkpoint", w->error));
    TRY(quantize_list_allocate(&w->list, w->error));
    w->progress = progress_create("tensors", w->list.count);
    enum status status = safetensors_write(path, w->list.tensors, w->list.count, &source, w->error);
    progress_finish(&w->progress);
    return status;
}

enum status quantize_read_config(const char *folder, cJSON **json, struct error *error) {
    char path[FOLDER_PATH_BYTES], *text;
    size_t size;
    TRY(folder_join(path, folder, "config.json", "checkpoint", error));
    TRY(file_read(path, LARGEST_FILE, &text, &size, error));
    enum status status = json_object_parse(json, text, size, error);
    free(text);
    return status;
}

enum status quantize_put_config(cJSON *json, const struct packed_config *config, const char *method,
                                const char *folder, struct error *error) {
    cJSON_DeleteItemFromObjectCaseSensitive(json, "quantization_config");
    char *text = packed_config_add(json, config, method) ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    enum status status =
        text != NULL ? folder_write(folder, "config.json", text, strlen(text), "checkpoint", error)
                     : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for config.json");
    free(text);
    return status;
}

enum status quantize_copy_file(const char *from, const char *folder, const char *name,
                               struct error *error) {
    char *data;
    size_t size;
    TRY(file_read(from, LARGEST_FILE, &data, &size, error));
    enum status status = folder_write(folder, name, data, size, "checkpoint", error);
    free(data);
    return status;
}

/* The configuration of a checkpoint that is a file, made anew. */
static enum status make_config(const struct decoder_session *s, const char *checkpoint,
                               cJSON **json, struct error *error) {
    char *text;
    struct llama2_config config = s->checkpoint.config;
    config.rope_layout = NN_ROPE_HALVES;
    if (llama2_extra(&config) != NULL) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "%s: a model with %s can be written from a Hugging Face folder only",
                         checkpoint, llama2_extra(&config));
    }
    TRY(llama2_config_serialize(&config, s->checkpoint.shared_classifier, NN_BF16, &text));
    enum status status = json_object_parse(json, text, strlen(text), error);
    free(text);
    return status;
}

static enum status write_config(const struct writing *w, const char *checkpoint,
                                const char *folder) {
    cJSON *json;
    TRY(w->session->folder ? quantize_read_config(checkpoint, &json, w->error)
                           : make_config(w->session, checkpoint, &json, w->error));
    if (w->eos >= 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(json, "eos_token_id");
        cJSON_AddNumberToObject(json, "eos_token_id", w->eos);
    }
    return quantize_put_config(json, &w->rounding->config, w->rounding->method, folder, w->error);
}

/* What belongs to the tokenizer; a named file is copied under the name that its kind has. */
static enum status copy_tokenizer(const struct decoder_session *s, const char *checkpoint,
                                  const char *tokenizer, const char *folder, struct error *error) {
    static const char *const names[] = {"tokenizer.json",        "tokenizer.bin",
                                        "tokenizer_config.json", "generation_config.json",
                                        "chat_template.jinja",   "special_tokens_map.json"};
    char path[FOLDER_PATH_BYTES];
    for (size_t i = 0; i < sizeof names / sizeof *names && s->folder; i++) {
        TRY(folder_join(path, checkpoint, names[i], "checkpoint", error));
        bool replaced = i < 2 && tokenizer != NULL;
        if (path_exists(path) && !replaced) {
            TRY(quantize_copy_file(path, folder, names[i], error));
        }
    }
    if (tokenizer == NULL || folder_exists(tokenizer)) {
        return STATUS_OK;
    }
    size_t length = strlen(tokenizer), end = strlen(".json");
    bool json = length > end && strcmp(tokenizer + length - end, ".json") == 0;
    return quantize_copy_file(tokenizer, folder, names[json ? 0 : 1], error);
}

/* The tokenizer inside a GGUF file, as a file of its own. */
static enum status write_own_tokenizer(struct writing *w, const char *folder) {
    struct gguf_tokenizer own;
    enum status status =
        gguf_vocabulary_file(&w->session->checkpoint.gguf, &own, &w->eos, w->error);
    if (status == STATUS_OK) {
        status = folder_write(folder, own.name, own.data, own.size, "checkpoint", w->error);
    }
    free(own.data);
    return status;
}

static enum status write_files(struct writing *w, const char *folder, const char *checkpoint,
                               const char *tokenizer) {
    bool is_gguf = w->session->checkpoint.gguf.view.data != NULL;
    TRY(write_weights(w, folder));
    TRY(is_gguf && tokenizer == NULL
            ? write_own_tokenizer(w, folder)
            : copy_tokenizer(w->session, checkpoint, tokenizer, folder, w->error));
    return write_config(w, checkpoint, folder);
}

static enum status list_tensors(struct writing *w) {
    const struct llama2_checkpoint *c = &w->session->checkpoint;
    struct llama2_stored_weights stored = c->weights; /* visitors get writable pointers */
    struct llama2_weights plain = w->session->fp32.weights;
    w->capacity = c->config.L * llama2_layer_tensors(&c->config) + 3;
    w->sources = calloc(w->capacity, sizeof *w->sources);
    if (w->sources == NULL) {
        return error_set(w->error, STATUS_OUT_OF_MEMORY, "out of memory for %zu tensors",
                         w->capacity);
    }
    TRY(quantize_list_reserve(&w->list, w->capacity, w->error));
    return llama2_tensors_visit(&c->config, c->shared_classifier, &stored, &plain, list_tensor, w);
}

static enum status write_folder(struct writing *w, const char *output, const char *checkpoint,
                                const char *tokenizer) {
    char partial[FOLDER_PATH_BYTES];
    TRY(list_tensors(w));
    TRY(whole_folder_begin(output, partial, w->error));
    enum status status = write_files(w, partial, checkpoint, tokenizer);
    if (status != STATUS_OK) {
        whole_folder_abandon(output);
        return status;
    }
    return whole_folder_finish(output, w->error);
}

enum status quantize_write(const char *output, const struct decoder_session *session,
                           const char *checkpoint, const char *tokenizer,
                           const struct quantize_rounding *rounding, struct error *error) {
    struct writing w = {.session = session, .rounding = rounding, .eos = -1, .error = error};
    enum status status = write_folder(&w, output, checkpoint, tokenizer);
    free(w.sources);
    quantize_list_free(&w.list);
    return status;
}
