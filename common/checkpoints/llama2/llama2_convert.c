/* Converts a checkpoint's weights to fp32, for engines that read no other type. */
#include <stdint.h>
#include <unistd.h>

#include "common/base/checked.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"

/* The first visit of all tensors measures them, the second converts them. */
struct converter {
    size_t bytes; /* from the first visit: size of the arena without the layers' structs */
    struct arena *arena;
    struct error *error;
};

static bool usable_in_place(const struct llama2_stored_tensor *tensor) {
    return tensor->dtype == NN_F32 && (uintptr_t)tensor->data % _Alignof(float) == 0;
}

static enum status measure_tensor(void *context, const struct llama2_tensor *tensor) {
    struct converter *converter = context;
    const struct llama2_stored_tensor *stored = tensor->stored;
    size_t bytes = usable_in_place(stored)
                       ? 0
                       : arena_footprint(stored->rows * stored->columns, sizeof(float));
    if (!checked_add(converter->bytes, bytes, &converter->bytes)) {
        return error_set(converter->error, STATUS_OVERFLOW, "size of all fp32 weights overflows");
    }
    return STATUS_OK;
}

static enum status convert_tensor(void *context, const struct llama2_tensor *tensor) {
    struct converter *converter = context;
    const struct llama2_stored_tensor *stored = tensor->stored;
    if (usable_in_place(stored)) {
        *tensor->plain = stored->data;
        return STATUS_OK;
    }
    static const enum safetensors_dtype dtypes[] = {
        [NN_F32] = SAFETENSORS_F32, [NN_F16] = SAFETENSORS_F16, [NN_BF16] = SAFETENSORS_BF16};
    const struct safetensors_tensor source = {.dtype = dtypes[stored->dtype],
                                              .count = stored->rows * stored->columns,
                                              .data = stored->data};
    float *values = arena_alloc(converter->arena, source.count, sizeof *values);
    if (values == NULL) {
        return error_set(converter->error, STATUS_OUT_OF_MEMORY, "out of memory for \"%s\"",
                         tensor->name);
    }
    *tensor->plain = values;
    return safetensors_read_f32(&source, values); /* unaligned data, too */
}

static size_t machine_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes;
    return pages > 0 && page > 0 && checked_multiply((size_t)pages, (size_t)page, &bytes)
               ? bytes
               : SIZE_MAX;
}

/* Creates the arena, in the size that the first visit measured. */
static enum status create_arena(struct llama2_fp32 *fp32, size_t L, size_t most_bytes,
                                struct converter *converter) {
    size_t layers = arena_footprint(L, sizeof *fp32->weights.layers), bytes;
    if (layers == SIZE_MAX || !checked_add(converter->bytes, layers, &bytes)) {
        return error_set(converter->error, STATUS_OVERFLOW, "size of all fp32 weights overflows");
    }
    if (bytes > most_bytes) {
        return error_set(converter->error, STATUS_OUT_OF_MEMORY,
                         "weights as fp32 take %.1f GB of memory, there are %.1f GB; stages that "
                         "read the weights as they are stored need no copy",
                         (double)bytes * 1e-9, (double)most_bytes * 1e-9);
    }
    enum status status = arena_create(&fp32->arena, bytes);
    if (status != STATUS_OK) {
        return error_set(converter->error, status, "no memory for %zu bytes of fp32 weights",
                         bytes);
    }
    converter->arena = &fp32->arena;
    fp32->weights.layers = arena_alloc(&fp32->arena, L, sizeof *fp32->weights.layers);
    return fp32->weights.layers != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status convert_weights(const struct llama2_checkpoint *checkpoint, size_t most_bytes,
                                   struct llama2_fp32 *fp32, struct error *error) {
    const struct llama2_config *c = &checkpoint->config;
    bool shared = checkpoint->shared_classifier;
    struct llama2_stored_weights source = checkpoint->weights; /* visitors get writable pointers */
    struct converter converter = {.error = error};
    TRY(llama2_tensors_visit(c, shared, &source, NULL, measure_tensor, &converter));
    TRY(create_arena(fp32, c->L, most_bytes, &converter));
    TRY(llama2_tensors_visit(c, shared, &source, &fp32->weights, convert_tensor, &converter));
    if (shared) {
        fp32->weights.classifier = fp32->weights.embedding;
    }
    return STATUS_OK;
}

enum status llama2_checkpoint_convert(const struct llama2_checkpoint *checkpoint, size_t most_bytes,
                                      struct llama2_fp32 *fp32, struct error *error) {
    *fp32 = (struct llama2_fp32){0};
    most_bytes = most_bytes > 0 ? most_bytes : machine_memory();
    enum status status = convert_weights(checkpoint, most_bytes, fp32, error);
    if (status != STATUS_OK) {
        llama2_fp32_free(fp32);
    }
    return status;
}

void llama2_fp32_free(struct llama2_fp32 *fp32) {
    arena_free(&fp32->arena);
    *fp32 = (struct llama2_fp32){0};
}
