#include "common/simt/runtime/memory/leaks.h"

#include <stdio.h>

#include "common/simt/runtime/memory/host_memory.h"
#include "common/simt/runtime/state.h"

enum { MOST_LISTED = 10 };

struct leaks {
    size_t count, bytes;
    FILE *stream; /**< NULL: only count */
};

static void add(struct leaks *leaks, const char *what, size_t bytes, uint64_t address,
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
    add(argument, allocation->what, allocation->bytes, allocation->address, allocation->serial);
}

static void collect(const struct runtime *runtime, struct leaks *leaks) {
    simt_memory_visit(runtime->memory, visit, leaks);
    for (const struct host_block *block = runtime->host_blocks; block != NULL;
         block = block->next) {
        if (block->kind != HOST_REGISTERED) {
            add(leaks, block->what, block->bytes, (uint64_t)(uintptr_t)block->memory, 0);
        }
    }
}

void leaks_report(struct runtime *runtime) {
    if (runtime->settings.check != SIMT_CHECK_FULL || runtime->sticky != cudaSuccess ||
        runtime->pending != cudaSuccess) {
        return;
    }
    struct leaks total = {0};
    collect(runtime, &total);
    if (total.count == 0) {
        return;
    }
    fprintf(stderr, "simt: never freed: %zu allocation%s, %zu bytes\n", total.count,
            total.count == 1 ? "" : "s", total.bytes);
    struct leaks list = {.stream = stderr};
    collect(runtime, &list);
    if (list.count > MOST_LISTED) {
        fprintf(stderr, "  and %zu more\n", list.count - MOST_LISTED);
    }
}
