/*
 * Writes checkpoints for tests of programs:
 *   FOLDER/tiny.bin            a small random Llama2, as llama2.c stores it
 *   FOLDER/tiny_tokenizer.bin  a tokenizer of bytes and letters
 *   FOLDER/tiny                the same model as Hugging Face stores it, in two shards
 *   FOLDER/tiny_bf16           the same in bf16, with the tokenizer
 *   FOLDER/tiny_f16, tiny.gguf the same in fp16, with the tokenizer, as a folder and as a GGUF file
 *   FOLDER/narrow              a model with heads of two channels
 *   FOLDER/qwen2               biases, a window, YaRN, a byte-level tokenizer, ChatML's tokens
 * With CHECKPOINT TOKENIZER, files of llama2.c, it writes their model alone, in fp16:
 * FOLDER/story_f16 and FOLDER/story.gguf.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/checkpoints/gguf/gguf_testing.h"
#include "common/checkpoints/gpt_neox/gpt_neox_write.h"
#include "common/checkpoints/llama2/llama2_write.h"
#include "common/checkpoints/llama2/llama2c.h"
#include "common/models/gpt_neox_random.h"
#include "common/models/llama2_random.h"
#include "common/tokenizers/bpe/bpe.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

enum { LETTERS = 27, TOKENS = 259 + LETTERS };

static enum status write_file(const char *folder, const struct llama2_config *config,
                              const struct llama2_weights *weights, struct error *error) {
    char path[4096];
    unsigned char *data;
    size_t size;
    TRY(llama2c_serialize(config, weights, &data, &size));
    snprintf(path, sizeof path, "%s/tiny.bin", folder);
    enum status status = file_write(path, data, size, error);
    free(data);
    return status;
}

static enum status write_folder(const char *folder, const char *name,
                                const struct llama2_write_options *options,
                                const struct llama2_config *config,
                                const struct llama2_weights *weights, struct error *error) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (mkdir(path, 0777) != 0) {
        return error_set(error, STATUS_IO, "%s: cannot make the folder", path);
    }
    return llama2_checkpoint_write(path, config, weights, options, error);
}

static const struct llama2_config tiny = {.C = 32,
                                          .hidden = 48,
                                          .L = 2,
                                          .NH = 4,
                                          .KVH = 2,
                                          .HS = 8,
                                          .V = TOKENS,
                                          .T = 64,
                                          .rope_theta = 10000.0f,
                                          .norm_eps = 1e-5f};

static enum status write_all_forms(const char *folder, const struct llama2_weights *weights,
                                   struct error *error) {
    const struct llama2_write_options sharded = {.dtype = NN_F32, .shards = 2};
    const struct llama2_write_options small = {.dtype = NN_BF16, .shards = 1};
    TRY(write_file(folder, &tiny, weights, error));
    TRY(write_folder(folder, "tiny", &sharded, &tiny, weights, error));
    return write_folder(folder, "tiny_bf16", &small, &tiny, weights, error);
}

static enum status write_tiny(const char *folder, struct error *error) {
    struct llama2_random model;
    TRY(llama2_random_create(&model, &tiny, 5));
    enum status status = write_all_forms(folder, &model.weights, error);
    llama2_random_free(&model);
    return status;
}

static enum status write_narrow(const char *folder, struct error *error) {
    const struct llama2_write_options options = {.dtype = NN_F32, .shards = 1};
    struct llama2_config narrow = tiny;
    narrow.C = 8;
    narrow.HS = 2;
    struct llama2_random model;
    TRY(llama2_random_create(&model, &narrow, 6));
    enum status status = write_folder(folder, "narrow", &options, &narrow, &model.weights, error);
    llama2_random_free(&model);
    return status;
}

/* Qwen2's keys; the sizes are tiny's. Token 258 is <|im_end|>. */
static const char qwen2_config[] =
    "{\"model_type\":\"qwen2\",\"hidden_size\":32,\"intermediate_size\":48,\"num_hidden_layers\":2,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":286,"
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-05,\"tie_word_embeddings\":true,"
    "\"use_sliding_window\":true,\"sliding_window\":6,\"max_window_layers\":1,"
    "\"rope_theta\":10000.0,\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,"
    "\"original_max_position_embeddings\":16},\"eos_token_id\":[256,258]}";

/* The tokenizer.json of byte-level BPE in FOLDER/NAME. */
static enum status write_byte_level(const char *folder, const char *name, const char *added,
                                    struct error *error) {
    static const char settings[] =
        "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"}";
    char path[4096];
    char *json = tokenizer_testing_byte_level(settings, "", "", added);
    if (json == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    snprintf(path, sizeof path, "%s/%s/tokenizer.json", folder, name);
    enum status status = file_write(path, json, strlen(json), error);
    free(json);
    return status;
}

static enum status write_qwen2_files(const char *folder, struct error *error) {
    static const char added[] = "{\"id\":256,\"content\":\"<|endoftext|>\"},"
                                "{\"id\":257,\"content\":\"<|im_start|>\"},"
                                "{\"id\":258,\"content\":\"<|im_end|>\"}";
    char path[4096];
    TRY(write_byte_level(folder, "qwen2", added, error));
    snprintf(path, sizeof path, "%s/qwen2/config.json", folder);
    return file_write(path, qwen2_config, strlen(qwen2_config), error);
}

