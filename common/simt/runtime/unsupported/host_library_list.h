/**
 * @file host_library_list.h
 * @brief NVIDIA's libraries for host code, which cannot run on simt: see host_libraries.c.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_UNSUPPORTED_HOST_LIBRARY_LIST_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_UNSUPPORTED_HOST_LIBRARY_LIST_H_

/** What a library's file begins with, and what the library is. */
#define HOST_LIBRARY_LIST(X)        \
    X("libcublas.so", "cuBLAS")     \
    X("libcublasLt.so", "cuBLASLt") \
    X("libcudnn.so", "cuDNN")       \
    X("libcufft.so", "cuFFT")       \
    X("libcurand.so", "cuRAND")     \
    X("libcusolver.so", "cuSOLVER") \
    X("libcusparse.so", "cuSPARSE") \
    X("libnccl.so", "NCCL")         \
    X("libnppc.so", "NPP")          \
    X("libnvrtc.so", "NVRTC")       \
    X("libnvjpeg.so", "nvJPEG")

#endif
