#include "common/cuda/testdata/test_kernels.h"

#include "common/cuda/async_copy.cuh"
#include "common/cuda/block.cuh"
#include "common/cuda/convert.cuh"
#include "common/cuda/mma.cuh"

/* ---- Reductions ---- */

static __global__ void reduce(struct test_reductions *out, const float *x) {
    __shared__ float of_warp[TEST_THREADS / 32];
    float own = x[threadIdx.x];
    struct test_reductions r;
    for (int turn = 0; turn < 2; turn++) { /* shared memory is used again */
        r.warp_sum = warp_sum(own);
        r.warp_max = warp_max(own);
        r.sum_of_8 = warp_sum<8>(own);
        r.max_of_8 = warp_max<8>(own);
        r.quad_sum = quad_sum(own);
        r.quad_max = quad_max(own);
        r.sum_to_lane_0 = warp_sum_to_lane_0(own);
        r.block_sum = block_sum<TEST_THREADS>(own);
        r.block_max = block_max<TEST_THREADS>(own);
        r.block_sum_of_any = block_sum(own, of_warp);
        r.warp_max_of_integers = warp_max(1ull << 40 | threadIdx.x);
    }
    out[threadIdx.x] = r;
}

void test_reduce(struct test_reductions *out, const float *x, device_stream stream) {
    reduce<<<1, TEST_THREADS, 0, stream>>>(out, x);
}

/* ---- Conversions ---- */

template <typename E>
static __global__ void convert_single(float *out, const float *x, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        E stored;
        store_rounded(&stored, x[i]);
        float loaded = to_float(stored);
        out[i] = rounded(x[i], E()) == loaded ? loaded : NAN;
    }
}

template <typename E>
static __global__ void convert_pairs(float *out, const float *x, unsigned count) {
    unsigned i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        float2 loaded = unpack(pack(x[i], x[i + 1], E()), E());
        out[i] = loaded.x;
        out[i + 1] = loaded.y;
    }
}

template <typename E>
static __global__ void convert_vectors(float *out, const float *x, unsigned count) {
    constexpr int LENGTH = VECTOR_ELEMENTS<E>;
    unsigned i = LENGTH * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        float loaded[LENGTH];
        unpack(pack(x + i, E()), loaded, E());
        for (int j = 0; j < LENGTH; j++) {
            out[i + j] = loaded[j];
        }
    }
}

template <typename E>
static void launch_16_bits(float *out, const float *x, unsigned count, enum test_form form,
                           device_stream stream) {
    unsigned blocks = (count + 127) / 128;
    if (form == TEST_SINGLE) {
        convert_single<E><<<blocks, 128, 0, stream>>>(out, x, count);
    } else if (form == TEST_PAIRS) {
        convert_pairs<E><<<blocks, 128, 0, stream>>>(out, x, count);
    } else {
        convert_vectors<E><<<blocks, 128, 0, stream>>>(out, x, count);
    }
}

void test_convert(float *out, const float *x, unsigned count, enum test_type type,
                  enum test_form form, device_stream stream) {
    unsigned blocks = (count + 127) / 128;
    if (type == TEST_F16) {
        launch_16_bits<__half>(out, x, count, form, stream);
    } else if (type == TEST_BF16) {
        launch_16_bits<__nv_bfloat16>(out, x, count, form, stream);
    } else if (form == TEST_VECTORS) {
        convert_vectors<float><<<blocks, 128, 0, stream>>>(out, x, count);
    } else {
        convert_single<float><<<blocks, 128, 0, stream>>>(out, x, count);
    }
}

/* ---- Tensor cores ---- */

template <typename E, bool TRANSPOSED>
static __global__ void mma(float *c, const uint16_t *a, const uint16_t *b) {
    __shared__ __align__(16) uint16_t a_tile[16][16], b_tile[16][8];
    int lane = threadIdx.x, matrix = lane / 8;
    cp_async<16>(&a_tile[0][0] + 8 * lane, a + 8 * lane, true);
    cp_async<16>(&b_tile[0][0] + 8 * (lane % 16), b + 8 * (lane % 16), true);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    const struct fragment left = ldmatrix_x4(&a_tile[lane % 16][lane / 16 * 8]);
    /* b has two matrices, k below 8 and above; lanes 16 to 31 name them again. */
    const uint16_t *row =
        TRANSPOSED ? &b_tile[lane % 16][0] : &b_tile[0][0] + lane % 8 * 16 + matrix % 2 * 8;
    const struct fragment right = ldmatrix_x4<TRANSPOSED>(row);
    struct accumulator sums;
    for (int i = 0; i < 4; i++) {
        sums.x[i] = c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
    }
    mma_m16n8k16(sums.x, left, right.x[0], right.x[1], E());
    for (int i = 0; i < 4; i++) {
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums.x[i];
    }
}

void test_mma(float *c, const uint16_t *a, const uint16_t *b, bool is_bf16, bool transposed,
              device_stream stream) {
    if (is_bf16) {
        transposed ? mma<__nv_bfloat16, true><<<1, 32, 0, stream>>>(c, a, b)
                   : mma<__nv_bfloat16, false><<<1, 32, 0, stream>>>(c, a, b);
    } else {
        transposed ? mma<__half, true><<<1, 32, 0, stream>>>(c, a, b)
                   : mma<__half, false><<<1, 32, 0, stream>>>(c, a, b);
    }
}

/* ---- Asynchronous copies ---- */

static __global__ void copy(uint32_t *out, const uint32_t *in, bool by_words) {
    __shared__ __align__(16) uint32_t tile[32][4];
    int i = threadIdx.x, words = i % 5;
    if (by_words) {
        for (int j = 0; j < 4; j++) {
            cp_async<4>(&tile[i][j], in + 4 * i + (j < words ? j : 0), j < words);
        }
    } else {
        cp_async_zero_fill<16>(shared_address(tile[i]), in + 4 * i, 4 * words);
    }
    cp_async_wait_all();
    __syncthreads();
    for (int j = 0; j < 4; j++) { /* another thread's */
        out[(31 - i) * 4 + j] = tile[31 - i][j];
    }
}

void test_copy(uint32_t *out, const uint32_t *in, bool by_words, device_stream stream) {
    copy<<<1, 32, 0, stream>>>(out, in, by_words);
}

static __global__ void copy_groups(uint32_t *out, const uint32_t *in) {
    __shared__ __align__(16) uint32_t tile[32][4];
    int i = threadIdx.x;
    if (i < 16) {
        cp_async_16(shared_address(tile[i]), in + 4 * i);
        cp_async_commit();
        cp_async_16(shared_address(tile[16 + i]), in + 64 + 4 * i);
        cp_async_commit();
    }
    cp_async_wait<1>();
    __syncthreads();
    if (i < 16) {
        *(uint4 *)(out + 4 * i) = *(const uint4 *)tile[15 - i];
    }
    cp_async_wait<0>();
    __syncthreads();
    if (i >= 16) {
        *(uint4 *)(out + 4 * i) = *(const uint4 *)tile[47 - i];
    }
}

void test_copy_groups(uint32_t *out, const uint32_t *in, device_stream stream) {
    copy_groups<<<1, 32, 0, stream>>>(out, in);
}
