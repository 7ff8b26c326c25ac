/**
 * @file stream_k.cuh
 * @brief Stream-K: the steps of all tiles are one sequence, of which each block takes an equal
 *        part, whatever the number of tiles.
 *
 *     tiles      |   0   |   1   |   2   |        three tiles of eight steps, four blocks
 *     blocks     |  0  |  1  |  2  |  3  |        of six steps each
 *
 * A block takes its last piece first. That is the beginning of a tile unless the block's part ends
 * with one, and its sums go to the workspace; so they are there when the tile's owner, the block
 * with its last step, wants to add them. Owners add pieces from the last one to the first, so that
 * results are the same to the bit. Blocks wait for blocks with lower indices only.
 *
 * A flag for each warpgroup's sums says that they are there: the launch's number, 64 random bits,
 * as nothing is known of what the workspace holds. Its reader takes it back, for a launch that is
 * replayed by a graph has the same number.
 */
#ifndef WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_STREAM_K_CUH_
#define WARPBOOK_SOLUTIONS_12_TENSOR_CORES_STEPS_STREAM_K_CUH_

#include <stdint.h>

namespace {

/* In the workspace: sums of the piece that each block leaves to another one, and their flags. */
struct stream_workspace {
    float4 *sums;    /* (blocks, warpgroups, sums of a thread / 4, threads of a warpgroup) */
    uint64_t *flags; /* (blocks, warpgroups) */
    uint64_t launch;
};

/* Steps of all tiles that a block has yet to do. */
struct stream_range {
    unsigned begin, end;
};

/* Steps of one tile. */
struct stream_piece {
    unsigned tile, first, count;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ struct stream_range stream_range_of(unsigned block, unsigned all_steps) {
    return {(unsigned)((uint64_t)all_steps * block / gridDim.x),
            (unsigned)((uint64_t)all_steps * (block + 1) / gridDim.x)};
}

/* Takes the last piece of what is left. */
__device__ __forceinline__ struct stream_piece stream_take(struct stream_range &left,
                                                           unsigned steps) {
    unsigned tile = (left.end - 1) / steps, first = max(left.begin, tile * steps);
    const struct stream_piece piece = {tile, first - tile * steps, left.end - first};
    left.end = first;
    return piece;
}

/* Meets the other warps of a consumer warpgroup, 1 or 2. */
__device__ __forceinline__ void stream_sync(unsigned group) {
    asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
}

/* Leaves COUNT sums of each thread of warpgroup `group` to another block. */
template <int COUNT>
__device__ __forceinline__ void stream_leave(const struct stream_workspace &w, const float *sums) {
    unsigned group = threadIdx.x / 128, at = blockIdx.x * 2 + group - 1;
    float4 *to = w.sums + (size_t)at * (COUNT / 4 * 128) + threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < COUNT / 4; i++) {
        to[i * 128] = make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    }
    stream_sync(group);
    if (threadIdx.x % 128 == 0) {
        asm volatile("fence.acq_rel.gpu;\nst.release.gpu.u64 [%0], %1;" ::"l"(w.flags + at),
                     "l"(w.launch)
                     : "memory");
    }
}

/* Adds what block `block` has left for this warpgroup. */
template <int COUNT>
__device__ __forceinline__ void stream_add(const struct stream_workspace &w, float *sums,
                                           unsigned block) {
    unsigned group = threadIdx.x / 128, at = block * 2 + group - 1;
    if (threadIdx.x % 128 == 0) {
        uint64_t flag;
        do {
            asm volatile("ld.acquire.gpu.u64 %0, [%1];"
                         : "=l"(flag)
                         : "l"(w.flags + at)
                         : "memory");
        } while (flag != w.launch);
        w.flags[at] = 0;
    }
    stream_sync(group);
    const float4 *from = w.sums + (size_t)at * (COUNT / 4 * 128) + threadIdx.x % 128;
#pragma unroll
    for (int i = 0; i < COUNT / 4; i++) {
        float4 x = __ldcg(from + i * 128);
        sums[4 * i] += x.x, sums[4 * i + 1] += x.y;
        sums[4 * i + 2] += x.z, sums[4 * i + 3] += x.w;
    }
}

#endif

} // namespace

#endif
