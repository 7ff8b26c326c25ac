/* PTX corpus: what the lanes of a warp do together, and cooperative groups. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

__global__ void votes(const int *in, unsigned *out) {
    int x = in[threadIdx.x];
    unsigned active = __activemask();
    out[0] = __ballot_sync(active, x > 3) + __any_sync(active, x == 1) + __all_sync(active, x);
    out[1] = __match_any_sync(0xffffffffu, x) + __match_any_sync(0xffffffffu, (long long)x);
    int same;
    out[2] = __match_all_sync(0xffffffffu, x, &same) + same;
    out[3] = __uni_sync(active, x);
    __syncwarp();
    if (x & 1) {
        __syncwarp(active);
        out[4] = __shfl_sync(active, x, 3);
    }
}

template <typename T> __global__ void shuffles(T *data) {
    T x = data[threadIdx.x];
    x += __shfl_sync(0xffffffffu, x, 5);
    x += __shfl_up_sync(0xffffffffu, x, 1, 16);
    x += __shfl_down_sync(0xffffffffu, x, 2, 8);
    x += __shfl_xor_sync(0xffffffffu, x, 7);
    data[threadIdx.x] = x;
}

template __global__ void shuffles<int>(int *);
template __global__ void shuffles<float>(float *);
template __global__ void shuffles<double>(double *);
template __global__ void shuffles<long long>(long long *);

#if __CUDA_ARCH__ >= 800
__global__ void redux(int *i, unsigned *u) {
    i[1] = __reduce_add_sync(0xffffffffu, i[0]) + __reduce_min_sync(0xffffffffu, i[0]) +
           __reduce_max_sync(0xffffffffu, i[0]);
    u[1] = __reduce_add_sync(0xffffffffu, u[0]) + __reduce_and_sync(0xffffffffu, u[0]) +
           __reduce_or_sync(0xffffffffu, u[0]) + __reduce_xor_sync(0xffffffffu, u[0]);
}
#endif

__global__ void groups(float *data, int *counts) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto quad = cg::tiled_partition<4>(warp);
    float x = data[block.thread_rank()];
    x = cg::reduce(warp, x, cg::plus<float>());
    int n = cg::inclusive_scan(quad, counts[warp.thread_rank()], cg::plus<int>());
    n += cg::reduce(quad, n, cg::greater<int>());
    auto odd = cg::labeled_partition(warp, counts[3] & 1);
    auto two = cg::binary_partition(warp, n > 3);
    n += odd.size() + two.thread_rank();
    if (n > 5) {
        auto active = cg::coalesced_threads();
        n += active.size() + active.shfl(n, 0);
        if (active.thread_rank() == 0) {
            atomicAdd(counts, n);
        }
    }
    block.sync();
    data[block.group_index().x] = x + n;
}

__global__ void grid_wide(float *data, int n) {
    cg::grid_group grid = cg::this_grid();
    for (int step = 0; step < n; step++) {
        data[grid.thread_rank()] += data[(grid.thread_rank() + 1) % grid.size()];
        grid.sync();
    }
}

#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) clusters(int *data) {
    __shared__ int mine[32];
    cg::cluster_group cluster = cg::this_cluster();
    mine[threadIdx.x] = data[threadIdx.x];
    cluster.sync();
    int *theirs = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
    data[threadIdx.x] = theirs[threadIdx.x];
    cluster.sync();
}
#endif

__global__ void special_registers(unsigned *out) {
    unsigned x;
    unsigned long long w;
#define READ(name)                                     \
    asm volatile("mov.u32 %0, %%" name ";" : "=r"(x)); \
    *out++ = x;
    READ("laneid")
    READ("warpid")
    READ("nwarpid")
    READ("smid") READ("nsmid") READ("lanemask_lt") READ("lanemask_le") READ("lanemask_eq")
        READ("lanemask_ge") READ("lanemask_gt") READ("dynamic_smem_size") READ("total_smem_size")
            READ("clock") READ("envreg2") READ("tid.z") READ("ctaid.y") READ("nctaid.z")
                READ("ntid.y") asm volatile("mov.u64 %0, %%globaltimer;"
                                            : "=l"(w));
    asm volatile("mov.u32 %0, WARP_SZ;" : "=r"(x));
    out[0] = x + (unsigned)w;
}
