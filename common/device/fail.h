/**
 * @file fail.h
 * @brief A failure of the CUDA runtime becomes a status and one line.
 */
#ifndef WARPBOOK_COMMON_DEVICE_FAIL_H_
#define WARPBOOK_COMMON_DEVICE_FAIL_H_

#include <cuda_runtime_api.h>

#include "common/base/status.h"

/**
 * @brief Records what failed, with CUDA's message and name: "copying 16 bytes to the GPU: invalid
 *        argument (cudaErrorInvalidValue)".
 *
 * Takes the runtime's last error back, so that the next device_launched() does
 * not report it again. Adds what to do where that is known.
 *
 * @param code   what the runtime returned, not cudaSuccess
 * @param format of what was being done
 * @return STATUS_OUT_OF_MEMORY for cudaErrorMemoryAllocation, STATUS_NO_DEVICE when the GPU cannot
 *         run this program, else STATUS_DEVICE
 */
enum status device_fail(struct error *error, cudaError_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** @return what to do about @p code, beginning with "; ", or "". */
const char *device_advice(cudaError_t code);

#endif
