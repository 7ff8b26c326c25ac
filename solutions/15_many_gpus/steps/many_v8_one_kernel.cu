/**
 * @file many_v8_one_kernel.cu
 * @brief v8: the exchange inside lab 10's persistent kernel: a token is one kernel on every GPU.
 *
 * Changes since v7: d8 of lab 10 runs on each rank's part of the model. Behind out and down a block
 * sends the sums of its rows to the same block of every other rank, a word with its flag each,
 * waits for theirs, adds all to the residual stream in the order of ranks, and publishes the result
 * to the blocks of its own GPU, as d8 does. The flag is d8's number of the layer in this launch,
 * which is the same on all ranks; mailboxes are double buffered by it: out has one of them, down
 * the other.
 *
 * Why: while a block waits for the link, its warps' next weights keep arriving in shared memory, as
 * they do while it waits for other blocks. Bytes: 8 * C to each other rank, twice a layer.
 *
 * Launch: cooperative, a block a multiprocessor, as d8's; all ranks' GPUs are of one kind.
 */
#include <cuda_runtime.h>

#include "solutions/10_llama2_decoder/steps/d8_run.cuh"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/workspace.cuh"

/* Adds the product of out or down, of which every rank has a part, to the residual stream. */
struct exchanged_residual {
    struct peers p;

    __device__ __forceinline__ uint64_t *word(int to, int from, unsigned exchange,
                                              unsigned n) const {
        size_t box = (exchange & 1) * (size_t)p.ranks + (size_t)from;
        return (uint64_t *)(p.at[to] + LINEAR_AT) + box * MANY_MAX_N + n;
    }

    /* Waits for another rank's sum of row n, where there is one; the lanes of a warp leave
       together, and issue prefetches held back meanwhile. */
    __device__ __forceinline__ float await(struct pipeline *pipe, int from, unsigned exchange,
                                           unsigned n, bool there,
                                           const struct one_arguments &a) const {
        uint64_t x = 0;
        for (;;) {
            if (there) {
                asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
                             : "=l"(x)
                             : "l"(word(p.rank, from, exchange, n))
                             : "memory");
            }
            if (__all_sync(~0u, !there || (unsigned)(x >> 32) == exchange)) {
                return __uint_as_float((unsigned)x);
            }
            issue_held_back(pipe, a);
        }
    }

    template <typename W>
    __device__ __forceinline__ void add(struct pipeline *pipe, const struct block_state *b,
                                        bool second, const typename W::embedding *row, unsigned tag,
                                        const struct one_arguments &a) const {
        unsigned kind = second ? ONE_DOWN : ONE_OUT, exchange = tag + (second ? 1 : 0);
        unsigned flag = second ? ONE_FLAG_AFTER_DOWN : ONE_FLAG_AFTER_OUT;
        const struct outputs out = W::own_outputs(pipe, kind, a);
        float early = threadIdx.x < out.count ? residual_at(out.first + threadIdx.x, row, a) : 0.0f;
        multiply_all<W>(pipe, b, kind, kind, a.held_back, a);
        for (unsigned base = 0; base < out.count; base += ONE_THREADS) {
            unsigned i = base + threadIdx.x, n = out.first + i;
            bool there = i < out.count;
            float own = 0.0f, sum = 0.0f;
            if (there) {
                own = W::product_of(pipe, b, kind, i, W::scales_of(pipe, b, kind, i, a));
            }
            for (int k = 1; k < p.ranks && there; k++) {
                int to = (p.rank + k) % p.ranks;
                send_word(word(to, p.rank, exchange, n), own, exchange);
            }
            for (int r = 0; r < p.ranks; r++) {
                sum += r == p.rank ? own : await(pipe, r, exchange, n, there, a);
            }
            if (there) {
                float x = base == 0 ? early : residual_at(n, row, a);
                x += sum;
                a.x[n] = x;
                publish(a.residual, n, x, flag);
            }
        }
    }
};

template <typename E, int GROUP>
static __global__ void __launch_bounds__(ONE_THREADS, 1)
    ranks_kernel(struct one_arguments a, struct exchanged_residual residual) {
    if constexpr (ONE_HAS_CP_ASYNC) {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ struct static_shared fixed;
        run<plain_weights<E>, GROUP>(shared, &fixed, a, residual);
    }
}

/* ---- Launch ---- */

typedef void ranks_function(struct one_arguments a, struct exchanged_residual residual);

template <typename E> static ranks_function *kernel_for(size_t queries) {
    return queries == 1   ? ranks_kernel<E, 1>
           : queries == 2 ? ranks_kernel<E, 2>
           : queries == 4 ? ranks_kernel<E, 4>
                          : NULL;
}

static enum status launch(const void *kernel, const struct decoder *d, void **arguments,
                          struct error *error) {
    cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            (int)d->one.shared_bytes);
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "ranks_kernel: %s", cudaGetErrorString(code));
    }
    cudaLaunchAttribute cooperative = {};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)d->one.blocks);
    config.blockDim = dim3(ONE_THREADS);
    config.dynamicSmemBytes = d->one.shared_bytes;
    config.stream = d->stream;
    config.attrs = &cooperative;
    config.numAttrs = 1;
    (void)cudaLaunchKernelExC(&config, kernel, arguments);
    return device_launched("ranks_kernel", error);
}

enum status many_v8_token(struct comm *comm, const struct decoder *d,
                          const struct comm_memory *workspace, size_t position,
                          struct error *error) {
    if (!d->one.supported) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "the persistent kernel does not support this model or this GPU");
    }
    struct one_arguments a = one_arguments_of(d, position);
    struct exchanged_residual residual = {peers_of(comm, workspace)};
    void *arguments[] = {&a, &residual};
    ranks_function *kernel = NULL;
    FOR_ELEMENT_TYPE(d->model->dtype, kernel = kernel_for<E>(one_queries_of_team(d, position)));
    return launch((const void *)kernel, d, arguments, error);
}
