/**
 * @file probe.h
 * @brief Checks whether this program has code for the GPU, and which.
 */
#ifndef WARPBOOK_COMMON_DEVICE_PROBE_H_
#define WARPBOOK_COMMON_DEVICE_PROBE_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Launches an empty kernel and waits for it. @return a cudaError_t, 0 for success */
int device_probe(void);

/** @return the compute capability that the program's code was compiled for, of the code that the
 * GPU runs: 75, 80, ...; 0 when the runtime fails */
int device_code(void);

#ifdef __cplusplus
}
#endif

#endif
