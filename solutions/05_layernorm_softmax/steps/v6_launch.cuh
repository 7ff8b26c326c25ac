/**
 * @file v6_launch.cuh
 * @brief v6: launches a plan. Each type has a file of its own that includes this one.
 */
#ifndef WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_LAUNCH_CUH_
#define WARPBOOK_SOLUTIONS_05_LAYERNORM_SOFTMAX_STEPS_V6_LAUNCH_CUH_

#include "solutions/05_layernorm_softmax/steps/v6_long.cuh"
#include "solutions/05_layernorm_softmax/steps/v6_plan.h"

enum { MOST_LANES_BLOCKS = 1 << 20 };

template <int OP, typename T, int GROUP, int V>
static void launch_lanes(const struct rows_problem &p, device_stream stream) {
    constexpr size_t ROWS = ROWS_LANES_BLOCK / GROUP;
    size_t blocks = (p.rows + ROWS - 1) / ROWS;
    unsigned grid = (unsigned)(blocks < MOST_LANES_BLOCKS ? blocks : MOST_LANES_BLOCKS);
    int count = (int)vectors_of(p);
    rows_of_lanes<OP, T, GROUP, V><<<grid, ROWS_LANES_BLOCK, 0, stream>>>(p, count);
}

template <int OP, typename T>
static void launch_shared(const struct rows_problem &p, const struct rows_plan &plan,
                          device_stream stream) {
    int bytes = (int)(vectors_of(p) * 16);
    const void *kernel = (const void *)rows_in_shared<OP, T>;
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    size_t most = rows_v6_blocks_at_once(bytes, plan.threads);
    unsigned grid = (unsigned)(p.rows < most ? p.rows : most);
    rows_in_shared<OP, T><<<grid, (unsigned)plan.threads, (size_t)bytes, stream>>>(p);
}

/* The rows of one pair of launches: rows of several masks only from a mask's first row on. */
static inline size_t rows_together(const struct rows_problem &p, size_t done, size_t most) {
    size_t rows = p.rows - done < most ? p.rows - done : most;
    if (p.mask == NULL) {
        return rows;
    }
    size_t left = p.rows_a_mask - done % p.rows_a_mask; /* of this mask */
    return left < p.rows_a_mask || rows < left ? (rows < left ? rows : left)
                                               : rows / p.rows_a_mask * p.rows_a_mask;
}

/* As many rows at a time as the workspace has room for. */
template <int OP, typename T>
static void launch_split(const struct rows_problem &p, const struct rows_plan &plan,
                         void *workspace, device_stream stream) {
    struct row_stats *partial = (struct row_stats *)workspace;
    int count = (int)vectors_of(p);
    size_t most = ROWS_WORKSPACE_BYTES / sizeof *partial / (size_t)plan.splits;
    struct rows_problem some = p;
    for (size_t done = 0; done < p.rows; done += some.rows) {
        some.rows = rows_together(p, done, most);
        some.in = (const T *)p.in + done * p.C;
        some.out = (T *)p.out + done * p.C;
        some.mask = mask_of<OP>(p, done);
        unsigned grid = (unsigned)(some.rows * (size_t)plan.splits);
        unsigned threads = (unsigned)plan.threads;
        split_stats<OP, T><<<grid, threads, 0, stream>>>(some, count, plan.splits, partial);
        split_normalise<OP, T><<<grid, threads, 0, stream>>>(some, count, plan.splits, partial);
    }
}

template <int OP, typename T>
static void launch_op(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                      device_stream stream) {
    int count = (int)vectors_of(p);
    if (plan.way == ROWS_WAY_EIGHTH) {
        launch_lanes<OP, T, 8, VECTORS>(p, stream);
    } else if (plan.way == ROWS_WAY_WARP && count <= 3 * WARP) {
        launch_lanes<OP, T, WARP, 3>(p, stream);
    } else if (plan.way == ROWS_WAY_WARP) {
        launch_lanes<OP, T, WARP, VECTORS>(p, stream);
    } else if (plan.way == ROWS_WAY_BLOCK) {
        rows_of_blocks<OP, T><<<(unsigned)p.rows, (unsigned)plan.threads, 0, stream>>>(p, count);
    } else if (plan.way == ROWS_WAY_SHARED) {
        launch_shared<OP, T>(p, plan, stream);
    } else {
        launch_split<OP, T>(p, plan, workspace, stream);
    }
}

template <typename T>
static void launch_type(const struct rows_problem &p, const struct rows_plan &plan, void *workspace,
                        device_stream stream) {
    if (p.op == ROWS_LAYERNORM) {
        launch_op<ROWS_LAYERNORM, T>(p, plan, workspace, stream);
    } else if (p.op == ROWS_RMSNORM) {
        launch_op<ROWS_RMSNORM, T>(p, plan, workspace, stream);
    } else {
        launch_op<ROWS_SOFTMAX, T>(p, plan, workspace, stream);
    }
}

#endif
