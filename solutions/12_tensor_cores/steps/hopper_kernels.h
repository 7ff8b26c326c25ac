/**
 * @file hopper_kernels.h
 * @brief v10's wgmma kernels: their epilogues, and their launchers by number, as
 * gemm16_hopper_tiles() lists them.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_KERNELS_H_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_HOPPER_KERNELS_H_

#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The epilogues that kernels are compiled for: results as they are; with a bias; with any
 * activation, and bias and residual or not; with a residual, and a bias or not. Then fp32 results,
 * with a bias or not, and those with an fp32 residual. Then both GELUs, and a SiLU gate, with a
 * bias or not.
 */
enum finish {
    FINISH_PLAIN,
    FINISH_BIAS,
    FINISH_ACTIVATION,
    FINISH_RESIDUAL,
    FINISH_FLOAT,
    FINISH_FLOAT_RESIDUAL,
    FINISH_GELU_TANH,
    FINISH_GELU,
    FINISH_GATE,
    FINISH_ANY /**< everything else, and rows of out that are no whole 16-byte pieces */
};

/** @return the epilogue that a checked problem needs. */
enum finish gemm16_finish_of(const struct gemm16_problem *problem);

/** @return whether the program has code for this GPU, and the driver describes tensors. */
bool gemm16_hopper_code(void);

/** @param band tiles of M whose clusters run side by side */
typedef enum status gemm16_hopper_launch(const struct gemm16_problem *problem,
                                         const struct gemm16_gpu *gpu, int tile, size_t splits,
                                         unsigned band, void *workspace, device_stream stream,
                                         struct error *error);

/** No factor is transposed; either or both are. */
gemm16_hopper_launch gemm16_hopper_plain, gemm16_hopper_transposed;

/** Files of the former's tiles. */
gemm16_hopper_launch gemm16_hopper_wide, gemm16_hopper_in_turn, gemm16_hopper_narrow;

#ifdef __cplusplus
}
#endif

#endif
