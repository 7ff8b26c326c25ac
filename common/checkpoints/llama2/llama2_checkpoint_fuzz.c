/*
 * Fuzzes all files of a Llama2 folder at once: config.json, the index (empty: a single file), then
 * the shards, each as a little-endian u32 and that many bytes.
 */
#include "common/checkpoints/llama2/llama2_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/llama2/llama2_write.h"
#include "common/checkpoints/packed/packed_testing.h"
#include "common/models/llama2_random.h"
#include "common/testing/fuzz.h"

/* Where tensors may lie: inside the input, or, dequantised, in an arena. */
struct memory {
    const struct fuzz_input *all;
    const struct arena *arena;
};

static bool is_inside(const uint8_t *first, size_t bytes, const uint8_t *memory, size_t size) {
    return first >= memory && first < memory + size && bytes <= (size_t)(memory + size - first);
}

/* Reads both ends of a tensor. */
static enum status touch(void *context, const struct decoder_weight *tensor) {
    const struct memory *m = context;
    const struct decoder_stored_tensor *stored = tensor->stored;
    const uint8_t *first = stored->data;
    size_t count = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
    size_t bytes = count * (stored->dtype == NN_F32 ? 4 : 2);
    fuzz_require(stored->rows * stored->columns == count &&
                 (is_inside(first, bytes, m->all->data, m->all->size) ||
                  is_inside(first, bytes, m->arena->base, m->arena->used)));
    volatile uint8_t ends[2] = {first[0], first[bytes - 1]};
    (void)ends;
    return STATUS_OK;
}

static enum status touch_fp32(void *context, const struct decoder_weight *tensor) {
    (void)context;
    size_t count = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
    volatile float ends[2] = {(*tensor->plain[0])[0], (*tensor->plain[0])[count - 1]};
    (void)ends;
    return STATUS_OK;
}

static void touch_all(struct llama2_checkpoint *checkpoint, const struct fuzz_input *all) {
    const struct llama2_config *c = &checkpoint->config;
    bool shared = checkpoint->shared_classifier;
    struct memory memory = {all, &checkpoint->dequantized};
    fuzz_require(llama2_tensors_visit(c, shared, &checkpoint->weights, NULL, touch, &memory) ==
                 STATUS_OK);
    struct llama2_fp32 fp32;
    struct error error = {0};
    if (!fuzz_accepted(llama2_checkpoint_convert(checkpoint, 1 << 20, &fp32, &error), &error)) {
        return;
    }
    fuzz_require(llama2_tensors_visit(c, shared, NULL, &fp32.weights, touch_fp32, NULL) ==
                     STATUS_OK &&
                 fp32.weights.classifier != NULL);
    llama2_fp32_free(&fp32);
}

static char *copy_text(const char *text) {
    char *copy = strdup(text);
    fuzz_require(copy != NULL);
    return copy;
}

/* Parses as many shards as the index names, or one. @return whether all are there */
static bool take_shards(struct fuzz_input *input, const struct decoder_index *index,
                        struct decoder_shards *shards) {
    size_t count = index != NULL ? index->file_count : 1;
    *shards = (struct decoder_shards){.path = copy_text("index")};
    shards->shards = calloc(count, sizeof *shards->shards);
    fuzz_require(shards->shards != NULL);
    for (size_t i = 0; i < count; i++) {
        struct fuzz_input file;
        struct decoder_shard *shard = &shards->shards[i];
        if (!fuzz_take(input, &file) ||
            safetensors_parse(&shard->file, file.data, file.size, NULL) != STATUS_OK) {
            return false;
        }
        shard->path = copy_text(index != NULL ? index->files[i] : "file");
        shards->count++;
    }
    return true;
}

