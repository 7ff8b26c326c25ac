/**
 * @file kernel_times.h
 * @brief What each launch of a call takes: its work is recorded in a CUDA graph, and then done
 *        piece by piece, each between two events.
 *
 *     TRY(kernel_times_begin(times, error));
 *     status = operator(...);                    puts work on the stream
 *     status = kernel_times_end(times, status, observe, observer, error);
 *
 * Afterwards the work has been done once, as if nobody had recorded it. Works on a GPU and on simt
 * alike; there times are modelled.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TIMES_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_KERNEL_TIMES_H_

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kernel_times; /**< opaque: a stream, two events, and what is being recorded */

/**
 * Told of every piece of work, in order: a kernel's name without its parameters, "copy to the
 * device", "copy to the host", "copy on the device" or "fill". @p name is valid during the call.
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

/** From here on, what is put on the stream is recorded and not done. */
MUST_CHECK enum status kernel_times_begin(struct kernel_times *times, struct error *error);

/**
 * @brief Ends the recording, does what was recorded, waits for it, and tells the times.
 *
 * @param called what the recorded calls returned
 * @return STATUS_OK; STATUS_UNSUPPORTED, with the reason, when the work cannot be recorded (it
 *         waits for the stream, or calls back to the host): then nothing of it was done and nobody
 *         was told; STATUS_DEVICE when a piece of it fails; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status kernel_times_end(struct kernel_times *times, enum status called,
                                        kernel_times_observer *observe, void *observer,
                                        struct error *error);

/** For what cannot be recorded: notes the time on the stream, before it is called. */
MUST_CHECK enum status kernel_times_start(struct kernel_times *times, struct error *error);

/** Waits for the stream. @return milliseconds since kernel_times_start(), in @p ms */
MUST_CHECK enum status kernel_times_stop(struct kernel_times *times, double *ms,
                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif
