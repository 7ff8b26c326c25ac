#include "common/simt/runtime/memory/mirror.h"

#include <string.h>
#include <sys/mman.h>

#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"

enum { PAGE_BYTES = 4096 };

static unsigned char *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/** Whether it can be read makes no difference to the device: what cannot is zeros. */
static void fetch(struct runtime *runtime, struct host_block *block) {
    if (!block->fetched) {
        block->fetched = program_read(runtime, block->copy, block->memory, block->bytes);
        memcpy(block->before, block->copy, block->bytes);
    }
}

/** Kernels run on several threads; the first one at a block fetches it. */
static void wanted(void *context, uint64_t address) {
    struct runtime *runtime = context;
    pthread_mutex_lock(&runtime->mirror_lock);
    struct host_block *block = host_block_find(runtime, (const void *)(uintptr_t)address);
    if (block != NULL && block->copy != NULL) {
        fetch(runtime, block);
    }
    pthread_mutex_unlock(&runtime->mirror_lock);
}

cudaError_t mirror_open(struct runtime *runtime, struct host_block *block, void *copy) {
    if (runtime->program == NULL) {
        return cudaSuccess;
    }
    block->variable = copy != NULL;
    block->copy = copy != NULL ? copy : map(block->bytes);
    block->before = map(block->bytes);
    if (block->copy == NULL || block->before == NULL) {
        mirror_close(block);
        return cudaErrorMemoryAllocation;
    }
    simt_memory_place_host(runtime->memory, block->memory, block->copy);
    simt_memory_watch_host(runtime->memory, wanted, runtime);
    return cudaSuccess;
}

void mirror_close(struct host_block *block) {
    if (block->copy != NULL && !block->variable) {
        munmap(block->copy, block->bytes);
    }
    if (block->before != NULL) {
        munmap(block->before, block->bytes);
    }
    block->copy = block->before = NULL;
}

void mirror_begin(struct runtime *runtime) {
    if (runtime->program == NULL) {
        return;
    }
    for (struct host_block *b = runtime->host_blocks; b != NULL; b = b->next) {
        if (b->variable && b->copy != NULL) {
            fetch(runtime, b);
        }
    }
}

/** Sends runs of pages that differ from what was fetched. */
static void send_back(struct runtime *runtime, struct host_block *block) {
    size_t begin = 0;
    size_t end = 0;
    for (size_t at = 0; at < block->bytes; at += PAGE_BYTES) {
        size_t left = block->bytes - at;
        size_t bytes = left < PAGE_BYTES ? left : PAGE_BYTES;
        if (memcmp(block->copy + at, block->before + at, bytes) == 0) {
            continue;
        }
        if (at > end) {
            (void)program_write(runtime, (char *)block->memory + begin, block->copy + begin,
                                end - begin);
        }
        begin = at > end || end == 0 ? at : begin;
        end = at + bytes;
    }
    if (end > begin) {
        (void)program_write(runtime, (char *)block->memory + begin, block->copy + begin,
                            end - begin);
    }
}

void mirror_end(struct runtime *runtime) {
    if (runtime->program == NULL) {
        return;
    }
    for (struct host_block *b = runtime->host_blocks; b != NULL; b = b->next) {
        if (b->fetched) {
            send_back(runtime, b);
            b->fetched = false;
        }
    }
}
