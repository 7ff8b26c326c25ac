/*
 * Kernels that use one thing each: wgmma of different shapes, copies by the TMA in boxes of
 * different sizes, and messages between warps and blocks, one after the other.
 */
#include <cuda_bf16.h>
#include <stdint.h>

#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#include "common/simt/calibration/hopper/describe.cuh"
#include "common/simt/calibration/hopper/hopper.h"
#include "common/simt/calibration/hopper/launch.cuh"

namespace {

constexpr unsigned PROCESSORS = 132;
constexpr unsigned WGMMA_BLOCKS = 4, MOST_SHARED = 200 * 1024;

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ unsigned aligned_start(const void *bytes) {
    return (shared_address(bytes) + 1023) / 1024 * 1024;
}

#define R4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)

/* d (64, 64) += a * b^T; a in registers. */
__device__ __forceinline__ void wgmma_64_from_registers(float *d, const unsigned *a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
                 : R16(0), R16(16)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ __forceinline__ void wgmma_64(float *d, uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, 1, 1, 1, 0, 0;"
                 : R16(0), R16(16)
                 : "l"(a), "l"(b));
}
#undef R16
#undef R4

/* A warpgroup's product of 64 rows, N columns, 16 of K. */
template <int N, bool FROM_REGISTERS>
__device__ __forceinline__ void multiply(float *d, const unsigned *a, uint64_t in, uint64_t b) {
    if constexpr (FROM_REGISTERS) {
        wgmma_64_from_registers(d, a, b);
    } else if constexpr (N == 64) {
        wgmma_64(d, in, b);
    } else {
        wgmma<N>::template run<false, false>(d, in, b, 1, __nv_bfloat16());
    }
}

#endif

/* Products without a copy, four a group; IN_FLIGHT groups at a time. */
template <int N, bool FROM_REGISTERS, int IN_FLIGHT>
__global__ void __launch_bounds__(256, 1) multiply_only(float *out, int groups) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    unsigned start = aligned_start(bytes);
    float d[N / 2];
    unsigned a[4] = {0, 0, 0, 0};
    for (unsigned i = threadIdx.x * 16; i < 64 * 1024; i += blockDim.x * 16) {
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(start + i), "r"(0)
                     : "memory");
    }
    for (int i = 0; i < N / 2; i++) {
        d[i] = (float)i;
    }
    fence_proxy_async();
    __syncthreads();
    uint64_t in = wgmma_descriptor<false>(start + threadIdx.x / 128 * 8192);
    uint64_t b = wgmma_descriptor<false>(start + 32768);
    for (int g = 0; g < groups; g++) {
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < 4; i++) {
            multiply<N, FROM_REGISTERS>(d, a, in + 2 * i, b + 2 * i);
        }
        wgmma_commit();
        wgmma_wait<IN_FLIGHT>();
    }
    wgmma_wait<0>();
    float sum = 0.0f;
    for (int i = 0; i < N / 2; i++) {
        sum += d[i];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

/* Brings boxes of 64 columns to shared memory, STAGES at a time, and drops them: a warp copies, one
   waits. */
template <int ROWS, int STAGES>
__global__ void load_boxes(const __grid_constant__ CUtensorMap map, unsigned boxes, unsigned *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    unsigned start = aligned_start(bytes);
    unsigned turn = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), 1);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    for (unsigned box = blockIdx.x; box < boxes && threadIdx.x % 32 == 0;
         box += gridDim.x, turn++) {
        unsigned stage = turn % STAGES, parity = turn / STAGES & 1;
        if (threadIdx.x == 0) {
            mbarrier_wait(shared_address(&empty[stage]), parity ^ 1);
            mbarrier_arrive_expect_tx(shared_address(&full[stage]), ROWS * 128);
            tma_load_2d(start + stage * ROWS * 128, &map, 0, (int)(box * ROWS),
                        shared_address(&full[stage]));
        } else {
            mbarrier_wait(shared_address(&full[stage]), parity);
            mbarrier_arrive(shared_address(&empty[stage]));
        }
    }
    if (threadIdx.x == 32) {
        out[blockIdx.x] = turn;
    }
