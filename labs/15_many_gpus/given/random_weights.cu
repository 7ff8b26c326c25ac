/**
 * @file random_weights.cu
 * @brief A hash of seed, row and column; a thread a weight.
 */
#include "labs/15_many_gpus/given/random_weights.h"

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"

enum { THREADS = 256 };

/* The finaliser of splitmix64. */
static __device__ __forceinline__ uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

template <typename E>
static __global__ void random_kernel(E *to, struct many_part part, size_t K, uint64_t seed,
                                     float scale) {
    size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < part.rows * part.columns) {
        size_t row = part.row + i / part.columns, column = part.column + i % part.columns;
        uint64_t bits = mixed(mixed(seed) + row * K + column);
        float x = (float)(bits >> 40) / (float)(1 << 23) - 1.0f;
        to[i] = from_float<E>(scale * x);
    }
}

enum status random_weights(void *to, enum nn_dtype dtype, const struct many_part *part, size_t K,
                           uint64_t seed, float scale, device_stream stream, struct error *error) {
    unsigned blocks = (unsigned)ceil_div(part->rows * part->columns, THREADS);
    if (blocks == 0) {
        return STATUS_OK;
    }
    FOR_ELEMENT_TYPE(
        dtype, (random_kernel<E><<<blocks, THREADS, 0, stream>>>((E *)to, *part, K, seed, scale)));
    return device_launched("random weights", error);
}
