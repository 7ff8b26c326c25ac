/**
 * @file calls.h
 * @brief Every API function that works on the device: one row each, with what its arguments are.
 *
 * From a row come the exported function, the client's half, which sends the call, and the server's,
 * which checks what it was sent and calls the implementation. A row names each parameter's kind:
 *
 *     (IN, T)             T by value; a pointer is a number that the implementation judges; not
 *                         bool, as bytes from outside may be no bool
 *     (INOUT, T)          T *, copied both ways; may be NULL
 *     (POINTED, T)        const T *, copied; may be NULL
 *     (FROM, bytes)       const void *: the program's memory or the device's; up to a few KiB
 *                         travel with the call
 *     (TO, bytes)         void *: the same, to be written
 *     (HANDLE, T)         a handle that the implementation looks up in a list before it follows it
 *     (NODE, T)           a node of a graph: the server looks it up
 *     (NEW, T)            T *: receives a handle; may be NULL
 *     (NODES, count)      const cudaGraphNode_t *, `count` of them
 *     (NODES_OUT, room)   cudaGraphNode_t *, room for *room of them
 *     (EDGES_OUT, room)   cudaGraphEdgeData *, the same
 *     (NODES_GIVEN, count) cudaGraphNode_t *: NODES, where CUDA declares them so
 *     (NODES_KEPT, count) const cudaGraphNode_t **: receives *count nodes that the library keeps
 *     (TEXT, 0)           const char *: a string of the library's; may be NULL
 *     (TEXT_OUT, size)    char *, room for `size`
 *     (TEXT_KEPT, 0)      const char **: receives a text that the library keeps
 *     (ARGUMENTS, kernel) void **: a launch's arguments
 *     (KERNEL_NODE, 0)    const struct cudaKernelNodeParams *
 *     (KERNEL_NODE_OUT, 0) struct cudaKernelNodeParams *: its arguments are kept by the library
 *     (CONFIG, 0)         const cudaLaunchConfig_t *
 *     (PLANES, 0)         const struct cudaMemcpy3DParms *, with handles of arrays
 *     (RESOURCE, 0)       const struct cudaResourceDesc *, with the handle of an array
 *     (RESOURCE_OUT, 0)   struct cudaResourceDesc *
 *     (ACCESS, count)     const struct cudaMemAccessDesc *, `count` of them
 *     (POOL_VALUE, which) void *: a memory pool's attribute, whose size follows from `which`
 *     (POOL_VALUE_OUT, which) the same, to be written
 *
 * `bytes`, `count`, `room`, `kernel` and `which` are other parameters; the parameters are called a,
 * b, c ...
 *
 * A function of the implementation that has no row is not exported (exports_test fails).
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_CALLS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_REMOTE_CALLS_H_

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

/* One of the functions is deprecated, and there all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "common/simt/control.h"
#include "common/simt/nccl/collective.h"
#include "common/simt/simt.h"

typedef struct module *simt_module_handle;

enum {
    FATBIN_WRAPPER_MAGIC = 0x466243b1,
    FATBIN_WRAPPER_FILE = 1,  /**< of one translation unit */
    FATBIN_WRAPPER_LINKED = 2 /**< of all, for nvcc -rdc=true */
};

/** What nvcc leaves in the program for each translation unit; with -rdc=true, once for all of them.
 */
struct fatbin_wrapper {
    uint32_t magic, version;
    const void *data;
    const void *const *files; /**< version 2: the fat binaries of the files, and NULL */
};

/* clang-format off */

