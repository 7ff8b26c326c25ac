/**
 * @file calls.h
 * @brief The calls that the grader of lab 03 makes in its workers.
 */
#ifndef WARPBOOK_GRADER_03_RESIDENT_WEIGHTS_CALLS_H_
#define WARPBOOK_GRADER_03_RESIDENT_WEIGHTS_CALLS_H_

#include <stddef.h>

struct resident;

/** "show": copies what the model read last, its logits, to the grader's device memory. */
struct show_args {
    void *to; /**< device */
    size_t bytes;
};

/**
 * A function of resident.h, called by its name without "resident_"; each uses the fields that it
 * needs. "failing" is a resident_call() of a kernel that fails, on `bytes` of `memory`.
 */
struct resident_args {
    struct resident *resident; /**< result of "create" */
    void *memory;              /**< activations, or the result of "alloc" */
    const void *handle;        /**< weights, or the result of "weights" */
    void *host;                /**< arena */
    size_t bytes;
};

/** "add": out = a + b by resident_call() */
struct add_args {
    struct resident *resident;
    const void *out, *a, *b; /**< activations or weights, (count) floats each */
    size_t count;
};

#endif
