/**
 * @file many_v6_two_shot.cu
 * @brief v6: two shots for large data. Each rank adds up one chunk of all ranks, and writes the sum
 *        to all.
 *
 * Changes since v5: data beyond the packets' size no longer takes the ring, and from MIDDLE_BYTES
 * on not the packets either. Rank r reads chunk r of every rank, adds in the order of ranks, and
 * writes the sum into every rank's data (reduce-scatter and all-gather, each in one step). Why: two
 * signals in place of 2 (ranks - 1), and reads and writes over the link at once. In place without a
 * second buffer, since chunk r of any rank is read and written by rank r alone.
 *
 * Bytes over a rank's link, one way: 2 (ranks - 1) / ranks of the data, as the ring's.
 *
 * Launch: blocks have a slice of the chunk, and signals of their own: before it (all have come) and
 * behind it (all have written).
 */

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/workspace.cuh"

enum { THREADS = 512, BLOCKS = 256, VECTORS = 4 /* of a thread and rank, in flight */ };
enum { MIDDLE_BYTES = 512 << 10 };
enum { COME, WRITTEN };

/* Tells all other ranks, and waits for all others, thread r for rank r. The block has synchronised
   before, and must behind it. */
static __device__ __forceinline__ void meet(const struct peers &p, int kind, unsigned call) {
    int r = (int)threadIdx.x;
    if (r < p.ranks && r != p.rank) {
        __threadfence_system(); /* what all threads of the block have written */
        send_signal(signal_of(p, r, p.rank, kind, blockIdx.x), call);
        await_signal(signal_of(p, p.rank, r, kind, blockIdx.x), call);
    }
}

/* Vectors of a chunk: sums of all ranks' in all ranks. RANKS: 0, or the number, so that all loads
   are in flight at once. */
template <typename E, int RANKS>
static __device__ __forceinline__ void reduce(const struct vectors &v, const struct peers &p,
                                              size_t first, size_t end) {
    const int n = RANKS > 0 ? RANKS : p.ranks;
    for (size_t base = first + threadIdx.x; base < end; base += VECTORS * THREADS) {
        uint4 sums[VECTORS];
#pragma unroll
        for (int r = 0; r < n; r++) {
#pragma unroll
            for (int i = 0; i < VECTORS; i++) {
                size_t at = base + (size_t)i * THREADS;
                if (at < end) {
                    uint4 x = v.at[r][at];
                    sums[i] = r == 0 ? x : add_vectors(sums[i], x, E());
                }
            }
        }
        for (int k = 0; k < n; k++) {
            int r = (p.rank + k) % n;
#pragma unroll
            for (int i = 0; i < VECTORS; i++) {
                size_t at = base + (size_t)i * THREADS;
                if (at < end) {
                    v.at[r][at] = sums[i];
                }
            }
        }
    }
}

template <typename E, int RANKS>
static __global__ void __launch_bounds__(THREADS)
    two_shot_kernel(struct vectors v, struct peers p) {
    __shared__ unsigned call;
    if (threadIdx.x == 0) {
        call = next_call(p, blockIdx.x);
    }
    __syncthreads();
    meet(p, COME, call);
    __syncthreads();
    size_t chunk = (v.count + (size_t)p.ranks - 1) / (size_t)p.ranks;
    size_t from = (size_t)p.rank * chunk, to = from + chunk < v.count ? from + chunk : v.count;
    size_t each = (chunk + gridDim.x - 1) / gridDim.x, first = from + blockIdx.x * each;
    reduce<E, RANKS>(v, p, first, first + each < to ? first + each : to);
    __syncthreads();
    meet(p, WRITTEN, call);
}

template <typename E>
static void launch(const struct vectors &v, const struct peers &p, unsigned grid,
                   device_stream stream) {
    if (p.ranks == 2) {
        two_shot_kernel<E, 2><<<grid, THREADS, 0, stream>>>(v, p);
    } else {
        two_shot_kernel<E, 0><<<grid, THREADS, 0, stream>>>(v, p);
    }
}

enum status many_v6_two_shot(struct comm *comm, const struct many_all_reduce *reduce,
                             device_stream stream, struct error *error) {
    TRY(many_all_reduce_check(comm, reduce, error));
    size_t bytes = reduce->count * nn_dtype_bytes(reduce->dtype);
    size_t most = many_one_shot_most(comm);
    if (comm->ranks == 1 || bytes <= (most < MIDDLE_BYTES ? most : (size_t)MIDDLE_BYTES)) {
        return many_v5_one_shot(comm, reduce, stream, error);
    }
    const struct vectors v = vectors_of(comm, reduce);
    const struct peers p = peers_of(comm, reduce->workspace);
    size_t blocks = ceil_div(ceil_div(v.count, (size_t)comm->ranks), THREADS);
    unsigned grid = (unsigned)(blocks < BLOCKS ? blocks : (size_t)BLOCKS);
    FOR_ELEMENT_TYPE(reduce->dtype, (launch<E>(v, p, grid, stream)));
    return device_launched("two_shot", error);
}
