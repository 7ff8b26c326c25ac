/**
 * @file condition.h
 * @brief Whether a GPU is itself, judged by its probes: not throttled, not shared, its host not
 *        busy.
 *
 * What a grade requires is a share of the probes of the same run, so that most of this costs a
 * submission nothing. The learner should know of it all the same, because figures of such a run
 * compare with no other's.
 */
#ifndef WARPBOOK_GRADER_HARNESS_CONDITION_H_
#define WARPBOOK_GRADER_HARNESS_CONDITION_H_

#include <stdbool.h>

#include "common/bench/device/device_limits.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum condition_kind {
    CONDITION_FINE,
    CONDITION_THROTTLED, /**< clocks are far below the boost clock: heat, a power cap, power saving
                          */
    CONDITION_SHARED,    /**< another program uses the GPU */
    CONDITION_LATE /**< launches are late: the host is busy, or the GPU with another program */
};

struct condition {
    enum condition_kind kind;
    char text[320]; /**< one or two sentences for the learner; "" if all is fine */
};

/**
 * @brief Judges what the probes found by the GPU's properties.
 *
 * A share of the data sheet that the driver does not tell (properties with 0) is not judged. A
 * modelled GPU is fine.
 */
struct condition condition_of(const struct device_properties *gpu,
                              const struct device_limits *limits);

/** @return whether others use the machine: a time that misses is then not the submission's fault */
bool condition_disturbs(const struct condition *condition);

#ifdef __cplusplus
}
#endif

#endif
