/*
 * Wrong submissions to lab 12. $WRONG_TENSOR_CORES names one; each must be caught by the parity
 * test, with a message that leads to the mistake. "right" is the control: it must pass. It
 * multiplies by mma.sync in small tiles with three stages, and must not be good enough for gold;
 * mistakes from "on_hopper" on are made by a kernel with TMA and wgmma, which takes rows of whole
 * 16-byte pieces.
 */
#include <cuda_bf16.h>

#include "common/cuda/async_copy.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/mma.cuh"
#include "common/cuda/tma.cuh"
#if __CUDA_ARCH_FEAT_SM90_ALL
#include "common/cuda/wgmma.cuh"
#endif
#include "common/device/tensor_map.h"
#include "labs/12_tensor_cores/given/activation.cuh"
#include "labs/12_tensor_cores/tensor_cores.h"

#define MISTAKES(X)                                                                    \
    X(right)                                                                           \
    X(empty)          /* does nothing */                                               \
    X(no_bias)        /* forgets the bias */                                           \
    X(bias_of_rows)   /* takes the bias of the row */                                  \
    X(bias_last)      /* adds the bias behind f */                                     \
    X(residual_first) /* adds the residual before f */                                 \
    X(always_gelu)    /* takes any f for GELU */                                       \
    X(swapped_gate)   /* takes the gate for the value, and the value for the gate */   \
    X(gate_rows)      /* has N columns in a row of a gate's results, not N / 2 */      \
    X(sigmoid_gate)   /* multiplies by the gate's sigmoid, not by its SiLU */          \
    X(gate_bias)      /* adds the bias to the gate, not to the value */                \
    X(rounds_product) /* rounds the product before the epilogue, too */                \
    X(bf16_sums)      /* rounds the sums to bf16 after each step of K */               \
    X(bf16_out)       /* stores bf16 where fp32 is asked for */                        \
    X(swizzle_in)     /* stores the weight swizzled, and reads it as if it were not */ \
    X(last_step)      /* leaves out the rest of K that fills no step */                \
    X(no_k)           /* leaves out as it is where K is 0 */                           \
    X(stage_early)    /* overwrites a stage that others still read */                  \
    X(wait_short)     /* waits until two groups are in flight, where one may be */     \
    X(no_barrier)     /* waits for its own copies, not for other threads' */           \
    X(wrong_half)     /* ldmatrix has the address of the other eight rows */           \
    X(beyond_m)       /* stores rows beyond M */                                       \
    X(aligned)        /* copies 16 bytes at once, wherever they lie */                 \
    X(grid)           /* more blocks in y than a grid takes */                         \
    X(status)         /* reports a failure */                                          \
    X(not_refused)    /* takes any size */                                             \
    X(on_hopper)      /* right */                                                      \
    X(few_bytes)      /* announces fewer bytes than come */                            \
    X(many_bytes)     /* announces more bytes than come */                             \
    X(wrong_parity)   /* waits for the other parity: not at all, at first */           \
    X(one_parity)     /* does not change the parity */                                 \
    X(not_fenced)     /* no wgmma.fence before the first wgmma */                      \
    X(not_waited)     /* does not wait for wgmma before it reads the sums */           \
    X(overwrites)     /* starts the next copies before wgmma has read the stage */     \
    X(unswizzled)     /* TMA without swizzle, and wgmma with */

#define MISTAKE_VARIABLE "WRONG_TENSOR_CORES"
#include "grader/selftest/mistakes.h"

enum {
    TILE_M = 64,
    TILE_N = 32,
    STEP = 64 /* of K: rows of 128 bytes, 8 pieces */,
    STAGES = 3,
    THREADS = 128
};

struct stage {
    __nv_bfloat16 in[TILE_M * STEP], weight[TILE_N * STEP];
};

static __device__ float loaded(const void *values, size_t at) {
    return __bfloat162float(((const __nv_bfloat16 *)values)[at]);
}

/* A SiLU gate's result of columns n, which is even, and n + 1. */
static __device__ void store_gated(const struct gemm16_problem &p, size_t m, size_t n, float gate,
                                   float value, enum mistake mistake) {
    if (m >= p.M || n >= p.N) {
        return;
    }
    if (p.bias != NULL) {
        gate += loaded(p.bias, n);
        value += mistake == MISTAKE_gate_bias ? 0.0f : loaded(p.bias, n + 1);
    }
    float a = mistake == MISTAKE_swapped_gate ? value : gate;
    float x = (mistake == MISTAKE_swapped_gate ? gate : value) *
              (mistake == MISTAKE_sigmoid_gate ? 1.0f / (1.0f + expf(-a))
                                               : gemm16_activation(a, NN_SILU));
    size_t at = m * (mistake == MISTAKE_gate_rows ? p.N : p.N / 2) + n / 2;
    if (p.out_dtype == NN_F32) {
        ((float *)p.out)[at] = x;
    } else {
        ((__nv_bfloat16 *)p.out)[at] = __float2bfloat16(x);
    }
}

