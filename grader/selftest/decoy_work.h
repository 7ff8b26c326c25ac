/**
 * @file decoy_work.h
 * @brief Kernels that are counted and compute nothing, for submissions whose results come from
 *        elsewhere.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_DECOY_WORK_H_
#define WARPBOOK_GRADER_SELFTEST_DECOY_WORK_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Starts a launch that reads @p bytes and does @p flops operations in fp32.
 * @param memory device, readable, 16-byte aligned, @p room bytes; what is more is read again
 */
MUST_CHECK enum status decoy_work(const void *memory, size_t room, double bytes, double flops,
                                  device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
