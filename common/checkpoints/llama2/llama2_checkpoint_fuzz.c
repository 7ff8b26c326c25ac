/*
 * Fuzzes all files of a Llama2 folder at once: config.json, the index (empty: a single file), then
 * the shards, each as a little-endian u32 and that many bytes.
 */
#include "common/checkpoints/llama2/llama2_checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/llama2/llama2_write.h"
#include "common/models/llama2_random.h"
#include "common/testing/fuzz.h"

/* What is left of an input. */
struct input {
    const uint8_t *data;
    size_t size;
};

static bool take_file(struct input *input, struct input *file) {
    uint32_t length;
    if (input->size < sizeof length) {
        return false;
    }
    memcpy(&length, input->data, sizeof length);
    input->data += sizeof length;
    input->size -= sizeof length;
    *file = (struct input){input->data, length < input->size ? length : input->size};
    input->data += file->size;
    input->size -= file->size;
    return true;
}

/* A refusal says why. */
static bool accepted(enum status status, const struct error *error) {
    if (status != STATUS_OK && (error->message[0] == '\0' || error->status != status)) {
        abort();
    }
    return status == STATUS_OK;
}

/* Reads both ends of a tensor, which lies inside the input. */
static enum status touch(void *context, const struct llama2_tensor *tensor) {
    const struct input *all = context;
    const struct llama2_stored_tensor *stored = tensor->stored;
    const uint8_t *first = stored->data;
    size_t count = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
    size_t bytes = count * (stored->dtype == NN_F32 ? 4 : 2);
    if (stored->rows * stored->columns != count || first < all->data ||
        bytes > (size_t)(all->data + all->size - first)) {
        abort();
    }
    volatile uint8_t ends[2] = {first[0], first[bytes - 1]};
    (void)ends;
    return STATUS_OK;
}

static enum status touch_fp32(void *context, const struct llama2_tensor *tensor) {
    (void)context;
    size_t count = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
    volatile float ends[2] = {(*tensor->plain)[0], (*tensor->plain)[count - 1]};
    (void)ends;
    return STATUS_OK;
}

static void touch_all(struct llama2_checkpoint *checkpoint, const struct input *all) {
    const struct llama2_config *c = &checkpoint->config;
    bool shared = checkpoint->shared_classifier;
    if (llama2_tensors_visit(c, shared, &checkpoint->weights, NULL, touch, (void *)all) !=
        STATUS_OK) {
        abort();
    }
    struct llama2_fp32 fp32;
    struct error error = {0};
    if (!accepted(llama2_checkpoint_convert(checkpoint, 1 << 20, &fp32, &error), &error)) {
        return;
    }
    if (llama2_tensors_visit(c, shared, NULL, &fp32.weights, touch_fp32, NULL) != STATUS_OK ||
        fp32.weights.classifier == NULL) {
        abort();
    }
    llama2_fp32_free(&fp32);
}

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    if (copy == NULL) {
        abort();
    }
    return copy;
}

/* Parses as many shards as the index names, or one. @return whether all are there */
static bool take_shards(struct input *input, const struct llama2_index *index,
                        struct llama2_shards *shards) {
    size_t count = index != NULL ? index->file_count : 1;
    *shards = (struct llama2_shards){.path = copy_text("index")};
    shards->shards = calloc(count, sizeof *shards->shards);
    if (shards->shards == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        struct input file;
        struct llama2_shard *shard = &shards->shards[i];
        if (!take_file(input, &file) ||
            safetensors_parse(&shard->file, file.data, file.size, NULL) != STATUS_OK) {
            return false;
        }
        shard->path = copy_text(index != NULL ? index->files[i] : "file");
        shards->count++;
    }
    return true;
}

static void load(const struct llama2_config *config, bool shared, const struct llama2_index *index,
                 struct input *input, const struct input *all) {
    struct llama2_shards shards;
    struct llama2_checkpoint checkpoint;
    struct error error = {0};
    if (!take_shards(input, index, &shards) ||
        !accepted(llama2_shards_join(&shards, index, &error), &error)) {
        llama2_shards_close(&shards);
        return;
    }
    if (accepted(llama2_checkpoint_load(&checkpoint, config, shared, &shards, &error), &error)) {
        touch_all(&checkpoint, all);
        llama2_checkpoint_close(&checkpoint);
    } else if (checkpoint.weights.layers != NULL || checkpoint.shards.shards != NULL) {
        abort(); /* and leaves nothing behind */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct input all = {data, size};
    struct input input = all, text;
    struct llama2_config config;
    struct llama2_index index = {0};
    bool shared;
    struct error error = {0};
    if (!take_file(&input, &text) ||
        !accepted(llama2_config_parse(&config, &shared, (const char *)text.data, text.size, &error),
                  &error) ||
        !take_file(&input, &text)) {
        return 0;
    }
    bool indexed = text.size > 0;
    if (indexed &&
        !accepted(llama2_index_parse(&index, (const char *)text.data, text.size, &error), &error)) {
        return 0;
    }
    load(&config, shared, indexed ? &index : NULL, &input, &all);
    llama2_index_free(&index);
    return 0;
}

static void append(unsigned char **seed, size_t *size, const void *data, size_t length) {
    uint32_t stored = (uint32_t)length;
    unsigned char *grown = realloc(*seed, *size + sizeof stored + length);
    if (grown == NULL) {
        abort();
    }
    memcpy(grown + *size, &stored, sizeof stored);
    memcpy(grown + *size + sizeof stored, data, length);
    *seed = grown;
    *size += sizeof stored + length;
}

static void append_shards(const struct llama2_random *model,
                          const struct llama2_write_options *options, unsigned char **seed,
                          size_t *size) {
    for (size_t i = 0; i < options->shards; i++) {
        unsigned char *data;
        size_t length;
        if (llama2_shard_serialize(&model->config, &model->weights, options, i, &data, &length,
                                   NULL) != STATUS_OK) {
            abort();
        }
        append(seed, size, data, length);
        free(data);
    }
}

static void append_texts(const struct llama2_random *model,
                         const struct llama2_write_options *options, bool shared,
                         unsigned char **seed, size_t *size) {
    char *config, *index = NULL;
    if (llama2_config_serialize(&model->config, shared, options->dtype, &config) != STATUS_OK ||
        (options->shards > 1 &&
         llama2_index_serialize(&model->config, shared, options, &index, NULL) != STATUS_OK)) {
        abort();
    }
    append(seed, size, config, strlen(config));
    append(seed, size, index != NULL ? index : "", index != NULL ? strlen(index) : 0);
    free(config);
    free(index);
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const struct llama2_write_options options[] = {{NN_F32, 1}, {NN_BF16, 2}, {NN_F16, 3}};
    static const float other_table[4 * 3] = {1.0f};
    const struct llama2_config config = {.C = 4,
                                         .hidden = 3,
                                         .L = 1,
                                         .NH = 2,
                                         .KVH = 1,
                                         .HS = 2,
                                         .V = 3,
                                         .T = 2,
                                         .rope_theta = 10000.0f,
                                         .norm_eps = 1e-5f,
                                         .rope_layout = NN_ROPE_HALVES};
    if (index >= sizeof options / sizeof *options) {
        return false;
    }
    struct llama2_random model;
    if (llama2_random_create(&model, &config, 1) != STATUS_OK) {
        abort();
    }
    bool shared = index != 1;
    model.weights.classifier = shared ? model.weights.embedding : other_table;
    *seed = NULL;
    *size = 0;
    append_texts(&model, &options[index], shared, seed, size);
    append_shards(&model, &options[index], seed, size);
    llama2_random_free(&model);
    return true;
}
