/**
 * @file bed.h
 * @brief What all cases of one parity test on the GPU share.
 */
#ifndef WARPBOOK_GRADER_HARNESS_BED_H_
#define WARPBOOK_GRADER_HARNESS_BED_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bed {
    struct rng rng; /**< begins with the run's seed */
    device_stream stream;
    void *workspace; /**< device, or NULL when none was asked for */
    bool modelled;   /**< on simt */
    unsigned cases;  /**< that bed_guards() was asked about */
};

/**
 * @brief Opens the GPU, makes a stream and a workspace; fails the running test when that does not
 *        work. Either way bed_close() follows.
 * @param workspace_bytes 0 for none
 */
bool bed_open(struct bed *bed, size_t workspace_bytes);

/**
 * @brief Has the next case canaries around its buffers? On simt every other one has none: simt
 *        itself names the line that goes beyond an allocation.
 */
bool bed_guards(struct bed *bed);

/** Frees, and fails the running test when a library did the submission's work. */
void bed_close(struct bed *bed);

#ifdef __cplusplus
}
#endif

#endif
