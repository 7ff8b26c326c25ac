/*
 * Kernels that use the shared memory of other blocks of their cluster.
 *
 * `hopper_peers` have one kind of access each: loads of 4, 8 and 16 bytes, stores, atomics, bulk
 * copies, by few and many threads, in clusters of 2, 4 and 8 blocks. `hopper_exchanges` are what
 * such accesses are used for: sums over a cluster, histograms, halos, softmax, transposes,
 * products.
 */
#include <stdint.h>

#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "common/simt/calibration/hopper/hopper.h"
#include "common/simt/calibration/hopper/launch.cuh"
#include "common/simt/calibration/hopper/peer.cuh"

namespace {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Sum of the block's threads, in shared `sums` (32), to thread 0. */
__device__ __forceinline__ float sum_block(float value, float *sums) {
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        value += __shfl_xor_sync(0xffffffff, value, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float all = 0.0f;
    for (unsigned w = 0; threadIdx.x == 0 && w < blockDim.x / 32; w++) {
        all += sums[w];
    }
    return all;
}

#endif

/* Each thread reads EACH words at a time of the block AWAY ranks further; 0: of the own block. */
template <int CLUSTER, int EACH, int AWAY>
__global__ void __launch_bounds__(1024) read_words(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(16) unsigned words[WORDS];
    unsigned sum = 0;
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) {
        words[i] = i;
    }
    cluster_sync();
    unsigned from = of_peer(words, (cluster_rank() + AWAY) % CLUSTER);
    for (int t = 0; t < turns; t++) {
        sum += load_peer<EACH>(from + (threadIdx.x + t * blockDim.x) % (WORDS / EACH) * EACH * 4);
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

/* A chain of loads: each says where the next one is. */
__global__ void chase(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ unsigned next[1024];
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
        next[i] = (i + 33) % 1024 * 4;
    }
    cluster_sync();
    unsigned from = of_peer(next, cluster_rank() ^ 1), at = threadIdx.x * 4;
    for (int t = 0; t < turns; t++) {
        at = load_peer<1>(from + at);
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
#endif
}

/* Each thread writes EACH words at a time of the next block. */
template <int CLUSTER, int EACH> __global__ void write_words(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(16) unsigned words[WORDS];
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) {
        words[i] = 0;
    }
    cluster_sync();
    unsigned to = of_peer(words, (cluster_rank() + 1) % CLUSTER);
    for (int t = 0; t < turns; t++) {
        store_peer<EACH>(to + (threadIdx.x + t * blockDim.x) % (WORDS / EACH) * EACH * 4, t);
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = words[threadIdx.x];
#endif
}

/* Each thread adds to words of the next block; neighbours to neighbouring ones. */
template <int CLUSTER> __global__ void add_words(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ unsigned words[WORDS];
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) {
        words[i] = 0;
    }
    cluster_sync();
    unsigned to = of_peer(words, (cluster_rank() + 1) % CLUSTER);
    for (int t = 0; t < turns; t++) {
        add_to_peer(to + (threadIdx.x + t * blockDim.x) % WORDS * 4, 1);
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = words[threadIdx.x];
#endif
}

/* A thread of each block copies BYTES to the next one, again and again, two at a time: it says to
   the one before when a copy has come. */
template <int CLUSTER, int BYTES> __global__ void copy_bulk(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(128) unsigned char bytes[];
    __shared__ __align__(8) uint64_t full[2], empty[2];
    unsigned next = (cluster_rank() + 1) % CLUSTER;
    unsigned before = (cluster_rank() + CLUSTER - 1) % CLUSTER;
    for (unsigned i = threadIdx.x; i < BYTES / 4; i += blockDim.x) {
        ((unsigned *)bytes)[i] = i;
    }
    for (int slot = 0; threadIdx.x == 0 && slot < 2; slot++) {
        mbarrier_init(shared_address(&full[slot]), 1);
        mbarrier_init(shared_address(&empty[slot]), 1);
        mbarrier_init_fence();
    }
    fence_proxy_async();
    cluster_sync();
    for (int t = 0; threadIdx.x == 0 && t < turns + 2; t++) {
        unsigned slot = t % 2, parity = (t / 2 - 1) & 1;
        if (t >= 2) {
            mbarrier_wait(shared_address(&full[slot]), parity);
            mbarrier_arrive_cluster(shared_address(&empty[slot]), before);
            mbarrier_wait(shared_address(&empty[slot]), parity);
        }
        if (t < turns) {
            mbarrier_arrive_expect_tx(shared_address(&full[slot]), BYTES);
            asm volatile(
                "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], "
                "[%1], %2, [%3];" ::"r"(of_peer(bytes + BYTES * (1 + slot), next)),
                "r"(shared_address(bytes)), "r"(BYTES), "r"(of_peer(&full[slot], next))
                : "memory");
        }
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = ((unsigned *)bytes)[BYTES / 4 + threadIdx.x];
#endif
}

/* Sums of all blocks' vectors: each block adds its part of all of them, and all read the sums. */
template <int CLUSTER> __global__ void sum_of_cluster(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(16) unsigned own[4096], sums[4096 / CLUSTER];
    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) {
        own[i] = i + blockIdx.x;
    }
    for (int t = 0; t < turns; t++) {
        cluster_sync();
        unsigned first = cluster_rank() * (4096 / CLUSTER);
        for (unsigned i = threadIdx.x; i < 4096 / CLUSTER; i += blockDim.x) {
            unsigned sum = 0;
            for (unsigned rank = 0; rank < CLUSTER; rank++) {
                sum += load_peer<1>(of_peer(&own[first + i], rank));
            }
            sums[i] = sum;
        }
        cluster_sync();
        for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) {
            own[i] = load_peer<1>(of_peer(&sums[i % (4096 / CLUSTER)], i / (4096 / CLUSTER)));
        }
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = own[threadIdx.x];
#endif
}

/* A histogram whose bins lie in all blocks of the cluster. */
template <int CLUSTER>
__global__ void histogram(const unsigned *in, unsigned count, unsigned *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ unsigned bins[2048];
    for (unsigned i = threadIdx.x; i < 2048; i += blockDim.x) {
        bins[i] = 0;
    }
    cluster_sync();
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        unsigned bin = in[i] % (2048 * CLUSTER);
        add_to_peer(of_peer(&bins[bin % 2048], bin / 2048), 1);
    }
    cluster_sync();
    for (unsigned i = threadIdx.x; i < 2048; i += blockDim.x) {
        atomicAdd(&out[cluster_rank() * 2048 + i], bins[i]);
    }
#endif
}

/* A stencil over a line that a cluster holds: the two values at a part's ends come from its
   neighbours, a step after the other. */
template <int CLUSTER> __global__ void stencil(float *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ float line[2][1026];
    unsigned rank = cluster_rank(), i = threadIdx.x + 1;
    line[0][i] = (float)(blockIdx.x + i);
    for (int t = 0; t < turns; t++) {
        cluster_sync();
        float *now = line[t % 2], *next = line[(t + 1) % 2];
        float left = now[i - 1], right = now[i + 1];
        if (threadIdx.x == 0) {
            left = load_peer_float(of_peer(&now[blockDim.x], (rank + CLUSTER - 1) % CLUSTER));
        }
        if (threadIdx.x == blockDim.x - 1) {
            right = load_peer_float(of_peer(&now[1], (rank + 1) % CLUSTER));
        }
        next[i] = 0.25f * left + 0.5f * now[i] + 0.25f * right;
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = line[turns % 2][i];
#endif
}

/* Softmax of rows that a cluster holds: each block adds its part, all sums come together. */
template <int CLUSTER> __global__ void softmax_rows(float *out, int rows) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ float sums[32], part[2];
    for (int row = 0; row < rows; row++) {
        float value = expf((float)((threadIdx.x * 7 + row) % 64) / 64.0f);
        float sum = sum_block(value, sums), all = 0.0f;
        if (threadIdx.x == 0) {
            part[row % 2] = sum;
        }
        cluster_sync();
        for (unsigned rank = 0; rank < CLUSTER; rank++) {
            all += load_peer_float(of_peer(&part[row % 2], rank));
        }
        out[(blockIdx.x * (size_t)rows + row) * blockDim.x + threadIdx.x] = value / all;
    }
    cluster_sync();
#endif
}

/* Each block gives each other one its part of a square, which is stored transposed. */
template <int CLUSTER> __global__ void transpose_parts(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ unsigned from[4096], to[4096];
    unsigned rank = cluster_rank(), part = 4096 / CLUSTER;
    for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) {
        from[i] = i + rank;
    }
    for (int t = 0; t < turns; t++) {
        cluster_sync();
        for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) {
            store_peer<1>(of_peer(&to[rank * part + i % part], i / part), from[i]);
        }
        cluster_sync();
        for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) {
            from[i] = to[i] + 1;
        }
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = from[threadIdx.x];
#endif
}

