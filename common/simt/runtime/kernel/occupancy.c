#include "common/simt/runtime/kernel/modules.h"

#include "common/base/checked.h"
#include "common/simt/runtime/state.h"

enum { WARP = 32, SCHEDULERS = 4, REGISTER_UNIT = 256, MOST_THREADS = 1024 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/** @return the multiprocessor's shared memory when the kernel prefers a share of it. */
static size_t shared_memory(const struct simt_gpu *gpu, const struct kernel *kernel) {
    static const size_t KIB[] = {8, 16, 32, 64, 100, 132, 164, 196, 228};
    size_t all = gpu->shared_per_multiprocessor;
    size_t wanted = all / 100 * (size_t)(kernel->carveout < 0 ? 100 : kernel->carveout);
    for (size_t i = 0; i < sizeof KIB / sizeof *KIB; i++) {
        if (KIB[i] * 1024 >= wanted && KIB[i] * 1024 <= all) {
            return KIB[i] * 1024;
        }
    }
    return all;
}

static size_t blocks_by_shared(const struct simt_gpu *gpu, const struct kernel *kernel,
                               size_t dynamic) {
    size_t asked = kernel->info.static_shared_bytes + dynamic;
    size_t taken = ceil_div(asked + gpu->shared_reserved, gpu->shared_unit) * gpu->shared_unit;
    size_t there = shared_memory(gpu, kernel);
    if (taken == 0) {
        return (size_t)gpu->blocks_per_multiprocessor;
    }
    /* A preference does not keep a block out that the GPU could hold. */
    return taken > there ? gpu->shared_per_multiprocessor / taken : there / taken;
}

static size_t blocks_by_registers(const struct kernel *kernel, size_t warps) {
    size_t a_warp = ceil_div((size_t)kernel->info.registers * WARP, REGISTER_UNIT) * REGISTER_UNIT;
    if (a_warp == 0) {
        return SIZE_MAX;
    }
    size_t fitting = OCCUPANCY_REGISTERS / SCHEDULERS / a_warp * SCHEDULERS;
    return fitting / warps;
}

void occupancy_limits(struct occupancy *limits, const struct simt_gpu *gpu,
                      const struct kernel *kernel, int threads, size_t dynamic) {
    size_t warps = ceil_div((size_t)threads, WARP);
    *limits = (struct occupancy){
        .blocks = (size_t)gpu->blocks_per_multiprocessor,
        .threads = (size_t)gpu->threads_per_multiprocessor / (warps * WARP),
        .shared = blocks_by_shared(gpu, kernel, dynamic),
        .registers = blocks_by_registers(kernel, warps),
    };
}

int occupancy_blocks(const struct simt_gpu *gpu, const struct kernel *kernel, int threads,
                     size_t dynamic) {
    struct occupancy limits;
    if (threads > MOST_THREADS ||
        (kernel->info.max_threads != 0 && (uint32_t)threads > kernel->info.max_threads)) {
        return 0;
    }
    if (kernel->info.static_shared_bytes + dynamic > gpu->shared_optin) {
        return 0;
    }
    occupancy_limits(&limits, gpu, kernel, threads, dynamic);
    size_t blocks = least(limits.blocks, limits.threads);
    return (int)least(blocks, least(limits.shared, limits.registers));
}

/** @return the kernel, ready to be asked; NULL and the error when it is none. */
static struct kernel *prepared(struct runtime *runtime, const void *function, cudaError_t *error) {
    struct kernel *kernel = kernel_find(runtime, function);
    *error = kernel == NULL ? cudaErrorInvalidResourceHandle : kernel_prepare(runtime, kernel);
    return *error == cudaSuccess ? kernel : NULL;
}

static cudaError_t max_active(struct runtime *runtime, int *blocks, const void *function,
                              int threads, size_t dynamic) {
    cudaError_t error = cudaSuccess;
    struct kernel *kernel = prepared(runtime, function, &error);
    if (kernel == NULL) {
        return error;
    }
    if (blocks == NULL || threads < 1) {
        return cudaErrorInvalidValue;
    }
    *blocks = occupancy_blocks(runtime->settings.gpu, kernel, threads, dynamic);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t dynamic) {
    DEVICE_CALL(runtime, max_active(runtime, blocks, function, threads, dynamic));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *function,
                                                                   int threads, size_t dynamic,
                                                                   unsigned flags) {
    (void)flags;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic);
}

/** Dynamic shared memory that leaves room for that many blocks. */
static cudaError_t available(struct runtime *runtime, size_t *dynamic, const void *function,
                             int blocks, int threads) {
    cudaError_t error = cudaSuccess;
    struct kernel *kernel = prepared(runtime, function, &error);
    if (kernel == NULL) {
        return error;
    }
    if (dynamic == NULL || blocks < 1 || threads < 1) {
        return cudaErrorInvalidValue;
    }
    const struct simt_gpu *gpu = runtime->settings.gpu;
    size_t share = shared_memory(gpu, kernel) / (size_t)blocks / gpu->shared_unit;
    size_t taken = gpu->shared_reserved + kernel->info.static_shared_bytes;
    share *= gpu->shared_unit;
    *dynamic = share > taken ? least(share - taken, gpu->shared_optin) : 0;
    return cudaSuccess;
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *dynamic, const void *function,
                                                      int blocks, int threads) {
    DEVICE_CALL(runtime, available(runtime, dynamic, function, blocks, threads));
}
