#include "labs/09_kv_cache/problem/block.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, POISON = 0xff };

static size_t all_bytes(const struct kv_block *block) {
    return block->before + block->bytes + block->after;
}

enum status kv_block_create(struct kv_block *block, size_t bytes, bool guarded, size_t skew,
                            struct error *error) {
    size_t guard = guarded ? GUARD_BYTES : 0;
    *block = (struct kv_block){.bytes = bytes, .before = guard + skew, .after = guard};
    block->expect = malloc(all_bytes(block) + 1);
    if (block->expect == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(device_alloc(&block->memory, all_bytes(block), error));
    if (bytes > 0) {
        block->data = (unsigned char *)block->memory + block->before;
    }
    return kv_block_put(block, NULL, error);
}

enum status kv_block_put(struct kv_block *block, const void *values, struct error *error) {
    size_t bytes = all_bytes(block);
    memset(block->expect, POISON, bytes);
    if (values != NULL) {
        memcpy(block->expect + block->before, values, block->bytes);
    }
    return bytes == 0 ? STATUS_OK : device_write(block->memory, block->expect, bytes, NULL, error);
}

/* Reads the block into `got`, host memory of all its bytes, and compares it. */
static enum status read_block(const struct kv_block *block, unsigned char *got, bool *intact,
                              bool *changed, struct error *error) {
    const unsigned char *expect = block->expect;
    size_t before = block->before, end = before + block->bytes;
    if (all_bytes(block) > 0) {
        TRY(device_read(got, block->memory, all_bytes(block), NULL, error));
    }
    *intact =
        memcmp(got, expect, before) == 0 && memcmp(got + end, expect + end, block->after) == 0;
    *changed = memcmp(got + before, expect + before, block->bytes) != 0;
    return STATUS_OK;
}

enum status kv_block_get(const struct kv_block *block, void *values, bool *intact, bool *changed,
                         struct error *error) {
    unsigned char *got = malloc(all_bytes(block) + 1);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = read_block(block, got, intact, changed, error);
    if (status == STATUS_OK && values != NULL) {
        memcpy(values, got + block->before, block->bytes);
    }
    free(got);
    return status;
}

void kv_block_free(struct kv_block *block) {
    device_free(block->memory);
    free(block->expect);
    *block = (struct kv_block){0};
}
