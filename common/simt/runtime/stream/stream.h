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
    unsigned flags;
    int priority;
    unsigned long long id;
    size_t number;                      /**< among all streams; 0: the default stream */
    struct order_clock clock;           /**< what comes before its next work */
    struct capture *capture;            /**< NULL: work runs */
    cudaStreamAttrValue window, policy; /**< hints: no effect */
    struct simt_primary *primaries;     /**< kernels that its next one may not wait for */
    struct node_list tail;              /**< captured work that the next piece comes after */
    struct CUstream_st *next;
};

/** @return a stream that belongs to no list yet, or NULL without memory. */
struct CUstream_st *stream_new(struct runtime *runtime, unsigned flags, int priority);

/** @return the stream of a handle, the default stream for its special handles; NULL: unknown. */
struct CUstream_st *stream_find(struct runtime *runtime, cudaStream_t handle);

/** @return cudaSuccess when there is such an event. */
cudaError_t event_check(struct runtime *runtime, cudaEvent_t event);

/** Work of a graph: records an event in the stream whose work runs, or lets that wait for it. */
void event_record_now(struct runtime *runtime, cudaEvent_t event);
void event_wait_now(struct runtime *runtime, cudaEvent_t event);

/** Checks work, then runs or captures it. The caller keeps @p work. */
cudaError_t stream_submit(struct runtime *runtime, cudaStream_t handle, const struct work *work);

#endif
