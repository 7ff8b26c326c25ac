/* PTX corpus: atomics on all types, in shared and global memory, in every scope. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if __CUDA_ARCH__ >= 700
#include <cuda/atomic>
#endif

typedef unsigned long long u64;

template <typename T> __device__ void integer_atomics(T *p, T v) {
    p[1] = atomicAdd(p, v);
    p[2] = atomicSub(p + 1, v);
    p[3] = atomicExch(p + 2, v);
    p[4] = atomicMin(p + 3, v);
    p[5] = atomicMax(p + 4, v);
    p[6] = atomicAnd(p + 5, v);
    p[7] = atomicOr(p + 6, v);
    p[8] = atomicXor(p + 7, v);
    p[9] = atomicCAS(p + 8, v, p[9]);
    atomicAdd(p + 10, v);
    atomicMax(p + 11, v);
    atomicOr_block(p + 12, v);
    atomicAdd_system(p + 13, v);
}

__global__ void atomics_32(int *i, unsigned *u, float *f) {
    __shared__ int shared_int[16];
    __shared__ unsigned shared_unsigned[16];
    __shared__ float shared_float;
    integer_atomics(i, 3);
    integer_atomics(u, 5u);
    integer_atomics(shared_int, i[20]);
    integer_atomics(shared_unsigned, u[20]);
    f[1] = atomicAdd(f, 1.5f) + atomicExch(f + 2, 2.0f);
    f[3] = atomicAdd(&shared_float, f[4]);
    atomicAdd(&shared_float, 1.0f);
    u[30] = atomicInc(u + 31, 7u) + atomicDec(u + 32, 9u) + atomicInc(&shared_unsigned[2], 3u);
    i[40] = shared_int[i[41] & 15] + (int)shared_unsigned[1] + (int)shared_float;
}

__global__ void atomics_64(u64 *u, long long *s, double *d) {
    __shared__ u64 shared[4];
    __shared__ double sum;
    u[1] = atomicAdd(u, 1ull) + atomicExch(u + 2, 2ull) + atomicCAS(u + 3, 4ull, 5ull);
    u[4] = atomicMin(u + 5, 6ull) + atomicMax(u + 7, 8ull) + atomicAnd(u + 9, 10ull);
    u[11] = atomicOr(u + 12, 13ull) + atomicXor(u + 14, 15ull) + atomicAdd(shared, u[16]);
    s[0] = atomicMin(s + 1, -2ll) + atomicMax(s + 3, -4ll);
    d[0] = atomicAdd(d + 1, 0.5) + atomicAdd(&sum, d[2]);
    atomicCAS(&shared[1], u[20], u[21]);
    u[22] = shared[u[23] & 3] + (u64)sum;
}

__global__ void atomics_16(__half2 *h, __half *h1, __nv_bfloat162 *b, unsigned short *w) {
    h[1] = atomicAdd(h, h[2]);
    h1[8] = atomicAdd(h1 + 9, h1[10]);
    w[0] = atomicCAS(w + 1, w[2], w[3]);
#if __CUDA_ARCH__ >= 800
    b[1] = atomicAdd(b, b[2]);
#endif
}

#if __CUDA_ARCH__ >= 900
__global__ void atomics_vector(float4 *f, float2 *g) {
    f[1] = atomicAdd(f, f[2]);
    g[1] = atomicAdd(g, g[2]);
}
#endif

__global__ void without_result(int *i, float *f) {
    asm volatile("red.global.add.s32 [%0+4], %1;" ::"l"(i), "r"(3) : "memory");
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(f), "f"(1.5f) : "memory");
}

__global__ void orders(int *p, int *q) {
    cuda::atomic_ref<int, cuda::thread_scope_device> device(*p);
    cuda::atomic_ref<int, cuda::thread_scope_block> block(*q);
    cuda::atomic_ref<int, cuda::thread_scope_system> system(p[1]);
    device.store(1, cuda::memory_order_release);
    block.fetch_add(2, cuda::memory_order_acq_rel);
    q[1] = device.load(cuda::memory_order_acquire) + system.load(cuda::memory_order_seq_cst);
    int expected = 5;
    q[2] = device.compare_exchange_strong(expected, 6, cuda::memory_order_acq_rel);
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_block);
    q[3] = system.exchange(expected);
}
