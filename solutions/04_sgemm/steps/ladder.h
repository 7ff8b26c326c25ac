/**
 * @file ladder.h
 * @brief The steps of solution 04, each with the signature of sgemm(), and what their hosts share.
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_LADDER_H_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_LADDER_H_

#include "labs/04_sgemm/sgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

sgemm_function sgemm_v01_naive;
sgemm_function sgemm_v02_coalesced;
sgemm_function sgemm_v03_shared_tile;
sgemm_function sgemm_v04_1d_tile;
sgemm_function sgemm_v05_2d_tile;
sgemm_function sgemm_v06_vector_loads;
sgemm_function sgemm_v07_double_buffer;
sgemm_function sgemm_v08_conflict_free;
sgemm_function sgemm_v09_warp_tile;
sgemm_function sgemm_v10_shapes;

/** How v10 computes one problem. */
struct sgemm_plan {
    int shape;  /**< index of a tile shape, below sgemm_v10_shape_count() */
    int splits; /**< of K (split-K), each with blocks of its own; at least 1 */
};

/** @return how many tile shapes v10 has; the last one is for few rows. */
int sgemm_v10_shape_count(void);

/** @return name of a tile shape: "128x128". */
const char *sgemm_v10_shape_name(int shape);

/** @return true when the workspace holds the partial sums of all splits, and the shape fits. */
int sgemm_v10_possible(const struct sgemm_problem *problem, struct sgemm_plan plan);

/** What the choice of a plan depends on. */
struct sgemm_gpu {
    int multiprocessors;
    size_t shared; /**< bytes of shared memory that a multiprocessor has for its blocks */
};

/** Asks the GPU in use. @return STATUS_DEVICE with CUDA's message when that does not work */
MUST_CHECK enum status sgemm_v10_gpu(struct sgemm_gpu *gpu, struct error *error);

/** @return the plan with the least cost on this GPU. */
struct sgemm_plan sgemm_v10_choose(const struct sgemm_problem *problem,
                                   const struct sgemm_gpu *gpu);

/** @brief As sgemm() with a plan of the caller's, which must be possible. For tests and tuning. */
MUST_CHECK enum status sgemm_v10_run(const struct sgemm_problem *problem, struct sgemm_plan plan,
                                     void *workspace, device_stream stream, struct error *error);

/** @brief As sgemm_a_transposed() with a plan of the caller's, not of the last shape. */
MUST_CHECK enum status sgemm_v10_run_a_transposed(const struct sgemm_problem *problem,
                                                  struct sgemm_plan plan, void *workspace,
                                                  device_stream stream, struct error *error);

/**
 * @brief Checks the sizes, and counts the blocks that cover C with tiles.
 * @param rows, columns of the tile of one block
 * @param blocks receives their number, 0 when C has no elements
 * @return STATUS_INVALID_ARGUMENT for a size above SGEMM_MAX_SIZE or more blocks than a launch
 * takes
 */
MUST_CHECK enum status sgemm_count_blocks(const struct sgemm_problem *problem, size_t rows,
                                          size_t columns, unsigned *blocks, struct error *error);

/** @return STATUS_DEVICE with CUDA's message when the launch just made has failed. */
MUST_CHECK enum status sgemm_launched(const char *kernel, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
