/**
 * @file to_bf16.h
 * @brief Rounds fp32 to bf16 on the device.
 */
#ifndef WARPBOOK_LABS_13_LOW_BIT_GIVEN_TO_BF16_H_
#define WARPBOOK_LABS_13_LOW_BIT_GIVEN_TO_BF16_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @brief to = from, rounded to nearest even. @param to device, (count) bf16 @param from device,
 * (count) fp32. Starts the work; does not wait for it. */
MUST_CHECK enum status low_bit_to_bf16(void *to, const float *from, size_t count,
                                       device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
