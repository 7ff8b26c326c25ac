/*
 * Writes checkpoints for tests of programs:
 *   FOLDER/tiny.bin            a small random Llama2, as llama2.c stores it
 *   FOLDER/tiny_tokenizer.bin  a tokenizer of bytes and letters
 *   FOLDER/tiny                the same model as Hugging Face stores it, in two shards
 *   FOLDER/tiny_bf16           the same in bf16, with the tokenizer
 *   FOLDER/narrow              a model with heads of two channels
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/terminal.h"
#include "common/checkpoints/llama2/llama2_write.h"
#include "common/checkpoints/llama2/llama2c.h"
#include "common/models/llama2_random.h"
#include "common/tokenizers/bpe/bpe.h"

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

static enum status write_tokenizer_files(const char *folder, const void *data, size_t size,
                                         struct error *error) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tiny_tokenizer.bin", folder);
    TRY(file_write(path, data, size, error));
    snprintf(path, sizeof path, "%s/tiny_bf16/tokenizer.bin", folder);
    return file_write(path, data, size, error);
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
    return write_tokenizer(folder, error);
}

int main(int argc, char **argv) {
    struct error error = {0};
    if (argc != 2) {
        error_set(&error, STATUS_INVALID_ARGUMENT, "usage: make_test_checkpoint FOLDER");
        return report_failure("make_test_checkpoint", &error, STATUS_INVALID_ARGUMENT);
    }
    enum status status = write_all(argv[1], &error);
    return status == STATUS_OK ? 0 : report_failure("make_test_checkpoint", &error, status);
}
