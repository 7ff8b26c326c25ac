/**
 * @file stream.cuh
 * @brief Products with one vector: weights stream through shared memory, two rows side by side.
 *
 * A multiprocessor has one block, and a block its share of the matrix. What keeps memory busy is
 * how many bytes are on their way: each thread has STAGES places of 2 * 16 bytes in shared memory,
 * copies into them (cp.async) as far ahead as they reach, and uses what it copied itself, so
 * nothing waits for other threads. Weights are never written, so the first STAGES are asked for
 * before the kernel in front of this one is done.
 *
 * Two rows side by side are either rows n of the gate and of up, whose product silu(gate) * up is
 * written once, or rows 2n and 2n + 1 of any matrix.
 *
 * The norm costs no pass of its own: n(x) = f * (x * norm) with one number f, which the sums are
 * multiplied with at the end.
 */
#ifndef WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STREAM_CUH_
#define WARPBOOK_SOLUTIONS_10_LLAMA2_DECODER_STREAM_CUH_

#include "solutions/10_llama2_decoder/elements.cuh"

enum {
    STREAM_THREADS = 512,
    STREAM_WARPS = STREAM_THREADS / 32,
    STREAM_ROUND = 8 /* pairs of rows of a team between two meetings of the block */
};

#ifndef STREAM_STAGES
#define STREAM_STAGES 4
#endif

/* Sizes and pointers of a product; pieces are 16 bytes. */
struct stream {
    const uint4 *weight;
    size_t step, apart;     /* pieces from a pair of rows to the next; from a pair's first to its
                               second row */
    unsigned pairs, pieces; /* pairs of rows; pieces of a row */
    unsigned team;          /* threads that have a pair together: 32 .. 512, a power of two */
    unsigned rows;          /* of the result */
    const float *in;        /* (K) */
    const float *norm;      /* (K), or NULL */
    const float *residual;  /* (rows), or NULL; not with a gate */
    float *out;             /* (rows) */
    float eps;
};

static __device__ __forceinline__ void copy_ahead(uint4 *to, const uint4 *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned place = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
#else
    *to = *from;
#endif
}

static __device__ __forceinline__ void close_stage() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* All but the last STAGES - 1 stages that were closed are there. */
static __device__ __forceinline__ void wait_stage() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(STREAM_STAGES - 1) : "memory");
#endif
}

/* Where a thread is in its team's pairs. */
struct cursor {
    unsigned pair, piece;
};

static __device__ __forceinline__ void advance(struct cursor *c, const struct stream &s,
                                               unsigned teams) {
    c->piece += s.team;
    if (c->piece >= s.pieces + threadIdx.x % s.team) { /* the same for the whole team */
        c->piece = threadIdx.x % s.team;
        c->pair += teams;
    }
}

/* Asks for the two pieces at the cursor, if there are any, and closes the stage. */
template <bool GATE>
static __device__ __forceinline__ void ask(uint4 *stage, const struct cursor &c,
                                           const struct stream &s, unsigned end) {
    if (c.pair < end && c.piece < s.pieces) {
        const uint4 *first = s.weight + c.pair * s.step + c.piece;
        size_t apart = GATE || 2 * c.pair + 1 < s.rows ? s.apart : 0; /* an odd last row */
        copy_ahead(stage + threadIdx.x, first);
        copy_ahead(stage + STREAM_THREADS + threadIdx.x, first + apart);
    }
    close_stage();
}

/* x * norm into shared memory: float4 number j of each piece in plane j, so that a warp's reads do
   not collide. @return the thread's sum of x^2 */
template <typename E>
static __device__ __forceinline__ float place_input(float4 *planes, const struct stream &s) {
    constexpr unsigned FOURS = elements<E>::COUNT / 4;
    float squares = 0.0f;
    for (unsigned i = threadIdx.x; i < s.pieces * FOURS; i += STREAM_THREADS) {
        float4 x = ((const float4 *)s.in)[i];
        squares += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
        if (s.norm != NULL) {
            float4 n = ((const float4 *)s.norm)[i];
            x = make_float4(x.x * n.x, x.y * n.y, x.z * n.z, x.w * n.w);
        }
        planes[i % FOURS * s.pieces + i / FOURS] = x;
    }
    return squares;
}

template <typename E>
static __device__ __forceinline__ void multiply_piece(float *first, float *second, uint4 one,
                                                      uint4 other, const float4 *planes,
                                                      unsigned piece, unsigned pieces) {
    constexpr int COUNT = elements<E>::COUNT;
    float x[COUNT], a[COUNT], b[COUNT];
#pragma unroll
    for (int j = 0; j < COUNT / 4; j++) {
        float4 four = planes[j * pieces + piece];
        x[4 * j] = four.x, x[4 * j + 1] = four.y, x[4 * j + 2] = four.z, x[4 * j + 3] = four.w;
    }
    elements<E>::unpack(a, one);
    elements<E>::unpack(b, other);
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        *first += a[j] * x[j];
        *second += b[j] * x[j];
    }
}

