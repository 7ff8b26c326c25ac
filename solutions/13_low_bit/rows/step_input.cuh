/**
 * @file step_input.cuh
 * @brief A warp's chunk of a product's input: read from the mailbox into the tensor cores'
 * fragments.
 *
 * Inputs are fp16: eleven bits, where the lab's contract has the eight of bf16; a mailbox's flag
 * takes the last bit of every other one. Lane (g, t) of a fragment has text g, and of each 32
 * channels 8t to 8t + 7.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_INPUT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_INPUT_CUH_

#include "common/cuda/mma.cuh"
#include "solutions/13_low_bit/rows/step_pipeline.cuh"

enum { STEP_READS = STEP_CHUNK / 32 };

/* Read r: a lane's eight channels of 32, pairs of the first and third, second and fourth, and so
 * on.
 */
struct input_chunk {
    uint4 x[STEP_READS];
};

/* Which of a chunk's reads a lane has, and where. */
struct chunk_reads {
    struct flagged_mailbox from; /* the lane's first read */
    unsigned channels;           /* of the input from the lane's first one on; 0: no text */
};

static __device__ __forceinline__ struct chunk_reads
reads_of_chunk(struct flagged_mailbox box, unsigned chunk, unsigned K, unsigned rows) {
    unsigned lane = threadIdx.x % 32, first = chunk * STEP_CHUNK + lane % 4 * 8;
    struct chunk_reads r;
    r.from.values = box.values + (size_t)chunk * (STEP_READS * 128) + lane * 4;
    r.channels = lane / 4 < rows && first < K ? K - first : 0;
    return r;
}

static __device__ __forceinline__ bool has_read(const struct chunk_reads &r, int i) {
    return (unsigned)(i * 32) < r.channels;
}

/* The chunk, as soon as all of it has been published; a poll that finds a read has its values, too.
 */
static __device__ __forceinline__ void load_chunk(struct input_chunk *in,
                                                  const struct chunk_reads &r, unsigned flag) {
    uint4 *x = in->x;
    bool complete;
#pragma unroll
    for (int i = 0; i < STEP_READS; i++) {
        x[i] = make_uint4(0, 0, 0, 0);
        if (has_read(r, i)) {
            x[i] = read_four(r.from, i * 32);
        }
    }
    do {
        complete = true;
#pragma unroll
        for (int i = 0; i < STEP_READS; i++) {
            if (has_read(r, i) && !has_flag(x[i], flag)) {
                x[i] = read_four(r.from, i * 32);
                complete = false;
            }
        }
    } while (!__all_sync(~0u, complete));
}

/* A lane's sums of squares of a chunk's tiles of the residual stream: tiles i * 8 + lane / 4, two
 * texts, even and odd rows of each. */
struct square_reads {
    uint4 x[2];
};

static __device__ __forceinline__ bool has_square(unsigned chunk, int i, unsigned tiles) {
    return chunk * (STEP_CHUNK / LOW_BIT_TILE_ROWS) + i * 8 + threadIdx.x % 32 / 4 < tiles;
}

static __device__ __forceinline__ void read_squares(struct square_reads *r,
                                                    struct flagged_mailbox box, unsigned chunk,
                                                    unsigned tiles) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        r->x[i] = make_uint4(0, 0, 0, 0);
        if (has_square(chunk, i, tiles)) {
            r->x[i] = read_four(box, chunk * 64 + i * 32 + threadIdx.x % 32);
        }
    }
}

/* Waits for them. @return the sums of the chunk and of the lane's texts, lane % 4 * 2 and the next
 */
static __device__ __forceinline__ float2 sum_squares(struct square_reads *r,
                                                     struct flagged_mailbox box, unsigned chunk,
                                                     unsigned tiles, unsigned flag) {
    bool complete;
    do {
        complete = true;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (has_square(chunk, i, tiles) && !has_flag(r->x[i], flag)) {
                r->x[i] = read_four(box, chunk * 64 + i * 32 + threadIdx.x % 32);
                complete = false;
            }
        }
    } while (!__all_sync(~0u, complete));
    const float4 a = values_of(r->x[0]), b = values_of(r->x[1]);
    float2 sum = make_float2((a.x + a.y) + (b.x + b.y), (a.z + a.w) + (b.z + b.w));
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
        sum.x += __shfl_xor_sync(~0u, sum.x, distance);
        sum.y += __shfl_xor_sync(~0u, sum.y, distance);
    }
    return sum;
}

#endif
