/* Fuzzes the safetensors reader; every tensor of a file it accepts is found and read. */
#include "common/checkpoints/safetensors/safetensors.h"

#include <stdlib.h>

#include "common/testing/fuzz.h"

static void read_tensor(const struct safetensors *file, const struct safetensors_tensor *tensor) {
    fuzz_require(safetensors_find(file, tensor->name) == tensor);
    if (!safetensors_is_weight(tensor->dtype)) {
        return;
    }
    /* No more elements than half the bytes of the file: the count can be trusted. */
    float *values = malloc(tensor->count > 0 ? tensor->count * sizeof *values : 1);
    fuzz_require(values != NULL && safetensors_read_f32(tensor, values) == STATUS_OK);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct safetensors file;
    struct error error = {0};
    if (!fuzz_accepted(safetensors_parse(&file, data, size, &error), &error)) {
        fuzz_require(file.tensors == NULL); /* a refusal leaves nothing behind */
        return 0;
    }
    for (size_t i = 0; i < file.count; i++) {
        read_tensor(&file, &file.tensors[i]);
    }
    safetensors_close(&file);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const float floats[4] = {1.0f, -2.0f, 0.5f, 0.0f};
    static const uint16_t halves[6] = {0x3c00, 0x0001, 0x7c00, 0x7e00, 0x8000, 0xffff};
    char names[][16] = {"a", "b.weight", "leer", "\xc3\xa9\xe2\x82\xac\"\\", "scalar"};
    const struct safetensors_tensor tensors[] = {
        {names[0], SAFETENSORS_F32, 2, {2, 2}, 4, floats, 16},
        {names[1], SAFETENSORS_F16, 1, {6}, 6, halves, 12},
        {names[2], SAFETENSORS_F32, 3, {3, 0, 2}, 0, NULL, 0},
        {names[3], SAFETENSORS_BF16, 2, {3, 2}, 6, halves, 12},
        {names[4], SAFETENSORS_F32, 0, {0}, 1, floats, 4},
    };
    static const size_t counts[] = {0, 1, 5};
    if (index >= sizeof counts / sizeof *counts) {
        return false;
    }
    fuzz_require(safetensors_serialize(tensors, counts[index], seed, size, NULL) == STATUS_OK);
    return true;
}
