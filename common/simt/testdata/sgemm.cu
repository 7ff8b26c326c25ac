/* PTX corpus: matrix products, from the triple loop to register tiles and vector loads. */
#include <stddef.h>

__constant__ float alpha_beta[2] = {1.5f, -0.25f};

extern "C" __global__ void sgemm_naive(const float *a, const float *b, float *c, int m, int n,
                                       int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < k; i++) {
        sum += a[(size_t)row * k + i] * b[(size_t)i * n + column];
    }
    float *target = &c[(size_t)row * n + column];
    *target = alpha_beta[0] * sum + alpha_beta[1] * *target;
}

template <int TILE> __global__ void sgemm_tile(const float *a, const float *b, float *c, int n) {
    __shared__ float tile_a[TILE][TILE + 1], tile_b[TILE][TILE];
    size_t row = blockIdx.y * TILE + threadIdx.y;
    size_t column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < n; t += TILE) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * (size_t)n + column];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) {
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        }
        __syncthreads();
    }
    c[row * n + column] = sum;
}

template __global__ void sgemm_tile<16>(const float *, const float *, float *, int);
template __global__ void sgemm_tile<32>(const float *, const float *, float *, int);

/* Register tiles of 8x8, float4 loads, two buffers. */
__global__ void __launch_bounds__(256)
    sgemm_registers(const float4 *__restrict__ a, const float4 *__restrict__ b,
                    float4 *__restrict__ c, int n) {
    enum { BM = 128, BN = 128, BK = 8 };
    __shared__ __align__(16) float as[2][BK][BM], bs[2][BK][BN];
    float sums[8][8] = {};
    float rows[8], columns[8];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, buffer = 0;
    for (int t = 0; t < n; t += BK) {
        float4 va =
            __ldg(&a[(blockIdx.y * BM + threadIdx.x / 2) * n / 4 + t / 4 + threadIdx.x % 2]);
        as[buffer][threadIdx.x % 2 * 4 + 0][threadIdx.x / 2] = va.x;
        as[buffer][threadIdx.x % 2 * 4 + 1][threadIdx.x / 2] = va.y;
        as[buffer][threadIdx.x % 2 * 4 + 2][threadIdx.x / 2] = va.z;
        as[buffer][threadIdx.x % 2 * 4 + 3][threadIdx.x / 2] = va.w;
        reinterpret_cast<float4 *>(bs[buffer][threadIdx.x / 32])[threadIdx.x % 32] =
            b[(t + threadIdx.x / 32) * n / 4 + blockIdx.x * BN / 4 + threadIdx.x % 32];
        __syncthreads();
        for (int k = 0; k < BK; k++) {
#pragma unroll
            for (int i = 0; i < 8; i += 4) {
                *reinterpret_cast<float4 *>(&rows[i]) =
                    *reinterpret_cast<float4 *>(&as[buffer][k][ty * 8 + i]);
                *reinterpret_cast<float4 *>(&columns[i]) =
                    *reinterpret_cast<float4 *>(&bs[buffer][k][tx * 8 + i]);
            }
#pragma unroll
            for (int i = 0; i < 64; i++) {
                sums[i / 8][i % 8] += rows[i / 8] * columns[i % 8];
            }
        }
        buffer ^= 1;
    }
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 2; j++) {
            __stcs(&c[(blockIdx.y * BM + ty * 8 + i) * n / 4 + blockIdx.x * BN / 4 + tx * 2 + j],
                   make_float4(sums[i][4 * j], sums[i][4 * j + 1], sums[i][4 * j + 2],
                               sums[i][4 * j + 3]));
        }
    }
}

/* A local array that is indexed at run time, so that it stays in local memory. */
__global__ void local_histogram(const unsigned char *in, int *out, int n) {
    int bins[64] = {};
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        bins[in[i] % 64]++;
    }
    for (int i = 0; i < 64; i++) {
        atomicAdd(&out[i], bins[i]);
    }
}
