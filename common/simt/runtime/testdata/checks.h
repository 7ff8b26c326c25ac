/**
 * @file checks.h
 * @brief Checks of CUDA calls by the names of their results.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_TESTDATA_CHECKS_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_TESTDATA_CHECKS_H_

#include <cuda_runtime_api.h>

#include "common/testing/testing.h"

/** Wants an error by name; the last error stays. */
#define WANT_KEPT(want, call) \
    ((void)test_check_string(__FILE__, __LINE__, #call, #want, cudaGetErrorName(call)))

/** Wants an error by name, and that the last error is the same; takes it. */
#define WANT(want, call)                                                              \
    do {                                                                              \
        WANT_KEPT(want, call);                                                        \
        (void)test_check_string(__FILE__, __LINE__, "last error after " #call, #want, \
                                cudaGetErrorName(cudaGetLastError()));                \
    } while (0)

#endif
