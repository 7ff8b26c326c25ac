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

/** A kernel that is compared. */
struct calibration_kernel {
    const char *name;
    /** Launches it on the default stream. @param out, x, y device, calibration_floats() each */
    void (*launch)(float *out, const float *x, const float *y);
};

enum {
    CALIBRATION_FIT = 18,
    CALIBRATION_MORE = 24,
    CALIBRATION_UNEVEN = 11,
    CALIBRATION_PRICED = 12
};

/** Those that the model of time was fitted to. */
extern const struct calibration_kernel calibration_fit[CALIBRATION_FIT];

/** Those on which it is judged; none of its constants was fitted to them. */
extern const struct calibration_kernel calibration_more[CALIBRATION_MORE];

/** Ten whose blocks differ, one of them in two orders. */
extern const struct calibration_kernel calibration_uneven[CALIBRATION_UNEVEN];

/** Those that would be cheap if registers, constants or tensor formats cost nothing. */
extern const struct calibration_kernel calibration_priced[CALIBRATION_PRICED];

/** Launches a kernel that does nothing. @param stream a cudaStream_t */
void more_kernels_empty(void *stream);

#ifdef __cplusplus
}
#endif

#endif
