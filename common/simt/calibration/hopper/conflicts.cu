/*
 * Accesses to the shared memory of other blocks whose lanes meet: in one word, in one bank, in one
 * block of the cluster. Each kernel has one kind of access, one pattern of words and one of blocks.
 *
 * The first eight may set constants of the model, the others are to judge it.
 */
#include <stdint.h>

#include "common/simt/calibration/hopper/hopper.h"
#include "common/simt/calibration/hopper/launch.cuh"
#include "common/simt/calibration/hopper/peer.cuh"

namespace {

enum access { ADD, FETCH, LOAD, STORE };

/* Which words of a block the lanes of a warp reach: neighbouring ones; one; eight, four lanes each;
   different ones of one bank; of two banks; any. */
enum words { SPREAD, SAME, FOUR, BANK, BANKS, RANDOM };

/* And which block: the next one; the first one of the cluster; any, each lane its own; the own. */
enum blocks { NEXT, ONE, ALL, OWN };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ unsigned mix(unsigned x) {
    x *= 2654435761u;
    return x >> 8 ^ x << 3;
}

/* Turn t of this thread. */
template <words PATTERN> __device__ __forceinline__ unsigned word_of(unsigned t) {
    unsigned lane = threadIdx.x % 32, first = (threadIdx.x / 32 * 32 + t * 37) % 1024;
    switch (PATTERN) {
    case SPREAD:
        return (threadIdx.x + t * blockDim.x) % WORDS;
    case SAME:
        return first;
    case FOUR:
        return first + lane / 4;
    case BANK:
        return first + lane * 32;
    case BANKS:
        return first + lane * 16;
    default:
        return mix(threadIdx.x + t * 1024 + blockIdx.x * 77) % WORDS;
    }
}

template <blocks TARGET, int CLUSTER> __device__ __forceinline__ unsigned block_of(unsigned t) {
    switch (TARGET) {
    case NEXT:
        return (cluster_rank() + 1) % CLUSTER;
    case ONE:
        return 0;
    case ALL:
        return mix(threadIdx.x * 13 + t) % CLUSTER;
    default:
        return cluster_rank();
    }
}

__device__ __forceinline__ unsigned fetch_of_peer(unsigned from) {
    unsigned old;
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], 1;" : "=r"(old) : "r"(from) : "memory");
    return old;
}

#endif

template <access KIND, words PATTERN, blocks TARGET, int CLUSTER>
__global__ void reach(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ unsigned words[WORDS];
    unsigned sum = 0;
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) {
        words[i] = 0;
    }
    cluster_sync();
    for (int t = 0; t < turns; t++) {
        unsigned to = of_peer(&words[word_of<PATTERN>(t)], block_of<TARGET, CLUSTER>(t));
        if (KIND == ADD) {
            add_to_peer(to, 1);
        } else if (KIND == FETCH) {
            sum += fetch_of_peer(to);
        } else if (KIND == LOAD) {
            sum += load_peer<1>(to);
        } else {
            store_peer<1>(to, t);
        }
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = words[threadIdx.x] + sum;
#endif
}

template <access KIND, words PATTERN, blocks TARGET, int CLUSTER>
bool launch(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(reach<KIND, PATTERN, TARGET, CLUSTER>, {BLOCKS_IN_ALL, 256, CLUSTER, 0},
                 (unsigned *)buffers->out, 512);
}

} // namespace

const struct hopper_kernel hopper_conflicts[HOPPER_CONFLICTS] = {
    /* to fit */
    {"add_same_next_of_2", {}, launch<ADD, SAME, NEXT, 2>},
    {"add_bank_next_of_2", {}, launch<ADD, BANK, NEXT, 2>},
    {"add_spread_one_of_8", {}, launch<ADD, SPREAD, ONE, 8>},
    {"add_random_all_of_8", {}, launch<ADD, RANDOM, ALL, 8>},
    {"load_bank_next_of_2", {}, launch<LOAD, BANK, NEXT, 2>},
    {"store_bank_next_of_2", {}, launch<STORE, BANK, NEXT, 2>},
    {"add_same_own_of_2", {}, launch<ADD, SAME, OWN, 2>},
    {"add_bank_own_of_2", {}, launch<ADD, BANK, OWN, 2>},
    /* to judge */
    {"add_same_one_of_8", {}, launch<ADD, SAME, ONE, 8>},
    {"add_bank_one_of_4", {}, launch<ADD, BANK, ONE, 4>},
    {"add_four_next_of_4", {}, launch<ADD, FOUR, NEXT, 4>},
    {"add_banks_next_of_8", {}, launch<ADD, BANKS, NEXT, 8>},
    {"add_random_next_of_2", {}, launch<ADD, RANDOM, NEXT, 2>},
    {"add_random_next_of_8", {}, launch<ADD, RANDOM, NEXT, 8>},
    {"add_random_all_of_2", {}, launch<ADD, RANDOM, ALL, 2>},
    {"add_random_one_of_8", {}, launch<ADD, RANDOM, ONE, 8>},
    {"fetch_spread_next_of_4", {}, launch<FETCH, SPREAD, NEXT, 4>},
    {"fetch_random_all_of_4", {}, launch<FETCH, RANDOM, ALL, 4>},
    {"load_same_next_of_2", {}, launch<LOAD, SAME, NEXT, 2>},
    {"load_banks_next_of_8", {}, launch<LOAD, BANKS, NEXT, 8>},
    {"load_random_all_of_8", {}, launch<LOAD, RANDOM, ALL, 8>},
    {"load_random_one_of_4", {}, launch<LOAD, RANDOM, ONE, 4>},
    {"store_random_next_of_4", {}, launch<STORE, RANDOM, NEXT, 4>},
    {"store_random_all_of_8", {}, launch<STORE, RANDOM, ALL, 8>},
};
