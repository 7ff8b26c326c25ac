/**
 * @file device_test_calls.h
 * @brief What a worker with a made-up GPU takes.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_DEVICE_TEST_CALLS_H_
#define WARPBOOK_GRADER_ISOLATION_DEVICE_TEST_CALLS_H_

#include <stdint.h>

/** Any function: what shall be said of the call. */
struct made_up_call {
    double ms;
    uint64_t launches;
};

#endif
