/**
 * @file many_v7_fused.cu
 * @brief v7: the exchange inside the product: many_linear() is one kernel.
 *
 * Changes since v6: lab 10's streaming product (a warp a row) sends each row's partial sum to all
 * ranks as soon as it has it, one word with its flag, and goes on; behind its last row a warp
 * collects what the other ranks have sent for its rows, adds in the order of ranks, and adds the
 * sum to x.
 *
 * Why: three launches become one, and the exchange overlaps with the product: only the last rows'
 * trip over the link is left to wait for. Bytes: rows * K of weights; 8 * rows to each other rank.
 *
 * The flag is the number of the call, one for all blocks: the last block to end counts it up.
 * Mailboxes are double buffered by it, as in v5. Launch: as lab 10's, starts early.
 */
#include <cuda_runtime.h>

#include "solutions/10_llama2_decoder/steps/stream.cuh"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/workspace.cuh"

/* Blocks of a launch per multiprocessor. */
static constexpr size_t FUSED_BLOCKS = 4, FUSED_STATIC_BYTES = 1024;

/* The number of calls so far, and the blocks of this one that are done. */
struct linear_calls {
    unsigned made, done;
};

static __device__ __forceinline__ struct linear_calls *linear_calls_of(const struct peers &p) {
    return (struct linear_calls *)(p.at[p.rank] + LINEAR_CALLS_AT);
}

/* Rank `from`'s words in the mailbox of rank `to`. */
static __device__ __forceinline__ uint64_t *words_of(const struct peers &p, int to, int from,
                                                     unsigned call) {
    size_t box = (call & 1) * (size_t)p.ranks + (size_t)from;
    return (uint64_t *)(p.at[to] + LINEAR_AT) + box * MANY_MAX_N;
}

/* The row's product, in all lanes. `weights` has its first vectors already, and gets the next
 * row's. */
template <typename E>
static __device__ __forceinline__ float row_product(struct lane_vectors<false> *weights,
                                                    const struct stream &s, const float4 *planes,
                                                    unsigned n, unsigned next) {
    constexpr unsigned EACH = 32 * lane_vectors<false>::VECTORS;
    unsigned lane = threadIdx.x % 32;
    const uint4 *row = s.weight + (size_t)n * s.vectors;
    float sums[2] = {0.0f, 0.0f};
    if (s.vectors == 0) {
        return 0.0f;
    }
    for (unsigned first = lane;;) {
        weights->multiply<E>(sums, s, planes, first);
        first += EACH;
        if (first >= s.vectors + lane) { /* the same for the whole warp */
            break;
        }
        weights->load(s, row, first);
    }
    if (next < s.rows) {
        weights->load(s, s.weight + (size_t)next * s.vectors, lane);
    }
    return warp_sum(sums[0] + sums[1]);
}

/* x += the sums of all ranks, for the warp's rows: a lane a row. */
static __device__ __forceinline__ void collect(const struct stream &s, const struct peers &p,
                                               unsigned call, unsigned first, unsigned stride) {
    for (unsigned n = first + threadIdx.x % 32 * stride; n < s.rows; n += 32 * stride) {
        float x = s.out[n], sum = 0.0f;
        for (int r = 0; r < p.ranks; r++) {
            sum += await_word(words_of(p, p.rank, r, call) + n, call);
        }
        s.out[n] = x + sum;
    }
}

/* The last block to end counts the call. */
static __device__ __forceinline__ void end_call(const struct peers &p, unsigned call) {
    struct linear_calls *calls = linear_calls_of(p);
    __syncthreads(); /* all have read its number */
    if (threadIdx.x == 0 && atomicAdd(&calls->done, 1) == gridDim.x - 1) {
        calls->done = 0;
        calls->made = call;
    }
}

/* Grid: warps take rows round robin. Dynamic shared memory: K floats. s.residual: the bias. */
template <typename E>
static __global__ void __launch_bounds__(STREAM_THREADS, 2)
    fused_kernel(const struct stream s, const struct peers p) {
    extern __shared__ float4 planes[];
    unsigned lane = threadIdx.x % 32, stride = gridDim.x * STREAM_WARPS;
    unsigned first = blockIdx.x * STREAM_WARPS + threadIdx.x / 32;
    struct lane_vectors<false> weights;
    if (first < s.rows) {
        weights.load(s, s.weight + (size_t)first * s.vectors, lane);
    }
    dependent_launch_begin();
    unsigned call = linear_calls_of(p)->made + 1;
    (void)stage_input<E>(planes, s);
    __syncthreads();
    for (unsigned n = first; n < s.rows; n += stride) {
        float sum = row_product<E>(&weights, s, planes, n, n + stride);
        sum += s.residual != NULL ? s.residual[n] : 0.0f;
        if (lane < (unsigned)p.ranks) { /* to itself, too */
            int to = (p.rank + (int)lane) % p.ranks;
            send_word(words_of(p, to, p.rank, call) + n, sum, call);
        }
    }
    collect(s, p, call, first, stride);
    end_call(p, call);
}

template <typename E>
static enum status launch_fused(const struct stream &s, const struct peers &p, device_stream stream,
                                struct error *error) {
    struct device_properties gpu;
    TRY(device_properties(&gpu, error));
    size_t bytes = s.vectors * VECTOR_ELEMENTS<E> * sizeof(float);
    size_t most = gpu.shared_bytes - FUSED_STATIC_BYTES;
    if (bytes > most) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "linear: K = %zu; shared memory has room for %zu", bytes / sizeof(float),
                         most / sizeof(float));
    }
    cudaError_t code = cudaFuncSetAttribute((const void *)fused_kernel<E>,
                                            cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
    if (code != cudaSuccess) {
        return error_set(error, STATUS_DEVICE, "linear: %zu bytes of shared memory: %s", bytes,
                         cudaGetErrorString(code));
    }
    size_t wanted = ceil_div((size_t)s.rows, STREAM_WARPS);
    size_t blocks = FUSED_BLOCKS * (size_t)gpu.multiprocessors;
    launch_dependent<fused_kernel<E>>((unsigned)(wanted < blocks ? wanted : blocks), STREAM_THREADS,
                                      bytes, stream, s, p);
    return device_launched("fused", error);
}

enum status many_v7_linear(struct comm *comm, const struct many_linear *linear,
                           device_stream stream, struct error *error) {
    TRY(many_linear_check(comm, linear, error));
    struct stream s = {};
    s.weight = (const uint4 *)linear->weight;
    s.rows = (unsigned)linear->N;
    s.vectors = (unsigned)(linear->K * nn_dtype_bytes(linear->dtype) / sizeof(uint4));
    s.in = linear->in;
    s.residual = linear->bias;
    s.out = linear->x;
    const struct peers p = peers_of(comm, linear->workspace);
    FOR_ELEMENT_TYPE(linear->dtype, return (launch_fused<E>(s, p, stream, error)));
}
