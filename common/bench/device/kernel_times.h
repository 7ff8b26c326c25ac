/**
 * @file kernel_times.h
 * @brief The time of each launch of a call: the call's work is recorded in a CUDA graph, then its
 *        nodes run one by one, each between two events.
 *
 *     TRY(kernel_times_begin(times, error));
 *     status = operator(...);                    puts work on the stream
 *     status = kernel_times_end(times, status, observe, observer, error);
 *
 * Afterwards the work has been done once, as without recording. Works on a GPU, and on simt with
 * modelled times.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TIMES_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TIMES_H_

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kernel_times; /**< opaque: a stream, two events and a clock kernel's memory */

/**
 * Called for every kernel, copy and fill, in order. @p name is the kernel's name without its
 * parameters, "copy to the device", "copy to the host", "copy on the device" or "fill"; it is valid
 * during the call.
 */
typedef void kernel_times_observer(void *observer, const char *name, double ms);

/**
 * @brief Makes a recorder; device_open() must have succeeded.
 * @param stream not the default stream; outlives the recorder
 */
MUST_CHECK enum status kernel_times_create(struct kernel_times **times, device_stream stream,
                                           struct error *error);

/** Frees it; NULL is allowed. */
void kernel_times_free(struct kernel_times *times);

/** Begins recording: from here on, work put on the stream is recorded and does not run. */
MUST_CHECK enum status kernel_times_begin(struct kernel_times *times, struct error *error);

/**
 * @brief Ends the recording, runs the recorded work node by node and reports each time to
 *        @p observe.
 *
 * @param called status that the recorded calls returned
 * @return STATUS_OK; STATUS_UNSUPPORTED, with the reason, when the work cannot be recorded (it
 *         waits for the stream, or calls back to the host): then none of it ran and @p observe was
 *         not called; STATUS_DEVICE when a node fails; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status kernel_times_end(struct kernel_times *times, enum status called,
                                        kernel_times_observer *observe, void *observer,
                                        struct error *error);

/** Starts a measurement of work that cannot be recorded; call it before that work. */
MUST_CHECK enum status kernel_times_start(struct kernel_times *times, struct error *error);

/** Waits for the stream. @param ms receives the milliseconds since kernel_times_start() */
MUST_CHECK enum status kernel_times_stop(struct kernel_times *times, double *ms,
                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif
