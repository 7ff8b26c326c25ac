/**
 * @file begin_token.cu
 * @brief A token's row of the embedding, a thread a channel, and its position.
 */
#include "labs/14_endless_text/given/begin_token.h"

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"

enum { THREADS = 256 };

template <typename E>
static __global__ void begin_kernel(float *x, int32_t *number, const E *table, int32_t token,
                                    int32_t position, size_t C) {
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c < C) {
        x[c] = to_float(table[(size_t)token * C + c]);
    }
    if (c == 0) {
        *number = position;
    }
}

enum status begin_token(float *x, int32_t *number, const void *table, enum nn_dtype dtype,
                        int32_t token, int32_t position, size_t C, device_stream stream,
                        struct error *error) {
    unsigned blocks = (unsigned)ceil_div(C, THREADS);
    FOR_ELEMENT_TYPE(dtype, (begin_kernel<E><<<blocks, THREADS, 0, stream>>>(
                                x, number, (const E *)table, token, position, C)));
    return device_launched("begin token", error);
}