#endif
}

/* The same with plain bulk copies. */
template <int BYTES, int STAGES>
__global__ void load_bytes(const unsigned char *in, unsigned pieces, unsigned *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    unsigned start = aligned_start(bytes);
    unsigned turn = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), 1);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    for (unsigned n = blockIdx.x; n < pieces && threadIdx.x % 32 == 0; n += gridDim.x, turn++) {
        unsigned stage = turn % STAGES, parity = turn / STAGES & 1;
        if (threadIdx.x == 0) {
            mbarrier_wait(shared_address(&empty[stage]), parity ^ 1);
            mbarrier_arrive_expect_tx(shared_address(&full[stage]), BYTES);
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                         "[%1], %2, [%3];" ::"r"(start + stage * BYTES),
                         "l"(in + (size_t)n * BYTES), "r"(BYTES), "r"(shared_address(&full[stage]))
                         : "memory");
        } else {
            mbarrier_wait(shared_address(&full[stage]), parity);
            mbarrier_arrive(shared_address(&empty[stage]));
        }
    }
    if (threadIdx.x == 32) {
        out[blockIdx.x] = turn;
    }
#endif
}

/* Each block of a cluster brings every BLOCKS-th box to all of them. */
template <int BLOCKS, int STAGES>
__global__ void multicast_boxes(const __grid_constant__ CUtensorMap map, unsigned boxes,
                                unsigned *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    constexpr unsigned BYTES = 64 * 128;
    extern __shared__ unsigned char bytes[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    unsigned start = aligned_start(bytes), turn = 0, rank = cluster_rank();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(shared_address(&full[i]), 1);
            mbarrier_init(shared_address(&empty[i]), BLOCKS);
        }
        mbarrier_init_fence();
    }
    cluster_sync();
    unsigned part = BYTES / BLOCKS;
    for (unsigned box = blockIdx.x / BLOCKS; box < boxes && threadIdx.x % 32 == 0;
         box += gridDim.x / BLOCKS, turn++) {
        unsigned stage = turn % STAGES, parity = turn / STAGES & 1;
        if (threadIdx.x == 0) {
            mbarrier_wait(shared_address(&empty[stage]), parity ^ 1);
            mbarrier_arrive_expect_tx(shared_address(&full[stage]), BYTES);
            tma_load_2d_multicast(start + stage * BYTES + rank * part, &map, 0,
                                  (int)(box * 64 + rank * (64 / BLOCKS)),
                                  shared_address(&full[stage]), (1 << BLOCKS) - 1);
        } else {
            mbarrier_wait(shared_address(&full[stage]), parity);
            for (unsigned other = 0; other < BLOCKS; other++) {
                mbarrier_arrive_cluster(shared_address(&empty[stage]), other);
            }
        }
    }
    if (threadIdx.x == 32) {
        out[blockIdx.x] = turn;
    }
    cluster_sync();
#endif
}

/* Stores boxes of 64 x 64 from two buffers in turn. */
__global__ void store_boxes(const __grid_constant__ CUtensorMap map, unsigned boxes) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    unsigned start = aligned_start(bytes), turn = 0;
    for (unsigned i = threadIdx.x * 16; i < 2 * 64 * 128; i += blockDim.x * 16) {
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(start + i), "r"(i)
                     : "memory");
    }
    fence_proxy_async();
    __syncthreads();
    for (unsigned box = blockIdx.x; box < boxes && threadIdx.x == 0; box += gridDim.x, turn++) {
        tma_store_wait_read<1>();
        tma_store_2d(&map, 0, (int)(box * 64), start + turn % 2 * 64 * 128);
    }
    if (threadIdx.x == 0) {
        tma_store_wait();
    }
#endif
}