/** X(name, number of parameters, kinds ...): all return cudaError_t. */
#define DEVICE_CALLS(X)                                                                            \
    /* The device. */                                                                              \
    X(cudaGetDeviceCount, 1, (INOUT, int))                                                         \
    X(cudaGetDevice, 1, (INOUT, int))                                                              \
    X(cudaSetDevice, 1, (IN, int))                                                                 \
    X(cudaInitDevice, 3, (IN, int), (IN, unsigned), (IN, unsigned))                                \
    X(cudaSetValidDevices, 2, (INOUT, int), (IN, int))                                             \
    X(cudaChooseDevice, 2, (INOUT, int), (POINTED, struct cudaDeviceProp))                         \
    X(cudaDriverGetVersion, 1, (INOUT, int))                                                       \
    X(cudaRuntimeGetVersion, 1, (INOUT, int))                                                      \
    X(cudaGetDeviceProperties, 2, (INOUT, struct cudaDeviceProp), (IN, int))                       \
    X(cudaDeviceGetAttribute, 3, (INOUT, int), (IN, enum cudaDeviceAttr), (IN, int))               \
    X(cudaDeviceSynchronize, 0, )                                                                  \
    X(cudaDeviceReset, 0, )                                                                        \
    X(cudaDeviceGetLimit, 2, (INOUT, size_t), (IN, enum cudaLimit))                                \
    X(cudaDeviceSetLimit, 2, (IN, enum cudaLimit), (IN, size_t))                                   \
    X(cudaGetDeviceFlags, 1, (INOUT, unsigned))                                                    \
    X(cudaSetDeviceFlags, 1, (IN, unsigned))                                                       \
    X(cudaDeviceGetCacheConfig, 1, (INOUT, enum cudaFuncCache))                                    \
    X(cudaDeviceSetCacheConfig, 1, (IN, enum cudaFuncCache))                                       \
    X(cudaCtxResetPersistingL2Cache, 0, )                                                          \
    X(cudaDeviceCanAccessPeer, 3, (INOUT, int), (IN, int), (IN, int))                              \
    X(cudaDeviceEnablePeerAccess, 2, (IN, int), (IN, unsigned))                                    \
    X(cudaDeviceDisablePeerAccess, 1, (IN, int))                                                   \
    X(cudaDeviceGetP2PAttribute, 4, (INOUT, int), (IN, enum cudaDeviceP2PAttr), (IN, int),         \
      (IN, int))                                                                                   \
    X(cudaDeviceGetPCIBusId, 3, (TEXT_OUT, b), (IN, int), (IN, int))                               \
    X(cudaProfilerStart, 0, )                                                                      \
    X(cudaProfilerStop, 0, )                                                                       \
    /* Memory. */                                                                                  \
    X(cudaMalloc, 2, (INOUT, void *), (IN, size_t))                                                \
    X(cudaMallocAsync, 3, (INOUT, void *), (IN, size_t), (HANDLE, cudaStream_t))                   \
    X(cudaFree, 1, (IN, void *))                                                                   \
    X(cudaFreeAsync, 2, (IN, void *), (HANDLE, cudaStream_t))                                      \
    X(cudaMallocPitch, 4, (INOUT, void *), (INOUT, size_t), (IN, size_t), (IN, size_t))            \
    X(cudaMalloc3D, 2, (INOUT, struct cudaPitchedPtr), (IN, struct cudaExtent))                    \
    X(cudaMallocHost, 2, (INOUT, void *), (IN, size_t))                                            \
    X(cudaHostAlloc, 3, (INOUT, void *), (IN, size_t), (IN, unsigned))                             \
    X(cudaFreeHost, 1, (IN, void *))                                                               \
    X(cudaHostRegister, 3, (IN, void *), (IN, size_t), (IN, unsigned))                             \
    X(cudaHostUnregister, 1, (IN, void *))                                                         \
    X(cudaHostGetDevicePointer, 3, (INOUT, void *), (IN, void *), (IN, unsigned))                  \
    X(cudaHostGetFlags, 2, (INOUT, unsigned), (IN, void *))                                        \
    X(cudaMallocManaged, 3, (INOUT, void *), (IN, size_t), (IN, unsigned))                         \
    X(cudaMemAdvise, 4, (IN, const void *), (IN, size_t), (IN, enum cudaMemoryAdvise),             \
      (IN, struct cudaMemLocation))                                                                \
    X(cudaMemPrefetchAsync, 5, (IN, const void *), (IN, size_t), (IN, struct cudaMemLocation),     \
      (IN, unsigned), (HANDLE, cudaStream_t))                                                      \
    X(cudaMemGetInfo, 2, (INOUT, size_t), (INOUT, size_t))                                         \
    X(cudaPointerGetAttributes, 2, (INOUT, struct cudaPointerAttributes), (IN, const void *))      \
    X(cudaMemcpy, 4, (TO, c), (FROM, c), (IN, size_t), (IN, enum cudaMemcpyKind))             \
    X(cudaMemcpyAsync, 5, (TO, c), (FROM, c), (IN, size_t), (IN, enum cudaMemcpyKind),        \
      (HANDLE, cudaStream_t))                                                                      \
    X(cudaMemcpyPeer, 5, (IN, void *), (IN, int), (IN, const void *), (IN, int), (IN, size_t))     \
    X(cudaMemcpyPeerAsync, 6, (IN, void *), (IN, int), (IN, const void *), (IN, int),              \
      (IN, size_t), (HANDLE, cudaStream_t))                                                        \
    X(cudaMemcpy2D, 7, (IN, void *), (IN, size_t), (IN, const void *), (IN, size_t), (IN, size_t), \
      (IN, size_t), (IN, enum cudaMemcpyKind))                                                     \
    X(cudaMemcpy2DAsync, 8, (IN, void *), (IN, size_t), (IN, const void *), (IN, size_t),          \
      (IN, size_t), (IN, size_t), (IN, enum cudaMemcpyKind), (HANDLE, cudaStream_t))               \
    X(cudaMemcpy3D, 1, (PLANES, 0))                                                                \
    X(cudaMemcpy3DAsync, 2, (PLANES, 0), (HANDLE, cudaStream_t))                                   \
    X(cudaMemset, 3, (IN, void *), (IN, int), (IN, size_t))                                        \
    X(cudaMemsetAsync, 4, (IN, void *), (IN, int), (IN, size_t), (HANDLE, cudaStream_t))           \
    X(cudaMemset2D, 5, (IN, void *), (IN, size_t), (IN, int), (IN, size_t), (IN, size_t))          \
    X(cudaMemset2DAsync, 6, (IN, void *), (IN, size_t), (IN, int), (IN, size_t), (IN, size_t),     \
      (HANDLE, cudaStream_t))                                                                      \
    X(cudaMemset3D, 3, (IN, struct cudaPitchedPtr), (IN, int), (IN, struct cudaExtent))            \
    X(cudaMemset3DAsync, 4, (IN, struct cudaPitchedPtr), (IN, int), (IN, struct cudaExtent),       \
      (HANDLE, cudaStream_t))                                                                      \
    X(cudaMemcpyToSymbol, 5, (IN, const void *), (FROM, c), (IN, size_t), (IN, size_t),            \
      (IN, enum cudaMemcpyKind))                                                                   \
    X(cudaMemcpyToSymbolAsync, 6, (IN, const void *), (FROM, c), (IN, size_t), (IN, size_t),       \
      (IN, enum cudaMemcpyKind), (HANDLE, cudaStream_t))                                           \
    X(cudaMemcpyFromSymbol, 5, (IN, void *), (IN, const void *), (IN, size_t), (IN, size_t),       \
      (IN, enum cudaMemcpyKind))                                                                   \
    X(cudaMemcpyFromSymbolAsync, 6, (IN, void *), (IN, const void *), (IN, size_t), (IN, size_t),  \
      (IN, enum cudaMemcpyKind), (HANDLE, cudaStream_t))                                           \
    X(cudaGetSymbolAddress, 2, (INOUT, void *), (IN, const void *))                                \
    X(cudaGetSymbolSize, 2, (INOUT, size_t), (IN, const void *))                                   \
    /* Memory pools. */                                                                            \
    X(cudaMallocFromPoolAsync, 4, (INOUT, void *), (IN, size_t), (HANDLE, cudaMemPool_t),          \
      (HANDLE, cudaStream_t))                                                                      \
    X(cudaMemPoolCreate, 2, (NEW, cudaMemPool_t), (POINTED, struct cudaMemPoolProps))              \
    X(cudaMemPoolDestroy, 1, (HANDLE, cudaMemPool_t))                                              \
    X(cudaMemPoolGetAttribute, 3, (HANDLE, cudaMemPool_t), (IN, enum cudaMemPoolAttr),             \
      (POOL_VALUE_OUT, b))                                                                         \
    X(cudaMemPoolSetAttribute, 3, (HANDLE, cudaMemPool_t), (IN, enum cudaMemPoolAttr),             \
      (POOL_VALUE, b))                                                                             \
    X(cudaMemPoolTrimTo, 2, (HANDLE, cudaMemPool_t), (IN, size_t))                                 \
    X(cudaMemPoolSetAccess, 3, (HANDLE, cudaMemPool_t), (ACCESS, c), (IN, size_t))                 \
    X(cudaMemPoolGetAccess, 3, (INOUT, enum cudaMemAccessFlags), (HANDLE, cudaMemPool_t),          \
      (INOUT, struct cudaMemLocation))                                                             \
    X(cudaDeviceGetDefaultMemPool, 2, (NEW, cudaMemPool_t), (IN, int))                             \
    X(cudaDeviceGetMemPool, 2, (NEW, cudaMemPool_t), (IN, int))                                    \
    X(cudaDeviceSetMemPool, 2, (IN, int), (HANDLE, cudaMemPool_t))                                 \
    /* Arrays, textures, surfaces. */                                                              \
    X(cudaMallocArray, 5, (NEW, cudaArray_t), (POINTED, struct cudaChannelFormatDesc),             \
      (IN, size_t), (IN, size_t), (IN, unsigned))                                                  \
    X(cudaMalloc3DArray, 4, (NEW, cudaArray_t), (POINTED, struct cudaChannelFormatDesc),           \
      (IN, struct cudaExtent), (IN, unsigned))                                                     \
    X(cudaMallocMipmappedArray, 5, (NEW, cudaMipmappedArray_t),                                    \
      (POINTED, struct cudaChannelFormatDesc), (IN, struct cudaExtent), (IN, unsigned),            \
      (IN, unsigned))                                                                              \
    X(cudaFreeArray, 1, (HANDLE, cudaArray_t))                                                     \
    X(cudaArrayGetInfo, 4, (INOUT, struct cudaChannelFormatDesc), (INOUT, struct cudaExtent),      \
      (INOUT, unsigned), (HANDLE, cudaArray_t))                                                    \
    X(cudaGetChannelDesc, 2, (INOUT, struct cudaChannelFormatDesc), (HANDLE, cudaArray_const_t))   \
    X(cudaMemcpy2DToArray, 8, (HANDLE, cudaArray_t), (IN, size_t), (IN, size_t),                   \
      (IN, const void *), (IN, size_t), (IN, size_t), (IN, size_t), (IN, enum cudaMemcpyKind))     \
    X(cudaMemcpy2DToArrayAsync, 9, (HANDLE, cudaArray_t), (IN, size_t), (IN, size_t),              \
      (IN, const void *), (IN, size_t), (IN, size_t), (IN, size_t), (IN, enum cudaMemcpyKind),     \
      (HANDLE, cudaStream_t))                                                                      \
    X(cudaMemcpy2DFromArray, 8, (IN, void *), (IN, size_t), (HANDLE, cudaArray_const_t),           \
      (IN, size_t), (IN, size_t), (IN, size_t), (IN, size_t), (IN, enum cudaMemcpyKind))           \
    X(cudaMemcpy2DFromArrayAsync, 9, (IN, void *), (IN, size_t), (HANDLE, cudaArray_const_t),      \
      (IN, size_t), (IN, size_t), (IN, size_t), (IN, size_t), (IN, enum cudaMemcpyKind),           \
      (HANDLE, cudaStream_t))                                                                      \
    X(cudaMemcpy2DArrayToArray, 9, (HANDLE, cudaArray_t), (IN, size_t), (IN, size_t),              \
      (HANDLE, cudaArray_const_t), (IN, size_t), (IN, size_t), (IN, size_t), (IN, size_t),         \
      (IN, enum cudaMemcpyKind))                                                                   \
    X(cudaMemcpyToArray, 6, (HANDLE, cudaArray_t), (IN, size_t), (IN, size_t), (FROM, e),          \
      (IN, size_t), (IN, enum cudaMemcpyKind))                                                     \
    X(cudaMemcpyToArrayAsync, 7, (HANDLE, cudaArray_t), (IN, size_t), (IN, size_t), (FROM, e),     \
      (IN, size_t), (IN, enum cudaMemcpyKind), (HANDLE, cudaStream_t))                             \
    X(cudaMemcpyFromArray, 6, (IN, void *), (HANDLE, cudaArray_const_t), (IN, size_t),             \
      (IN, size_t), (IN, size_t), (IN, enum cudaMemcpyKind))                                       \
    X(cudaMemcpyFromArrayAsync, 7, (IN, void *), (HANDLE, cudaArray_const_t), (IN, size_t),        \
      (IN, size_t), (IN, size_t), (IN, enum cudaMemcpyKind), (HANDLE, cudaStream_t))               \
    X(cudaMemcpyArrayToArray, 8, (HANDLE, cudaArray_t), (IN, size_t), (IN, size_t),                \
      (HANDLE, cudaArray_const_t), (IN, size_t), (IN, size_t), (IN, size_t),                       \
      (IN, enum cudaMemcpyKind))                                                                   \
    X(cudaCreateTextureObject, 4, (INOUT, cudaTextureObject_t), (RESOURCE, 0),                     \
      (POINTED, struct cudaTextureDesc), (POINTED, struct cudaResourceViewDesc))                   \
    X(cudaCreateSurfaceObject, 2, (INOUT, cudaSurfaceObject_t), (RESOURCE, 0))                     \
    X(cudaDestroyTextureObject, 1, (IN, cudaTextureObject_t))                                      \
    X(cudaDestroySurfaceObject, 1, (IN, cudaSurfaceObject_t))                                      \
    X(cudaGetTextureObjectResourceDesc, 2, (RESOURCE_OUT, 0), (IN, cudaTextureObject_t))           \
    X(cudaGetSurfaceObjectResourceDesc, 2, (RESOURCE_OUT, 0), (IN, cudaSurfaceObject_t))           \
    X(cudaGetTextureObjectTextureDesc, 2, (INOUT, struct cudaTextureDesc),                         \
      (IN, cudaTextureObject_t))                                                                   \
    /* Streams and events. */                                                                      \
    X(cudaStreamCreate, 1, (NEW, cudaStream_t))                                                    \
    X(cudaStreamCreateWithFlags, 2, (NEW, cudaStream_t), (IN, unsigned))                           \
    X(cudaStreamCreateWithPriority, 3, (NEW, cudaStream_t), (IN, unsigned), (IN, int))             \
    X(cudaStreamDestroy, 1, (HANDLE, cudaStream_t))                                                \
    X(cudaStreamSynchronize, 1, (HANDLE, cudaStream_t))                                            \
    X(cudaStreamQuery, 1, (HANDLE, cudaStream_t))                                                  \
    X(cudaStreamGetFlags, 2, (HANDLE, cudaStream_t), (INOUT, unsigned))                            \
    X(cudaStreamGetPriority, 2, (HANDLE, cudaStream_t), (INOUT, int))                              \
    X(cudaStreamGetId, 2, (HANDLE, cudaStream_t), (INOUT, unsigned long long))                     \
    X(cudaStreamGetDevice, 2, (HANDLE, cudaStream_t), (INOUT, int))                                \
    X(cudaStreamGetAttribute, 3, (HANDLE, cudaStream_t), (IN, cudaStreamAttrID),                   \
      (INOUT, cudaStreamAttrValue))                                                                \
    X(cudaStreamSetAttribute, 3, (HANDLE, cudaStream_t), (IN, cudaStreamAttrID),                   \
      (POINTED, cudaStreamAttrValue))                                                              \
    X(cudaStreamAttachMemAsync, 4, (HANDLE, cudaStream_t), (IN, void *), (IN, size_t),             \
      (IN, unsigned))                                                                              \
    X(cudaStreamAddCallback, 4, (HANDLE, cudaStream_t), (IN, cudaStreamCallback_t), (IN, void *),  \
      (IN, unsigned))                                                                              \
    X(cudaLaunchHostFunc, 3, (HANDLE, cudaStream_t), (IN, cudaHostFn_t), (IN, void *))             \
    X(cudaDeviceGetStreamPriorityRange, 2, (INOUT, int), (INOUT, int))                             \
    X(cudaStreamWaitEvent, 3, (HANDLE, cudaStream_t), (HANDLE, cudaEvent_t), (IN, unsigned))       \
    X(cudaEventCreate, 1, (NEW, cudaEvent_t))                                                      \
    X(cudaEventCreateWithFlags, 2, (NEW, cudaEvent_t), (IN, unsigned))                             \
    X(cudaEventDestroy, 1, (HANDLE, cudaEvent_t))                                                  \
    X(cudaEventRecord, 2, (HANDLE, cudaEvent_t), (HANDLE, cudaStream_t))                           \
    X(cudaEventRecordWithFlags, 3, (HANDLE, cudaEvent_t), (HANDLE, cudaStream_t), (IN, unsigned))  \
    X(cudaEventSynchronize, 1, (HANDLE, cudaEvent_t))                                              \
    X(cudaEventQuery, 1, (HANDLE, cudaEvent_t))                                                    \
    X(cudaEventElapsedTime, 3, (INOUT, float), (HANDLE, cudaEvent_t), (HANDLE, cudaEvent_t))       \
    X(cudaStreamBeginCapture, 2, (HANDLE, cudaStream_t), (IN, enum cudaStreamCaptureMode))         \
    X(cudaStreamEndCapture, 2, (HANDLE, cudaStream_t), (NEW, cudaGraph_t))                         \
    X(cudaStreamIsCapturing, 2, (HANDLE, cudaStream_t), (INOUT, enum cudaStreamCaptureStatus))     \
    X(cudaStreamGetCaptureInfo, 7, (HANDLE, cudaStream_t), (INOUT, enum cudaStreamCaptureStatus),  \
      (INOUT, unsigned long long), (NEW, cudaGraph_t), (NODES_KEPT, g),                            \
      (INOUT, const cudaGraphEdgeData *), (INOUT, size_t))                                         \
    X(cudaStreamUpdateCaptureDependencies, 5, (HANDLE, cudaStream_t), (NODES_GIVEN, d),            \
      (IN, const cudaGraphEdgeData *), (IN, size_t), (IN, unsigned))                               \
    /* Graphs. */                                                                                  \
    X(cudaGraphCreate, 2, (NEW, cudaGraph_t), (IN, unsigned))                                      \
    X(cudaGraphDestroy, 1, (HANDLE, cudaGraph_t))                                                  \
    X(cudaGraphAddKernelNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),        \
      (IN, size_t), (KERNEL_NODE, 0))                                                              \
    X(cudaGraphAddMemcpyNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),        \
      (IN, size_t), (PLANES, 0))                                                                   \
    X(cudaGraphAddMemcpyNode1D, 8, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),      \
      (IN, size_t), (IN, void *), (IN, const void *), (IN, size_t), (IN, enum cudaMemcpyKind))     \
    X(cudaGraphAddMemsetNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),        \
      (IN, size_t), (POINTED, struct cudaMemsetParams))                                            \
    X(cudaGraphAddHostNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),          \
      (IN, size_t), (POINTED, struct cudaHostNodeParams))                                          \
    X(cudaGraphAddEmptyNode, 4, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),         \
      (IN, size_t))                                                                                \
    X(cudaGraphGetNodes, 3, (HANDLE, cudaGraph_t), (NODES_OUT, c), (INOUT, size_t))                \
    X(cudaGraphGetRootNodes, 3, (HANDLE, cudaGraph_t), (NODES_OUT, c), (INOUT, size_t))            \
    X(cudaGraphNodeGetType, 2, (NODE, cudaGraphNode_t), (INOUT, enum cudaGraphNodeType))           \
    X(cudaGraphNodeGetDependencies, 4, (NODE, cudaGraphNode_t), (NODES_OUT, d), (EDGES_OUT, d),    \
      (INOUT, size_t))                                                                             \
    X(cudaGraphNodeGetDependentNodes, 4, (NODE, cudaGraphNode_t), (NODES_OUT, d), (EDGES_OUT, d),  \
      (INOUT, size_t))                                                                             \
    X(cudaGraphGetEdges, 5, (HANDLE, cudaGraph_t), (NODES_OUT, e), (NODES_OUT, e), (EDGES_OUT, e), \
      (INOUT, size_t))                                                                             \
    X(cudaGraphKernelNodeGetParams, 2, (NODE, cudaGraphNode_t), (KERNEL_NODE_OUT, 0))              \
    X(cudaGraphKernelNodeGetAttribute, 3, (NODE, cudaGraphNode_t), (IN, cudaLaunchAttributeID),    \
      (INOUT, cudaLaunchAttributeValue))                                                           \
    X(cudaGraphMemcpyNodeGetParams, 2, (NODE, cudaGraphNode_t),                                    \
      (INOUT, struct cudaMemcpy3DParms))                                                           \
    X(cudaGraphMemsetNodeGetParams, 2, (NODE, cudaGraphNode_t), (INOUT, struct cudaMemsetParams))  \
    X(cudaGraphKernelNodeSetParams, 2, (NODE, cudaGraphNode_t), (KERNEL_NODE, 0))                  \
    X(cudaGraphKernelNodeSetAttribute, 3, (NODE, cudaGraphNode_t), (IN, cudaLaunchAttributeID),    \
      (POINTED, cudaLaunchAttributeValue))                                                         \
    X(cudaGraphMemcpyNodeSetParams, 2, (NODE, cudaGraphNode_t), (PLANES, 0))                       \
    X(cudaGraphMemcpyNodeSetParams1D, 5, (NODE, cudaGraphNode_t), (IN, void *), (IN, const void *), \
      (IN, size_t), (IN, enum cudaMemcpyKind))                                                     \
    X(cudaGraphMemsetNodeSetParams, 2, (NODE, cudaGraphNode_t),                                    \
      (POINTED, struct cudaMemsetParams))                                                          \
    X(cudaGraphHostNodeSetParams, 2, (NODE, cudaGraphNode_t), (POINTED, struct cudaHostNodeParams)) \
    X(cudaGraphClone, 2, (NEW, cudaGraph_t), (HANDLE, cudaGraph_t))                                \
    X(cudaGraphInstantiate, 3, (NEW, cudaGraphExec_t), (HANDLE, cudaGraph_t),                      \
      (IN, unsigned long long))                                                                    \
    X(cudaGraphInstantiateWithFlags, 3, (NEW, cudaGraphExec_t), (HANDLE, cudaGraph_t),             \
      (IN, unsigned long long))                                                                    \
    X(cudaGraphInstantiateWithParams, 3, (NEW, cudaGraphExec_t), (HANDLE, cudaGraph_t),            \
      (INOUT, cudaGraphInstantiateParams))                                                         \
    X(cudaGraphExecGetFlags, 2, (HANDLE, cudaGraphExec_t), (INOUT, unsigned long long))            \
    X(cudaGraphLaunch, 2, (HANDLE, cudaGraphExec_t), (HANDLE, cudaStream_t))                       \
    X(cudaGraphUpload, 2, (HANDLE, cudaGraphExec_t), (HANDLE, cudaStream_t))                       \
    X(cudaGraphExecDestroy, 1, (HANDLE, cudaGraphExec_t))                                          \
    X(cudaGraphExecKernelNodeSetParams, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),     \
      (KERNEL_NODE, 0))                                                                            \
    X(cudaGraphExecMemcpyNodeSetParams, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),     \
      (PLANES, 0))                                                                                 \
    X(cudaGraphExecMemcpyNodeSetParams1D, 6, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),   \
      (IN, void *), (IN, const void *), (IN, size_t), (IN, enum cudaMemcpyKind))                   \
    X(cudaGraphExecMemsetNodeSetParams, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),     \
      (POINTED, struct cudaMemsetParams))                                                          \
    X(cudaGraphExecHostNodeSetParams, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),       \
      (POINTED, struct cudaHostNodeParams))                                                        \
    X(cudaGraphExecUpdate, 3, (HANDLE, cudaGraphExec_t), (HANDLE, cudaGraph_t),                    \
      (INOUT, cudaGraphExecUpdateResultInfo))                                                      \
    X(cudaGraphAddChildGraphNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),    \
      (IN, size_t), (HANDLE, cudaGraph_t))                                                         \
    X(cudaGraphChildGraphNodeGetGraph, 2, (NODE, cudaGraphNode_t), (NEW, cudaGraph_t))             \
    X(cudaGraphExecChildGraphNodeSetParams, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t), \
      (HANDLE, cudaGraph_t))                                                                       \
    X(cudaGraphAddEventRecordNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),   \
      (IN, size_t), (HANDLE, cudaEvent_t))                                                         \
    X(cudaGraphEventRecordNodeGetEvent, 2, (NODE, cudaGraphNode_t), (NEW, cudaEvent_t))            \
    X(cudaGraphEventRecordNodeSetEvent, 2, (NODE, cudaGraphNode_t), (HANDLE, cudaEvent_t))         \
    X(cudaGraphExecEventRecordNodeSetEvent, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t), \
      (HANDLE, cudaEvent_t))                                                                       \
    X(cudaGraphAddEventWaitNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),     \
      (IN, size_t), (HANDLE, cudaEvent_t))                                                         \
    X(cudaGraphEventWaitNodeGetEvent, 2, (NODE, cudaGraphNode_t), (NEW, cudaEvent_t))              \
    X(cudaGraphEventWaitNodeSetEvent, 2, (NODE, cudaGraphNode_t), (HANDLE, cudaEvent_t))           \
    X(cudaGraphExecEventWaitNodeSetEvent, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),   \
      (HANDLE, cudaEvent_t))                                                                       \
    X(cudaGraphNodeSetEnabled, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),              \
      (IN, unsigned))                                                                              \
    X(cudaGraphNodeGetEnabled, 3, (HANDLE, cudaGraphExec_t), (NODE, cudaGraphNode_t),              \
      (INOUT, unsigned))                                                                           \
    X(cudaGraphHostNodeGetParams, 2, (NODE, cudaGraphNode_t), (INOUT, struct cudaHostNodeParams))  \
    X(cudaStreamBeginCaptureToGraph, 6, (HANDLE, cudaStream_t), (HANDLE, cudaGraph_t), (NODES, e), \
      (IN, const cudaGraphEdgeData *), (IN, size_t), (IN, enum cudaStreamCaptureMode))             \
    X(cudaGraphConditionalHandleCreate, 4, (INOUT, cudaGraphConditionalHandle),                     \
      (HANDLE, cudaGraph_t), (IN, unsigned), (IN, unsigned))                                       \
    /* Kernels. */                                                                                 \
    X(cudaFuncGetAttributes, 2, (INOUT, struct cudaFuncAttributes), (IN, const void *))            \
    X(cudaFuncSetAttribute, 3, (IN, const void *), (IN, enum cudaFuncAttribute), (IN, int))        \
    X(cudaFuncSetCacheConfig, 2, (IN, const void *), (IN, enum cudaFuncCache))                     \
    X(cudaFuncSetSharedMemConfig, 2, (IN, const void *), (IN, enum cudaSharedMemConfig))           \
    X(cudaFuncGetName, 2, (TEXT_KEPT, 0), (IN, const void *))                                      \
    X(cudaFuncGetParamInfo, 4, (IN, const void *), (IN, size_t), (INOUT, size_t), (INOUT, size_t)) \
    X(cudaLaunchKernel, 6, (IN, const void *), (IN, dim3), (IN, dim3), (ARGUMENTS, a),             \
      (IN, size_t), (HANDLE, cudaStream_t))                                                        \
    X(cudaLaunchCooperativeKernel, 6, (IN, const void *), (IN, dim3), (IN, dim3), (ARGUMENTS, a),  \
      (IN, size_t), (HANDLE, cudaStream_t))                                                        \
    X(cudaLaunchKernelExC, 3, (CONFIG, 0), (IN, const void *), (ARGUMENTS, b))                     \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessor, 4, (INOUT, int), (IN, const void *),          \
      (IN, int), (IN, size_t))                                                                     \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 5, (INOUT, int), (IN, const void *), \
      (IN, int), (IN, size_t), (IN, unsigned))                                                     \
    X(cudaOccupancyAvailableDynamicSMemPerBlock, 4, (INOUT, size_t), (IN, const void *),           \
      (IN, int), (IN, int))                                                                        \
    X(cudaOccupancyMaxActiveClusters, 3, (INOUT, int), (IN, const void *), (CONFIG, 0))            \
    X(cudaOccupancyMaxPotentialClusterSize, 3, (INOUT, int), (IN, const void *), (CONFIG, 0))      \
    /* What simt.h asks. */                                                                        \
    X(simt_ask_totals, 1, (INOUT, struct simt_totals))                                             \
    X(simt_ask_limits, 1, (INOUT, struct simt_limits))                                             \
    X(simt_ask_longest, 1, (INOUT, struct simt_profile))                                           \
    X(simt_ask_state, 1, (INOUT, struct simt_device_state))                                        \
    X(simt_ask_gpu, 2, (TEXT_OUT, b), (IN, int))                                                   \
    X(simt_ask_name, 2, (IN, const void *), (TEXT, 0))                                             \
    X(cudaIpcGetMemHandle, 2, (INOUT, cudaIpcMemHandle_t), (IN, void *))                           \
    X(cudaIpcOpenMemHandle, 3, (INOUT, void *), (IN, cudaIpcMemHandle_t), (IN, unsigned))          \
    X(cudaIpcCloseMemHandle, 1, (IN, void *))                                                      \
    X(cudaIpcGetEventHandle, 2, (INOUT, cudaIpcEventHandle_t), (HANDLE, cudaEvent_t))              \
    X(cudaIpcOpenEventHandle, 2, (NEW, cudaEvent_t), (IN, cudaIpcEventHandle_t))                   \
    /* What libnccl.so.2 asks for. */                                                              \
    X(simt_collective_join, 1, (INOUT, struct collective_join))                                    \
    X(simt_collective_split, 1, (INOUT, struct collective_split))                                  \
    X(simt_collective_status, 1, (INOUT, struct collective_status))                                \
    X(simt_collective_submit, 2, (POINTED, struct collective), (HANDLE, cudaStream_t))             \
    X(simt_collective_exchange, 2, (POINTED, struct collective_exchange), (HANDLE, cudaStream_t))  \
    /* What the library asks for itself. */                                                        \
    X(simt_ask_layout, 2, (INOUT, struct simt_kernel_layout), (IN, const void *))                  \
    X(simt_ask_place, 2, (INOUT, struct simt_place), (IN, const void *))                           \
    X(simt_ask_page, 2, (IN, const void *), (IN, unsigned))                                        \
    X(simt_add_module, 4, (NEW, simt_module_handle), (IN, struct fatbin_wrapper), (IN, const void *),\
      (IN, size_t))                                                                                \
    X(simt_add_file, 3, (HANDLE, simt_module_handle), (IN, const void *), (IN, size_t))            \
    X(simt_drop_module, 1, (HANDLE, simt_module_handle))                                           \
    X(simt_add_kernel, 4, (HANDLE, simt_module_handle), (IN, const void *),                        \
      (TEXT, 0), (TEXT, 0))                                                                        \
    X(simt_add_variable, 5, (HANDLE, simt_module_handle), (IN, const void *), (IN, void **),       \
      (TEXT, 0), (IN, size_t))                                                                     \
    X(simt_load_module, 1, (HANDLE, simt_module_handle))                                           \
    X(simt_add_condition, 7, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),            \
      (IN, size_t), (IN, cudaGraphConditionalHandle), (IN, enum cudaGraphConditionalNodeType),     \
      (IN, unsigned))                                                                              \
    X(simt_add_allocation, 7, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),           \
      (IN, size_t), (IN, int), (IN, size_t), (INOUT, void *))                                      \
    X(simt_ask_allocation, 4, (NODE, cudaGraphNode_t), (INOUT, int), (INOUT, size_t),              \
      (INOUT, void *))                                                                             \
    X(simt_ask_graph_memory, 3, (IN, int), (IN, int), (INOUT, unsigned long long))                 \
    X(simt_set_graph_memory, 3, (IN, int), (IN, int), (IN, unsigned long long))                    \
    X(cudaGraphAddMemFreeNode, 5, (NEW, cudaGraphNode_t), (HANDLE, cudaGraph_t), (NODES, d),       \
      (IN, size_t), (IN, void *))                                                                  \
    X(cudaDeviceGraphMemTrim, 1, (IN, int))                                                        \
    X(simt_ask_body, 3, (NODE, cudaGraphNode_t), (IN, unsigned), (NEW, cudaGraph_t))               \
    X(simt_finish, 1, (IN, unsigned))

/* clang-format on */

/** Where a kernel's arguments lie in its parameter block. */
enum { SIMT_MOST_PARAMETERS = 512 };
struct simt_kernel_layout {
    uint32_t bytes, count;
    struct {
        uint32_t offset, bytes;
    } parameters[SIMT_MOST_PARAMETERS];
};

/** What the device says of an address, for the message about a host dereference. */
struct simt_place {
    char text[400];
};

#endif
