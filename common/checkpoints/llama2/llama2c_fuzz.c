/* Fuzzes the llama2.c loader; a checkpoint it accepts is read to its last weight. */
#include "common/checkpoints/llama2/llama2_tensors.h"
#include "common/checkpoints/llama2/llama2c.h"
#include "common/models/llama2_random.h"
#include "common/testing/fuzz.h"

/* Reads both ends of a tensor, which lies inside the input. */
static enum status touch(void *context, const struct decoder_weight *tensor) {
    const struct fuzz_input *input = context;
    size_t count = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
    const float *values = *tensor->plain[0];
    volatile float sum = values[0] + values[count - 1];
    (void)sum;
    fuzz_require((const uint8_t *)values >= input->data &&
                 (const uint8_t *)(values + count) <= input->data + input->size);
    return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct llama2c_checkpoint checkpoint;
    struct error error = {0};
    if (!fuzz_accepted(llama2c_parse(&checkpoint, data, size, &error), &error)) {
        fuzz_require(checkpoint.weights.layers == NULL); /* a refusal leaves nothing behind */
        return 0;
    }
    struct fuzz_input input = {data, size};
    fuzz_require(llama2_tensors_visit(&checkpoint.config, false, NULL, &checkpoint.weights, touch,
                                      &input) == STATUS_OK);
    llama2c_close(&checkpoint);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const struct llama2_config configs[] = {
        {.C = 2, .hidden = 1, .L = 1, .NH = 1, .KVH = 1, .HS = 2, .V = 1, .T = 1},
        {.C = 8, .hidden = 3, .L = 2, .NH = 4, .KVH = 2, .HS = 2, .V = 5, .T = 3},
    };
    enum { CONFIGS = sizeof configs / sizeof *configs };
    if (index >= 2 * CONFIGS) {
        return false;
    }
    struct llama2_config config = configs[index / 2];
    config.rope_theta = 10000.0f;
    config.norm_eps = 1e-5f;
    struct llama2_random model;
    fuzz_require(llama2_random_create(&model, &config, 1) == STATUS_OK);
    static const float other_table[8 * 5] = {1.0f}; /* room for the largest (V, C) above */
    if (index % 2 == 1) {
        model.weights.classifier = other_table; /* hence not shared */
    }
    fuzz_require(llama2c_serialize(&model.config, &model.weights, seed, size) == STATUS_OK);
    llama2_random_free(&model);
    return true;
}