/* One box after the other: what a copy takes from its start to its barrier. */
template <int ROWS>
__global__ void one_box_at_a_time(const __grid_constant__ CUtensorMap map, int boxes) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    __shared__ __align__(8) uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&full), 1);
        mbarrier_init_fence();
        for (int i = 0; i < boxes; i++) {
            mbarrier_arrive_expect_tx(shared_address(&full), ROWS * 128);
            tma_load_2d(aligned_start(bytes), &map, 0, i % 64 * ROWS, shared_address(&full));
            mbarrier_wait(shared_address(&full), i & 1);
        }
    }
#endif
}

/* Two warps send each other a message in turn, by mbarriers. */
__global__ void messages_of_warps(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(8) uint64_t barriers[2];
    unsigned own = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&barriers[0]), 1);
        mbarrier_init(shared_address(&barriers[1]), 1);
    }
    __syncthreads();
    for (int i = 0; i < turns && threadIdx.x % 32 == 0; i++) {
        if (own == 0) {
            mbarrier_arrive(shared_address(&barriers[1]));
            mbarrier_wait(shared_address(&barriers[0]), i & 1);
        } else {
            mbarrier_wait(shared_address(&barriers[1]), i & 1);
            mbarrier_arrive(shared_address(&barriers[0]));
        }
    }
    out[threadIdx.x] = own;
#endif
}

/* Two blocks of a cluster do; STORES: with a value that st.async brings. */
template <bool STORES> __global__ void messages_of_blocks(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(8) uint64_t barrier;
    __shared__ unsigned value;
    unsigned rank = cluster_rank(), sum = 0;
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&barrier), 1);
        mbarrier_init_fence();
    }
    cluster_sync();
    for (int i = 0; i < turns && threadIdx.x == 0; i++) {
        for (unsigned who = 0; who < 2; who++) {
            if (who == rank && STORES) {
                asm volatile("{\n.reg .b32 place, barrier;\n"
                             "mapa.shared::cluster.u32 place, %0, %2;\n"
                             "mapa.shared::cluster.u32 barrier, %1, %2;\n"
                             "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [place], "
                             "%3, [barrier];\n}" ::"r"(shared_address(&value)),
                             "r"(shared_address(&barrier)), "r"(rank ^ 1), "r"(i)
                             : "memory");
            } else if (who == rank) {
                mbarrier_arrive_cluster(shared_address(&barrier), rank ^ 1);
            } else if (STORES) {
                mbarrier_arrive_expect_tx(shared_address(&barrier), 4);
                mbarrier_wait(shared_address(&barrier), i & 1);
                sum += *(volatile unsigned *)&value;
            } else {
                mbarrier_wait(shared_address(&barrier), i & 1);
            }
        }
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = sum;
    }
    cluster_sync();
#endif
}

/* Each thread reads 16 bytes at a time of the next block's shared memory. */
template <int BLOCKS> __global__ void read_peer(unsigned *out, int turns) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(16) unsigned words[8192];
    unsigned sum = 0, from;
    for (unsigned i = threadIdx.x; i < 8192; i += blockDim.x) {
        words[i] = i;
    }
    cluster_sync();
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(from)
        : "r"(shared_address(words)), "r"((cluster_rank() + 1) % BLOCKS));
    for (int t = 0; t < turns; t++) {
        unsigned v[4];
        asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(from + (threadIdx.x + t * blockDim.x) % 2048 * 16));
        sum += v[0] + v[1] + v[2] + v[3];
    }
    cluster_sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

template <int N, bool FROM_REGISTERS, int IN_FLIGHT, int THREADS, int GROUPS>
bool multiply_alone(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(multiply_only<N, FROM_REGISTERS, IN_FLIGHT>, {WGMMA_BLOCKS, THREADS, 1, 72 * 1024},
                 (float *)buffers->out, GROUPS);
}

/* All of a, as a matrix of 64 columns; what fits into L2. */
constexpr size_t ROWS_IN_ALL = ((size_t)1 << 23) / 64; /* 16 MiB */

