/**
 * @file remote_device.h
 * @brief The device of the worker in use: opened, and waited for.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_REMOTE_DEVICE_H_
#define WARPBOOK_GRADER_ISOLATION_REMOTE_DEVICE_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "common/bench/device/device_limits.h"
#include "common/device/device.h"
#include "common/simt/profile.h"
#include "grader/isolation/remote.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Has the worker in use open its device, and notes its properties. device_open() does so at
 *        the subject's; a case that uses the baseline's calls this after remote_use().
 * @return what device_open() says there
 */
MUST_CHECK enum status remote_open_device(struct error *error);

/** Has this side's worker used from here on, and opens the baseline's device as above. */
MUST_CHECK enum status remote_open_side(enum remote_side which, struct error *error);

/**
 * @brief On a GPU, finds what it can do at best while there is no process of the submission's, once
 *        a program; ends all workers. Does nothing on simt.
 */
MUST_CHECK enum status remote_probe_first(struct error *error);

/** How far the limits beside a submission's process lie from those before it; 0.1 is a tenth. */
struct remote_spread {
    double read, flops;
    double call_ms; /**< a launch and its wait, beside it */
};

/**
 * @brief Finds what the GPU can do at best, by the baseline's worker. The side in use stays.
 *
 * No code of the submission's has a part in it, but what it left in the GPU's queue can slow these
 * probes: the better of them and of remote_probe_first()'s counts.
 */
MUST_CHECK enum status remote_device_limits(struct device_limits *limits,
                                            struct remote_spread *spread, struct error *error);

/**
 * @brief Asks the submission's worker for the longest launch since this was asked last. Its numbers
 *        are the worker's, to be shown and not to be judged by. The side in use stays.
 * @return false on a GPU, without a launch, and when the worker does not answer
 */
bool remote_device_longest(struct simt_profile *profile);

/**
 * @brief Waits for a call's work, and ends grader_watch() of it.
 * @param called the call's own status
 * @return the call's failure, or its work's
 */
MUST_CHECK enum status remote_finish_watched(enum status called, device_stream stream,
                                             struct error *error);

#ifdef __cplusplus
}
#endif

#endif
