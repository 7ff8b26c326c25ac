/**
 * @file device_kernels.h
 * @brief Kernels that benches need beside the one they time.
 */
#ifndef WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_KERNELS_H_
#define WARPBOOK_COMMON_BENCH_DEVICE_DEVICE_KERNELS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What device_read_clock() leaves in device memory. */
struct device_clock {
    unsigned long long cycles, nanoseconds;
};

/** Keeps one thread busy for about 20 us and counts cycles meanwhile, into @p clock (device). */
MUST_CHECK enum status device_read_clock(struct device_clock *clock, device_stream stream,
                                         struct error *error);

/** Writes @p bytes, a multiple of 16, of device memory. */
MUST_CHECK enum status device_sweep(void *memory, size_t bytes, device_stream stream,
                                    struct error *error);

/** Copies @p bytes, a multiple of 16, from device memory to device memory. */
MUST_CHECK enum status device_stream_copy(void *to, const void *from, size_t bytes,
                                          device_stream stream, struct error *error);

/** How device_stream_read() goes over the memory. */
enum device_read_shape {
    DEVICE_READ_TILES, /**< many blocks, one tile each */
    DEVICE_READ_WAVE,  /**< as many blocks as fit, each takes tile after tile */
    DEVICE_READ_SHAPES
};

/**
 * @brief Reads @p bytes of device memory, 16 at a time, and keeps nothing.
 *
 * @param from  device, 16-byte aligned; whole tiles of DEVICE_READ_TILE_BYTES are read, what
 * remains is not
 * @param sink  device memory of 4 bytes, written only where the sum of a thread's numbers is -1
 */
MUST_CHECK enum status device_stream_read(float *sink, const void *from, size_t bytes,
                                          enum device_read_shape shape, int multiprocessors,
                                          device_stream stream, struct error *error);

/** What a block reads at once: 8 vectors a thread. */
#define DEVICE_READ_TILE_BYTES ((size_t)8 * 256 * 16)

/**
 * @brief Does fused multiply-adds in registers, on all multiprocessors.
 * @param sink  device memory of 4 bytes, never written in fact
 * @param flops receives how many operations it does
 */
MUST_CHECK enum status device_multiply_add(float *sink, int multiprocessors, double *flops,
                                           device_stream stream, struct error *error);

/**
 * @brief Multiplies bf16 matrices of fragments on the tensor cores, on all multiprocessors.
 *
 * Code for compute capability below 8.0 does nothing: see device_properties.code.
 *
 * @param sink  device memory of 4 bytes, never written in fact
 * @param flops receives how many operations it does
 */
MUST_CHECK enum status device_multiply_matrices(float *sink, int multiprocessors, double *flops,
                                                device_stream stream, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
