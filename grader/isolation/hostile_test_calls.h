/**
 * @file hostile_test_calls.h
 * @brief What the tests of hostile workers ask for.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_HOSTILE_TEST_CALLS_H_
#define WARPBOOK_GRADER_ISOLATION_HOSTILE_TEST_CALLS_H_

/** Each function uses one of them. */
struct hostile_call {
    int number;
    volatile unsigned *counter; /**< arena */
};

#endif
