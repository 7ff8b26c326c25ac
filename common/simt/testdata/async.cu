/* PTX corpus: asynchronous copies, barriers that count arrivals, named barriers. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

__global__ void pipeline_primitives(const float4 *in, float4 *out, int n) {
    __shared__ float4 stage[2][128];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(float4));
    __pipeline_commit();
    for (int i = 0; i < n; i++) {
        __pipeline_memcpy_async(&stage[(i + 1) & 1][t], &in[(i + 1) * 128 + t], sizeof(float4), 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * 128 + t] = stage[i & 1][t ^ 1];
        __syncthreads();
    }
    __pipeline_wait_prior(0);
}

__global__ void pipeline_object(const int *in, int *out, int n) {
    __shared__ int stage[2][64];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    pipe.producer_acquire();
    cuda::memcpy_async(block, stage[0], in, cuda::aligned_size_t<16>(sizeof stage[0]), pipe);
    pipe.producer_commit();
    for (int i = 1; i <= n; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, stage[i & 1], in + 64 * i,
                           cuda::aligned_size_t<16>(sizeof stage[0]), pipe);
        pipe.producer_commit();
        pipe.consumer_wait();
        out[64 * i + threadIdx.x] = stage[(i - 1) & 1][63 - threadIdx.x];
        pipe.consumer_release();
    }
}

__global__ void arrive_and_wait(int *data) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) {
        init(&barrier, block.size());
    }
    block.sync();
    auto token = barrier.arrive();
    data[threadIdx.x] *= 2;
    barrier.wait(std::move(token));
    data[threadIdx.x ^ 1] += 1;
    barrier.arrive_and_wait();
}

__global__ void group_copy(const float *in, float *out) {
    __shared__ float tile[256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, tile, in, sizeof tile);
    cg::wait(block);
    out[threadIdx.x] = tile[255 - threadIdx.x];
}

__global__ void named_barriers(int *data) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    data[threadIdx.x] += 1;
    if (threadIdx.x < 32) {
        asm volatile("bar.arrive 2, %0;" ::"r"(64) : "memory");
    } else {
        asm volatile("barrier.sync.aligned 2, 64;" ::: "memory");
    }
    asm volatile("membar.gl;\n\tfence.acq_rel.gpu;" ::: "memory");
}
