#include "common/checkpoints/decoder/decoder_stored.h"

#include <stdint.h>
#include <unistd.h>

#include "common/base/checked.h"
#include "common/checkpoints/safetensors/safetensors.h"

bool decoder_stored_is_fp32(const struct decoder_stored_tensor *tensor) {
    return tensor->dtype == NN_F32 && (uintptr_t)tensor->data % _Alignof(float) == 0;
}

enum status decoder_stored_read(enum nn_dtype dtype, const void *data, float *values,
                                size_t count) {
    static const enum safetensors_dtype dtypes[] = {
        [NN_F32] = SAFETENSORS_F32, [NN_F16] = SAFETENSORS_F16, [NN_BF16] = SAFETENSORS_BF16};
    const struct safetensors_tensor source = {.dtype = dtypes[dtype], .count = count, .data = data};
    return safetensors_read_f32(&source, values);
}

static size_t machine_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes;
    return pages > 0 && page > 0 && checked_multiply((size_t)pages, (size_t)page, &bytes)
               ? bytes
               : SIZE_MAX;
}

enum status decoder_fp32_arena(struct arena *arena, size_t bytes, size_t L, size_t layer_size,
                               size_t most_bytes, void **layers, struct error *error) {
    size_t structs = arena_footprint(L, layer_size), all;
    most_bytes = most_bytes > 0 ? most_bytes : machine_memory();
    if (structs == SIZE_MAX || !checked_add(bytes, structs, &all)) {
        return error_set(error, STATUS_OVERFLOW, "size of all fp32 weights overflows");
    }
    if (all > most_bytes) {
        return error_set(error, STATUS_OUT_OF_MEMORY,
                         "weights as fp32 take %.1f GB of memory, there are %.1f GB; stages that "
                         "read the weights as they are stored need no copy",
                         (double)all * 1e-9, (double)most_bytes * 1e-9);
    }
    enum status status = arena_create(arena, all);
    if (status != STATUS_OK) {
        return error_set(error, status, "no memory for %zu bytes of fp32 weights", all);
    }
    *layers = arena_alloc(arena, L, layer_size);
    return *layers != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}