/* All blocks read the table that the first block of their cluster holds. */
template <int CLUSTER> __global__ void look_up(const unsigned *in, unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ unsigned table[WORDS];
    for (unsigned i = threadIdx.x; cluster_rank() == 0 && i < WORDS; i += blockDim.x) {
        table[i] = in[i];
    }
    cluster_sync();
    unsigned from = of_peer(table, 0), sum = 0;
    for (int t = 0; t < turns; t++) {
        sum += load_peer<1>(from + (threadIdx.x * 5 + t * 131) % WORDS * 4);
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

/* out += a * b of 64 x 64 tiles, of which each block of the cluster holds a's own, and all b's. */
template <int CLUSTER> __global__ void __launch_bounds__(256) products(float *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(16) float a[64 * 64], b[64 * 64];
    float sums[16] = {0.0f};
    unsigned row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
    for (unsigned i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5 + blockIdx.x % 3);
    }
    cluster_sync();
    for (int t = 0; t < turns; t++) {
        unsigned from = of_peer(b, (cluster_rank() + t) % CLUSTER);
        for (unsigned k = 0; k < 64; k++) {
            float v[4];
            asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                         : "r"(from + (k * 64 + column) * 4));
            for (unsigned r = 0; r < 4; r++) {
                float x = a[(row + r) * 64 + k];
                for (unsigned c = 0; c < 4; c++) {
                    sums[r * 4 + c] += x * v[c];
                }
            }
        }
    }
    cluster_sync();
    for (unsigned i = 0; i < 16; i++) {
        out[(blockIdx.x * 64 + row + i / 4) * 64 + column + i % 4] = sums[i];
    }
#endif
}