static __device__ void store(const struct gemm16_problem &p, size_t m, size_t n, float x,
                             enum mistake mistake) {
    size_t at = m * p.N + n, rows = mistake == MISTAKE_beyond_m ? p.M + 1 : p.M;
    if (m >= rows || n >= p.N) {
        return;
    }
    if (mistake == MISTAKE_rounds_product) {
        x = __bfloat162float(__float2bfloat16(x));
    }
    float bias = p.bias != NULL && mistake != MISTAKE_no_bias
                     ? loaded(p.bias, mistake == MISTAKE_bias_of_rows ? m % p.N : n)
                     : 0.0f;
    float residual = p.residual != NULL && m < p.M ? loaded(p.residual, at) : 0.0f;
    x += mistake == MISTAKE_bias_last ? 0.0f : bias;
    x += mistake == MISTAKE_residual_first ? residual : 0.0f;
    if (p.activate) {
        x = gemm16_activation(x, mistake == MISTAKE_always_gelu ? NN_GELU : p.f);
    }
    x += mistake == MISTAKE_bias_last ? bias : 0.0f;
    x += mistake == MISTAKE_residual_first ? 0.0f : residual;
    if (p.out_dtype == NN_F32 && mistake != MISTAKE_bf16_out) {
        ((float *)p.out)[at] = x;
    } else {
        ((__nv_bfloat16 *)p.out)[at] = __float2bfloat16(x);
    }
}

/* Columns n, which is even, and n + 1. */
static __device__ void store_two(const struct gemm16_problem &p, size_t m, size_t n, const float *x,
                                 enum mistake mistake) {
    if (p.gate) {
        store_gated(p, m, n, x[0], x[1], mistake);
    } else {
        store(p, m, n, x[0], mistake);
        store(p, m, n + 1, x[1], mistake);
    }
}

/* ---- mma.sync ---- */

/* Where a piece of 8 elements lies in a stage: permuted by its row. */
static __device__ int place(int row, int piece, bool swizzled) {
    return row * STEP + (swizzled ? piece ^ row % 8 : piece) * 8;
}

static __device__ void copy_piece(__nv_bfloat16 *to, const __nv_bfloat16 *matrix, size_t row,
                                  size_t k, size_t rows, size_t K, bool whole) {
    if (whole) {
        bool inside = row < rows && k < K;
        cp_async<16>(to, inside ? matrix + row * K + k : matrix, inside);
        return;
    }
    for (size_t i = 0; i < 8; i++) {
        bool inside = row < rows && k + i < K;
        to[i] = inside ? matrix[row * K + k + i] : __float2bfloat16(0.0f);
    }
}

static __device__ void copy_stage(struct stage *to, const struct gemm16_problem &p, size_t m0,
                                  size_t n0, size_t k0, bool whole) {
    for (int i = threadIdx.x; i < (TILE_M + TILE_N) * 8; i += THREADS) {
        int row = i / 8, piece = i % 8;
        if (row < TILE_M) {
            copy_piece(to->in + place(row, piece, true), (const __nv_bfloat16 *)p.in,
                       m0 + (size_t)row, k0 + 8 * (size_t)piece, p.M, p.K, whole);
        } else {
            row -= TILE_M;
            copy_piece(to->weight + place(row, piece, true), (const __nv_bfloat16 *)p.weight,
                       n0 + (size_t)row, k0 + 8 * (size_t)piece, p.N, p.K, whole);
        }
    }
}

/* A warp's 16 rows by all columns. */
static __device__ void multiply(float sums[TILE_N / 8][4], const struct stage *s,
                                enum mistake mistake) {
    int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16;
    for (int k = 0; k < STEP / 8; k += 2) {
        int half = mistake == MISTAKE_wrong_half ? 1 - lane / 16 : lane / 16;
        const struct fragment a = ldmatrix_x4(&s->in[place(row0 + lane % 16, k + half, true)]);
        for (int n = 0; n < TILE_N; n += 16) {
            int row = n + lane % 8 + lane / 16 * 8;
            const struct fragment b = ldmatrix_x4(
                &s->weight[place(row, k + lane / 8 % 2, mistake != MISTAKE_swizzle_in)]);
            mma_m16n8k16(sums[n / 8], a, b.x[0], b.x[1], __nv_bfloat16());
            mma_m16n8k16(sums[n / 8 + 1], a, b.x[2], b.x[3], __nv_bfloat16());
        }
    }
}