/* Sums of both over the warp: lane 0 gets the first's, lane 16 the second's. */
static __device__ __forceinline__ float two_sums(float first, float second) {
    bool upper = threadIdx.x % 32 >= 16;
    float kept = upper ? second : first, given = upper ? first : second;
    kept += __shfl_xor_sync(~0u, given, 16);
#pragma unroll
    for (int step = 8; step > 0; step /= 2) {
        kept += __shfl_xor_sync(~0u, kept, step);
    }
    return kept;
}

/* Sums of a round: of each pair of each team, its warps' parts. */
struct stream_parts {
    float sums[STREAM_ROUND][STREAM_WARPS][2];
    float squares[STREAM_WARPS];
};

/* The sums of a round's pairs, `pair` the first of the block's. One thread a pair. */
template <bool GATE>
static __device__ void write_round(const struct stream_parts &parts, const struct stream &s,
                                   unsigned pair, unsigned end, unsigned K) {
    unsigned teams = STREAM_THREADS / s.team, warps = s.team / 32;
    unsigned i = threadIdx.x, n = pair + i;
    if (i >= teams * STREAM_ROUND || n >= end) {
        return;
    }
    float first = 0.0f, second = 0.0f, factor = 1.0f;
    for (unsigned w = 0; w < warps; w++) {
        first += parts.sums[i / teams][i % teams * warps + w][0];
        second += parts.sums[i / teams][i % teams * warps + w][1];
    }
    if (s.norm != NULL) {
        float squares = 0.0f;
        for (unsigned w = 0; w < STREAM_WARPS; w++) {
            squares += parts.squares[w];
        }
        factor = 1.0f / sqrtf(squares / (float)K + s.eps);
    }
    first *= factor;
    second *= factor;
    if (GATE) {
        s.out[n] = silu_of(first) * second;
        return;
    }
    s.out[2 * n] = (s.residual != NULL ? s.residual[2 * n] : 0.0f) + first;
    if (2 * n + 1 < s.rows) {
        s.out[2 * n + 1] = (s.residual != NULL ? s.residual[2 * n + 1] : 0.0f) + second;
    }
}

/*
 * Grid: a block a multiprocessor, each with pairs / gridDim.x neighbouring pairs; in it a team has
 * every teams-th pair. Dynamic shared memory: stream_bytes().
 * Bytes: 2 * pairs * K * sizeof(E).
 */
template <typename E, bool GATE>
static __global__ void __launch_bounds__(STREAM_THREADS, 2) stream_kernel(const struct stream s) {
    extern __shared__ uint4 ring[]; /* (STAGES, 2, THREADS), then the input's planes */
    __shared__ struct stream_parts parts;
    float4 *planes = (float4 *)(ring + STREAM_STAGES * 2 * STREAM_THREADS);
    unsigned teams = STREAM_THREADS / s.team;
    unsigned begin = (unsigned)((size_t)blockIdx.x * s.pairs / gridDim.x);
    unsigned end = (unsigned)(((size_t)blockIdx.x + 1) * s.pairs / gridDim.x);
    struct cursor use = {begin + threadIdx.x / s.team, threadIdx.x % s.team}, load = use;
    unsigned slot = 0;
    for (int i = 0; i < STREAM_STAGES; i++) {
        ask<GATE>(ring + i * 2 * STREAM_THREADS, load, s, end);
        advance(&load, s, teams);
    }
    chained_begin();
    float squares = place_input<E>(planes, s);
    squares = two_sums(squares, 0.0f);
    if (threadIdx.x % 32 == 0) {
        parts.squares[threadIdx.x / 32] = squares;
    }
    __syncthreads();
    for (unsigned pair = begin; pair < end; pair += teams * STREAM_ROUND) {
        for (unsigned r = 0; r < STREAM_ROUND && use.pair < end; r++) {
            float first = 0.0f, second = 0.0f;
            unsigned now = use.pair;
            while (use.pair == now) {
                uint4 *stage = ring + slot * 2 * STREAM_THREADS;
                wait_stage();
                if (use.piece < s.pieces) {
                    multiply_piece<E>(&first, &second, stage[threadIdx.x],
                                      stage[STREAM_THREADS + threadIdx.x], planes, use.piece,
                                      s.pieces);
                }
                ask<GATE>(stage, load, s, end);
                advance(&load, s, teams);
                advance(&use, s, teams);
                slot = slot + 1 == STREAM_STAGES ? 0 : slot + 1;
            }
            float sum = two_sums(first, second);
            if (threadIdx.x % 16 == 0) {
                parts.sums[r][threadIdx.x / 32][threadIdx.x % 32 / 16] = sum;
            }
        }
        __syncthreads();
        write_round<GATE>(parts, s, pair, end, s.pieces * elements<E>::COUNT);
        __syncthreads();
    }
}

#endif
