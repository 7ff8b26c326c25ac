#include "common/simt/runtime/memory/host_memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/simt/runtime/memory/mirror.h"
#include "common/simt/runtime/memory/program_memory.h"
#include "common/simt/runtime/state.h"

/** Takes a block out of the list; the program's memory stays. */
static void forget(struct runtime *runtime, struct host_block *block) {
    struct host_block **link = &runtime->host_blocks;
    while (*link != block) {
        link = &(*link)->next;
    }
    *link = block->next;
    /* It was registered when the block was made, so there is nothing to report. */
    enum status status = simt_memory_unregister_host(runtime->memory, block->memory);
    (void)status;
    mirror_close(block);
    free(block);
}

/** More than any machine has: what a program asks for is a number like any other. */
static const size_t MOST_BYTES = (size_t)1 << 40;

static cudaError_t add(struct runtime *runtime, struct host_block block, void *variable) {
    if (block.bytes > MOST_BYTES) {
        return cudaErrorMemoryAllocation;
    }
    struct host_block *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return cudaErrorMemoryAllocation;
    }
    enum status status =
        simt_memory_register_host(runtime->memory, block.memory, block.bytes, block.what);
    if (status != STATUS_OK) {
        free(entry);
        return runtime_error_of(status);
    }
    *entry = block;
    entry->next = runtime->host_blocks;
    runtime->host_blocks = entry;
    cudaError_t error = mirror_open(runtime, entry, variable);
    if (error != cudaSuccess) {
        forget(runtime, entry);
    } else if (!entry->variable) {
        runtime->report.allocations++;
    }
    return error;
}

cudaError_t host_block_allocate(struct runtime *runtime, enum host_kind kind, size_t bytes,
                                unsigned flags, const char *what, void **memory) {
    void *block = program_allocate(runtime, bytes);
    if (block == NULL) {
        return cudaErrorMemoryAllocation;
    }
    struct host_block entry = {
        .memory = block, .bytes = bytes, .kind = kind, .flags = flags, .what = what};
    cudaError_t error = add(runtime, entry, NULL);
    if (error != cudaSuccess) {
        program_release(runtime, block, bytes);
        return error;
    }
    *memory = block;
    return cudaSuccess;
}

cudaError_t host_block_register(struct runtime *runtime, void *memory, size_t bytes,
                                unsigned flags) {
    const char *begin = memory;
    for (const struct host_block *b = runtime->host_blocks; b != NULL; b = b->next) {
        const char *other = b->memory;
        if (begin < other + b->bytes && other < begin + bytes) {
            return cudaErrorHostMemoryAlreadyRegistered;
        }
    }
    struct host_block entry = {.memory = memory,
                               .bytes = bytes,
                               .kind = HOST_REGISTERED,
                               .flags = flags,
                               .what = "cudaHostRegister"};
    return add(runtime, entry, NULL);
}

cudaError_t host_block_add_variable(struct runtime *runtime, void *memory, size_t bytes,
                                    void *variable) {
    struct host_block entry = {
        .memory = memory, .bytes = bytes, .kind = HOST_MANAGED, .what = "__managed__ variable"};
    return add(runtime, entry, variable);
}

struct host_block *host_block_find(struct runtime *runtime, const void *pointer) {
    for (struct host_block *b = runtime->host_blocks; b != NULL; b = b->next) {
        if ((size_t)((const char *)pointer - (const char *)b->memory) < b->bytes) {
            return b;
        }
    }
    return NULL;
}

void host_block_release(struct runtime *runtime, struct host_block *block) {
    void *memory = block->memory;
    size_t bytes = block->bytes;
    bool own = block->kind != HOST_REGISTERED;
    runtime->report.releases += block->variable ? 0 : 1;
    forget(runtime, block);
    if (own) {
        program_release(runtime, memory, bytes);
    }
}

void host_blocks_free(struct runtime *runtime) {
    while (runtime->host_blocks != NULL) {
        host_block_release(runtime, runtime->host_blocks);
    }
}

enum { MOST_LISTED = 10 };

struct leaks {
    size_t count, bytes;
    FILE *stream; /**< NULL: only count */
};

static void add_leak(struct leaks *leaks, const char *what, size_t bytes, uint64_t address,
                     uint64_t serial) {
    leaks->count++;
    leaks->bytes += bytes;
    if (leaks->stream == NULL || leaks->count > MOST_LISTED) {
        return;
    }
    fprintf(leaks->stream, "  %s of %zu bytes at 0x%llx", what, bytes, (unsigned long long)address);
    if (serial != 0) {
        fprintf(leaks->stream, ", allocation %llu", (unsigned long long)serial);
    }
    fputc('\n', leaks->stream);
}

static void visit(const struct simt_allocation *allocation, void *argument) {
    add_leak(argument, allocation->what, allocation->bytes, allocation->address,
             allocation->serial);
}

static void collect(const struct runtime *runtime, struct leaks *leaks) {
    simt_memory_visit(runtime->memory, visit, leaks);
    for (const struct host_block *block = runtime->host_blocks; block != NULL;
         block = block->next) {
        if (block->kind != HOST_REGISTERED && !block->variable) {
            add_leak(leaks, block->what, block->bytes, (uint64_t)(uintptr_t)block->memory, 0);
        }
    }
}

void leaks_report(struct runtime *runtime) {
    if ((runtime->settings.check & SIMT_CHECK_LEAKS) == 0 || runtime->refused ||
        runtime->sticky != cudaSuccess || runtime->pending != cudaSuccess) {
        return;
    }
    struct leaks total = {0};
    collect(runtime, &total);
    if (total.count == 0) {
        return;
    }
    runtime->findings++;
    fprintf(stderr, "simt: never freed: %zu allocation%s, %zu bytes\n", total.count,
            total.count == 1 ? "" : "s", total.bytes);
    struct leaks list = {.stream = stderr};
    collect(runtime, &list);
    if (list.count > MOST_LISTED) {
        fprintf(stderr, "  and %zu more\n", list.count - MOST_LISTED);
    }
}
