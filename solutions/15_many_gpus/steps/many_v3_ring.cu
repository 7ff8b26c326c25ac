/**
 * @file many_v3_ring.cu
 * @brief v3: a ring. Each rank reads only from its left neighbour, and the hosts do not wait.
 *
 * Changes since v2: one kernel; ranks tell each other by signals in peer memory what is ready. The
 * data is cut into as many chunks as there are ranks. In ranks - 1 steps each chunk goes round and
 * is added up (reduce-scatter); then rank r has the sum of chunk r + 1, and in ranks - 1 more steps
 * the sums go round (all-gather).
 *
 *     step s of the first half:   data[c] += left's data[c],  c = rank - s - 1
 *     step s of the second half:  data[c]  = left's data[c],  c = rank - s
 *
 * Why: bytes. A link carries 2 (ranks - 1) / ranks of the data one way, where v2's carries
 * ranks - 1 times the data; of two ranks both are the same. But the steps follow each other: each
 * costs the time of a signal, 1.4 microseconds one way at the best. Chunk c is summed from rank c
 * on, on one rank, so all have the same bits.
 *
 * Launch: blocks have a slice of each chunk, and signals of their own: a ring a block. A block
 * waits for the same block of its neighbours alone.
 */

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/workspace.cuh"

enum { THREADS = 512, BLOCKS = 128, VECTORS = 4 /* of a thread, in flight */ };

/* Signals: from the left what is ready, from the right what it has read. */
enum { READY, READ };

/* A block's slice of chunk c: vectors first .. end. */
struct slice {
    size_t first, end;
};

static __device__ __forceinline__ struct slice slice_of(size_t count, int c, int ranks) {
    size_t chunk = (count + (size_t)ranks - 1) / (size_t)ranks, from = (size_t)c * chunk;
    size_t to = from + chunk < count ? from + chunk : count;
    size_t each = (chunk + gridDim.x - 1) / gridDim.x;
    struct slice s = {from + blockIdx.x * each, from + (blockIdx.x + 1) * each};
    s.end = s.end < to ? s.end : to;
    return s;
}

/* to = from, with ADD to += from. */
template <typename E, bool ADD>
static __device__ __forceinline__ void pull(uint4 *to, const uint4 *from, struct slice s) {
    for (size_t base = s.first + threadIdx.x; base < s.end; base += VECTORS * THREADS) {
        uint4 x[VECTORS];
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            size_t at = base + (size_t)i * THREADS;
            if (at < s.end) {
                x[i] = from[at];
            }
        }
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            size_t at = base + (size_t)i * THREADS;
            if (at < s.end) {
                to[at] = ADD ? add_vectors(x[i], to[at], E()) : x[i];
            }
        }
    }
}

template <typename E>
static __global__ void __launch_bounds__(THREADS) ring_kernel(struct vectors v, struct peers p) {
    __shared__ unsigned call;
    const int n = p.ranks, left = (p.rank + n - 1) % n, right = (p.rank + 1) % n;
    const unsigned *from_left = signal_of(p, p.rank, left, READY, blockIdx.x);
    const unsigned *from_right = signal_of(p, p.rank, right, READ, blockIdx.x);
    unsigned *to_right = signal_of(p, right, p.rank, READY, blockIdx.x);
    if (threadIdx.x == 0) {
        call = next_call(p, blockIdx.x);
        send_signal(to_right, call * 2 * (unsigned)n);
    }
    __syncthreads();
    unsigned ready = call * 2 * (unsigned)n;
    for (int step = 0; step < 2 * (n - 1); step++) {
        bool gather = step >= n - 1;
        int s = gather ? step - (n - 1) : step, c = (p.rank + 2 * n - s - (gather ? 0 : 1)) % n;
        struct slice slice = slice_of(v.count, c, n);
        if (threadIdx.x == 0) {
            await_signal(from_left, ready + (unsigned)step);
        }
        __syncthreads();
        if (gather) {
            pull<E, false>(v.at[p.rank], v.at[left], slice);
        } else {
            pull<E, true>(v.at[p.rank], v.at[left], slice);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system(); /* what all threads of the block have written */
            send_signal(to_right, ready + (unsigned)step + 1);
        }
    }
    if (threadIdx.x == 0) { /* nobody reads this rank's data any more */
        send_signal(signal_of(p, left, p.rank, READ, blockIdx.x), call);
        await_signal(from_right, call);
    }
}

enum status many_v3_ring(struct comm *comm, const struct many_all_reduce *reduce,
                         device_stream stream, struct error *error) {
    TRY(many_all_reduce_check(comm, reduce, error));
    if (comm->ranks == 1) {
        return STATUS_OK;
    }
    const struct vectors v = vectors_of(comm, reduce);
    const struct peers p = peers_of(comm, reduce->workspace);
    size_t blocks = ceil_div(ceil_div(v.count, (size_t)comm->ranks), THREADS);
    unsigned grid = (unsigned)(blocks < BLOCKS ? blocks : (size_t)BLOCKS);
    FOR_ELEMENT_TYPE(reduce->dtype, (ring_kernel<E><<<grid, THREADS, 0, stream>>>(v, p)));
    return device_launched("ring", error);
}
