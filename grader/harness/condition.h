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

#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One probe, repeated. */
struct condition_probe {
    double best;   /**< rate (larger is better) or time (smaller is better) of the best run */
    double spread; /**< median time / least time - 1: 0.02 is 2% */
};

/** The probes of one GPU; 0 where there is none. */
struct condition_probes {
    struct condition_probe read;   /**< device memory, bytes/s */
    struct condition_probe flops;  /**< fp32 multiply-adds in registers, FLOP/s */
    struct condition_probe launch; /**< launching an empty kernel and waiting for it, us */
    double clock_khz;              /**< of the SMs under the load of the FLOPs probe */
};

enum condition_kind {
    CONDITION_FINE,
    CONDITION_THROTTLED, /**< clocks are far below the boost clock: heat, a power cap, power saving
                          */
    CONDITION_SHARED,    /**< another program uses the GPU */
    CONDITION_BUSY_HOST  /**< the host's CPU is late to launch and to notice the end */
};

struct condition {
    enum condition_kind kind;
    char text[320]; /**< one or two sentences for the learner; "" if all is fine */
};

/**
 * @brief Judges the probes by the GPU's properties.
 *
 * A share of the data sheet that the driver does not tell (properties with 0) is not judged. A
 * modelled GPU is fine.
 */
struct condition condition_of(const struct device_properties *gpu,
                              const struct condition_probes *probes);

#ifdef __cplusplus
}
#endif

#endif
