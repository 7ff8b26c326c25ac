/**
 * @file many_v5_one_shot.cu
 * @brief v5: one shot. Every rank sends all it has to all others, in packets that carry a flag.
 *
 * Changes since v3: each rank writes its data into a mailbox of every other rank, and adds up what
 * arrives in its own mailboxes, in the order of ranks. A packet of 16 bytes has two words of data,
 * each beside a flag, and memory never tears 8 bytes apart: who sees the flag sees the word. So no
 * fence is needed and no signal behind the data (NCCL's protocol LL). The flag is the number of the
 * call. Mailboxes are double buffered by it: call n overwrites packets of call n - 2, and a rank
 * that has finished call n - 1 has packets that the others sent in it, after their call n - 2.
 *
 * Why: latency. One trip over the link instead of 2 (ranks - 1) signals and reads. Bytes: twice
 * the data times ranks - 1, so it is for small data; larger data takes the ring.
 *
 * Launch: a thread a packet. A block has slots of its own in the mailboxes, and its own count of
 * calls, so calls of different sizes do not meet. Starts early (programmatic dependent launch).
 */

#include "common/base/checked.h"
#include "common/cuda/convert.cuh"
#include "common/cuda/dependent_launch.cuh"
#include "solutions/15_many_gpus/steps/ladder.h"
#include "solutions/15_many_gpus/steps/workspace.cuh"

/* Blocks whose packets have room. */
static __host__ __device__ __forceinline__ size_t packet_blocks(int ranks) {
    size_t room = (MANY_WORKSPACE_BYTES - PACKETS_AT) / (2 * (size_t)ranks);
    size_t blocks = room / (PACKET_THREADS * PACKET_BYTES);
    return blocks < MOST_BLOCKS ? blocks : (size_t)MOST_BLOCKS;
}

/* The thread's slot in the mailbox of rank `to` for what rank `from` sends. */
static __device__ __forceinline__ char *slot_of(const struct peers &p, int to, int from,
                                                unsigned call) {
    size_t blocks = packet_blocks(p.ranks);
    size_t box = (call & 1) * (size_t)p.ranks + (size_t)from;
    size_t slot = (box * blocks + blockIdx.x) * PACKET_THREADS + threadIdx.x;
    return p.at[to] + PACKETS_AT + slot * PACKET_BYTES;
}

template <typename E>
static __global__ void __launch_bounds__(PACKET_THREADS)
    one_shot_kernel(uint2 *data, size_t count, struct peers p) {
    dependent_launch_begin();
    size_t i = (size_t)blockIdx.x * PACKET_THREADS + threadIdx.x;
    unsigned *calls = (unsigned *)(p.at[p.rank] + CALLS_AT) + blockIdx.x;
    unsigned call = *calls + 1;
    bool mine = i < count;
    uint2 own = mine ? data[i] : make_uint2(0, 0);
    __syncthreads(); /* all have read the count */
    if (threadIdx.x == 0) {
        *calls = call;
    }
    if (!mine) {
        return;
    }
    for (int k = 1; k < p.ranks; k++) {
        int to = (p.rank + k) % p.ranks;
        send_packet(slot_of(p, to, p.rank, call), own.x, own.y, call);
    }
    uint2 sum = make_uint2(0, 0);
    for (int r = 0; r < p.ranks; r++) {
        uint2 x = r == p.rank ? own : await_packet(slot_of(p, p.rank, r, call), call);
        sum.x = r == 0 ? x.x : add_words(sum.x, x.x, E());
        sum.y = r == 0 ? x.y : add_words(sum.y, x.y, E());
    }
    data[i] = sum;
}

size_t many_one_shot_most(const struct comm *comm) {
    return packet_blocks(comm->ranks) * PACKET_THREADS * sizeof(uint2);
}

enum status many_v5_one_shot(struct comm *comm, const struct many_all_reduce *reduce,
                             device_stream stream, struct error *error) {
    TRY(many_all_reduce_check(comm, reduce, error));
    size_t bytes = reduce->count * nn_dtype_bytes(reduce->dtype);
    if (comm->ranks == 1) {
        return STATUS_OK;
    }
    if (bytes > many_one_shot_most(comm)) {
        return many_v3_ring(comm, reduce, stream, error);
    }
    const struct peers p = peers_of(comm, reduce->workspace);
    size_t count = bytes / sizeof(uint2);
    unsigned blocks = (unsigned)ceil_div(count, PACKET_THREADS);
    uint2 *data = (uint2 *)reduce->data[comm->rank];
    FOR_ELEMENT_TYPE(reduce->dtype, (launch_dependent<one_shot_kernel<E>>(blocks, PACKET_THREADS, 0,
                                                                          stream, data, count, p)));
    return device_launched("one_shot", error);
}
