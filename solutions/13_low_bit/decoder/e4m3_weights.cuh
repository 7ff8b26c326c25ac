/**
 * @file e4m3_weights.cuh
 * @brief Weights in e4m3, a scale a row: unpacked to bf16, in the order of fragments.cuh.
 *
 * Tensor cores multiply 8 columns of inputs at the price of one. The first is the input rounded to
 * bf16, the second what that rounding left: together 16 bits of it, for nothing.
 */
#ifndef WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_E4M3_WEIGHTS_CUH_
#define WARPBOOK_SOLUTIONS_13_LOW_BIT_DECODER_E4M3_WEIGHTS_CUH_

#include "solutions/13_low_bit/decoder/low_bit_tiles.cuh"
#include "solutions/13_low_bit/steps/multiply_unit.cuh"

/* The block's input in shared memory: of each 32 columns 64 bytes of bf16, then 64 bytes of what
 * rounding left. Lanes of the even rows of the fragment read the first, of odd rows the second. */
struct split_input {
    unsigned address; /* of the lane */

    __device__ __forceinline__ uint4 operator()(int, unsigned column) const {
        return read_shared(address + column * 4);
    }
};

struct e4m3_weights : low_bit_tiles<e4m3_weights, 128, true> {
    typedef form<LOW_BIT_FP8, 0, float, 1, 1, ONE_WARPS, 1> F;
    typedef struct split_input input;
    static constexpr unsigned INPUT_FLOATS = 128; /* of 128 channels */
    static constexpr bool SIDE_BY_SIDE = false;
    struct slice {
        struct unit_registers<F> units[2];
    };
    struct sums {
        float x[1][1][4];
    };

    static __device__ __forceinline__ void store_four(struct block_state *b, unsigned i, float4 x,
                                                      unsigned) {
        const __nv_bfloat16 type = {};
        unsigned char *to = (unsigned char *)b->x + i / 8 * 128 + i % 8 * 8;
        uint2 high = make_uint2(pack(x.x, x.y, type), pack(x.z, x.w, type));
        float2 first = unpack(high.x, type), second = unpack(high.y, type);
        *(uint2 *)to = high;
        *(uint2 *)(to + 64) = make_uint2(pack(x.x - first.x, x.y - first.y, type),
                                         pack(x.z - second.x, x.w - second.y, type));
    }

    /* A warp stores 128 columns, zeros behind channel K - 1: a whole slice. */
    static __device__ __forceinline__ void store_padding(struct block_state *, unsigned) {
    }

    static __device__ __forceinline__ struct split_input input_of(const struct block_state *b) {
        unsigned lane = threadIdx.x % 32;
        return {shared_address(b->x) + (lane / 4 & 1) * 64 + lane % 4 * 16};
    }

    static __device__ __forceinline__ void read(struct slice &s, unsigned stage) {
        unsigned lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            s.units[i / 2].values[0][i % 2] = read_shared(stage + i * 512 + lane * 16);
        }
    }

    static __device__ __forceinline__ void multiply_slice(struct sums &sum, const struct slice &s,
                                                          const struct split_input &in,
                                                          unsigned i) {
        multiply_unit<F>(sum.x, s.units[0], in, 2 * i);
        multiply_unit<F>(sum.x, s.units[1], in, 2 * i + 1);
    }

    /* The lane has the first two columns. */
    static __device__ __forceinline__ float2 row_sums(const struct sums &sum) {
        return make_float2(sum.x[0][0][0] + sum.x[0][0][1], sum.x[0][0][2] + sum.x[0][0][3]);
    }
};

#endif
