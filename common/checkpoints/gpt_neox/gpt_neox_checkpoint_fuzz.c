/*
 * Fuzzes both files of a GPT-NeoX folder at once: config.json, then model.safetensors, each as a
 * little-endian u32 and that many bytes. (The index of shards is fuzzed as Llama2's.)
 */
#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/gpt_neox/gpt_neox_write.h"
#include "common/models/gpt_neox_random.h"
#include "common/testing/fuzz.h"

/* Reads both ends of a tensor, which lies inside the input. */
static enum status touch(void *context, const struct decoder_weight *tensor) {
    const struct fuzz_input *all = context;
    const struct decoder_stored_tensor *stored = tensor->stored;
    const uint8_t *first = stored->data;
    size_t count = decoder_weight_count(tensor), bytes = count * nn_dtype_bytes(stored->dtype);
    fuzz_require(stored->rows * stored->columns == count && first >= all->data &&
                 bytes <= (size_t)(all->data + all->size - first));
    volatile uint8_t ends[2] = {first[0], first[bytes - 1]};
    (void)ends;
    return STATUS_OK;
}

static enum status touch_fp32(void *context, const struct decoder_weight *tensor) {
    size_t count = decoder_weight_count(tensor) / tensor->parts;
    (void)context;
    for (size_t part = 0; part < tensor->parts; part++) {
        volatile float ends[2] = {(*tensor->plain[part])[0], (*tensor->plain[part])[count - 1]};
        (void)ends;
    }
    return STATUS_OK;
}

static void touch_all(struct gpt_neox_checkpoint *checkpoint, const struct fuzz_input *all) {
    const struct gpt_neox_config *c = &checkpoint->config;
    bool shared = checkpoint->shared_classifier;
    struct gpt_neox_fp32 fp32;
    struct error error = {0};
    fuzz_require(gpt_neox_tensors_visit(c, shared, &checkpoint->weights, NULL, touch,
                                        (void *)all) == STATUS_OK);
    if (!fuzz_accepted(gpt_neox_checkpoint_convert(checkpoint, 1 << 20, &fp32, &error), &error)) {
        return;
    }
    fuzz_require(gpt_neox_tensors_visit(c, shared, NULL, &fp32.weights, touch_fp32, NULL) ==
                     STATUS_OK &&
                 fp32.weights.classifier != NULL);
    gpt_neox_fp32_free(&fp32);
}

static void load(const struct gpt_neox_config *config, bool shared, struct fuzz_input *file,
                 const struct fuzz_input *all) {
    struct decoder_shards shards = {.path = strdup("file"),
                                    .shards = calloc(1, sizeof *shards.shards)};
    struct gpt_neox_checkpoint checkpoint;
    struct error error = {0};
    fuzz_require(shards.path != NULL && shards.shards != NULL);
    if (safetensors_parse(&shards.shards[0].file, file->data, file->size, NULL) == STATUS_OK) {
        shards.count = 1;
        shards.shards[0].path = strdup("file");
        fuzz_require(shards.shards[0].path != NULL);
    }
    if (shards.count == 0 || !fuzz_accepted(decoder_shards_join(&shards, NULL, &error), &error)) {
        decoder_shards_close(&shards);
        return;
    }
    if (fuzz_accepted(gpt_neox_checkpoint_load(&checkpoint, config, shared, &shards, &error),
                      &error)) {
        touch_all(&checkpoint, all);
        gpt_neox_checkpoint_close(&checkpoint);
    } else { /* a refusal leaves nothing behind */
        fuzz_require(checkpoint.weights.layers == NULL && checkpoint.shards.shards == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct fuzz_input all = {data, size};
    struct fuzz_input input = all, text, file;
    struct gpt_neox_config config;
    bool shared;
    struct error error = {0};
    if (fuzz_take(&input, &text) &&
        fuzz_accepted(
            gpt_neox_config_parse(&config, &shared, (const char *)text.data, text.size, &error),
            &error)) {
        fuzz_require(config.NH * config.HS == config.C && config.rotary % 2 == 0 &&
                     config.rotary >= 2 && config.rotary <= config.HS);
        if (fuzz_take(&input, &file)) {
            load(&config, shared, &file, &all);
        }
    }
    return 0;
}

/* As transformers writes it since version 5. */
static const char newer[] =
    "{\"model_type\":\"gpt_neox\",\"hidden_size\":8,\"intermediate_size\":3,\"num_hidden_layers\":"
    "1,"
    "\"num_attention_heads\":2,\"vocab_size\":3,\"max_position_embeddings\":2,\"attention_bias\":"
    "true,\"rope_parameters\":{\"partial_rotary_factor\":0.5,\"rope_theta\":1e4,\"rope_type\":"
    "\"default\"},\"rope_scaling\":null}";

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const enum nn_dtype dtypes[] = {NN_F32, NN_F16, NN_BF16};
    const struct gpt_neox_config config = {.C = 8,
                                           .hidden = 3,
                                           .L = 1,
                                           .NH = 2,
                                           .HS = 4,
                                           .V = 3,
                                           .T = 2,
                                           .rotary = 2,
                                           .rope_theta = 10000.0f,
                                           .norm_eps = 1e-5f,
                                           .activation = index == 1 ? NN_GELU_TANH : NN_GELU,
                                           .parallel = index != 1,
                                           .attention_bias = index != 2};
    struct gpt_neox_random model;
    unsigned char *data;
    char *text;
    size_t length;
    if (index >= sizeof dtypes / sizeof *dtypes) {
        return false;
    }
    fuzz_require(gpt_neox_random_create(&model, &config, index == 1, 1) == STATUS_OK);
    fuzz_require(index == 0 ? (text = strdup(newer)) != NULL
                            : gpt_neox_config_serialize(&config, index == 1, dtypes[index],
                                                        &text) == STATUS_OK);
    fuzz_require(gpt_neox_serialize(&config, &model.weights, dtypes[index], &data, &length, NULL) ==
                 STATUS_OK);
    *seed = NULL;
    *size = 0;
    fuzz_append(seed, size, text, strlen(text));
    fuzz_append(seed, size, data, length);
    free(text);
    free(data);
    gpt_neox_random_free(&model);
    return true;
}
