/**
 * @file calls.h
 * @brief What the grader of lab 03 asks its workers for.
 */
#ifndef WARPBOOK_GRADER_03_RESIDENT_WEIGHTS_CALLS_H_
#define WARPBOOK_GRADER_03_RESIDENT_WEIGHTS_CALLS_H_

#include <stddef.h>

struct resident;

/**
 * A function of resident.h, called by its name without "resident_"; each takes of these what it
 * needs. "failing" is a resident_call() of a kernel that fails, on `bytes` of `memory`.
 */
struct resident_args {
    struct resident *resident; /**< what "create" gave */
    void *memory;              /**< activations, or what "alloc" gave */
    const void *handle;        /**< weights, or what "weights" gave */
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
