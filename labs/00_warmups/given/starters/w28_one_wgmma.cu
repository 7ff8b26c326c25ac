/*
 * One product by a warpgroup, whose operands stay in shared memory.
 *
 * wgmma.m64n8k16 multiplies 64 x 16 by 16 x 8 fp16 numbers. Four warps execute it together, and
 * each has the sums of its 16 rows as after mma.m16n8k16 (w24). No lane loads A or B: a descriptor
 * of 64 bits says where they lie. They lie in groups of 8 x 8 numbers, 128 bytes each, a row of a
 * group behind the other:
 *
 *     A              k 0 to 7     k 8 to 15          bytes from group to group
 *     row  0 to  7   group 0      group 8            down:       128   ("stride")
 *     row  8 to 15   group 1      group 9            to the right: 8 groups, that is 1024
 *     ...                                                              ("leading")
 *     row 56 to 63   group 7      group 15
 *
 *     B              k 0 to 7     k 8 to 15
 *     column 0 to 7  group 0      group 1            to the right: 128
 *
 * The product runs beside the warps: a fence before it, then the wgmma are committed as a group,
 * and the group is waited for before anybody reads the sums. Threads wrote A and B here, so another
 * fence shows what they wrote to the tensor cores (the TMA needs none).
 */
#include "labs/00_warmups/warmups.h"

enum { M = 64, N = 8, K = 16 };

#if __CUDA_ARCH_FEAT_SM90_ALL
/* A matrix in shared memory; bytes from group to group. */
static __device__ uint64_t descriptor(const uint16_t *matrix, int leading, int stride) {
    uint64_t address = (unsigned)__cvta_generic_to_shared(matrix);
    return address >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32;
}

static __device__ void multiply(float c[4], uint64_t a, uint64_t b) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, "
                 "%4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* Rows of 16 numbers into groups; `rows` is 64 or 8. */
static __device__ void put(uint16_t *to, const uint16_t *from, int rows) {
    for (int i = threadIdx.x; i < rows * K; i += blockDim.x) {
        int row = i / K, k = i % K;
        to[k / 8 * 8 * rows + 8 * row + k % 8] = from[i];
    }
}
#endif

static __global__ void one_wgmma(float *C, const uint16_t *A, const uint16_t *B) {
#if __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) uint16_t a[M * K], b[N * K];
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    put(a, A, M);
    put(b, B, N);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    multiply(c, descriptor(a, 0, 0), descriptor(b, 128, 0)); // TODO: the bytes between A's groups
    C[N * row + column] = c[0];
    C[N * row + column + 1] = c[1];
    C[N * (row + 8) + column] = c[2];
    C[N * (row + 8) + column + 1] = c[3];
#endif
}

void w28_one_wgmma(float *d_C, const uint16_t *d_A, const uint16_t *d_B) {
    one_wgmma<<<1, 128>>>(d_C, d_A, d_B);
}
