/**
 * @file program_device.h
 * @brief The GPU that a program runs on, or simt.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_PROGRAM_DEVICE_H_
#define WARPBOOK_COMMON_PROGRAMS_PROGRAM_DEVICE_H_

#include <stdbool.h>

#include "common/base/status.h"

struct program_device {
    char name[300]; /**< as records show it: "NVIDIA H200", or "simt:h200" */
    bool modelled;  /**< simt: times are modelled, not measured */
};

/**
 * @brief Opens the GPU or simt; needs a build with nvcc.
 * @return STATUS_OK or the failure of device_open()
 */
MUST_CHECK enum status program_device_open(struct program_device *device, struct error *error);

#endif
