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
    float2 sums[2]; /* of two parts and the lane's two texts, see sum_inputs() */
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
    r.channels = lane / 4 < rows && first < K ? K - first : 0; /* behind the last chunk: none */
    return r;
}

static __device__ __forceinline__ bool has_read(const struct chunk_reads &r, int i) {
    return (unsigned)(i * 32) < r.channels;
}

/* x = read i, if it is wanted. One instruction and no branch: eight of these are polled at once. */
static __device__ __forceinline__ void read_if(uint4 *x, const struct chunk_reads &r, int i,
                                               unsigned wanted) {
    asm volatile("{\n.reg .pred wanted;\n"
                 "setp.ne.u32 wanted, %4, 0;\n"
                 "@wanted ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%5];\n}"
                 : "+r"(x->x), "+r"(x->y), "+r"(x->z), "+r"(x->w)
                 : "r"(wanted), "l"((const uint4 *)r.from.values + i * 32)
                 : "memory");
}

/* Asks for reads FIRST to END - 1, for wait_for_chunk(). */
template <int FIRST, int END>
static __device__ __forceinline__ void ask_for_reads(struct input_chunk *in,
                                                     const struct chunk_reads &r, unsigned flag) {
#pragma unroll
    for (int i = FIRST; i < END; i++) {
        in->x[i] = make_uint4(flag, flag, flag, flag); /* as if it were there */
        read_if(&in->x[i], r, i, has_read(r, i) ? 1 : 0);
    }
}

/* The chunk, as soon as all of it has been published; a poll that finds a read has its values, too.
 * Reads that a lane has not are 0. */
static __device__ __forceinline__ void wait_for_chunk(struct input_chunk *in,
                                                      const struct chunk_reads &r, unsigned flag) {
    unsigned flags = 0u - flag, missing[STEP_READS], all;
    for (;;) {
        all = 0;
#pragma unroll
        for (int i = 0; i < STEP_READS; i++) {
            const uint4 &x = in->x[i];
            missing[i] = (x.x ^ flags) | (x.y ^ flags) | (x.z ^ flags) | (x.w ^ flags);
            all |= missing[i];
        }
        if (!__any_sync(~0u, (all & 1) != 0)) {
            break;
        }
#pragma unroll
        for (int i = 0; i < STEP_READS; i++) {
            read_if(&in->x[i], r, i, missing[i] & 1);
        }
    }
    if (__any_sync(~0u, !has_read(r, STEP_READS - 1))) {
#pragma unroll
        for (int i = 0; i < STEP_READS; i++) {
            in->x[i] = has_read(r, i) ? in->x[i] : make_uint4(0, 0, 0, 0);
        }
    }
}

static __device__ __forceinline__ void load_chunk(struct input_chunk *in,
                                                  const struct chunk_reads &r, unsigned flag) {
    ask_for_reads<0, STEP_READS>(in, r, flag);
    wait_for_chunk(in, r, flag);
}

/* The sums of squares of a chunk: text lane / 4, tiles lane % 4 * 4 and so on. */
static __device__ __forceinline__ uint4 read_squares(struct flagged_mailbox box, unsigned chunk) {
    return read_four(box, chunk * 32 + threadIdx.x % 32);
}

/* Waits for them. @param x what read_squares() found @return the sum of the chunk and of text lane
 * / 4 */
static __device__ __forceinline__ float sum_squares(uint4 x, struct flagged_mailbox box,
                                                    unsigned chunk, unsigned tiles, unsigned flag) {
    unsigned first = chunk * STEP_CHUNK_TILES + threadIdx.x % 4 * 4;
    unsigned count = first < tiles ? tiles - first : 0, missing;
    for (;;) {
        missing = count > 0 ? x.x ^ flag : 0;
        missing |= count > 1 ? x.y ^ flag : 0;
        missing |= count > 2 ? x.z ^ flag : 0;
        missing |= count > 3 ? x.w ^ flag : 0;
        if (!__any_sync(~0u, (missing & 1) != 0)) {
            break;
        }
        x = read_squares(box, chunk);
    }
    const float4 y = values_of(x); /* 0 where there is no tile */
    float sum = (y.x + y.y) + (y.z + y.w);
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
}

#endif
