/**
 * @file server.h
 * @brief A kernel that begins before a timed call, and does the work of both ranks in it.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_SERVER_H_
#define WARPBOOK_GRADER_SELFTEST_SERVER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The GPUs of the server, and of what takes time before the timed call. */
enum { SERVER_GPU = 1, SERVER_OTHER_GPU = 0 };

/**
 * @brief Starts it, and then lets another GPU work for longer than it will.
 * @param data  of both ranks, (count) fp32 each; both receive the sums
 * @param stays it does not end when it has summed
 */
MUST_CHECK enum status server_start(float *const data[2], size_t count, bool stays,
                                    struct error *error);

/** Has it sum, and waits for that. */
MUST_CHECK enum status server_sum(struct error *error);

#ifdef __cplusplus
}
#endif

#endif
