/**
 * @file fixture.h
 * @brief What all cases of one parity test on the GPU share.
 */
#ifndef WARPBOOK_GRADER_HARNESS_FIXTURE_H_
#define WARPBOOK_GRADER_HARNESS_FIXTURE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fixture {
    struct rng rng; /**< begins with the run's seed */
    device_stream stream;
    void *workspace; /**< device, or NULL when none was asked for */
    bool modelled;   /**< on simt */
    unsigned cases;  /**< that fixture_has_guards() was asked about */
};

/**
 * @brief Opens the GPU, makes a stream and a workspace; fails the running test when that does not
 *        work. Either way fixture_close() follows.
 * @param workspace_bytes 0 for none
 */
bool fixture_open(struct fixture *fixture, size_t workspace_bytes);

/**
 * @brief Has the next case canaries around its buffers? On simt every other one has none: simt
 *        itself names the line that goes beyond an allocation.
 */
bool fixture_has_guards(struct fixture *fixture);

/** Frees, and fails the running test when a library did the submission's work. */
void fixture_close(struct fixture *fixture);

#ifdef __cplusplus
}
#endif

#endif