static enum status write_qwen2(const char *folder, struct error *error) {
    const struct llama2_write_options options = {.dtype = NN_BF16, .shards = 1};
    static const float bias[32] = {0.5f, -0.25f, 0.125f, [17] = -0.5f};
    struct llama2_random model;
    TRY(llama2_random_create(&model, &tiny, 8));
    model.config.qkv_bias = true;
    for (size_t l = 0; l < tiny.L; l++) {
        struct llama2_layer *layer = &model.weights.layers[l];
        layer->bq = layer->bk = layer->bv = bias;
    }
    enum status status =
        write_folder(folder, "qwen2", &options, &model.config, &model.weights, error);
    llama2_random_free(&model);
    return status == STATUS_OK ? write_qwen2_files(folder, error) : status;
}

static enum status write_gpt_neox(const char *folder, struct error *error) {
    static const struct gpt_neox_config config = {.C = 32,
                                                  .hidden = 48,
                                                  .L = 2,
                                                  .NH = 2,
                                                  .HS = 16,
                                                  .V = 272, /* more rows than there are tokens */
                                                  .T = 64,
                                                  .rotary = 4,
                                                  .rope_theta = 10000.0f,
                                                  .norm_eps = 1e-5f,
                                                  .activation = NN_GELU,
                                                  .parallel = true,
                                                  .attention_bias = true};
    static const char added[] = "{\"id\":256,\"content\":\"<|endoftext|>\",\"special\":true},"
                                "{\"id\":257,\"content\":\"  \",\"normalized\":true}";
    char path[4096];
    struct gpt_neox_random model;
    snprintf(path, sizeof path, "%s/gpt_neox", folder);
    mkdir(path, 0777);
    TRY(gpt_neox_random_create(&model, &config, false, 9));
    enum status status = gpt_neox_checkpoint_write(path, &config, &model.weights, NN_BF16, error);
    gpt_neox_random_free(&model);
    return status == STATUS_OK ? write_byte_level(folder, "gpt_neox", added, error) : status;
}

/* A model with its tokenizer in fp16: NAME_f16, a folder, and NAME.gguf. */
static enum status write_pair(const char *folder, const char *name,
                              const struct llama2_config *config,
                              const struct llama2_weights *weights, const void *tokenizer,
                              size_t size, struct error *error) {
    const struct llama2_write_options half = {.dtype = NN_F16, .shards = 1};
    struct llama2_config interleaved = *config;
    struct gguf_file file;
    char path[4096], in_f16[64];
    interleaved.rope_layout = NN_ROPE_INTERLEAVED;
    snprintf(in_f16, sizeof in_f16, "%s_f16", name);
    TRY(write_folder(folder, in_f16, &half, &interleaved, weights, error));
    snprintf(path, sizeof path, "%s/%s/tokenizer.bin", folder, in_f16);
    TRY(file_write(path, tokenizer, size, error));
    TRY(gguf_testing_llama2(&file, &interleaved, weights, GGUF_F16, tokenizer, size));
    snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    enum status status = file_write(path, file.data, file.size, error);
    free(file.data);
    return status;
}

static enum status write_tokenizer_files(const char *folder, const void *data, size_t size,
                                         struct error *error) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tiny_tokenizer.bin", folder);
    TRY(file_write(path, data, size, error));
    snprintf(path, sizeof path, "%s/tiny_bf16/tokenizer.bin", folder);
    TRY(file_write(path, data, size, error));
    struct llama2_random model;
    TRY(llama2_random_create(&model, &tiny, 5));
    enum status status = write_pair(folder, "tiny", &tiny, &model.weights, data, size, error);
    llama2_random_free(&model);
    return status;
}

static enum status write_tokenizer(const char *folder, struct error *error) {
    char texts[TOKENS][8] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    const char *pieces[TOKENS];
    float scores[TOKENS] = {0};
    for (int i = 0; i < TOKENS; i++) {
        if (i >= 3 && i < 259) {
            snprintf(texts[i], sizeof texts[i], "<0x%02X>", i - 3);
        } else if (i >= 259) {
            snprintf(texts[i], sizeof texts[i], "%c", i == 259 ? ' ' : 'a' + i - 260);
            scores[i] = -(float)(i - 259);
        }
        pieces[i] = texts[i];
    }
    unsigned char *data;
    size_t size;
    TRY(bpe_serialize(pieces, scores, TOKENS, &data, &size));
    enum status status = write_tokenizer_files(folder, data, size, error);
    free(data);
    return status;
}

static enum status write_all(const char *folder, struct error *error) {
    TRY(write_tiny(folder, error));
    TRY(write_narrow(folder, error));
    TRY(write_qwen2(folder, error));
    TRY(write_gpt_neox(folder, error));
    return write_tokenizer(folder, error);
}

static enum status write_story(const char *folder, const char *checkpoint, const char *tokenizer,
                               struct error *error) {
    struct llama2c_checkpoint model;
    struct file_view view;
    TRY(llama2c_open(&model, checkpoint, error));
    TRY(file_view_open(&view, tokenizer, error));
    return write_pair(folder, "story", &model.config, &model.weights, view.data, view.size, error);
}

int main(int argc, char **argv) {
    struct error error = {0};
    if (argc != 2 && argc != 4) {
        error_set(&error, STATUS_INVALID_ARGUMENT,
                  "usage: make_test_checkpoint FOLDER [CHECKPOINT TOKENIZER]");
        return report_failure("make_test_checkpoint", &error, STATUS_INVALID_ARGUMENT);
    }
    enum status status =
        argc == 2 ? write_all(argv[1], &error) : write_story(argv[1], argv[2], argv[3], &error);
    return status == STATUS_OK ? 0 : report_failure("make_test_checkpoint", &error, status);
}
