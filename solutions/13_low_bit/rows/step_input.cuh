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

/* A pair times two norm weights. @param squares adds the pair's own */
static __device__ __forceinline__ unsigned scale_pair(unsigned both, float first, float second,
                                                      float *squares) {
    float2 x = unpack(both, __half());
    *squares += x.x * x.x + x.y * x.y;
    return pack(x.x * first, x.y * second, __half());
}

/* A read times the norm's weights of the lane's eight channels. */
static __device__ __forceinline__ uint4 scale_read(uint4 x, const float4 w[2], float *squares) {
    return make_uint4(
        scale_pair(x.x, w[0].x, w[0].z, squares), scale_pair(x.y, w[0].y, w[0].w, squares),
        scale_pair(x.z, w[1].x, w[1].z, squares), scale_pair(x.w, w[1].y, w[1].w, squares));
}

/* The lane's eight of the chunk's norm weights, to the warp's shared memory. */
static __device__ __forceinline__ void stage_norm(float *to, const float *norm, unsigned chunk,
                                                  unsigned K) {
    unsigned lane = threadIdx.x % 32, channel = chunk * STEP_CHUNK + lane * 8;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        ((float4 *)to)[lane * 2 + i] =
            channel < K ? __ldg((const float4 *)(norm + channel) + i) : make_float4(0, 0, 0, 0);
    }
    __syncwarp();
}

/* The chunk, times the norm's weights if there are some (shared memory, of the chunk). @return the
 * lane's sum of squares, without them */
static __device__ __forceinline__ float
load_chunk(struct input_chunk *in, const struct chunk_reads &r, unsigned flag, const float *norm) {
    float squares = 0.0f;
    poll_chunk(in->x, r, flag);
#pragma unroll
    for (int i = 0; i < STEP_READS; i++) {
        if (!has_read(r, i)) {
            in->x[i] = make_uint4(0, 0, 0, 0);
        }
        if (norm != NULL) {
            const float4 *w = (const float4 *)(norm + i * 32 + threadIdx.x % 4 * 8);
            const float4 both[2] = {w[0], w[1]};
            in->x[i] = scale_read(in->x[i], both, &squares);
        }
    }
    return squares;
}

#endif
