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

enum status kv_block_get(const struct kv_block *block, void *values, bool *intact, bool *changed,
                         struct error *error) {
    size_t before = block->before, bytes = block->bytes, after = block->after;
    unsigned char *got = malloc(before + bytes + after + 1);
    if (got == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = STATUS_OK;
    if (before + bytes + after > 0) {
        status = device_read(got, block->memory, before + bytes + after, NULL, error);
    }
    if (status == STATUS_OK) {
        const unsigned char *expect = block->expect;
        *intact = memcmp(got, expect, before) == 0 &&
                  memcmp(got + before + bytes, expect + before + bytes, after) == 0;
        *changed = memcmp(got + before, expect + before, bytes) != 0;
        if (values != NULL) {
            memcpy(values, got + before, bytes);
        }
    }
    free(got);
    return status;
}

void kv_block_free(struct kv_block *block) {
    device_free(block->memory);
    free(block->expect);
    *block = (struct kv_block){0};
}
