/**
 * @file per_thread.c
 * @brief The names that nvcc -default-stream per-thread calls: work is in order anyway.
 *
 * Each jumps to the ordinary function, arguments untouched.
 */
#define PER_THREAD_LIST(X)                                                           \
    X(__cudaLaunchKernel, __cudaLaunchKernel_ptsz)                                   \
    X(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz)                       \
    X(cudaEventRecord, cudaEventRecord_ptsz)                                         \
    X(cudaFreeAsync, cudaFreeAsync_ptsz)                                             \
    X(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz)                         \
    X(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz)       \
    X(cudaGraphInstantiateWithParams, cudaGraphInstantiateWithParams_ptsz)           \
    X(cudaGraphLaunch, cudaGraphLaunch_ptsz)                                         \
    X(cudaGraphUpload, cudaGraphUpload_ptsz)                                         \
    X(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz)                 \
    X(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz)                                   \
    X(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz)                                 \
    X(cudaLaunchKernel, cudaLaunchKernel_ptsz)                                       \
    X(cudaMallocAsync, cudaMallocAsync_ptsz)                                         \
    X(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz)                               \
    X(cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds)                       \
    X(cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz)                   \
    X(cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds)                             \
    X(cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz)                       \
    X(cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds)                                 \
    X(cudaMemcpyArrayToArray, cudaMemcpyArrayToArray_ptds)                           \
    X(cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz)                       \
    X(cudaMemcpyFromArray, cudaMemcpyFromArray_ptds)                                 \
    X(cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz)                           \
    X(cudaMemcpyToArray, cudaMemcpyToArray_ptds)                                     \
    X(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz)                                     \
    X(cudaMemcpy2D, cudaMemcpy2D_ptds)                                               \
    X(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz)                                     \
    X(cudaMemcpy3D, cudaMemcpy3D_ptds)                                               \
    X(cudaMemcpyAsync, cudaMemcpyAsync_ptsz)                                         \
    X(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz)                     \
    X(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds)                               \
    X(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz)                         \
    X(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds)                                   \
    X(cudaMemcpy, cudaMemcpy_ptds)                                                   \
    X(cudaMemset2DAsync, cudaMemset2DAsync_ptsz)                                     \
    X(cudaMemset2D, cudaMemset2D_ptds)                                               \
    X(cudaMemset3DAsync, cudaMemset3DAsync_ptsz)                                     \
    X(cudaMemset3D, cudaMemset3D_ptds)                                               \
    X(cudaMemsetAsync, cudaMemsetAsync_ptsz)                                         \
    X(cudaMemset, cudaMemset_ptds)                                                   \
    X(cudaStreamAddCallback, cudaStreamAddCallback_ptsz)                             \
    X(cudaStreamAttachMemAsync, cudaStreamAttachMemAsync_ptsz)                       \
    X(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz)                           \
    X(cudaStreamBeginCaptureToGraph, cudaStreamBeginCaptureToGraph_ptsz)             \
    X(cudaStreamEndCapture, cudaStreamEndCapture_ptsz)                               \
    X(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz)                       \
    X(cudaStreamGetDevice, cudaStreamGetDevice_ptsz)                                 \
    X(cudaStreamGetFlags, cudaStreamGetFlags_ptsz)                                   \
    X(cudaStreamGetId, cudaStreamGetId_ptsz)                                         \
    X(cudaStreamGetPriority, cudaStreamGetPriority_ptsz)                             \
    X(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz)                             \
    X(cudaStreamQuery, cudaStreamQuery_ptsz)                                         \
    X(cudaStreamSynchronize, cudaStreamSynchronize_ptsz)                             \
    X(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz)                         \
    X(cudaStreamGetAttribute, cudaStreamGetAttribute_ptsz)                           \
    X(cudaStreamSetAttribute, cudaStreamSetAttribute_ptsz)                           \
    X(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_ptsz) \
    X(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz)

#define JUMP(ordinary, name)               \
    __asm__(".globl " #name "\n"           \
            ".type " #name ", @function\n" \
            ".text\n" #name ":\n"          \
            "    jmp " #ordinary "@PLT\n"  \
            ".size " #name ", .-" #name "\n");

PER_THREAD_LIST(JUMP)
