/**
 * @file stream.h
 * @brief Streams: work runs at once and in the order it is submitted, or is captured.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_STREAM_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_STREAM_H_

#include <cuda_runtime_api.h>

#include "common/simt/runtime/graph/graph.h"
#include "common/simt/runtime/stream/order.h"
#include "common/simt/runtime/stream/work.h"

struct runtime;
struct capture;
struct simt_primary;

struct CUstream_st {
    int device;
    unsigned flags;
    int priority;
    unsigned long long id;
    size_t number;                      /**< among all streams; 0: the default stream */
    struct order_clock clock;           /**< what comes before its next work */
    struct order_clock reads;           /**< of what the reads alone come before it */
    struct order_clock fenced;          /**< in order before what it stores, for other devices */
    struct order_clock seen;            /**< what flags told, from the next fence or barrier on */
    struct capture *capture;            /**< NULL: work runs */
    cudaStreamAttrValue window, policy; /**< hints: no effect */
    struct simt_primary *primaries;     /**< kernels that its next one may not wait for */
    struct node_list tail;              /**< captured work that the next piece comes after */
    struct flight *flights;             /**< work that is not done yet, oldest first */
    struct CUstream_st *next;
};

/** @return a stream that belongs to no list yet, or NULL without memory. */
struct CUstream_st *stream_new(struct runtime *runtime, unsigned flags, int priority);

/** @return the stream of a handle, the default stream for its special handles; NULL: unknown. */
struct CUstream_st *stream_find(struct runtime *runtime, cudaStream_t handle);

/** Frees the streams of the selected program, default ones, too; they have no work any more. */
void streams_free(struct runtime *runtime);

/** @return the default stream of a device. */
struct CUstream_st *stream_default(const struct runtime *runtime, int device);

/** @return cudaSuccess when there is such an event. */
cudaError_t event_check(struct runtime *runtime, cudaEvent_t event);

/** Work of a stream that is not done records an event later, or waits for one that is recorded
 *  later. @return its number among those of the event */
uint64_t event_promise(cudaEvent_t event);
uint64_t event_promised(cudaEvent_t event);
bool event_has_come(cudaEvent_t event, uint64_t number);
/** The event of that number has been recorded; or, after an error, never will be. */
void event_keep(struct runtime *runtime, cudaEvent_t event, uint64_t number);

/** Work of a graph: records an event in the stream whose work runs, or lets that wait for it. */
void event_record_now(struct runtime *runtime, cudaEvent_t event);
void event_wait_now(struct runtime *runtime, cudaEvent_t event);

/** Checks work, then runs or captures it. The caller keeps @p work. */
cudaError_t stream_submit(struct runtime *runtime, cudaStream_t handle, const struct work *work);

#endif
