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

#include "common/cuda/convert.cuh"
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

/* Polls until the whole chunk has arrived; a poll that finds a read has its values, too. */
static __device__ __forceinline__ void poll_chunk(uint4 x[STEP_READS], const struct chunk_reads &r,
                                                  unsigned flag) {
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

static __device__ __forceinline__ unsigned multiply_pairs(unsigned a, unsigned b) {
    unsigned c;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
    return c;
}

/* The norm's weights of a chunk, in a warp's shared memory and in the order of its reads, as fp16:
 * (STEP_READS, 4). */
static __device__ __forceinline__ void stage_norm(uint4 *to, const float *norm, unsigned chunk,
                                                  unsigned K) {
    unsigned lane = threadIdx.x % 32, channel = chunk * STEP_CHUNK + lane * 8;
    float4 w[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        w[i] = channel < K ? __ldg((const float4 *)(norm + channel) + i) : make_float4(0, 0, 0, 0);
    }
    __syncwarp();
    to[lane] = make_uint4(pack(w[0].x, w[0].z, __half()), pack(w[0].y, w[0].w, __half()),
                          pack(w[1].x, w[1].z, __half()), pack(w[1].y, w[1].w, __half()));
    __syncwarp();
}

/* A pair times a pair of the norm's weights. @param squares adds the pair's own */
static __device__ __forceinline__ unsigned scale_pair(unsigned both, unsigned norm,
                                                      float *squares) {
    float2 x = unpack(both, __half());
    *squares += x.x * x.x + x.y * x.y;
    return multiply_pairs(both, norm);
}

/* Multiplies the chunk by the norm's weights. @return the lane's sum of squares, without them */
static __device__ __forceinline__ float apply_norm(struct input_chunk *in, const uint4 *norm) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < STEP_READS; i++) {
        const uint4 x = in->x[i], w = norm[i * 4 + threadIdx.x % 4];
        in->x[i] = make_uint4(scale_pair(x.x, w.x, &squares), scale_pair(x.y, w.y, &squares),
                              scale_pair(x.z, w.z, &squares), scale_pair(x.w, w.w, &squares));
    }
    return squares;
}

/* The chunk as it was published. */
static __device__ __forceinline__ void load_chunk(struct input_chunk *in,
                                                  const struct chunk_reads &r, unsigned flag) {
    poll_chunk(in->x, r, flag);
#pragma unroll
    for (int i = 0; i < STEP_READS; i++) {
        if (!has_read(r, i)) {
            in->x[i] = make_uint4(0, 0, 0, 0);
        }
    }
}

#endif
