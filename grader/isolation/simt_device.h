/**
 * @file simt_device.h
 * @brief The emulated GPU of one worker: a process of its own, which answers to the grader.
 *
 * The worker's library only sends calls to it. Memory, clock, counters, checks and settings lie in
 * that process, out of the reach of the learner's code; the grader has a connection of its own and
 * asks the device, never the worker. The device runs in a sandbox, too: what it computes with is
 * the learner's.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_SIMT_DEVICE_H_
#define WARPBOOK_GRADER_ISOLATION_SIMT_DEVICE_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/simt/control.h"
#include "grader/isolation/surroundings.h"
#include "grader/sandbox/sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero-initialised: not started. */
struct simt_device {
    struct sandbox *sandbox; /**< NULL: not started, or ended */
    struct simt_control control;
    int socket;      /**< to it, for the grader */
    uint64_t calls;  /**< that the worker had made when it last answered */
    uint64_t faults; /**< that were reported */
};

/** What a device has done for its programs. */
struct simt_reading {
    double nanoseconds;    /**< modelled */
    uint64_t flops, bytes; /**< bytes of global memory that kernels moved */
    double tensor_flops;   /**< of flops, those of tensor cores, but for doubles */
    uint64_t launched, calls, faults;
    uint64_t sent, fetched; /**< bytes from the worker, and to it: see control.h */
    uint64_t unfinished;    /**< launches that have not ended */
};

/**
 * @brief Starts one.
 * @param program receives the worker's end of its socket, which the caller closes
 */
MUST_CHECK enum status simt_device_start(struct simt_device *device, const struct surroundings *s,
                                         const struct sandbox_limits *limits, int *program,
                                         struct error *error);

/** Has the functions of CUDA and simt.h in this process work on this device. @return false: it is
 *  gone */
bool simt_device_attach(struct simt_device *device);

/** @return false: it is gone. */
bool simt_device_read(struct simt_device *device, struct simt_reading *reading);

/** Gives the calls that the worker had made when this device, which is attached, answered last;
 * asks it nothing. @return false: it is gone */
bool simt_device_calls(const struct simt_device *device, uint64_t *calls);

/** @return seconds that it was kept waiting for a processor. */
double simt_device_waited(const struct simt_device *device);

/** Ends it; allowed when it was not started. @param result receives how, and what it wrote */
void simt_device_end(struct simt_device *device, struct sandbox_result *result);

#ifdef __cplusplus
}
#endif

#endif
