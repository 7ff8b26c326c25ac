/**
 * @file kernels.h
 * @brief The kernels on which simt's counts and times are compared with a GPU.
 */
#ifndef WARPBOOK_COMMON_SIMT_CALIBRATION_KERNELS_H_
#define WARPBOOK_COMMON_SIMT_CALIBRATION_KERNELS_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @return floats that each of the three device buffers must hold. */
size_t calibration_floats(void);

/** @return how many kernels there are. */
size_t calibration_count(void);

/** @return name of a kernel, 0 <= @p number < calibration_count(). */
const char *calibration_name(size_t number);

/** Launches a kernel on the default stream. @param out, x, y device, calibration_floats() each */
void calibration_launch(size_t number, float *out, const float *x, const float *y);

/* Kernels on which the model of time is judged; none of its constants was fitted to them. */

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
