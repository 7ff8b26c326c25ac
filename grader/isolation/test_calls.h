/**
 * @file test_calls.h
 * @brief The calls that the tests of this folder make to their workers.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_TEST_CALLS_H_
#define WARPBOOK_GRADER_ISOLATION_TEST_CALLS_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** remote_test and hostile_test: each function uses one of them, or none. */
struct test_call {
    int number;
    volatile unsigned *counter; /**< arena */
};

/** remote_test, "double": of an array in the arena. */
struct array_call {
    const float *in; /**< arena, (count) */
    float *out;      /**< arena, (count) */
    size_t count;
};

/** device_test, any function: what the worker says of the call. */
struct made_up_call {
    double ms;
    uint64_t launches;
    unsigned took_us; /**< what it takes in fact */
};

/** bench_test, "copy": of memory of the worker's device. */
struct copy_call {
    void *to, *from;
    size_t bytes;
    void *stream; /**< a device_stream */
};

/** registers_test, "registers": of a kernel whose machine code does not belong to its PTX. */
struct registers_call {
    int said;  /**< by the machine code */
    int taken; /**< receives how many the device says that a thread has */
};

/** death_test, "who". */
struct who_call {
    size_t bytes; /**< to be taken and kept */
    pid_t pid;    /**< receives the worker's number */
};

#endif