/* Parts of sums that the blocks of a cluster hold are added by its first block. */
template <int CLUSTER> __global__ void add_parts(float *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(16) float part[WORDS];
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) {
        part[i] = (float)(i % 11);
    }
    for (int t = 0; t < turns; t++) {
        cluster_sync();
        for (unsigned i = threadIdx.x; cluster_rank() == 0 && i < WORDS; i += blockDim.x) {
            float sum = 0.0f;
            for (unsigned rank = 1; rank < CLUSTER; rank++) {
                sum += load_peer_float(of_peer(&part[i], rank));
            }
            out[(size_t)blockIdx.x * WORDS + i] = sum;
        }
    }
    cluster_sync();
#endif
}

/* Reads of a peer with arithmetic in between. */
template <int CLUSTER> __global__ void read_and_compute(float *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ float words[WORDS];
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) {
        words[i] = (float)(i % 13);
    }
    cluster_sync();
    unsigned from = of_peer(words, (cluster_rank() + 1) % CLUSTER);
    for (int t = 0; t < turns; t++) {
        float x = load_peer_float(from + (threadIdx.x + t * blockDim.x) % WORDS * 4);
#pragma unroll
        for (int n = 0; n < 48; n++) {
            x = x * 0.5f + 1.0f;
        }
        sum += x;
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

/* Nothing but the cluster's barrier. */
__global__ void barriers(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    for (int t = 0; t < turns; t++) {
        cluster_sync();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = turns;
#endif
}

template <int CLUSTER, int EACH, int AWAY, int THREADS, int TURNS>
bool read(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(read_words<CLUSTER, EACH, AWAY>, {BLOCKS_IN_ALL, THREADS, CLUSTER, 0},
                 (unsigned *)buffers->out, TURNS);
}

template <int CLUSTER, int EACH, int TURNS>
bool write(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(write_words<CLUSTER, EACH>, {BLOCKS_IN_ALL, 256, CLUSTER, 0},
                 (unsigned *)buffers->out, TURNS);
}

template <int CLUSTER, int TURNS>
bool add(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(add_words<CLUSTER>, {BLOCKS_IN_ALL, 256, CLUSTER, 0}, (unsigned *)buffers->out,
                 TURNS);
}

template <int CLUSTER, int BYTES, int TURNS>
bool copy(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(copy_bulk<CLUSTER, BYTES>, {BLOCKS_IN_ALL, 32, CLUSTER, 3 * BYTES},
                 (unsigned *)buffers->out, TURNS);
}

bool chain(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(chase, {2, 32, 2, 0}, (unsigned *)buffers->out, 1000);
}

/* A kernel of (out, turns). */
template <typename OUT, void (*KERNEL)(OUT *, int), int CLUSTER, int THREADS, int TURNS>
bool exchange(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(KERNEL, {BLOCKS_IN_ALL, THREADS, CLUSTER, 0}, (OUT *)buffers->out, TURNS);
}

template <int CLUSTER>
bool count(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(histogram<CLUSTER>, {BLOCKS_IN_ALL, 512, CLUSTER, 0}, (const unsigned *)buffers->a,
                 1u << 22, (unsigned *)buffers->out);
}

template <int CLUSTER>
bool look(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(look_up<CLUSTER>, {BLOCKS_IN_ALL, 256, CLUSTER, 0}, (const unsigned *)buffers->a,
                 (unsigned *)buffers->out, 512);
}

} // namespace

const struct hopper_kernel hopper_peers[HOPPER_PEERS] = {
    {"peer_chain", {}, chain},
    {"peer_load_4", {}, read<2, 1, 1, 256, 1024>},
    {"peer_load_8", {}, read<2, 2, 1, 256, 1024>},
    {"peer_load_16", {}, read<2, 4, 1, 256, 512>},
    {"peer_load_16_of_8", {}, read<8, 4, 1, 256, 512>},
    {"peer_load_4_of_4", {}, read<4, 1, 1, 256, 1024>},
    {"peer_load_16_one_warp", {}, read<2, 4, 1, 32, 1024>},
    {"peer_load_4_one_warp", {}, read<4, 1, 1, 32, 1024>},
    {"peer_load_4_1024_threads", {}, read<4, 1, 1, 1024, 256>},
    {"peer_load_own", {}, read<4, 4, 0, 256, 1024>},
    {"peer_store_4", {}, write<2, 1, 1024>},
    {"peer_store_16", {}, write<4, 4, 512>},
    {"peer_add", {}, add<2, 1024>},
    {"peer_add_of_8", {}, add<8, 1024>},
    {"peer_copy_1_kib", {}, copy<2, 1024, 512>},
    {"peer_copy_16_kib", {}, copy<4, 16384, 128>},
};

const struct hopper_kernel hopper_exchanges[HOPPER_EXCHANGES] = {
    {"sum_of_2", {}, exchange<unsigned, sum_of_cluster<2>, 2, 256, 16>},
    {"sum_of_8", {}, exchange<unsigned, sum_of_cluster<8>, 8, 256, 16>},
    {"histogram_of_2", {}, count<2>},
    {"histogram_of_8", {}, count<8>},
    {"stencil_of_4", {}, exchange<float, stencil<4>, 4, 512, 64>},
    {"softmax_of_4", {}, exchange<float, softmax_rows<4>, 4, 256, 32>},
    {"transpose_of_4", {}, exchange<unsigned, transpose_parts<4>, 4, 256, 16>},
    {"transpose_of_8", {}, exchange<unsigned, transpose_parts<8>, 8, 512, 32>},
    {"look_up_of_2", {}, look<2>},
    {"look_up_of_8", {}, look<8>},
    {"products_of_2", {}, exchange<float, products<2>, 2, 256, 8>},
    {"products_of_4", {}, exchange<float, products<4>, 4, 256, 16>},
    {"add_parts_of_4", {}, exchange<float, add_parts<4>, 4, 256, 8>},
    {"read_and_compute", {}, exchange<float, read_and_compute<4>, 4, 256, 128>},
    {"barriers_of_2", {}, exchange<unsigned, barriers, 2, 256, 256>},
    {"barriers_of_8", {}, exchange<unsigned, barriers, 8, 128, 128>},
};
