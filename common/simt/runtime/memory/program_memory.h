/**
 * @file program_memory.h
 * @brief All that the device does to the program that uses it: its memory, its functions.
 *
 * In one process with the program these are copies and calls; a device process asks the program
 * (remote/serve_program.c). Nothing else follows a pointer of the program's.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_PROGRAM_MEMORY_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_MEMORY_PROGRAM_MEMORY_H_

#include <stdbool.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

struct runtime;

/** A program in another process. */
struct program {
    bool (*read)(struct program *program, void *to, const void *from, size_t bytes);
    bool (*write)(struct program *program, void *to, const void *from, size_t bytes);
    void *(*allocate)(struct program *program, size_t bytes);
    void (*release)(struct program *program, void *memory, size_t bytes);
    void (*call)(struct program *program, cudaHostFn_t function, void *data);
    void (*callback)(struct program *program, cudaStreamCallback_t function, cudaStream_t stream,
                     cudaError_t error, void *data);
};

/** Copies from, or to, memory of the program. @return false when it is not there any more */
bool program_read(struct runtime *runtime, void *to, const void *from, size_t bytes);
bool program_write(struct runtime *runtime, void *to, const void *from, size_t bytes);

/** @return page-aligned memory in the program, contents undefined; NULL: there is none. */
void *program_allocate(struct runtime *runtime, size_t bytes);
void program_release(struct runtime *runtime, void *memory, size_t bytes);

void program_call(struct runtime *runtime, cudaHostFn_t function, void *data);
void program_callback(struct runtime *runtime, cudaStreamCallback_t function, cudaStream_t stream,
                      void *data);

#endif
