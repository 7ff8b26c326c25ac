/**
 * @file hopper_kernels.h
 * @brief v10's wgmma kernels by number, as gemm16_hopper_tiles() lists them.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_KERNELS_H_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_KERNELS_H_

#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return whether the program has code for this GPU, and the driver describes tensors. */
bool gemm16_hopper_code(void);

/** @param band tiles of M whose clusters run side by side */
typedef enum status gemm16_hopper_launch(const struct gemm16_problem *problem,
                                         const struct gemm16_gpu *gpu, int tile, size_t splits,
                                         unsigned band, void *workspace, device_stream stream,
                                         struct error *error);

/** No factor is transposed; either or both are. */
gemm16_hopper_launch gemm16_hopper_plain, gemm16_hopper_transposed;

#ifdef __cplusplus
}
#endif

#endif
