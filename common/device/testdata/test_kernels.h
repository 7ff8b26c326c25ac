/**
 * @file test_kernels.h
 * @brief Kernels for the tests of the device layer.
 */
#ifndef WARPBOOK_COMMON_DEVICE_TESTDATA_TEST_KERNELS_H_
#define WARPBOOK_COMMON_DEVICE_TESTDATA_TEST_KERNELS_H_

#include <stddef.h>

#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Adds @p value to each of @p count floats (device memory), in blocks of @p block threads. */
void test_add(float *x, float value, size_t count, unsigned block, device_stream stream);

#ifdef __cplusplus
}
#endif

#endif