static void load(const struct llama2_config *config, bool shared,
                 const struct packed_config *packed, const struct decoder_index *index,
                 struct fuzz_input *input, const struct fuzz_input *all) {
    struct decoder_shards shards;
    struct llama2_checkpoint checkpoint;
    struct error error = {0};
    if (!take_shards(input, index, &shards) ||
        !fuzz_accepted(decoder_shards_join(&shards, index, &error), &error)) {
        decoder_shards_close(&shards);
        return;
    }
    if (fuzz_accepted(
            llama2_checkpoint_load(&checkpoint, config, shared, packed, &shards, 1 << 20, &error),
            &error)) {
        touch_all(&checkpoint, all);
        llama2_checkpoint_close(&checkpoint);
    } else { /* a refusal leaves nothing behind */
        fuzz_require(checkpoint.weights.layers == NULL && checkpoint.shards.shards == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct fuzz_input all = {data, size};
    struct fuzz_input input = all, text;
    struct llama2_config config;
    struct packed_config packed;
    struct decoder_index index = {0};
    bool shared;
    struct error error = {0};
    if (!fuzz_take(&input, &text) ||
        !fuzz_accepted(
            llama2_config_parse(&config, &shared, (const char *)text.data, text.size, &error),
            &error) ||
        !fuzz_accepted(packed_config_parse(&packed, (const char *)text.data, text.size, &error),
                       &error) ||
        !fuzz_take(&input, &text)) {
        return 0;
    }
    bool indexed = text.size > 0;
    if (indexed &&
        !fuzz_accepted(decoder_index_parse(&index, (const char *)text.data, text.size, &error),
                       &error)) {
        return 0;
    }
    load(&config, shared, &packed, indexed ? &index : NULL, &input, &all);
    decoder_index_free(&index);
    return 0;
}

static void append_shards(const struct llama2_random *model,
                          const struct llama2_write_options *options, unsigned char **seed,
                          size_t *size) {
    for (size_t i = 0; i < options->shards; i++) {
        unsigned char *data;
        size_t length;
        fuzz_require(llama2_shard_serialize(&model->config, &model->weights, options, i, &data,
                                            &length, NULL) == STATUS_OK);
        fuzz_append(seed, size, data, length);
        free(data);
    }
}

/* A configuration with what Llama2 does not have; its model has the sizes of fuzz_seed()'s. */
static const char relative[] =
    "{\"hidden_size\":4,\"intermediate_size\":3,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
    "\"num_key_value_heads\":1,\"vocab_size\":3,\"max_position_embeddings\":2,\"tie_word_"
    "embeddings\":"
    "true,\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"sliding_window\":1,\"layer_"
    "types\":["
    "\"sliding_attention\"],\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":2,\"beta_slow\":"
    "1,"
    "\"beta_fast\":3,\"mscale\":1,\"mscale_all_dim\":2,\"attention_factor\":1.5,\"truncate\":false,"
    "\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":1,"
    "\"rope_theta\":5e5}}";

static void append_texts(const struct llama2_random *model,
                         const struct llama2_write_options *options, bool shared,
                         unsigned char **seed, size_t *size) {
    char *config, *index = NULL;
    fuzz_require(model->config.qkv_bias
                     ? (config = strdup(relative)) != NULL
                     : llama2_config_serialize(&model->config, shared, options->dtype, &config) ==
                           STATUS_OK);
    fuzz_require(options->shards == 1 || llama2_index_serialize(&model->config, shared, options,
                                                                &index, NULL) == STATUS_OK);
    fuzz_append(seed, size, config, strlen(config));
    fuzz_append(seed, size, index != NULL ? index : "", index != NULL ? strlen(index) : 0);
    free(config);
    free(index);
}

/* Folders of 4 bits, as two layouts have them. */
static const char *const packed_configs[] = {
    "\"compressed-tensors\",\"format\":\"pack-quantized\",\"config_groups\":{\"g\":{\"weights\":{"
    "\"num_bits\":4,\"symmetric\":false,\"strategy\":\"group\",\"group_size\":4}}}",
    "\"gptq\",\"bits\":4,\"group_size\":8",
};

struct packed_visit {
    struct packed_testing tensors;
    size_t layout;
};

static enum status add_packed(void *context, const struct decoder_weight *tensor) {
    struct packed_visit *visit = context;
    struct packed_testing *t = &visit->tensors;
    static const struct packed_config layouts[] = {{PACKED_COMPRESSED, 4, 4, false, 0},
                                                   {PACKED_GPTQ, 4, 8, false, 1}};
    size_t end = strlen(tensor->name) - strlen(".weight");
    char name[128] = "";
    if (tensor->rank == 1 || strstr(tensor->name, "embed") != NULL) {
        packed_testing_add(t, tensor->name, "", SAFETENSORS_F32, tensor->rank,
                           tensor->rank == 2 ? tensor->shape[0] : 1,
                           tensor->shape[tensor->rank - 1]);
        return STATUS_OK;
    }
    memcpy(name, tensor->name, end);
    packed_testing_add_matrix(t, &layouts[visit->layout], name, tensor->shape[0], tensor->shape[1]);
    return STATUS_OK;
}

static void packed_seed(size_t layout, unsigned char **seed, size_t *size) {
    const struct llama2_config config = {
        .C = 16, .hidden = 8, .L = 1, .NH = 2, .KVH = 1, .HS = 8, .V = 3, .T = 2};
    struct packed_visit t = {.layout = layout};
    char text[1024];
    unsigned char *data;
    size_t length;
    int end = snprintf(text, sizeof text,
                       "{\"hidden_size\":16,\"intermediate_size\":8,\"num_hidden_layers\":1,"
                       "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":3,"
                       "\"max_position_embeddings\":2,\"tie_word_embeddings\":true,"
                       "\"quantization_config\":{\"quant_method\":%s}}",
                       packed_configs[layout]);
    fuzz_append(seed, size, text, (size_t)end);
    fuzz_append(seed, size, "", 0);
    fuzz_require(llama2_tensors_visit(&config, true, NULL, NULL, add_packed, &t) == STATUS_OK);
    fuzz_require(packed_testing_serialize(&t.tensors, &data, &length) == STATUS_OK);
    fuzz_append(seed, size, data, length);
    packed_testing_free(&t.tensors);
    free(data);
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const struct llama2_write_options options[] = {
        {NN_F32, 1}, {NN_BF16, 2}, {NN_F16, 3}, {NN_BF16, 1}};
    static const float other_table[4 * 3] = {1.0f}, bias[4] = {0.5f};
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
    size_t plain = sizeof options / sizeof *options;
    *seed = NULL;
    *size = 0;
    if (index >= plain + sizeof packed_configs / sizeof *packed_configs) {
        return false;
    }
    if (index >= plain) {
        packed_seed(index - plain, seed, size);
        return true;
    }
    struct llama2_random model;
    fuzz_require(llama2_random_create(&model, &config, 1) == STATUS_OK);
    bool shared = index != 1;
    if (index == 3) {
        model.config.qkv_bias = true;
        model.weights.layers[0].bq = model.weights.layers[0].bk = model.weights.layers[0].bv = bias;
    }
    model.weights.classifier = shared ? model.weights.embedding : other_table;
    append_texts(&model, &options[index], shared, seed, size);
    append_shards(&model, &options[index], seed, size);
    llama2_random_free(&model);
    return true;
}
