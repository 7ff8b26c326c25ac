/**
 * @file placement.h
 * @brief Which multiprocessor a GPU gives each block to.
 */
#ifndef WARPBOOK_COMMON_SIMT_CALIBRATION_PLACEMENT_H_
#define WARPBOOK_COMMON_SIMT_CALIBRATION_PLACEMENT_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Where and when a block began. */
struct placement_start {
    unsigned multiprocessor;
    unsigned long long ns; /**< of the GPU's global timer */
};

/**
 * @brief Launches @p blocks of @p threads on the default stream.
 * @param starts device, (blocks)
 * @param apart  the blocks whose number this divides multiply for some 10 us; others return; 0:
 * none
 * @return a CUDA error code; 0: launched
 */
int placement_launch(struct placement_start *starts, int blocks, int threads, int apart);

#ifdef __cplusplus
}
#endif

#endif
