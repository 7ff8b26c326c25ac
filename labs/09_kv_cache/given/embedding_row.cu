/**
 * @file embedding_row.cu
 * @brief One row of the embedding's table, a thread a channel.
 */
#include "labs/09_kv_cache/given/embedding_row.h"

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "common/cuda/dependent_launch.cuh"

enum { THREADS = 256 };

template <typename T>
static __global__ void embedding_row_kernel(float *out, const T *table, size_t first, size_t C) {
    dependent_launch_begin();
    size_t c = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (c < C) {
        out[c] = to_float(table[first + c]);
    }
}

template <typename T>
static void launch(float *out, const void *table, size_t id, size_t C, device_stream stream) {
    launch_dependent<embedding_row_kernel<T>>((unsigned)ceil_div(C, THREADS), THREADS, 0, stream,
                                              out, (const T *)table, id * C, C);
}

enum status embedding_row(float *out, const void *table, enum nn_dtype dtype, size_t id, size_t C,
                          device_stream stream, struct error *error) {
    if (C == 0) {
        return STATUS_OK;
    }
    switch (dtype) {
    case NN_F16:
        launch<__half>(out, table, id, C, stream);
        break;
    case NN_BF16:
        launch<__nv_bfloat16>(out, table, id, C, stream);
        break;
    default:
        launch<float>(out, table, id, C, stream);
    }
    return device_launched("embedding_row", error);
}
