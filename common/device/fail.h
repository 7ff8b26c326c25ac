/**
 * @file fail.h
 * @brief Turns a failure of the CUDA runtime into a status and a one-line message.
 */
#ifndef WARPBOOK_COMMON_DEVICE_FAIL_H_
#define WARPBOOK_COMMON_DEVICE_FAIL_H_

#include <cuda_runtime_api.h>

#include "common/base/status.h"

/**
 * @brief Records a failure with CUDA's message and name: "copying 16 bytes to the GPU: invalid
 *        argument (cudaErrorInvalidValue)", followed by device_advice().
 *
 * Clears the runtime's last error, so that the next device_launched() does not
 * report it again.
 *
 * @param code   the runtime's result, not cudaSuccess
 * @param format printf format of what the program was doing
 * @return STATUS_OUT_OF_MEMORY for cudaErrorMemoryAllocation, STATUS_NO_DEVICE when the GPU cannot
 *         run this program, else STATUS_DEVICE
 */
enum status device_fail(struct error *error, cudaError_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** @return advice about @p code, beginning with "; "; "" if there is none. */
const char *device_advice(cudaError_t code);

#endif
