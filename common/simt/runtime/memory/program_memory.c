#include "common/simt/runtime/memory/program_memory.h"

#include <stdlib.h>
#include <string.h>

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

void *program_allocate(struct runtime *runtime, size_t bytes) {
    size_t padded;
    if (!checked_add(bytes, PAGE_BYTES - 1, &padded)) {
        return NULL;
    }
    padded = padded / PAGE_BYTES * PAGE_BYTES;
    return runtime->program != NULL ? runtime->program->allocate(runtime->program, padded)
                                    : aligned_alloc(PAGE_BYTES, padded);
}

void program_release(struct runtime *runtime, void *memory, size_t bytes) {
    if (runtime->program != NULL) {
        size_t padded = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        runtime->program->release(runtime->program, memory, padded);
    } else {
        free(memory);
    }
}

void program_call(struct runtime *runtime, cudaHostFn_t function, void *data) {
    if (runtime->program != NULL) {
        runtime->program->call(runtime->program, function, data);
    } else {
        function(data);
    }
}

void program_callback(struct runtime *runtime, cudaStreamCallback_t function, cudaStream_t stream,
                      void *data) {
    if (runtime->program != NULL) {
        runtime->program->callback(runtime->program, function, stream, runtime->pending, data);
    } else {
        function(stream, runtime->pending, data);
    }
}
