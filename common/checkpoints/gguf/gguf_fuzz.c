/* Fuzzes GGUF files: the container, a Llama's weights, dequantised, and the vocabulary. */
#include "common/checkpoints/gguf/gguf.h"

#include <stdlib.h>

#include "common/checkpoints/gguf/gguf_testing.h"
#include "common/checkpoints/gguf/gguf_vocabulary.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/models/llama2_random.h"
#include "common/testing/fuzz.h"

enum { MOST_BYTES = 1 << 20, COLUMNS = 256 };

/* Reads both ends of a tensor. */
static enum status touch(void *context, const struct decoder_weight *tensor) {
    (void)context;
    const struct decoder_stored_tensor *stored = tensor->stored;
    const uint8_t *first = stored->data;
    size_t count = decoder_weight_count(tensor);
    fuzz_require(stored->rows * stored->columns == count);
    volatile uint8_t ends[2] = {first[0], first[count * nn_dtype_bytes(stored->dtype) - 1]};
    (void)ends;
    return STATUS_OK;
}

static void load(const uint8_t *data, size_t size) {
    struct gguf file;
    struct error error = {0};
    struct llama2_checkpoint checkpoint;
    fuzz_require(gguf_parse(&file, data, size, NULL) == STATUS_OK); /* it did before */
    if (fuzz_accepted(llama2_checkpoint_load_gguf(&checkpoint, &file, MOST_BYTES, &error),
                      &error)) {
        fuzz_require(llama2_tensors_visit(&checkpoint.config, checkpoint.shared_classifier,
                                          &checkpoint.weights, NULL, touch, NULL) == STATUS_OK);
        llama2_checkpoint_close(&checkpoint);
    } else { /* a refusal leaves nothing behind */
        fuzz_require(checkpoint.weights.layers == NULL && checkpoint.gguf.tensors == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gguf file;
    struct bpe *bpe;
    int32_t eos;
    struct error error = {0}, vocabulary = {0};
    if (!fuzz_accepted(gguf_parse(&file, data, size, &error), &error)) {
        fuzz_require(file.tensors == NULL && file.values == NULL);
        return 0;
    }
    if (fuzz_accepted(gguf_vocabulary_read(&file, 0, &bpe, &eos, &vocabulary), &vocabulary)) {
        fuzz_require(eos < (int32_t)bpe_size(bpe));
    }
    bpe_free(bpe);
    gguf_close(&file);
    load(data, size);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const enum gguf_type types[] = {GGUF_F16, GGUF_Q8_0, GGUF_Q4_0, GGUF_Q4_K, GGUF_Q6_K};
    const char *const pieces[] = {"<unk>", "\n<s>\n", "\n</s>\n", " a"};
    const float scores[] = {0.0f, 0.0f, 0.0f, -1.0f};
    struct gguf_file file;
    struct llama2_random model;
    unsigned char *tokenizer = NULL;
    size_t tokenizer_size = 0;
    if (index >= sizeof types / sizeof *types) {
        return false;
    }
    bool byte_level = index == 1;
    const struct llama2_config config = {.C = index < 3 ? 32 : COLUMNS,
                                         .hidden = index < 3 ? 32 : COLUMNS,
                                         .L = 1,
                                         .NH = 16,
                                         .KVH = 1,
                                         .HS = index < 3 ? 2 : 16,
                                         .V = byte_level ? GGUF_BYTE_LEVEL_TOKENS : 4,
                                         .T = 2,
                                         .rope_theta = 10000.0f,
                                         .norm_eps = 1e-5f,
                                         .rope_layout = NN_ROPE_INTERLEAVED};
    fuzz_require(llama2_random_create(&model, &config, 1) == STATUS_OK &&
                 bpe_serialize(pieces, scores, 4, &tokenizer, &tokenizer_size) == STATUS_OK);
    fuzz_require(gguf_testing_llama2(&file, &config, &model.weights, types[index], tokenizer,
                                     byte_level ? 0 : tokenizer_size) == STATUS_OK);
    free(tokenizer);
    llama2_random_free(&model);
    *seed = file.data;
    *size = file.size;
    return true;
}
