/**
 * @file link.h
 * @brief What remote.c and remote_device.c share.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_LINK_H_
#define WARPBOOK_GRADER_ISOLATION_LINK_H_

#include "grader/isolation/message.h"
#include "grader/isolation/worker_process.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Sends a request to the worker in use, which is started if need be, and waits.
 * @param wall_ms receives how long that took, or NULL
 * @return the answer's status with its line, or STATUS_INTERRUPTED when there is no answer
 */
MUST_CHECK enum status remote_request(struct message *message, double *wall_ms,
                                      struct error *error);

/**
 * @brief Calls a function of the worker in use.
 * @param m all zeros; receives the whole answer, the arguments in it as the function left them
 */
MUST_CHECK enum status remote_call_by(enum call_mode mode, const char *name, const void *arguments,
                                      size_t size, device_stream stream, struct message *m,
                                      double *wall_ms, struct error *error);

/** Starts the worker in use, unless it runs, and has the other one stand still. */
MUST_CHECK enum status remote_start(struct error *error);

/** @return true when the worker in use has an emulated GPU that answers to the grader. */
bool remote_has_device(void);

/**
 * @brief Starts the worker in use, and has CUDA's functions here work on its emulated GPU.
 * @param error NULL: the running test fails with the line, unless it has been told before
 */
MUST_CHECK enum status remote_attach(struct error *error);

/**
 * @param said what a function of the device's has returned here, behind remote_attach()
 * @param error NULL: as in remote_attach()
 * @return @p said; STATUS_INTERRUPTED, with how that came, when the device is gone;
 *         STATUS_MISMATCH when the worker has used it since it answered
 */
MUST_CHECK enum status remote_device_said(enum status said, struct error *error);

/** @return what that GPU had done before and after the last request; the milliseconds between. */
const struct simt_reading *remote_before(void);
const struct simt_reading *remote_after(void);
double remote_modelled_ms(void);

/** @return which side remote_use() named last. */
enum remote_side remote_used(void);

struct side *remote_side_in_use(void);

/** @return properties of the device that the other side has opened, or NULL. */
const struct device_properties *remote_other_properties(void);

#ifdef __cplusplus
}
#endif

#endif
