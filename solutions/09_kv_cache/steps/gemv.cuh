/**
 * @file gemv.cuh
 * @brief The product of steps v4 to v6: rows of weights stream through registers.
 *
 * A block has ROWS rows. Each thread has the same PASSES pieces of 16 bytes of every row, and loads
 * all ROWS * PASSES of them before it needs the first; x is loaded meanwhile, once for all rows.
 * The norm costs no pass of its own: n(x) = f * (x * norm) with one number f, so
 *
 *     out = residual + f * sum of weight * (x * norm),   f = 1 / sqrt(mean(x^2) + eps)
 *
 * and both sums are accumulated together. (f is rstd in the code.)
 */
#ifndef WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_GEMV_CUH_
#define WARPBOOK_SOLUTIONS_09_KV_CACHE_STEPS_GEMV_CUH_

#include "common/cuda/activation.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "solutions/09_kv_cache/steps/helpers.cuh"
#include "solutions/09_kv_cache/steps/ladder.h"

struct product {
    struct kv_linear l;
    unsigned *counters; /* NULL, or counters of the following attention, which are set to 0 */
    unsigned count;
    enum kv_order order;
    bool activated;
    enum nn_activation activation;
};

enum { PRODUCT_THREADS = 512 };

/* ---- Programmatic dependent launch ---- */

template <auto KERNEL, typename... ARGUMENTS>
static inline void launch(bool dependent, unsigned blocks, unsigned threads, device_stream stream,
                          ARGUMENTS... arguments) {
    if (dependent) {
        launch_dependent<KERNEL>(dim3(blocks), dim3(threads), 0, stream, arguments...);
    } else {
        KERNEL<<<blocks, threads, 0, stream>>>(arguments...);
    }
}

/* Before a product reads its input, its first weights being under way. */
static __device__ __forceinline__ void begin_product(const struct product &p) {
    if (p.order != KV_ORDERS) {
        launch_dependent_grids();
    }
    if (p.order != KV_BESIDE) {
        wait_on_dependent_grids();
    }
    if (p.order == KV_ORDERS) {
        launch_dependent_grids();
    }
}

/* A product beside others is done when they are: one block sees to that. */
static __device__ __forceinline__ void end_product(const struct product &p) {
    if (p.order == KV_BESIDE && blockIdx.x == gridDim.x - 1) {
        wait_on_dependent_grids();
    }
}

/* Numbers of the input. Nothing says that this kernel's L1 is newer than a kernel that it has not
   waited for: L2 is. */
template <int COUNT>
static __device__ __forceinline__ void load_input(float to[COUNT], const float *from,
                                                  const struct product &p) {
    if (p.order != KV_BESIDE) {
        load_floats<COUNT>(to, from);
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        float4 four = __ldcg((const float4 *)(from + i));
        to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
}

static __device__ __forceinline__ float finished(float y, const struct product &p) {
    return p.activated ? activate(y, p.activation) : y;
}

/* ---- The kernel ---- */

/* The thread's pieces of ROWS rows, from piece `first` of a row on; 0 beyond the end. */
template <int PASSES, int ROWS>
static __device__ __forceinline__ void load_pieces(uint4 w[ROWS][PASSES], const uint4 *rows,
                                                   size_t pieces, size_t first, int valid_rows) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int i = 0; i < PASSES; i++) {
            size_t piece = first + threadIdx.x + i * blockDim.x;
            w[r][i] = make_uint4(0, 0, 0, 0);
            if (r < valid_rows && piece < pieces) {
                w[r][i] = load_no_allocate(rows + r * pieces + piece);
            }
        }
    }
}