bool describe_rows(CUtensorMap *map, const void *matrix, unsigned rows) {
    return describe_boxes(map, matrix, {ROWS_IN_ALL, 64, rows, 64, CU_TENSOR_MAP_SWIZZLE_128B});
}

template <int ROWS, int STAGES>
bool load_all(const struct hopper_buffers *buffers, const struct hopper_product *) {
    CUtensorMap map;
    return describe_rows(&map, buffers->a, ROWS) &&
           start(load_boxes<ROWS, STAGES>, {PROCESSORS, 64, 1, MOST_SHARED}, map,
                 (unsigned)(ROWS_IN_ALL / ROWS), (unsigned *)buffers->out);
}

template <int BYTES, int STAGES>
bool load_all_bytes(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(load_bytes<BYTES, STAGES>, {PROCESSORS, 64, 1, MOST_SHARED},
                 (const unsigned char *)buffers->a, (unsigned)(ROWS_IN_ALL * 128 / BYTES),
                 (unsigned *)buffers->out);
}

template <int BLOCKS>
bool multicast_all(const struct hopper_buffers *buffers, const struct hopper_product *) {
    CUtensorMap map;
    return describe_rows(&map, buffers->a, 64 / BLOCKS) &&
           start(multicast_boxes<BLOCKS, 8>, {128, 64, BLOCKS, MOST_SHARED}, map,
                 (unsigned)(ROWS_IN_ALL / 64), (unsigned *)buffers->out);
}

bool store_all(const struct hopper_buffers *buffers, const struct hopper_product *) {
    CUtensorMap map;
    return describe_rows(&map, buffers->out, 64) &&
           start(store_boxes, {PROCESSORS, 64, 1, MOST_SHARED}, map, (unsigned)(ROWS_IN_ALL / 64));
}

template <int ROWS>
bool load_one_by_one(const struct hopper_buffers *buffers, const struct hopper_product *) {
    CUtensorMap map;
    return describe_rows(&map, buffers->a, ROWS) &&
           start(one_box_at_a_time<ROWS>, {1, 32, 1, MOST_SHARED}, map, 64);
}

bool warps(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(messages_of_warps, {1, 64, 1, 0}, (unsigned *)buffers->out, 500);
}

template <bool STORES>
bool blocks(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(messages_of_blocks<STORES>, {2, 32, 2, 0}, (unsigned *)buffers->out, 200);
}

template <int BLOCKS>
bool peers(const struct hopper_buffers *buffers, const struct hopper_product *) {
    return start(read_peer<BLOCKS>, {128, 256, BLOCKS, 0}, (unsigned *)buffers->out, 512);
}

} // namespace

const struct hopper_kernel hopper_units[HOPPER_UNITS] = {
    {"wgmma_n64", {}, multiply_alone<64, false, 1, 128, 500>},
    {"wgmma_n64_registers", {}, multiply_alone<64, true, 1, 128, 500>},
    {"wgmma_n128", {}, multiply_alone<128, false, 1, 128, 250>},
    {"wgmma_n256", {}, multiply_alone<256, false, 1, 128, 125>},
    {"wgmma_n256_waited", {}, multiply_alone<256, false, 0, 128, 125>},
    {"wgmma_n128_two_warpgroups", {}, multiply_alone<128, false, 1, 256, 250>},
    {"boxes_1_kib", {}, load_all<8, 16>},
    {"boxes_4_kib", {}, load_all<32, 16>},
    {"boxes_16_kib", {}, load_all<128, 8>},
    {"boxes_16_kib_one_stage", {}, load_all<128, 1>},
    {"bulk_2_kib", {}, load_all_bytes<2048, 16>},
    {"bulk_16_kib", {}, load_all_bytes<16384, 8>},
    {"multicast_4_blocks", {}, multicast_all<4>},
    {"store_boxes", {}, store_all},
    {"one_box_at_a_time", {}, load_one_by_one<8>},
    {"messages_of_warps", {}, warps},
    {"messages_of_blocks", {}, blocks<true>},
    {"read_peer", {}, peers<4>},
};
