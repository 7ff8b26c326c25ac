#include "common/simt/nsight/testdata/known.h"
#include "common/simt/nsight/testdata/known_inline.cuh"

static __global__ void strided(float *out, const float *in) {
    int i = blockIdx.x * KNOWN_THREADS + threadIdx.x;
    float value = in[i * 8];
    out[i] = value * 2.0f;
}

static __global__ void column(float *out, const float *in) {
    __shared__ float tile[KNOWN_THREADS / 32][32 * 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int row = 0; row < 32; row++) {
        tile[warp][row * 32 + lane] = in[(blockIdx.x * 32 + row) * 32 + lane];
    }
    __syncthreads();
    float sum = 0.0f;
#pragma unroll 1
    for (int row = 0; row < 32; row++) {
        sum += tile[warp][lane * 32 + row];
    }
    out[blockIdx.x * KNOWN_THREADS + threadIdx.x] = sum;
}

static __global__ void mixed(float *out, const float *in) {
    int i = blockIdx.x * KNOWN_THREADS + threadIdx.x;
    float4 four = reinterpret_cast<const float4 *>(in)[i];
    float sum = add_four(four);
    if (threadIdx.x % 3 == 0) {
        sum = sqrtf(sum) / (sum + 1.0f);
    }
    out[i] = sum;
    atomicAdd(&out[KNOWN_COUNT - 1 - threadIdx.x % 4], sum);
}

template <int FACTOR> static __global__ void scaled(float *out, const float *in) {
    int i = blockIdx.x * KNOWN_THREADS + threadIdx.x;
    out[i] = FACTOR * in[i];
}

void known_strided(float *d_out, const float *d_in) {
    strided<<<KNOWN_BLOCKS, KNOWN_THREADS>>>(d_out, d_in);
}

void known_column(float *d_out, const float *d_in) {
    column<<<KNOWN_BLOCKS, KNOWN_THREADS>>>(d_out, d_in);
}

void known_mixed(float *d_out, const float *d_in) {
    mixed<<<KNOWN_BLOCKS, KNOWN_THREADS>>>(d_out, d_in);
}

void known_scaled(float *d_out, const float *d_in) {
    scaled<2><<<KNOWN_BLOCKS, KNOWN_THREADS>>>(d_out, d_in);
    scaled<3><<<KNOWN_BLOCKS, KNOWN_THREADS>>>(d_out, d_in);
}
