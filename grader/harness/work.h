/**
 * @file work.h
 * @brief The least time that a piece of work takes on the GPU at hand, whoever writes the code.
 */
#ifndef WARPBOOK_GRADER_HARNESS_WORK_H_
#define WARPBOOK_GRADER_HARNESS_WORK_H_

#include <stdbool.h>

#include "common/bench/device/device_limits.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What must be done, and how it is timed. What is 0 is not needed. */
struct work {
    double fp32_flops;    /**< operations on CUDA cores */
    double tensor_flops;  /**< operations of bf16 products with fp32 sums */
    double read_bytes;    /**< of device memory, each counted once */
    double written_bytes; /**< likewise */
    double bus_bytes;     /**< from the host or to it */
    bool warm;            /**< a call before has left in L2 what fits there */
    int launches;         /**< kernels in a row that it takes at least; 0: one */
    int times;            /**< how often all of this is done in a row; 0: once */
    bool waits;           /**< the host waits behind each of these times */
    bool graph;           /**< they may be nodes of a CUDA graph */
    bool between_events;  /**< timed by remote_bench(); else called and waited for */
    double rest_ms;       /**< what the submission cannot change, measured in the same run, with its
                               launches and wait: the rest of a model; 0: there is none */
};

/** Milliseconds, and what sets them. */
struct least_time {
    double fixed_ms;   /**< launch and wait, or the rest of a model: not the submission's */
    double ideal_ms;   /**< the work itself at the GPU's limits; 0: not known */
    const char *limit; /**< "the fp32 units' speed": what most of ideal_ms is */
    bool disturbed;    /**< somebody else was busy on the machine: a time that misses is not judged
                        */
    bool throttled;    /**< these are the limits at a clock that is held down */
};

/**
 * @brief The roofline of the work: units work side by side, so the slowest one counts; launches in
 *        a row and copies over the bus come on top.
 */
struct least_time work_least_time(const struct work *work, const struct device_limits *limits);

/** @return the time of @p a and then @p b, which are launched one after the other. */
struct least_time least_time_sum(struct least_time a, struct least_time b);

/** @return milliseconds that are allowed to who must reach @p share of the limit. */
double least_time_allowed(const struct least_time *least, double share);

/** @return the share of the limit that a call of @p ms reaches; 1: on the limit. */
double least_time_share(const struct least_time *least, double ms);

#ifdef __cplusplus
}
#endif

#endif
