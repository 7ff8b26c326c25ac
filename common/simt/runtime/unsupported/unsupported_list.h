/**
 * @file unsupported_list.h
 * @brief What libcudart.so.13 exports and the emulator does not have.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_UNSUPPORTED_UNSUPPORTED_LIST_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_UNSUPPORTED_UNSUPPORTED_LIST_H_

#include <stdbool.h>

/** Names of functions that return cudaError_t. */
#define UNSUPPORTED_LIST(X)                               \
    X(__cudaGetProcAddress)                               \
    X(__cudaRegisterHostVar)                              \
    X(__cudaRegisterUnifiedTable)                         \
    X(cudaArrayGetMemoryRequirements)                     \
    X(cudaArrayGetPlane)                                  \
    X(cudaArrayGetSparseProperties)                       \
    X(cudaDestroyExternalMemory)                          \
    X(cudaDestroyExternalSemaphore)                       \
    X(cudaDeviceFlushGPUDirectRDMAWrites)                 \
    X(cudaDeviceGetByPCIBusId)                            \
    X(cudaDeviceGetHostAtomicCapabilities)                \
    X(cudaDeviceGetNvSciSyncAttributes)                   \
    X(cudaDeviceGetP2PAtomicCapabilities)                 \
    X(cudaDeviceGetSharedMemConfig)                       \
    X(cudaDeviceGetTexture1DLinearMaxWidth)               \
    X(cudaDeviceRegisterAsyncNotification)                \
    X(cudaDeviceSetSharedMemConfig)                       \
    X(cudaDeviceUnregisterAsyncNotification)              \
    X(cudaEGLStreamConsumerAcquireFrame)                  \
    X(cudaEGLStreamConsumerConnect)                       \
    X(cudaEGLStreamConsumerConnectWithFlags)              \
    X(cudaEGLStreamConsumerDisconnect)                    \
    X(cudaEGLStreamConsumerReleaseFrame)                  \
    X(cudaEGLStreamProducerConnect)                       \
    X(cudaEGLStreamProducerDisconnect)                    \
    X(cudaEGLStreamProducerPresentFrame)                  \
    X(cudaEGLStreamProducerReturnFrame)                   \
    X(cudaEventCreateFromEGLSync)                         \
    X(cudaExternalMemoryGetMappedBuffer)                  \
    X(cudaExternalMemoryGetMappedMipmappedArray)          \
    X(cudaFreeMipmappedArray)                             \
    X(cudaGLGetDevices)                                   \
    X(cudaGLMapBufferObject)                              \
    X(cudaGLMapBufferObjectAsync)                         \
    X(cudaGLRegisterBufferObject)                         \
    X(cudaGLSetBufferObjectMapFlags)                      \
    X(cudaGLSetGLDevice)                                  \
    X(cudaGLUnmapBufferObject)                            \
    X(cudaGLUnmapBufferObjectAsync)                       \
    X(cudaGLUnregisterBufferObject)                       \
    X(cudaGetExportTable)                                 \
    X(cudaGetMipmappedArrayLevel)                         \
    X(cudaGetTextureObjectResourceViewDesc)               \
    X(cudaGraphAddDependencies)                           \
    X(cudaGraphAddExternalSemaphoresSignalNode)           \
    X(cudaGraphAddExternalSemaphoresWaitNode)             \
    X(cudaGraphAddMemcpyNodeFromSymbol)                   \
    X(cudaGraphAddMemcpyNodeToSymbol)                     \
    X(cudaGraphDebugDotPrint)                             \
    X(cudaGraphDestroyNode)                               \
    X(cudaGraphExecExternalSemaphoresSignalNodeSetParams) \
    X(cudaGraphExecExternalSemaphoresWaitNodeSetParams)   \
    X(cudaGraphExecMemcpyNodeSetParamsFromSymbol)         \
    X(cudaGraphExecMemcpyNodeSetParamsToSymbol)           \
    X(cudaGraphExecNodeSetParams)                         \
    X(cudaGraphExternalSemaphoresSignalNodeGetParams)     \
    X(cudaGraphExternalSemaphoresSignalNodeSetParams)     \
    X(cudaGraphExternalSemaphoresWaitNodeGetParams)       \
    X(cudaGraphExternalSemaphoresWaitNodeSetParams)       \
    X(cudaGraphKernelNodeCopyAttributes)                  \
    X(cudaGraphMemcpyNodeSetParamsFromSymbol)             \
    X(cudaGraphMemcpyNodeSetParamsToSymbol)               \
    X(cudaGraphNodeFindInClone)                           \
    X(cudaGraphNodeSetParams)                             \
    X(cudaGraphReleaseUserObject)                         \
    X(cudaGraphRemoveDependencies)                        \
    X(cudaGraphRetainUserObject)                          \
    X(cudaGraphicsEGLRegisterImage)                       \
    X(cudaGraphicsGLRegisterBuffer)                       \
    X(cudaGraphicsGLRegisterImage)                        \
    X(cudaGraphicsMapResources)                           \
    X(cudaGraphicsResourceGetMappedEglFrame)              \
    X(cudaGraphicsResourceGetMappedMipmappedArray)        \
    X(cudaGraphicsResourceGetMappedPointer)               \
    X(cudaGraphicsResourceSetMapFlags)                    \
    X(cudaGraphicsSubResourceGetMappedArray)              \
    X(cudaGraphicsUnmapResources)                         \
    X(cudaGraphicsUnregisterResource)                     \
    X(cudaGraphicsVDPAURegisterOutputSurface)             \
    X(cudaGraphicsVDPAURegisterVideoSurface)              \
    X(cudaImportExternalMemory)                           \
    X(cudaImportExternalSemaphore)                        \
    X(cudaKernelSetAttributeForDevice)                    \
    X(cudaLibraryEnumerateKernels)                        \
    X(cudaLibraryGetGlobal)                               \
    X(cudaLibraryGetKernel)                               \
    X(cudaLibraryGetKernelCount)                          \
    X(cudaLibraryGetManaged)                              \
    X(cudaLibraryGetUnifiedFunction)                      \
    X(cudaLibraryLoadData)                                \
    X(cudaLibraryLoadFromFile)                            \
    X(cudaLibraryUnload)                                  \
    X(cudaLogsCurrent)                                    \
    X(cudaLogsDumpToFile)                                 \
    X(cudaLogsDumpToMemory)                               \
    X(cudaLogsRegisterCallback)                           \
    X(cudaLogsUnregisterCallback)                         \
    X(cudaMemDiscardAndPrefetchBatchAsync)                \
    X(cudaMemDiscardAndPrefetchBatchAsync_ptsz)           \
    X(cudaMemDiscardBatchAsync)                           \
    X(cudaMemDiscardBatchAsync_ptsz)                      \
    X(cudaMemGetDefaultMemPool)                           \
    X(cudaMemGetMemPool)                                  \
    X(cudaMemPoolExportPointer)                           \
    X(cudaMemPoolExportToShareableHandle)                 \
    X(cudaMemPoolImportFromShareableHandle)               \
    X(cudaMemPoolImportPointer)                           \
    X(cudaMemPrefetchBatchAsync)                          \
    X(cudaMemPrefetchBatchAsync_ptsz)                     \
    X(cudaMemRangeGetAttribute)                           \
    X(cudaMemRangeGetAttributes)                          \
    X(cudaMemSetMemPool)                                  \
    X(cudaMemcpy3DBatchAsync)                             \
    X(cudaMemcpy3DBatchAsync_ptsz)                        \
    X(cudaMemcpy3DPeer)                                   \
    X(cudaMemcpy3DPeerAsync)                              \
    X(cudaMemcpy3DPeerAsync_ptsz)                         \
    X(cudaMemcpy3DPeer_ptds)                              \
    X(cudaMemcpyBatchAsync)                               \
    X(cudaMemcpyBatchAsync_ptsz)                          \
    X(cudaMipmappedArrayGetMemoryRequirements)            \
    X(cudaMipmappedArrayGetSparseProperties)              \
    X(cudaSignalExternalSemaphoresAsync)                  \
    X(cudaSignalExternalSemaphoresAsync_ptsz)             \
    X(cudaStreamCopyAttributes)                           \
    X(cudaStreamCopyAttributes_ptsz)                      \
    X(cudaUserObjectCreate)                               \
    X(cudaUserObjectRelease)                              \
    X(cudaUserObjectRetain)                               \
    X(cudaVDPAUGetDevice)                                 \
    X(cudaVDPAUSetVDPAUDevice)                            \
    X(cudaWaitExternalSemaphoresAsync)                    \
    X(cudaWaitExternalSemaphoresAsync_ptsz)

/* The answer of functions that the emulator does not have. */

/**
 * @brief Says once that the program calls a function that is not there.
 * @param said remembers that it was said
 * @return cudaErrorNotSupported
 */
int unsupported_call(const char *name, bool *said);

#endif
