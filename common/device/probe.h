/**
 * @file probe.h
 * @brief Checks whether this program has code for the GPU.
 */
#ifndef WARPBOOK_COMMON_DEVICE_PROBE_H_
#define WARPBOOK_COMMON_DEVICE_PROBE_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Launches an empty kernel and waits for it. @return a cudaError_t, 0 for success */
int device_probe(void);

#ifdef __cplusplus
}
#endif

#endif
