/**
 * @file hopper_backward_edges.cuh
 * @brief What comes before and behind v6's kernel: statistics of the queries, and dq in bf16.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_EDGES_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_HOPPER_BACKWARD_EDGES_CUH_

#include "common/cuda/dependent_launch.cuh"
#include "solutions/11_training/steps/hopper_backward_block.cuh"

enum { EDGE_THREADS = 256 };

/* Rows of out and dout that a lane has in flight. */
enum { EDGE_ROWS = 4 };

/* lse and delta of a head's rows, and zeros in the counters. A vector of 8 channels a lane; a block
   has EDGE_ROWS times EDGE_THREADS / (HS / 8) rows. */
template <int HS>
static __global__ void __launch_bounds__(EDGE_THREADS)
    padded_stats(const struct attention_backward_problem p, const struct padded_scratch s) {
    constexpr int LANES = HS / 8, ROWS = EDGE_THREADS / LANES;
    size_t b = blockIdx.z, h = blockIdx.y, start = (size_t)p.starts[b];
    int T = p.starts[b + 1] - p.starts[b], lane = threadIdx.x % LANES;
    int first = (int)(blockIdx.x * ROWS * EDGE_ROWS + threadIdx.x / LANES);
    int end = (T + PADDING - 1) / PADDING * PADDING;
    uint4 out[EDGE_ROWS], dout[EDGE_ROWS];
#pragma unroll
    for (int i = 0; i < EDGE_ROWS; i++) {
        int t = min(first + i * ROWS, T - 1);
        size_t at = ((start + (size_t)t) * p.NH + h) * HS + (size_t)lane * 8;
        out[i] = *(const uint4 *)((const bf16 *)p.out + at);
        dout[i] = *(const uint4 *)((const bf16 *)p.dout + at);
    }
#pragma unroll
    for (int i = 0; i < EDGE_ROWS; i++) {
        int t = first + i * ROWS;
        float x[8], y[8], delta = 0.0f;
        unpack_vector(out[i], x);
        unpack_vector(dout[i], y);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            delta += x[j] * y[j];
        }
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            delta += __shfl_xor_sync(~0u, delta, step);
        }
        if (lane == 0 && t < end) {
            size_t to = h * s.padded + padded_start(start, b) + (size_t)t;
            s.delta[to] = t < T ? delta : 0.0f;
            s.lse[to] = t < T ? p.lse[(start + (size_t)t) * p.NH + h] * LOG2_E : INFINITY;
            if (t % PADDED_TILE == 0) {
                s.added[to / PADDED_TILE] = 0;
            }
        }
    }
}

/* A tile of dq's sums, in the order of the accumulators, as rows of bf16: four lanes have the same
   two rows, and exchange so that each has 8 channels of them. */
template <typename TILE>
static __global__ void __launch_bounds__(EDGE_THREADS)
    round_dq(const struct attention_backward_problem p, const struct padded_scratch s) {
    dependent_launch_begin();
    size_t b = blockIdx.z, h = blockIdx.y, start = (size_t)p.starts[b];
    int T = p.starts[b + 1] - p.starts[b], first = (int)blockIdx.x * TILE::QUERIES;
    if (first >= T) {
        return;
    }
    int group = (int)threadIdx.x / TILE::GROUP, lane = threadIdx.x % 32, quad = lane % 4;
    int row = (int)threadIdx.x % TILE::GROUP / 32 * 16 + lane / 4, column = 0;
    if (TILE::QUERY_PANELS == 2) {
        row += group * 64;
    } else {
        column = group * 64;
    }
    size_t from = (h * s.padded + padded_start(start, b) + (size_t)first) * TILE::HS;
    const float4 *piece =
        (const float4 *)(s.dq + from) + group * 8 * TILE::GROUP + threadIdx.x % TILE::GROUP;
    unsigned pairs[2][8]; /* of both rows, of each 8 channels */
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float4 x = piece[n * TILE::GROUP];
        pairs[0][n] = pack(x.x * p.scale, x.y * p.scale, bf16());
        pairs[1][n] = pack(x.z * p.scale, x.w * p.scale, bf16());
    }
#pragma unroll
    for (int i = 0; i < 4; i++) { /* row i / 2, channels 32 * (i % 2) and up */
        const unsigned *mine = pairs[i / 2] + i % 2 * 4;
        unsigned all[4];
#pragma unroll
        for (int n = 0; n < 4; n++) { /* pairs of 8 channels to the lane that stores them */
            unsigned got[4];
#pragma unroll
            for (int from_lane = 0; from_lane < 4; from_lane++) {
                got[from_lane] = __shfl_sync(~0u, mine[n], lane - quad + from_lane);
            }
            if (quad == n) {
                all[0] = got[0], all[1] = got[1], all[2] = got[2], all[3] = got[3];
            }
        }
        int t = first + row + i / 2 * 8, channel = column + i % 2 * 32 + quad * 8;
        if (t < T) {
            bf16 *to = (bf16 *)p.dq + (start + (size_t)t) * p.q_stride + h * TILE::HS + channel;
            *(uint4 *)to = make_uint4(all[0], all[1], all[2], all[3]);
        }
    }
}

#endif
