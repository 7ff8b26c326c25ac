/**
 * @file error_list.h
 * @brief The errors of CUDA 13: the enumerators of driver_types.h, each with words of its own.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_ERROR_ERROR_LIST_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_ERROR_ERROR_LIST_H_

/** Every error: its name and its message. */
#define ERROR_LIST(X)                                                                              \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorInitializationError, "initialization error")                                        \
    X(cudaErrorCudartUnloading, "cudart unloading")                                                \
    X(cudaErrorProfilerDisabled, "profiler disabled")                                              \
    X(cudaErrorProfilerNotInitialized, "profiler not initialized")                                 \
    X(cudaErrorProfilerAlreadyStarted, "profiler already started")                                 \
    X(cudaErrorProfilerAlreadyStopped, "profiler already stopped")                                 \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    X(cudaErrorInvalidPitchValue, "invalid pitch argument")                                        \
    X(cudaErrorInvalidSymbol, "invalid device symbol")                                             \
    X(cudaErrorInvalidHostPointer, "invalid host pointer")                                         \
    X(cudaErrorInvalidDevicePointer, "invalid device pointer")                                     \
    X(cudaErrorInvalidTexture, "invalid texture")                                                  \
    X(cudaErrorInvalidTextureBinding, "invalid texture binding")                                   \
    X(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor")                             \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                        \
    X(cudaErrorAddressOfConstant, "address of constant")                                           \
    X(cudaErrorTextureFetchFailed, "texture fetch failed")                                         \
    X(cudaErrorTextureNotBound, "texture not bound")                                               \
    X(cudaErrorSynchronizationError, "synchronization error")                                      \
    X(cudaErrorInvalidFilterSetting, "invalid filter setting")                                     \
    X(cudaErrorInvalidNormSetting, "invalid norm setting")                                         \
    X(cudaErrorMixedDeviceExecution, "mixed device execution")                                     \
    X(cudaErrorNotYetImplemented, "not yet implemented")                                           \
    X(cudaErrorMemoryValueTooLarge, "memory value too large")                                      \
    X(cudaErrorStubLibrary, "the driver library is a placeholder")                                 \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorCallRequiresNewerDriver, "call requires newer driver")                              \
    X(cudaErrorInvalidSurface, "invalid surface")                                                  \
    X(cudaErrorDuplicateVariableName, "duplicate variable name")                                   \
    X(cudaErrorDuplicateTextureName, "duplicate texture name")                                     \
    X(cudaErrorDuplicateSurfaceName, "duplicate surface name")                                     \
    X(cudaErrorDevicesUnavailable, "devices unavailable")                                          \
    X(cudaErrorIncompatibleDriverContext, "incompatible driver context")                           \
    X(cudaErrorMissingConfiguration, "__global__ function call is not configured")                 \
    X(cudaErrorPriorLaunchFailure, "prior launch failure")                                         \
    X(cudaErrorLaunchMaxDepthExceeded, "launch max depth exceeded")                                \
    X(cudaErrorLaunchFileScopedTex, "file-scoped textures are not supported")                      \
    X(cudaErrorLaunchFileScopedSurf, "file-scoped surfaces are not supported")                     \
    X(cudaErrorSyncDepthExceeded, "sync depth exceeded")                                           \
    X(cudaErrorLaunchPendingCountExceeded, "launch pending count exceeded")                        \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                   \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                     \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorDeviceNotLicensed, "device not licensed")                                           \
    X(cudaErrorSoftwareValidityNotEstablished, "software validity not established")                \
    X(cudaErrorStartupFailure, "startup failure")                                                  \
    X(cudaErrorInvalidKernelImage, "invalid kernel image")                                         \
    X(cudaErrorDeviceUninitialized, "device uninitialized")                                        \
    X(cudaErrorMapBufferObjectFailed, "map buffer object failed")                                  \
    X(cudaErrorUnmapBufferObjectFailed, "unmap buffer object failed")                              \
    X(cudaErrorArrayIsMapped, "array is mapped")                                                   \
    X(cudaErrorAlreadyMapped, "already mapped")                                                    \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(cudaErrorAlreadyAcquired, "already acquired")                                                \
    X(cudaErrorNotMapped, "not mapped")                                                            \
    X(cudaErrorNotMappedAsArray, "not mapped as array")                                            \
    X(cudaErrorNotMappedAsPointer, "not mapped as pointer")                                        \
    X(cudaErrorECCUncorrectable, "ECC uncorrectable")                                              \
    X(cudaErrorUnsupportedLimit, "limit is not supported on this architecture")                    \
    X(cudaErrorDeviceAlreadyInUse, "device already in use")                                        \
    X(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")    \
    X(cudaErrorInvalidPtx, "a PTX JIT compilation failed")                                         \
    X(cudaErrorInvalidGraphicsContext, "invalid graphics context")                                 \
    X(cudaErrorNvlinkUncorrectable, "nvlink uncorrectable")                                        \
    X(cudaErrorJitCompilerNotFound, "JIT compiler not found")                                      \
    X(cudaErrorUnsupportedPtxVersion, "unsupported ptx version")                                   \
    X(cudaErrorJitCompilationDisabled, "jit compilation disabled")                                 \
    X(cudaErrorUnsupportedExecAffinity, "unsupported exec affinity")                               \
    X(cudaErrorUnsupportedDevSideSync, "unsupported dev side sync")                                \
    X(cudaErrorContained, "memory error contained to this process")                                \
    X(cudaErrorInvalidSource, "invalid source")                                                    \
    X(cudaErrorFileNotFound, "file not found")                                                     \
    X(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found")                       \
    X(cudaErrorSharedObjectInitFailed, "shared object init failed")                                \
    X(cudaErrorOperatingSystem, "operating system call failed")                                    \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorIllegalState, "the operation cannot be performed in the present state")             \
    X(cudaErrorLossyQuery, "the answer would lose information")                                    \
    X(cudaErrorSymbolNotFound, "symbol not found")                                                 \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                    \
    X(cudaErrorLaunchTimeout, "the launch timed out and was terminated")                           \
    X(cudaErrorLaunchIncompatibleTexturing, "launch incompatible texturing")                       \
    X(cudaErrorPeerAccessAlreadyEnabled, "peer access already enabled")                            \
    X(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                           \
    X(cudaErrorSetOnActiveProcess, "set on active process")                                        \
    X(cudaErrorContextIsDestroyed, "context is destroyed")                                         \
    X(cudaErrorAssert, "device-side assert triggered")                                             \
    X(cudaErrorTooManyPeers, "too many peers")                                                     \
    X(cudaErrorHostMemoryAlreadyRegistered,                                                        \
      "part or all of the requested memory range is already mapped")                               \
    X(cudaErrorHostMemoryNotRegistered,                                                            \
      "pointer does not correspond to a registered memory region")                                 \
    X(cudaErrorHardwareStackError, "hardware stack error")                                         \
    X(cudaErrorIllegalInstruction, "an illegal instruction was encountered")                       \
    X(cudaErrorMisalignedAddress, "misaligned address")                                            \
    X(cudaErrorInvalidAddressSpace, "invalid address space")                                       \
    X(cudaErrorInvalidPc, "invalid program counter")                                               \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                        \
    X(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch")                 \
    X(cudaErrorTensorMemoryLeak, "tensor memory leak")                                             \
    X(cudaErrorNotPermitted, "operation not permitted")                                            \
    X(cudaErrorNotSupported, "operation not supported")                                            \
    X(cudaErrorSystemNotReady, "system not ready")                                                 \
    X(cudaErrorSystemDriverMismatch, "system driver mismatch")                                     \
    X(cudaErrorCompatNotSupportedOnDevice, "compat not supported on device")                       \
    X(cudaErrorMpsConnectionFailed, "MPS connection failed")                                       \
    X(cudaErrorMpsRpcFailure, "MPS RPC failure")                                                   \
    X(cudaErrorMpsServerNotReady, "MPS server not ready")                                          \
    X(cudaErrorMpsMaxClientsReached, "MPS max clients reached")                                    \
    X(cudaErrorMpsMaxConnectionsReached, "MPS max connections reached")                            \
    X(cudaErrorMpsClientTerminated, "MPS client terminated")                                       \
    X(cudaErrorCdpNotSupported, "dynamic parallelism not supported")                               \
    X(cudaErrorCdpVersionMismatch, "dynamic parallelism version mismatch")                         \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")       \
    X(cudaErrorStreamCaptureInvalidated,                                                           \
      "operation failed due to a previous error during capture")                                   \
    X(cudaErrorStreamCaptureMerge, "stream capture merge")                                         \
    X(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")     \
    X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                        \
    X(cudaErrorStreamCaptureIsolation, "stream capture isolation")                                 \
    X(cudaErrorStreamCaptureImplicit,                                                              \
      "operation would make the legacy stream depend on a capturing blocking stream")              \
    X(cudaErrorCapturedEvent,                                                                      \
      "operation not permitted on an event last recorded in a capturing stream")                   \
    X(cudaErrorStreamCaptureWrongThread, "stream capture wrong thread")                            \
    X(cudaErrorTimeout, "wait timed out")                                                          \
    X(cudaErrorGraphExecUpdateFailure, "graph exec update failure")                                \
    X(cudaErrorExternalDevice, "error outside of CUDA")                                            \
    X(cudaErrorInvalidClusterSize, "invalid cluster size")                                         \
    X(cudaErrorFunctionNotLoaded, "function not loaded")                                           \
    X(cudaErrorInvalidResourceType, "invalid resource type")                                       \
    X(cudaErrorInvalidResourceConfiguration, "invalid resource configuration")                     \
    X(cudaErrorUnknown, "unknown error")                                                           \
    X(cudaErrorApiFailureBase, "error of an unsupported kind")

#endif
