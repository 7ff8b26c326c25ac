/**
 * @file rope.cu
 * @brief Rotary position embedding (Su et al. 2021), in place, and its inverse.
 *
 * Pair i of a head is rotated by position * theta^(-2i / HS). A block of 128 threads has a row: it
 * first computes the row's HS / 2 sines and cosines, in shared memory, then rotates all heads, a
 * thread every 128th pair: neighbours, loaded together, or an element of each half of a head. The
 * angle is computed and reduced below a full circle in fp64: in fp32 the error would be 1e-4 at
 * position 2048. Bytes: x once
 * in, once out. FLOPs: 6 a pair.
 */
#include "labs/11_training/given/vectors.cuh"

namespace {

constexpr int THREADS = 128;
constexpr int MOST_PAIRS = 512; /* of a head */

template <typename E> struct __align__(2 * sizeof(E)) two {
    E x[2];
};

template <typename E> __device__ __forceinline__ float2 load_two(const E *from, bool vector) {
    struct two<E> both;
    if (vector) {
        both = *(const struct two<E> *)from;
    } else {
        both.x[0] = from[0];
        both.x[1] = from[1];
    }
    return make_float2(to_float(both.x[0]), to_float(both.x[1]));
}

template <typename E> __device__ __forceinline__ void store_two(E *to, float2 x, bool vector) {
    struct two<E> both;
    store_rounded(&both.x[0], x.x);
    store_rounded(&both.x[1], x.y);
    if (vector) {
        *(struct two<E> *)to = both;
    } else {
        to[0] = both.x[0];
        to[1] = both.x[1];
    }
}

__device__ __forceinline__ float2 rotated(float first, float second, float2 rotation) {
    return make_float2(first * rotation.x - second * rotation.y,
                       first * rotation.y + second * rotation.x);
}

struct rope_sizes {
    size_t heads, HS, stride;
    double octaves; /* log2(theta) */
    bool halves, back, vector;
};

template <typename E>
__global__ void __launch_bounds__(THREADS)
    rotate_rows(E *x, const int32_t *positions, const struct rope_sizes s) {
    __shared__ float2 rotations[MOST_PAIRS];
    int pairs = (int)(s.HS / 2);
    double position = s.back ? -(double)positions[blockIdx.x] : (double)positions[blockIdx.x];
    for (int i = threadIdx.x; i < pairs; i += THREADS) {
        double angle = position * exp2(-s.octaves * i / pairs) * 0.15915494309189535;
        float rotation = (float)(angle - rint(angle)) * 2.0f;
        sincospif(rotation, &rotations[i].y, &rotations[i].x);
    }
    __syncthreads();
    E *row = x + (size_t)blockIdx.x * s.stride;
    /* 32 bits: a division of 64 bits is 100 instructions. */
    unsigned all = (unsigned)s.heads * (unsigned)pairs;
    for (unsigned i = threadIdx.x; i < all; i += THREADS) {
        unsigned head = i / (unsigned)pairs;
        int pair = (int)(i - head * (unsigned)pairs);
        E *begin = row + head * s.HS;
        if (s.halves) {
            float2 y =
                rotated(to_float(begin[pair]), to_float(begin[pair + pairs]), rotations[pair]);
            store_rounded(begin + pair, y.x);
            store_rounded(begin + pair + pairs, y.y);
        } else {
            float2 both = load_two(begin + 2 * pair, s.vector);
            store_two(begin + 2 * pair, rotated(both.x, both.y, rotations[pair]), s.vector);
        }
    }
}

} // namespace

enum status given_rope(const struct given_call *call, const struct given_rope *r) {
    if (r->rows * r->heads * r->HS == 0) {
        return STATUS_OK;
    }
    if (r->heads * r->HS > UINT32_MAX || r->HS % 2 != 0 || r->HS / 2 > MOST_PAIRS) {
        return error_set(call->error, STATUS_INVALID_ARGUMENT,
                         "rope: %zu heads of %zu channels: HS is odd, above %d, or there are too "
                         "many",
                         r->heads, r->HS, 2 * MOST_PAIRS);
    }
    return by_type(call, [&](auto e) {
        typedef decltype(e) E;
        bool vector = ((uintptr_t)r->x | r->stride * sizeof(E)) % (2 * sizeof(E)) == 0;
        const struct rope_sizes s = {
            r->heads, r->HS, r->stride, log2((double)r->theta), r->layout == NN_ROPE_HALVES,
            r->back,  vector};
        rotate_rows<<<(unsigned)r->rows, THREADS, 0, call->stream>>>((E *)r->x, r->positions, s);
        return device_launched("rotate_rows", call->error);
    });
}
