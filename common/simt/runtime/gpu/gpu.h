/**
 * @file gpu.h
 * @brief The GPUs that the emulator can present itself as.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_GPU_GPU_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_GPU_GPU_H_

#include <stddef.h>

/** Properties of a GPU that programs query or the time model needs. */
struct simt_gpu {
    const char *key;  /**< as in SIMT_GPU: "h200" */
    const char *name; /**< as cudaGetDeviceProperties() names it */
    int major, minor; /**< compute capability */
    int multiprocessors;
    int clock_khz, memory_clock_khz, bus_bits;
    size_t memory_bytes, l2_bytes;
    size_t shared_per_multiprocessor, shared_optin; /**< bytes */
    size_t l1_and_shared;   /**< bytes of a multiprocessor that L1 and shared memory divide */
    size_t shared_reserved; /**< bytes a block that the system takes */
    size_t shared_unit;     /**< bytes that shared memory is rounded to */
    int threads_per_multiprocessor, blocks_per_multiprocessor;
    int double_ratio; /**< single to double precision throughput */
    double bandwidth; /**< of device memory by the datasheet, bytes a nanosecond */
    double bus;       /**< host to device and back, pinned, bytes a nanosecond */

    /** @name For the model of time; MODEL.md says where the figures are from
     * @{ */
    int float_lanes;                   /**< fp32 multiply-adds a cycle and multiprocessor */
    int tensor_flops;                  /**< fp16, dense, by mma: a cycle and multiprocessor */
    int l1_bytes_per_clock;            /**< of L1 or shared memory, a multiprocessor */
    double l2_bandwidth;               /**< bytes a nanosecond that L2 can be seen to give */
    double l2_latency, memory_latency; /**< cycles of a load that hits L2, or misses it */
    int served_ahead; /**< multiprocessors that get blocks ahead of their turn; 0: not known */
    /** @} */
};

/** @return the GPU of that key, or NULL. */
const struct simt_gpu *simt_gpu_find(const char *key);

/** @return the GPU number @p index of the table, NULL behind its end. */
const struct simt_gpu *simt_gpu_at(size_t index);

/** Prints the keys, with ", " between them, into @p text. @return @p text */
const char *simt_gpu_keys(char *text, size_t size);

#endif
