/**
 * @file ladder_gpu.h
 * @brief Opens the GPU for the cases of the ladders' tests.
 */
#ifndef WARPBOOK_SOLUTIONS_LADDER_GPU_H_
#define WARPBOOK_SOLUTIONS_LADDER_GPU_H_

#include <stdbool.h>

#include "common/device/device.h"
#include "common/testing/testing.h"

/**
 * @brief Opens the GPU; fails the running test if it cannot. Without a GPU the program's other
 *        tests are not run.
 * @param gpu receives its properties
 * @return whether the case goes on
 */
static inline bool ladder_gpu_open(struct device_properties *gpu) {
    struct error error = {0};
    *gpu = (struct device_properties){0};
    if (device_open(&error) != STATUS_OK) {
        test_stop(__FILE__, __LINE__, "%s", error.message);
        return false;
    }
    enum status status = device_properties(gpu, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    return status == STATUS_OK;
}

#endif