static __device__ void store_tile(const struct gemm16_problem &p, float sums[TILE_N / 8][4],
                                  size_t m0, size_t n0, enum mistake mistake) {
    size_t m = m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, n = n0 + threadIdx.x % 4 * 2;
    for (size_t j = 0; j < TILE_N / 8; j++) {
        store_two(p, m, n + 8 * j, sums[j], mistake);
        store_two(p, m + 8, n + 8 * j, sums[j] + 2, mistake);
    }
}

static __device__ void round_sums(float *sums, int count) {
    for (int i = 0; i < count; i++) {
        sums[i] = __bfloat162float(__float2bfloat16(sums[i]));
    }
}

static __global__ void mma_kernel(struct gemm16_problem p, bool whole, enum mistake mistake) {
    __shared__ __align__(128) struct stage stages[STAGES];
    size_t tiles_n = (p.N + TILE_N - 1) / TILE_N;
    size_t tile = mistake == MISTAKE_grid ? blockIdx.y : blockIdx.x;
    size_t m0 = tile / tiles_n * TILE_M, n0 = tile % tiles_n * TILE_N;
    size_t steps = mistake == MISTAKE_last_step ? p.K / STEP : (p.K + STEP - 1) / STEP;
    float sums[TILE_N / 8][4] = {};
    size_t ahead = mistake == MISTAKE_stage_early ? STAGES : STAGES - 1;
    for (size_t i = 0; i < STAGES - 1; i++) {
        copy_stage(&stages[i], p, m0, n0, i * STEP, whole);
        cp_async_commit();
    }
    for (size_t i = 0; i < steps; i++) {
        if (mistake == MISTAKE_wait_short) {
            cp_async_wait<STAGES - 1>();
        } else {
            cp_async_wait<STAGES - 2>();
        }
        if (mistake != MISTAKE_no_barrier) {
            __syncthreads();
        }
        copy_stage(&stages[(i + ahead) % STAGES], p, m0, n0, (i + STAGES - 1) * STEP, whole);
        cp_async_commit();
        multiply(sums, &stages[i % STAGES], mistake);
        if (mistake == MISTAKE_bf16_sums) {
            round_sums(sums[0], TILE_N / 2);
        }
    }
    cp_async_wait_all();
    store_tile(p, sums, m0, n0, mistake);
}

/* ---- TMA and wgmma ---- */

enum { WIDE_N = 128, IN_BYTES = TILE_M * 128, WEIGHT_BYTES = WIDE_N * 128 };

#if __CUDA_ARCH_FEAT_SM90_ALL
static __device__ void copy_boxes(unsigned shared, unsigned barrier, const CUtensorMap *in,
                                  const CUtensorMap *weight, int m0, int n0, int k,
                                  enum mistake mistake) {
    unsigned bytes = IN_BYTES + WEIGHT_BYTES;
    bytes -= mistake == MISTAKE_few_bytes ? 64 : 0;
    bytes += mistake == MISTAKE_many_bytes ? 64 : 0;
    mbarrier_arrive_expect_tx(barrier, bytes);
    tma_load_2d(shared, in, k, m0, barrier);
    tma_load_2d(shared + IN_BYTES, weight, k, n0, barrier);
}

static __device__ void multiply_boxes(float *sums, unsigned shared, int is_first,
                                      enum mistake mistake) {
    uint64_t a = wgmma_descriptor<false>(shared), b = wgmma_descriptor<false>(shared + IN_BYTES);
    if (mistake != MISTAKE_not_fenced) {
        wgmma_fence();
    }
    for (int k = 0; k < STEP / 16; k++) {
        wgmma<WIDE_N>::run<0, 0>(sums, a + 2 * k, b + 2 * k, !(is_first && k == 0),
                                 __nv_bfloat16());
    }
    wgmma_commit();
}
#endif

