/**
 * @file probe.h
 * @brief Does this program hold code for the GPU at hand?
 */
#ifndef WARPBOOK_COMMON_DEVICE_PROBE_H_
#define WARPBOOK_COMMON_DEVICE_PROBE_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Launches a kernel that does nothing, and waits for it. @return a cudaError_t, 0 for success */
int device_probe(void);

#ifdef __cplusplus
}
#endif

#endif
