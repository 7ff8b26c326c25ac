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

/* Refuses what the machine's memory, or the limit in its place, cannot hold. */
static enum status check_memory(size_t bytes, size_t most_bytes, const char *advice,
                                struct error *error) {
    most_bytes = most_bytes > 0 ? most_bytes : machine_memory();
    return bytes <= most_bytes
               ? STATUS_OK
               : error_set(error, STATUS_OUT_OF_MEMORY,
                           "weights as fp32 take %.1f GB of memory, there are %.1f GB%s",
                           (double)bytes * 1e-9, (double)most_bytes * 1e-9, advice);
}

static enum status create(struct arena *arena, size_t bytes, struct error *error) {
    enum status status = arena_create(arena, bytes);
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "no memory for %zu bytes of fp32 weights", bytes);
}

enum status decoder_dequantized_arena(struct arena *arena, size_t bytes, size_t most_bytes,
                                      struct error *error) {
    TRY(check_memory(bytes, most_bytes, "; a file of F16 or BF16 needs no copy", error));
    return create(arena, bytes, error);
}

enum status decoder_fp32_arena(struct arena *arena, size_t bytes, size_t L, size_t layer_size,
                               size_t most_bytes, void **layers, struct error *error) {
    size_t structs = arena_footprint(L, layer_size), all;
    if (structs == SIZE_MAX || !checked_add(bytes, structs, &all)) {
        return error_set(error, STATUS_OVERFLOW, "size of all fp32 weights overflows");
    }
    TRY(check_memory(all, most_bytes,
                     "; stages that read the weights as they are stored need no copy", error));
    TRY(create(arena, all, error));
    *layers = arena_alloc(arena, L, layer_size);
    return *layers != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}