static __global__ void __launch_bounds__(THREADS)
    wgmma_kernel(struct gemm16_problem p, const __grid_constant__ CUtensorMap in,
                 const __grid_constant__ CUtensorMap weight, enum mistake mistake) {
#if __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(1024) unsigned char boxes[IN_BYTES + WEIGHT_BYTES];
    __shared__ __align__(8) uint64_t barrier_memory;
    size_t tiles_n = (p.N + WIDE_N - 1) / WIDE_N;
    int m0 = (int)(blockIdx.x / tiles_n) * TILE_M, n0 = (int)(blockIdx.x % tiles_n) * WIDE_N;
    unsigned shared = shared_address(boxes), barrier = shared_address(&barrier_memory);
    unsigned parity = mistake == MISTAKE_wrong_parity;
    float sums[WIDE_N / 2] = {};
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        mbarrier_init_fence();
    }
    __syncthreads();
    for (int k = 0; k < (int)p.K; k += STEP) {
        if (threadIdx.x == 0 && (k == 0 || mistake != MISTAKE_overwrites)) {
            copy_boxes(shared, barrier, &in, &weight, m0, n0, k, mistake);
        }
        mbarrier_wait(barrier, parity);
        parity ^= mistake != MISTAKE_one_parity;
        multiply_boxes(sums, shared, k == 0, mistake);
        if (threadIdx.x == 0 && mistake == MISTAKE_overwrites && k + STEP < (int)p.K) {
            copy_boxes(shared, barrier, &in, &weight, m0, n0, k + STEP, mistake);
        }
        if (mistake != MISTAKE_not_waited) {
            wgmma_wait<0>();
        }
        __syncthreads();
    }
    size_t m = (size_t)m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (size_t i = 0; i < WIDE_N / 2; i += 2) {
        store_two(p, m + i / 2 % 2 * 8, (size_t)n0 + i / 4 * 8 + threadIdx.x % 4 * 2, sums + i,
                  mistake);
    }
#endif
}

static enum status describe(CUtensorMap *map, const void *data, size_t rows, size_t K,
                            unsigned box_rows, enum mistake mistake, struct error *error) {
    const struct tensor_map_matrix matrix = {
        NN_BF16, data, rows, K, box_rows, STEP, mistake == MISTAKE_unswizzled ? 0u : 128u};
    return tensor_map_create(map, &matrix, error);
}

static enum status run_wgmma(const struct gemm16_problem *p, enum mistake mistake,
                             device_stream stream, struct error *error) {
    CUtensorMap in, weight;
    size_t tiles = (p->M + TILE_M - 1) / TILE_M * ((p->N + WIDE_N - 1) / WIDE_N);
    TRY(describe(&in, p->in, p->M, p->K, TILE_M, mistake, error));
    TRY(describe(&weight, p->weight, p->N, p->K, WIDE_N, mistake, error));
    wgmma_kernel<<<(unsigned)tiles, THREADS, 0, stream>>>(*p, in, weight, mistake);
    return device_launched("wgmma_kernel", error);
}

static enum status run(const struct gemm16_problem *p, void *workspace, device_stream stream,
                       struct error *error) {
    enum mistake mistake = chosen_mistake();
    size_t tiles = (p->M + TILE_M - 1) / TILE_M * ((p->N + TILE_N - 1) / TILE_N);
    bool whole = ((uintptr_t)p->in | (uintptr_t)p->weight) % 16 == 0 && p->K % 8 == 0;
    (void)workspace;
    if (tiles == 0 || mistake == MISTAKE_empty || (mistake == MISTAKE_no_k && p->K == 0)) {
        return STATUS_OK;
    }
    if (mistake >= MISTAKE_on_hopper && whole && p->K > 0) {
        return run_wgmma(p, mistake, stream, error);
    }
    whole = whole || (mistake == MISTAKE_aligned && p->K % 8 == 0);
    dim3 grid((unsigned)tiles);
    if (mistake == MISTAKE_grid) {
        grid = dim3(1, (unsigned)tiles * TILE_M); /* as for tiles of one row */
    }
    mma_kernel<<<grid, THREADS, 0, stream>>>(*p, whole, mistake);
    return device_launched("mma_kernel", error);
}

enum status gemm16(const struct gemm16_problem *problem, void *workspace, device_stream stream,
                   struct error *error) {
    enum mistake mistake = chosen_mistake();
    const size_t sizes[] = {problem->M, problem->N, problem->K};
    if (mistake == MISTAKE_status) {
        return error_set(error, STATUS_DEVICE, "nothing works today");
    }
    for (int i = 0; i < 3; i++) {
        if (sizes[i] > GEMM16_MAX_SIZE && mistake != MISTAKE_not_refused) {
            return error_set(error, STATUS_INVALID_ARGUMENT, "%zu is too large", sizes[i]);
        }
        if (sizes[i] > GEMM16_MAX_SIZE) {
            return STATUS_OK;
        }
    }
    return run(problem, workspace, stream, error);
}

const struct gemm16_step *gemm16_ladder(size_t *count) {
    static const struct gemm16_step steps[] = {{"wrong", gemm16}};
    *count = 1;
    return steps;
}
