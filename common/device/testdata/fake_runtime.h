/**
 * @file fake_runtime.h
 * @brief Fakes the few functions of the CUDA runtime that device_open() calls, so that a test can
 *        describe any machine.
 */
#ifndef WARPBOOK_COMMON_DEVICE_TESTDATA_FAKE_RUNTIME_H_
#define WARPBOOK_COMMON_DEVICE_TESTDATA_FAKE_RUNTIME_H_

#include <cuda_runtime_api.h>

struct fake_machine {
    cudaError_t count_error; /**< of cudaGetDeviceCount() */
    int count;
    cudaError_t set_error;   /**< of cudaSetDevice() */
    cudaError_t probe_error; /**< of the first kernel */
    cudaError_t properties_error;
    int driver, runtime; /**< versions */
    int major, minor;
};

/** Sets the machine that the fake runtime describes from now on. */
void fake_machine_set(const struct fake_machine *machine);

/** @return number of errors that cudaGetLastError() has cleared since fake_machine_set(). */
int fake_errors_taken(void);

#endif
