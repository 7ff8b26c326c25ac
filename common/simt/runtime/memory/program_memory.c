#include "common/simt/runtime/memory/program_memory.h"

#include <string.h>
#include <sys/mman.h>

#include "common/base/checked.h"
#include "common/simt/runtime/state.h"

enum { PAGE_BYTES = 4096 };

bool program_read(struct runtime *runtime, void *to, const void *from, size_t bytes) {
    if (runtime->program != NULL) {
        return runtime->program->read(runtime->program, to, from, bytes);
    }
    memmove(to, from, bytes);
    return true;
}

bool program_write(struct runtime *runtime, void *to, const void *from, size_t bytes) {
    if (runtime->program != NULL) {
        return runtime->program->write(runtime->program, to, from, bytes);
    }
    memmove(to, from, bytes);
    return true;
}

bool program_take(struct runtime *runtime, void *to, void *from, size_t bytes) {
    if (runtime->program != NULL) {
        return runtime->program->take(runtime->program, to, from, bytes);
    }
    memcpy(to, from, bytes);
    return mprotect(from, bytes, PROT_NONE) == 0;
}

static bool open_pages(struct runtime *runtime, void *memory, size_t bytes) {
    return runtime->program != NULL ? runtime->program->open(runtime->program, memory, bytes)
                                    : mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0;
}

bool program_give(struct runtime *runtime, void *to, const void *from, size_t bytes) {
    return open_pages(runtime, to, bytes) && program_write(runtime, to, from, bytes);
}

void *program_allocate(struct runtime *runtime, size_t bytes) {
    size_t padded;
    if (!checked_add(bytes, PAGE_BYTES - 1, &padded)) {
        return NULL;
    }
    padded = padded / PAGE_BYTES * PAGE_BYTES;
    if (runtime->program != NULL) {
        return runtime->program->allocate(runtime->program, padded);
    }
    void *memory = mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void program_release(struct runtime *runtime, void *memory, size_t bytes) {
    size_t padded = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (runtime->program != NULL) {
        runtime->program->release(runtime->program, memory, padded);
    } else {
        munmap(memory, padded);
    }
}

void program_call(struct runtime *runtime, cudaHostFn_t function, void *data) {
    runtime->order.host_functions++;
    if (runtime->program != NULL) {
        runtime->program->call(runtime->program, function, data);
    } else {
        function(data);
    }
    runtime->order.host_functions--;
}

void program_callback(struct runtime *runtime, cudaStreamCallback_t function, cudaStream_t stream,
                      void *data) {
    runtime->order.host_functions++;
    if (runtime->program != NULL) {
        runtime->program->callback(runtime->program, function, stream, runtime->pending, data);
    } else {
        function(stream, runtime->pending, data);
    }
    runtime->order.host_functions--;
}