/* Adds the pieces' products to the rows' sums, and x^2 to `squares`. */
template <typename E, int PASSES, int ROWS>
static __device__ __forceinline__ void
add_products(float sums[ROWS], float *squares, const uint4 w[ROWS][PASSES], const struct product &p,
             size_t pieces, size_t first) {
    constexpr int WIDE = VECTOR_ELEMENTS<E>;
    const struct kv_linear &l = p.l;
#pragma unroll
    for (int i = 0; i < PASSES; i++) {
        size_t piece = first + threadIdx.x + i * blockDim.x;
        if (piece >= pieces) {
            break;
        }
        float x[WIDE], norm[WIDE], values[WIDE];
        load_input<WIDE>(x, l.in + piece * WIDE, p);
        if (l.norm != NULL) {
            load_floats<WIDE>(norm, l.norm + piece * WIDE);
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                *squares += x[j] * x[j];
                x[j] *= norm[j];
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            unpack(w[r][i], values, E());
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                sums[r] += values[j] * x[j];
            }
        }
    }
}

/* The block's sums, the norm and the residual, to out. */
template <int ROWS>
static __device__ __forceinline__ void product_epilogue(const float sums[ROWS], float squares,
                                                        const struct product &p, float *out,
                                                        float residual, int valid_rows) {
    const struct kv_linear &l = p.l;
    __shared__ float warp_sums[ROWS + 1][PRODUCT_THREADS / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
    for (int r = 0; r <= ROWS; r++) {
        float sum = warp_sum(r < ROWS ? sums[r] : squares);
        if (lane == 0) {
            warp_sums[r][warp] = sum;
        }
    }
    __syncthreads();
    if ((int)threadIdx.x < valid_rows) {
        float sum = 0.0f, rstd = 1.0f;
        squares = 0.0f;
        for (int i = 0; i < warps; i++) {
            sum += warp_sums[threadIdx.x][i];
            squares += warp_sums[ROWS][i];
        }
        if (l.norm != NULL) {
            rstd = norm_rstd(squares, l.K, l.eps);
        }
        out[threadIdx.x] = finished(residual + rstd * sum, p);
    }
}

/*
 * Grid: a block for each ROWS rows; blockDim.x * PASSES pieces of a row at a time.
 * Precondition: linear_aligned(). Bytes: N * K * sizeof(E).
 */
template <typename E, int PASSES, int ROWS>
static __global__ void __launch_bounds__(PRODUCT_THREADS) product_kernel(struct product p) {
    const struct kv_linear &l = p.l;
    size_t row = (size_t)blockIdx.x * ROWS, pieces = l.K / VECTOR_ELEMENTS<E>;
    int valid_rows = l.N - row < ROWS ? (int)(l.N - row) : ROWS;
    const uint4 *rows = (const uint4 *)l.weight + row * pieces;
    float sums[ROWS] = {}, squares = 0.0f;
    uint4 w[ROWS][PASSES];
    load_pieces<PASSES, ROWS>(w, rows, pieces, 0,
                              valid_rows); /* before the wait: no kernel writes weights */
    begin_product(p);
    bool adds = l.residual != NULL && (int)threadIdx.x < valid_rows;
    float residual = adds ? l.residual[row + threadIdx.x] : 0.0f; /* loaded early */
    for (size_t first = 0;;) {
        add_products<E, PASSES, ROWS>(sums, &squares, w, p, pieces, first);
        first += (size_t)blockDim.x * PASSES;
        if (first >= pieces) {
            break;
        }
        load_pieces<PASSES, ROWS>(w, rows, pieces, first, valid_rows);
    }
    product_epilogue<ROWS>(sums, squares, p, l.out + row, residual, valid_rows);
    for (unsigned i = threadIdx.x; blockIdx.x == 0 && i < p.count; i += blockDim.x) {
        p.counters[i] = 0;
    }
    end_product(p);
}

/* ---- Unaligned shapes: a warp a row, element by element ---- */

template <typename E> static __global__ void __launch_bounds__(256) odd_kernel(struct product p) {
    const struct kv_linear &l = p.l;
    wait_on_dependent_grids();
    launch_dependent_grids();
    size_t n = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (n < l.N) {
        const E *row = (const E *)l.weight + n * l.K;
        float sum = 0.0f, squares = 0.0f;
        for (size_t k = threadIdx.x % 32; k < l.K; k += 32) {
            float x = l.in[k];
            squares += x * x;
            sum += to_float(row[k]) * (l.norm != NULL ? x * l.norm[k] : x);
        }
        sum = warp_sum(sum);
        if (l.norm != NULL && l.K > 0) {
            sum *= norm_rstd(warp_sum(squares), l.K, l.eps);
        }
        if (threadIdx.x % 32 == 0) {
            l.out[n] = finished((l.residual != NULL ? l.residual[n] : 0.0f) + sum, p);
        }
    }
    for (unsigned i = threadIdx.x; blockIdx.x == 0 && i < p.count; i += blockDim.x) {
        p.counters[i] = 0;
    }
}

/* ---- Launches ---- */

template <typename E, int PASSES, int ROWS>
static inline void launch_rows(const struct product &p, bool dependent, unsigned threads,
                               device_stream stream) {
    launch<product_kernel<E, PASSES, ROWS>>(dependent, (unsigned)ceil_div(p.l.N, ROWS), threads,
                                            stream, p);
}

/* Wave quantisation: time with `rows` rows a block, relative to perfectly even work. */
static inline double wave_quantisation(size_t N, size_t rows) {
    const size_t multiprocessors = 132; /* of an H200; a guess for other GPUs */
    size_t rounds = ceil_div(ceil_div(N, rows), multiprocessors);
    return (double)(rounds * rows * multiprocessors) / (double)N;
}

/* The most rows a block, up to 8, that load the multiprocessors evenly. */
static inline size_t rows_for(size_t N) {
    size_t rows = 8;
    while (rows > 1 && wave_quantisation(N, rows) > 1.25) {
        rows /= 2;
    }
    return rows;
}

template <typename E, int PASSES>
static inline void launch_passes(const struct product &p, bool dependent, unsigned threads,
                                 device_stream stream) {
    size_t rows = rows_for(p.l.N);
    if (rows == 8) {
        launch_rows<E, PASSES, 8>(p, dependent, threads, stream);
    } else if (rows == 4) {
        launch_rows<E, PASSES, 4>(p, dependent, threads, stream);
    } else if (rows == 2) {
        launch_rows<E, PASSES, 2>(p, dependent, threads, stream);
    } else {
        launch_rows<E, PASSES, 1>(p, dependent, threads, stream);
    }
}

/* A thread has 2 pieces of a row per round; for few blocks or short rows 1, and so twice the
 * threads. */
template <typename E>
static inline void launch_aligned(const struct product &p, bool dependent, device_stream stream) {
    size_t pieces = p.l.K / VECTOR_ELEMENTS<E>, rows = rows_for(p.l.N);
    bool few = p.l.N <= 264 * rows || rows == 4;
    size_t passes = pieces <= 64 || (pieces <= 256 && few && rows > 2) ? 1 : 2;
    size_t wanted = ceil_div(ceil_div(pieces, passes), 32) * 32;
    unsigned threads = (unsigned)(wanted < PRODUCT_THREADS ? wanted : PRODUCT_THREADS);
    if (passes == 1) {
        launch_passes<E, 1>(p, dependent, threads, stream);
    } else {
        launch_passes<E, 2>(p, dependent, threads, stream);
    }
}

/* The caller has checked the arguments. */
static inline enum status launch_product(const struct product &p, bool dependent,
                                         device_stream stream, struct error *error) {
    if (p.l.N == 0) {
        return STATUS_OK; /* a grid without blocks cannot be launched */
    }
    if (linear_aligned(&p.l)) {
        FOR_ELEMENT_TYPE(p.l.dtype, (launch_aligned<E>(p, dependent, stream)));
    } else {
        FOR_ELEMENT_TYPE(p.l.dtype, (launch<odd_kernel<E>>(dependent, (unsigned)ceil_div(p.l.N, 8),
                                                           256, stream, p)));
    }
    return device_launched("product", error);
}

#endif
