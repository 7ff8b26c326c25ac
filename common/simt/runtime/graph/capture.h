/**
 * @file capture.h
 * @brief Stream capture: work becomes nodes of a graph instead of running.
 *
 * A call that is not allowed while capturing fails and spoils the capture, as
 * on a GPU: cudaStreamEndCapture() then returns cudaErrorStreamCaptureInvalidated.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_CAPTURE_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GRAPH_CAPTURE_H_

#include <pthread.h>
#include <stdbool.h>

#include <cuda_runtime_api.h>

struct runtime;
struct CUstream_st;
struct CUgraph_st;
struct work;

struct capture {
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    bool spoiled;
    unsigned long long id;
    struct capture *next;
};

/** Makes work a node that depends on the stream's last captured work. */
cudaError_t capture_add(struct CUstream_st *stream, const struct work *work);

/** Marks the capture as spoiled. @return @p error */
cudaError_t capture_spoil(struct capture *capture, cudaError_t error);

/** @return an error when a stream must not be used: its capture is spoiled, or it is the default
 *  stream, which would wait for a stream that is capturing. */
cudaError_t capture_allows_use(struct runtime *runtime, const struct CUstream_st *stream);

/**
 * @brief Asked by calls that could wait for the device, like cudaMalloc().
 * @param always also in the relaxed mode: cudaDeviceSynchronize()
 */
cudaError_t capture_allows_call(struct runtime *runtime, bool always);

/** Ends the capture that a stream takes part in, without a graph. */
void capture_abandon(struct runtime *runtime, struct CUstream_st *stream);

/** @return the capture of that id, or NULL when it has ended. */
struct capture *capture_find(struct runtime *runtime, unsigned long long id);

#endif
