/**
 * @file v7_band_barrier.cuh
 * @brief v7's band barrier, GELU of a band, and the mainloop of one tile.
 *
 * A band is the rows of one row of tiles. Its blocks share the rows, so they synchronise with one
 * another: a grid barrier, limited to the band.
 */
#ifndef WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_V7_BAND_BARRIER_CUH_
#define WARPBOOK_SOLUTIONS_06_FUSED_EPILOGUES_STEPS_V7_BAND_BARRIER_CUH_

#include "solutions/06_fused_epilogues/steps/gemm.cuh"

/* Columns of one group, those of a warp: a row has mean and squares of each. Most groups of a row.
 */
enum { GROUP = 64, MOST_GROUPS = 16 };

/* Loads of four floats that a thread has in flight while it applies GELU. */
enum { GELU_FOURS = 8 };

struct band_gemm : fused_gemm<identity, identity> {
    const float *raw; /* (M, K), A before GELU; NULL: A is ready */
    float *activated; /* (M, K), A, where there is raw */
    struct nn_norm norm;
    float2 *moments;    /* (M, groups): sum, and squares of differences from the mean */
    unsigned *counters; /* one for each band, 0 before and after */
};

/* The barrier of a band's blocks, the members. goal: arrivals that end the present wait. */
struct band_barrier {
    unsigned *counter, members, goal;
};

/* Returns when all members have arrived; their earlier stores are then visible. */
static __device__ __forceinline__ void wait_for_band(struct band_barrier &m) {
    __threadfence();
    __syncthreads();
    m.goal += m.members;
    if (threadIdx.x == 0) {
        atomicAdd(m.counter, 1);
        while (*(volatile unsigned *)m.counter < m.goal) {
        }
    }
    __syncthreads();
    __threadfence();
}

/* After the last wait: the last member to leave resets the counter. */
static __device__ __forceinline__ void leave_barrier(const struct band_barrier &m) {
    if (threadIdx.x == 0 && atomicAdd(m.counter, 1) == m.goal + m.members - 1) {
        atomicExch(m.counter, 0);
    }
}

/* GELU of this block's share of the rows of a band. Bands begin at multiples of 128 bytes: no line
   of L1 holds elements of two. */
template <class T>
static __device__ __forceinline__ void activate_share(const band_gemm &p, size_t m, unsigned member,
                                                      unsigned members) {
    const float4 *from = (const float4 *)(p.raw + m * p.K);
    float4 *to = (float4 *)(p.activated + m * p.K);
    size_t count = min((size_t)T::BM, p.M - m) * p.K / 4, step = (size_t)members * T::THREADS;
    for (size_t i = member * T::THREADS + threadIdx.x; i < count; i += step * GELU_FOURS) {
        float4 x[GELU_FOURS];
#pragma unroll
        for (int j = 0; j < GELU_FOURS; j++) {
            x[j] = i + j * step < count ? __ldcs(from + i + j * step) : float4{0, 0, 0, 0};
        }
#pragma unroll
        for (int j = 0; j < GELU_FOURS; j++) {
            gelu f;
            if (i + j * step < count) {
                to[i + j * step] = {f(x[j].x), f(x[j].y), f(x[j].z), f(x[j].w)};
            }
        }
    }
}

/* sum += a tile of A * B: a copy of the mainloop of v10's tile_kernel(). With one function for
   both, the compiler allocates v10's registers differently (lab 04's page says what that costs). */
template <class T>
static __device__ __forceinline__ void multiply_tile(float (&sum)[T::ROWS][8], const band_gemm &p,
                                                     const struct place &at,
                                                     const struct thread_tile &s, float *shared) {
    typedef fused_epilogue<identity, identity> EPILOGUE;
    const int FORM = SGEMM_B_TRANSPOSED;
    const bool VECTOR = true;
    const int DEPTH = V10_BK / T::SLICES;
    struct copies<T> c;
    start_copies<T, FORM, VECTOR>(c, p, at);
    float a[2][T::ROWS], b[2][8];
    int left = (int)(at.end - at.k);
    float *stage = shared, *next = shared;
#pragma unroll
    for (int i = 0; i < V10_STAGES - 1; i++) {
        fetch_a<T, FORM, VECTOR>(c, left);
#pragma unroll
        for (int j = 0; j < T::COUNT_A; j++) {
            put_a<T, FORM, EPILOGUE>(p, c, next, j, left);
        }
#pragma unroll
        for (int j = 0; j < T::COUNT_B; j++) {
            copy_b<T, FORM, VECTOR>(c, next + V10_CHUNKS * T::CHUNK_A, j, left, p.N - at.n);
        }
        cp_async_commit();
        advance<T, FORM>(c, p);
        left -= V10_BK;
        next += T::STAGE;
    }
    while (left > (1 - V10_STAGES) * V10_BK) {
        /* Before the barrier, so that the compiler does not put it off until the values are due. */
        fetch_a<T, FORM, VECTOR>(c, left);
        cp_async_wait<V10_STAGES - 2>();
        __syncthreads();
        read_stage<T, FORM>(a[0], b[0], stage, s, 0);
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            if (i + 1 < DEPTH) {
                read_stage<T, FORM>(a[(i + 1) % 2], b[(i + 1) % 2], stage, s, i + 1);
            }
            copy_share<T, FORM, VECTOR, EPILOGUE>(p, c, next, i * 16 / DEPTH, left, p.N - at.n);
            multiply<T>(sum, a[i % 2], b[i % 2]);
        }
        cp_async_commit();
        advance<T, FORM>(c, p);
        left -= V10_BK;
        stage = stage == shared + 2 * T::STAGE ? shared : stage + T::STAGE;
        next = next == shared + 2 * T::STAGE ? shared : next + T::STAGE;
    }
}

#endif
