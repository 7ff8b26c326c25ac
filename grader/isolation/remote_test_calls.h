/**
 * @file remote_test_calls.h
 * @brief What the tests of the grader's side ask their workers for.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_REMOTE_TEST_CALLS_H_
#define WARPBOOK_GRADER_ISOLATION_REMOTE_TEST_CALLS_H_

#include <stddef.h>

/** Most functions take one. */
struct number_call {
    int number;
};

/** "double": of an array in the arena. */
struct array_call {
    const float *in; /**< arena, (count) */
    float *out;      /**< arena, (count) */
    size_t count;
};

#endif
