/**
 * @file step_input.cuh
 * @brief A warp's chunk of a product's input: read from the mailbox into the tensor cores'
 * fragments.
 *
 * A number is the sum of two bf16, what it rounds to and what that left: together 16 significant
 * bits. Lane (g, t) of a fragment has text g, and of each 32 channels 8t to 8t + 7.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_INPUT_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_ROWS_STEP_INPUT_CUH_

#include "common/cuda/convert.cuh"
#include "solutions/13_low_bit/rows/step_pipeline.cuh"

enum { STEP_READS = STEP_CHUNK / 16, STEP_STEPS = STEP_READS / 2 };

/* Read r: four channels of a lane, as pairs of its first and third, second and fourth. */
struct input_chunk {
    unsigned high[STEP_READS][2], low[STEP_READS][2];
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
    r.from.values = box.values + (size_t)chunk * (STEP_READS * STEP_OUTPUTS) + lane * 4;
    r.channels = lane / 4 < rows && first < K ? K - first : 0;
    return r;
}

static __device__ __forceinline__ bool has_read(const struct chunk_reads &r, int i) {
    return (unsigned)(i / 2 * 32) < r.channels;
}

/* Polls until the whole chunk has arrived, and asks for slices held back meanwhile. First for one
 * read, so that waiting warps do not occupy L2. */
template <typename W>
static __device__ __forceinline__ void poll_chunk(uint4 x[STEP_READS], const struct chunk_reads &r,
                                                  unsigned flag, struct slice_pipeline *pipe,
                                                  const struct step_arguments &p) {
    x[0] = make_uint4(flag, flag, flag, flag);
    while (true) {
        if (has_read(r, 0)) {
            x[0] = read_four(r.from, 0);
        }
        if (__all_sync(~0u, has_flag(x[0], flag))) {
            break;
        }
        ask_for_held_back<W>(pipe, p);
    }
#pragma unroll
    for (int i = 1; i < STEP_READS; i++) {
        x[i] = make_uint4(0, 0, 0, 0);
        if (has_read(r, i)) {
            x[i] = read_four(r.from, i * 32);
        }
    }
    bool complete;
    do {
        complete = true;
#pragma unroll
        for (int i = 1; i < STEP_READS; i++) {
            if (has_read(r, i) && !has_flag(x[i], flag)) {
                x[i] = read_four(r.from, i * 32);
                complete = false;
            }
        }
    } while (!__all_sync(~0u, complete));
    while (pipe->held_back > 0) {
        ask_for_held_back<W>(pipe, p);
    }
}

/* A read as two pairs of bf16, and what is left of them. */
static __device__ __forceinline__ void split_read(struct input_chunk *in, int i, float4 x) {
    const __nv_bfloat16 type = {};
    unsigned first = pack(x.x, x.z, type), second = pack(x.y, x.w, type);
    float2 xz = unpack(first, type), yw = unpack(second, type);
    in->high[i][0] = first;
    in->high[i][1] = second;
    in->low[i][0] = pack(x.x - xz.x, x.z - xz.y, type);
    in->low[i][1] = pack(x.y - yw.x, x.w - yw.y, type);
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
template <typename W>
static __device__ __forceinline__ float
load_chunk(struct input_chunk *in, const struct chunk_reads &r, unsigned flag, const float *norm,
           struct slice_pipeline *pipe, const struct step_arguments &p) {
    uint4 x[STEP_READS];
    float squares = 0.0f;
    poll_chunk<W>(x, r, flag, pipe, p);
#pragma unroll
    for (int i = 0; i < STEP_READS; i++) {
        float4 y = has_read(r, i) ? values_of(x[i]) : make_float4(0, 0, 0, 0);
        if (norm != NULL) {
            float4 w = *(const float4 *)(norm + i / 2 * 32 + threadIdx.x % 4 * 8 + i % 2 * 4);
            squares += (y.x * y.x + y.y * y.y) + (y.z * y.z + y.w * y.w);
            y = make_float4(y.x * w.x, y.y * w.y, y.z * w.z, y.w * w.w);
        }
        split_read(in, i, y);
    }
    return squares;
}

#endif
