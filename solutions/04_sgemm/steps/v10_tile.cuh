/**
 * @file v10_tile.cuh
 * @brief v10's kernel as a template: tile shape, slices of K inside a block,
 * split-K, epilogue.
 *
 * EPILOGUE stores the accumulators and transforms A as it is loaded
 * (v10_epilogue.cuh). The comment of sgemm_v10_shapes.cu has the reasons and
 * the measurements.
 */
#ifndef WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_TILE_CUH_
#define WARPBOOK_SOLUTIONS_04_SGEMM_STEPS_V10_TILE_CUH_

#include "solutions/04_sgemm/steps/v10_copies.cuh"
#include "solutions/04_sgemm/steps/v10_epilogue.cuh"

/* A thread's coordinates in its tile. */
struct thread_tile {
    unsigned row, column; /* first ones */
    int slice;
};

/* Bits 1 and 3 of the lane choose the row, the others the column: of lanes that
   read together, neighbours then want the same 16 bytes. Rows of two warps
   alternate by 16. */
template <class T> static __device__ __forceinline__ struct thread_tile find_thread_tile(void) {
    unsigned lane = threadIdx.x, warp = threadIdx.x % T::SLICE / 32;
    struct thread_tile s;
    s.row = warp / T::WARPS_N * 16 + 4 * ((lane >> 1 & 1) + (lane >> 2 & 2));
    s.column = warp % T::WARPS_N * 64 + 4 * ((lane & 1) + (lane >> 1 & 2) + (lane >> 2 & 4));
    s.slice = T::SLICES == 1 ? 0 : (int)(threadIdx.x / T::SLICE);
    return s;
}

/* Four floats of shared memory to registers. */
static __device__ __forceinline__ void read4(float *to, const float *from) {
    float4 v = *(const float4 *)from;
    to[0] = v.x;
    to[1] = v.y;
    to[2] = v.z;
    to[3] = v.w;
}

/* Reads value i of a slice's share of a stage: ROWS of A, 8 of B. */
template <class T, int FORM>
static __device__ __forceinline__ void read_stage(float (&a)[T::ROWS], float (&b)[8],
                                                  const float *stage, const struct thread_tile &s,
                                                  int i) {
    unsigned chunk = i / 4 * T::SLICES + s.slice, k = i % 4;
    const float *from = stage + chunk * T::CHUNK_A + k * T::BM + s.row;
#pragma unroll
    for (int q = 0; q < T::ROWS / 4; q++) {
        read4(a + 4 * q, from + 16 * T::WARPS_M * q);
    }
    from = stage + V10_CHUNKS * T::CHUNK_A + s.column + k * T::BN +
           chunk * (FORM == SGEMM_B_TRANSPOSED ? (int)T::CHUNK_B : 4 * T::BN);
    read4(b, from);
    read4(b + 4, from + 32);
}

/* sum += A * B for one value of K. Columns are visited forwards and backwards
   in turn, so that each product shares an operand with the one before: it comes
   from the reuse cache, and the two other operands from two banks of registers.
 */
template <class T>
static __device__ __forceinline__ void multiply(float (&sum)[T::ROWS][8], const float (&a)[T::ROWS],
                                                const float (&b)[8]) {
#pragma unroll
    for (int m = 0; m < T::ROWS; m++) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int n = m % 2 ? 7 - j : j;
            sum[m][n] += a[m] * b[n];
        }
    }
}

/* Every slice passes its sums of the rows that another slice stores to that
   slice, which adds them in order. One float at a time: with vectors of four
   the compiler would tie the sums to neighbouring registers, in the same banks
   of the register file as their operands. */
template <class T>
static __device__ __forceinline__ void add_slices(float (&sum)[T::ROWS][8], float *shared,
                                                  int slice) {
    const int OWN = T::ROWS / T::SLICES * 8;
    float *exchange = shared + threadIdx.x % T::SLICE;
    __syncthreads();
#pragma unroll
    for (int owner = 0; owner < T::SLICES; owner++) {
        int giver = slice < owner ? slice : slice - 1;
        if (owner != slice) {
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                exchange[((owner * (T::SLICES - 1) + giver) * OWN + i) * T::SLICE] =
                    sum[owner * OWN / 8 + i / 8][i % 8];
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int owner = 0; owner < T::SLICES; owner++) {
        if (owner == slice) {
#pragma unroll
            for (int i = 0; i < OWN * (T::SLICES - 1); i++) {
                sum[owner * OWN / 8 + i % OWN / 8][i % 8] +=
                    exchange[(owner * (T::SLICES - 1) * OWN + i) * T::SLICE];
            }
        }
    }
}

/* One block: one tile of C, one split of K. With several splits, p.C is the
   workspace: each split has an (M, N) of partial sums there. The three stages
   of shared memory are a ring buffer: one is read, one is complete or about to
   be, one is written. */
template <class T, int FORM, bool VECTOR, class EPILOGUE>
static __global__ void __launch_bounds__(T::THREADS, 256 / T::THREADS)
    tile_kernel(typename EPILOGUE::problem p, unsigned splits) {
    extern __shared__ __align__(16) float shared[];
    EPILOGUE::prologue(p);
    const int DEPTH = V10_BK / T::SLICES;
    struct place at = find_block_tile<T>(p, splits);
    struct thread_tile s = find_thread_tile<T>();
    p.C += blockIdx.x % splits * p.M * p.N;
    struct copies<T> c;
    start_copies<T, FORM, VECTOR>(c, p, at);
    float sum[T::ROWS][8] = {}, a[2][T::ROWS], b[2][8];
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
        /* Before the barrier, so that the compiler does not move it to the first
         * use of the values. */
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
    const int OWN = T::ROWS / T::SLICES;
    if (T::SLICES > 1) {
        cp_async_wait<0>();
        add_slices<T>(sum, shared, s.slice);
    }
    EPILOGUE::template store_rows<T>(p, at.m + s.row, at.n + s.column, sum, s.slice * OWN,
                                     s.slice * OWN + OWN);
    EPILOGUE::template tile_stored<T>(p, at.m);
}

#endif
