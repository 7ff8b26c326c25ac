/**
 * @file more_kernels.h
 * @brief Kernels on which the model of time is judged; none of its constants was fitted to them.
 */
#ifndef WARPBOOK_COMMON_SIMT_CALIBRATION_MORE_KERNELS_H_
#define WARPBOOK_COMMON_SIMT_CALIBRATION_MORE_KERNELS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @return how many kernels there are. */
size_t more_kernels_count(void);

/** @return name of a kernel, 0 <= @p number < more_kernels_count(). */
const char *more_kernels_name(size_t number);

/** Launches a kernel on the default stream. @param out, x, y device, calibration_floats() each */
void more_kernels_launch(size_t number, float *out, const float *x, const float *y);

/** Launches a kernel that does nothing. @param stream a cudaStream_t */
void more_kernels_empty(void *stream);

#ifdef __cplusplus
}
#endif

#endif
