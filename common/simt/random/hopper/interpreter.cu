/*
 * The kernel that executes a random program (program.h), and its launch.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda/cluster.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/memory.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#include "common/simt/random/hopper/program.h"
#include "common/simt/random/hopper/variants.h"

namespace {

struct maps {
    CUtensorMap in[RH_MAPS], out;
};

/* What a program works on, in device memory. */
struct memory {
    const unsigned char *in; /* (RH_FORMATS, RH_INPUT_BYTES) */
    unsigned char *out;      /* for all blocks, then for each: RH_OUTPUT_BYTES */
    unsigned *checksum;
};

enum { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_AND, REDUCE_OR, REDUCE_XOR, REDUCE_ADD_64 };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* A thread, and where its block's shared memory lies. */
struct state {
    unsigned buffers, full, counter;
    unsigned rank, size; /* of the cluster */
    unsigned hash;
    float d[32];    /* sums of wgmma */
    unsigned e[32]; /* those of integers */
};

__device__ __forceinline__ unsigned buffer_at(const state &s, int number) {
    return s.buffers + number * RH_BUFFER_BYTES;
}

__device__ __forceinline__ void mix(state &s, unsigned word) {
    s.hash = (s.hash ^ word) * 16777619u + 1u;
}

__device__ __forceinline__ unsigned remote(unsigned address, unsigned rank) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

__device__ __forceinline__ unsigned peer(const state &s, int distance) {
    return (s.rank + (unsigned)distance) % s.size;
}

__device__ __forceinline__ unsigned load_shared(unsigned address) {
    unsigned value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

/* Writes a buffer, 16 bytes at a time, with elements of an input. */
__device__ __forceinline__ void fill(const state &s, const int *a, const unsigned char *in) {
    unsigned to = buffer_at(s, a[0]);
    for (unsigned i = threadIdx.x; i < RH_BUFFER_BYTES / 16; i += RH_THREADS) {
        unsigned from = (unsigned)(i * 16 + a[2]) % RH_INPUT_BYTES / 16 * 16;
        uint4 v = *(const uint4 *)(in + (size_t)a[1] * RH_INPUT_BYTES + from);
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to + i * 16), "r"(v.x),
                     "r"(v.y), "r"(v.z), "r"(v.w)
                     : "memory");
    }
    fence_proxy_async();
}

__device__ __forceinline__ void load(const state &s, const int *a, const unsigned char *in) {
    if (threadIdx.x == (unsigned)a[4] * 32) {
        unsigned barrier = s.full + a[0] * 8;
        mbarrier_arrive_expect_tx(barrier, a[3]);
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
            "%2, [%3];" ::"r"(buffer_at(s, a[0]) + a[1]),
            "l"(in + a[2]), "r"(a[3]), "r"(barrier)
            : "memory");
    }
}

#define BOX(D, PLACE)                                                                              \
    case D:                                                                                        \
        asm volatile("cp.async.bulk.tensor." #D                                                    \
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " PLACE     \
                     "], [%2];" ::"r"(to),                                                         \
                     "l"(map), "r"(barrier), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(a[8]), "r"(a[9]) \
                     : "memory");                                                                  \
        break;

__device__ __forceinline__ void load_box(const state &s, const int *a, const struct maps &maps) {
    if (threadIdx.x == (unsigned)a[3] * 32) {
        unsigned barrier = s.full + a[0] * 8, to = buffer_at(s, a[0]);
        const CUtensorMap *map = &maps.in[a[1]];
        mbarrier_arrive_expect_tx(barrier, a[2]);
        switch (a[4]) {
            BOX(1, "{%3}")
            BOX(2, "{%3, %4}")
            BOX(3, "{%3, %4, %5}")
            BOX(4, "{%3, %4, %5, %6}")
            BOX(5, "{%3, %4, %5, %6, %7}")
        }
    }
}

__device__ __forceinline__ void multicast(const state &s, const int *a, const unsigned char *in) {
    unsigned barrier = s.full + a[0] * 8;
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(barrier, a[2]);
    }
    if (threadIdx.x == 0 && s.rank == (unsigned)a[3]) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(buffer_at(s, a[0])),
                     "l"(in + a[1]), "r"(a[2]), "r"(barrier), "h"((short)((1 << s.size) - 1))
                     : "memory");
    }
}

#define D4(i) "+f"(s.d[i]), "+f"(s.d[i + 1]), "+f"(s.d[i + 2]), "+f"(s.d[i + 3])
#define E4(i) "+r"(s.e[i]), "+r"(s.e[i + 1]), "+r"(s.e[i + 2]), "+r"(s.e[i + 3])
#define FLOATS_4 D4(0)
#define FLOATS_16 D4(0), D4(4), D4(8), D4(12)
#define FLOATS_32 FLOATS_16, D4(16), D4(20), D4(24), D4(28)
#define INTEGERS_4 E4(0)
#define INTEGERS_16 E4(0), E4(4), E4(8), E4(12)
#define INTEGERS_32 INTEGERS_16, E4(16), E4(20), E4(24), E4(28)
#define SUMS_4 "{%0, %1, %2, %3}"
#define SUMS_16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define SUMS_32                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
    "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define SHARED_4 "%4, %5, p"
#define SHARED_16 "%16, %17, p"
#define SHARED_32 "%32, %33, p"
#define REGISTERS_4 "{%7, %8, %9, %10}, %5, p"
#define REGISTERS_16 "{%19, %20, %21, %22}, %17, p"
#define REGISTERS_32 "{%35, %36, %37, %38}, %33, p"
#define SCALE_4 "%6"
#define SCALE_16 "%18"
#define SCALE_32 "%34"

/* One wgmma. The number of a form is that of its row in RH_LIST. */
#define FORM(NAME, COUNT, SUMS, FROM, TAIL, A, B, N, TRANSPOSED_A, TRANSPOSED_B, NEGATED)      \
    case __COUNTER__ - FIRST:                                                                  \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " SCALE_##COUNT                         \
                     ", 0;\nwgmma.mma_async.sync.aligned." NAME " " SUMS_##COUNT               \
                     ", " FROM##_##COUNT TAIL ";\n}"                                           \
                     : SUMS##_##COUNT                                                          \
                     : "l"(in_a), "l"(in_b), "r"(accumulate), "r"(a[0]), "r"(a[1]), "r"(a[2]), \
                       "r"(a[3]));                                                             \
        break;

__device__ __forceinline__ void multiply(state &s, int form, uint64_t in_a, const unsigned *a,
                                         uint64_t in_b, int accumulate) {
    constexpr int FIRST = __COUNTER__ + 1;
    switch (form) { RH_LIST(FORM) }
}

__device__ __forceinline__ uint64_t descriptor(unsigned address, int low, int high) {
    return (uint64_t)(unsigned)high << 32 | (uint64_t)(unsigned)low | (address & 0x3ffff) >> 4;
}

__device__ __forceinline__ void product(state &s, const int *a, const unsigned char *in) {
    uint64_t in_a = descriptor(buffer_at(s, a[1]), a[3], a[4]);
    uint64_t in_b = descriptor(buffer_at(s, a[2]), a[5], a[6]);
    const unsigned *words = (const unsigned *)(in + (size_t)a[11] * RH_INPUT_BYTES);
    unsigned registers[4][4];
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 4; i++) {
            registers[step][i] = words[step * 512 + threadIdx.x * 4 + i];
        }
    }
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; step++) {
        if (step < a[9]) {
            multiply(s, a[0], in_a + (uint64_t)(step * a[7]), registers[step],
                     in_b + (uint64_t)(step * a[8]), a[10] || step > 0);
        }
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 32; i++) {
        if (i < a[12]) {
            mix(s, a[13] ? s.e[i] : __float_as_uint(s.d[i] + 0.0f));
        }
    }
}

__device__ __forceinline__ void hash_buffer(state &s, unsigned at) {
    for (unsigned i = threadIdx.x; i < RH_BUFFER_BYTES / 4; i += RH_THREADS) {
        mix(s, load_shared(at + i * 4));
    }
}

__device__ __forceinline__ void read_matrices(state &s, const int *a) {
    unsigned at = buffer_at(s, a[0]) + threadIdx.x * 48 % RH_BUFFER_BYTES / 16 * 16, v[4];
    if (a[1]) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(at)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(at)
                     : "memory");
    }
    for (int i = 0; i < 4; i++) {
        mix(s, v[i]);
    }
}

__device__ __forceinline__ void write_matrices(const state &s, const int *a) {
    unsigned at = buffer_at(s, a[0]) + threadIdx.x * 16, v = (unsigned)a[2] + threadIdx.x;
    if (a[1]) {
        asm volatile(
            "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %1};" ::"r"(at),
            "r"(v), "r"(v * 3), "r"(v * 7)
            : "memory");
    } else {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %1};" ::"r"(at),
                     "r"(v), "r"(v * 3), "r"(v * 7)
                     : "memory");
    }
    fence_proxy_async();
}

__device__ __forceinline__ void finish_stores(void) {
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void store(const state &s, const int *a, unsigned char *out) {
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                         out + (size_t)(blockIdx.x + 1) * RH_OUTPUT_BYTES + a[2]),
                     "r"(buffer_at(s, a[0]) + a[1]), "r"(a[3])
                     : "memory");
        finish_stores();
    }
}

__device__ __forceinline__ void store_box(const state &s, const int *a, const struct maps &maps) {
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], "
                     "[%4];" ::"l"(&maps.out),
                     "r"(a[1]), "r"(a[2]), "r"(blockIdx.x), "r"(buffer_at(s, a[0]))
                     : "memory");
        finish_stores();
    }
}

#define REDUCE(NUMBER, OPERATION)                                                    \
    case NUMBER:                                                                     \
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." OPERATION \
                     " [%0], [%1], %2;" ::"l"(to),                                   \
                     "r"(buffer_at(s, a[0]) + a[1]), "r"(a[3])                       \
                     : "memory");                                                    \
        break;

/* Into what all blocks share; each operation has a part of that. */
__device__ __forceinline__ void reduce(const state &s, const int *a, unsigned char *out) {
    unsigned char *to = out + a[4] * 4096 + a[2];
    if (threadIdx.x == 0) {
        switch (a[4]) {
            REDUCE(REDUCE_ADD, "add.u32")
            REDUCE(REDUCE_MIN, "min.s32")
            REDUCE(REDUCE_MAX, "max.u32")
            REDUCE(REDUCE_AND, "and.b32")
            REDUCE(REDUCE_OR, "or.b32")
            REDUCE(REDUCE_XOR, "xor.b32")
            REDUCE(REDUCE_ADD_64, "add.u64")
        }
        finish_stores();
    }
}

/* From the block's own shared memory to that of a peer, whose barrier counts the bytes. */
__device__ __forceinline__ void copy_to_peer(const state &s, const int *a) {
    unsigned barrier = s.full + a[0] * 8, there = peer(s, a[3]);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(barrier, a[2]);
        if (a[4]) {
            asm volatile(
                "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
                "bytes.add.u32 [%0], [%1], %2, [%3];" ::"r"(remote(buffer_at(s, a[0]), there)),
                "r"(buffer_at(s, a[1])), "r"(a[2]), "r"(remote(barrier, there))
                : "memory");
        } else {
            asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                         "[%0], [%1], %2, [%3];" ::"r"(remote(buffer_at(s, a[0]), there)),
                         "r"(buffer_at(s, a[1])), "r"(a[2]), "r"(remote(barrier, there))
                         : "memory");
        }
    }
}

__device__ __forceinline__ void store_to_peer(const state &s, const int *a) {
    unsigned barrier = s.full + a[0] * 8, there = peer(s, a[1]), v = (unsigned)a[2] + threadIdx.x;
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect_tx(barrier, RH_THREADS * 16);
    }
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], "
        "{%2, %3, %4, %2}, [%1];" ::"r"(remote(buffer_at(s, a[0]) + threadIdx.x * 16, there)),
        "r"(remote(barrier, there)), "r"(v), "r"(v * 5), "r"(v * 11)
        : "memory");
    mbarrier_wait(barrier, a[3]);
    fence_proxy_async();
}

__device__ __forceinline__ void read_peer(state &s, const int *a) {
    unsigned from = remote(buffer_at(s, a[0]), peer(s, a[1]));
    for (unsigned i = threadIdx.x; i < RH_BUFFER_BYTES / 4; i += 3 * RH_THREADS) {
        unsigned word;
        asm volatile("ld.shared::cluster.u32 %0, [%1];"
                     : "=r"(word)
                     : "r"(from + i * 4)
                     : "memory");
        mix(s, word);
    }
}

__device__ __forceinline__ void add_at_peer(const state &s, const int *a) {
    unsigned to = remote(buffer_at(s, a[0]), peer(s, a[1]));
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(
                     to + threadIdx.x * 36 % RH_BUFFER_BYTES),
                 "r"((unsigned)a[2] * threadIdx.x)
                 : "memory");
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], %1;" ::"r"(to),
                 "r"((unsigned)a[2])
                 : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ void execute(state &s, const struct rh_operation &o,
                                        const struct maps &maps, const struct memory &m) {
    const int *a = o.arguments;
    switch (o.kind) {
    case RH_FILL:
        return fill(s, a, m.in);
    case RH_LOAD:
        return load(s, a, m.in);
    case RH_LOAD_BOX:
        return load_box(s, a, maps);
    case RH_MULTICAST:
        return multicast(s, a, m.in);
    case RH_WAIT:
        return mbarrier_wait(s.full + a[0] * 8, a[1]);
    case RH_PRODUCT:
        return product(s, a, m.in);
    case RH_HASH:
        return hash_buffer(s, buffer_at(s, a[0]));
    case RH_LDMATRIX:
        return read_matrices(s, a);
    case RH_STMATRIX:
        return write_matrices(s, a);
    case RH_STORE:
        return store(s, a, m.out);
    case RH_STORE_BOX:
        return store_box(s, a, maps);
    case RH_REDUCE:
        return reduce(s, a, m.out);
    case RH_PEER_COPY:
        return copy_to_peer(s, a);
    case RH_PEER_STORE:
        return store_to_peer(s, a);
    case RH_PEER_READ:
        return read_peer(s, a);
    case RH_PEER_ATOMIC:
        return add_at_peer(s, a);
    case RH_CLUSTER_SYNC:
        return cluster_sync();
    case RH_ARRIVALS:
        mbarrier_arrive_cluster(s.counter, peer(s, a[0]));
        return mbarrier_wait(s.counter, a[1]);
    }
}

#endif

__global__ void __launch_bounds__(RH_THREADS)
    interpret(const __grid_constant__ struct maps maps, const struct rh_operation *operations,
              int count, const struct memory m) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    __shared__ __align__(8) uint64_t full[RH_BUFFERS], counter;
    struct state s = {};
    s.buffers = (shared_address(bytes) + 1023) / 1024 * 1024;
    s.full = shared_address(full);
    s.counter = shared_address(&counter);
    s.rank = cluster_rank();
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(s.size));
    for (unsigned i = threadIdx.x * 16; i < RH_BUFFERS * RH_BUFFER_BYTES; i += RH_THREADS * 16) {
        asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(s.buffers + i), "r"(0)
                     : "memory");
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < RH_BUFFERS; i++) {
            mbarrier_init(s.full + i * 8, 1);
        }
        mbarrier_init(s.counter, RH_THREADS);
        mbarrier_init_fence();
    }
    fence_proxy_async();
    cluster_sync();
    for (int n = 0; n < count; n++) {
        execute(s, operations[n], maps, m);
        __syncthreads();
    }
    cluster_sync();
    unsigned long long mine =
        (unsigned long long)s.hash * (blockIdx.x * RH_THREADS + threadIdx.x + 1);
    atomicAdd(m.checksum, (unsigned)mine);
    atomicAdd(m.checksum + 1, (unsigned)(mine >> 32));
#endif
}

typedef CUresult encode_tiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

encode_tiled *find_encode(void) {
    void *function = NULL;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                        cudaEnableDefault, &found);
    (void)cudaGetLastError();
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess ? (encode_tiled *)function
                                                                       : NULL;
}

CUtensorMapDataType type_of(enum rh_format format) {
    switch (format) {
    case RH_F16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case RH_BF16:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case RH_F32:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    default:
        return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    }
}

bool describe(CUtensorMap *to, CUtensorMapDataType type, const struct rh_map &map,
              const void *address) {
    static encode_tiled *const encode = find_encode();
    const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
    cuuint64_t sizes[5], strides[4];
    for (int d = 0; d < map.rank; d++) {
        sizes[d] = map.sizes[d];
    }
    for (int d = 0; d + 1 < map.rank; d++) {
        strides[d] = map.strides[d];
    }
    return encode != NULL &&
           encode(to, type, (cuuint32_t)map.rank, (void *)address, sizes, strides, map.box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)map.swizzle,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool describe_all(struct maps *maps, const struct rh_program *p, const struct memory &m) {
    struct rh_map out = {};
    out.rank = 3, out.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    out.sizes[0] = RH_OUT_COLUMNS, out.sizes[1] = RH_OUT_ROWS, out.sizes[2] = (uint32_t)p->blocks;
    out.strides[0] = RH_OUT_COLUMNS * 4, out.strides[1] = RH_OUTPUT_BYTES;
    out.box[0] = 32, out.box[1] = 64, out.box[2] = 1;
    bool done = describe(&maps->out, CU_TENSOR_MAP_DATA_TYPE_INT32, out,
                         m.out + (size_t)(1 + p->blocks) * RH_OUTPUT_BYTES);
    for (int n = 0; n < RH_MAPS && done; n++) {
        enum rh_format format = (enum rh_format)p->maps[n].format;
        done = describe(&maps->in[n], type_of(format), p->maps[n],
                        m.in + (size_t)format * RH_INPUT_BYTES);
    }
    return done;
}

size_t output_bytes(const struct rh_program *p) {
    return (size_t)(1 + 2 * p->blocks) * RH_OUTPUT_BYTES;
}

constexpr size_t INPUT_BYTES = (size_t)RH_FORMATS * RH_INPUT_BYTES;
constexpr unsigned SHARED_BYTES = RH_BUFFERS * RH_BUFFER_BYTES + 1024;

void fill_inputs(unsigned char *to) {
    for (int f = 0; f < RH_FORMATS; f++) {
        uint32_t bytes = rh_bytes((enum rh_format)f);
        for (uint32_t i = 0; i < RH_INPUT_BYTES / bytes; i++) {
            uint32_t element = rh_element((enum rh_format)f, i);
            memcpy(to + (size_t)f * RH_INPUT_BYTES + (size_t)i * bytes, &element, bytes);
        }
    }
}

/* What stays on the device from program to program. */
struct device {
    struct memory memory;
    struct rh_operation *operations;
    unsigned char *host; /* of INPUT_BYTES or all outputs, whichever are more */
};

const char *prepare(struct device *d) {
    size_t most = (size_t)(1 + 2 * RH_MOST_BLOCKS) * RH_OUTPUT_BYTES;
    void *in, *out, *checksum, *operations;
    d->host = (unsigned char *)malloc(most > INPUT_BYTES ? most : INPUT_BYTES);
    if (d->host == NULL || cudaMalloc(&in, INPUT_BYTES) != cudaSuccess ||
        cudaMalloc(&out, most) != cudaSuccess || cudaMalloc(&checksum, 8) != cudaSuccess ||
        cudaMalloc(&operations, sizeof(struct rh_operation) * RH_MOST_OPERATIONS) != cudaSuccess) {
        return "out of memory";
    }
    fill_inputs(d->host);
    d->memory.in = (const unsigned char *)in;
    d->memory.out = (unsigned char *)out;
    d->memory.checksum = (unsigned *)checksum;
    d->operations = (struct rh_operation *)operations;
    if (cudaMemcpy(in, d->host, INPUT_BYTES, cudaMemcpyHostToDevice) != cudaSuccess ||
        cudaFuncSetAttribute(interpret, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)SHARED_BYTES) != cudaSuccess) {
        return cudaGetErrorString(cudaGetLastError());
    }
    return NULL;
}

const char *launch(const struct device *d, const struct rh_program *p, const struct maps &maps) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)p->cluster, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)p->blocks);
    launch.blockDim = dim3(RH_THREADS);
    launch.dynamicSmemBytes = SHARED_BYTES;
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    cudaError_t code = cudaLaunchKernelEx(
        &launch, interpret, maps, (const struct rh_operation *)d->operations, p->count, d->memory);
    code = code == cudaSuccess ? cudaDeviceSynchronize() : code;
    return code == cudaSuccess ? NULL : cudaGetErrorString(code);
}

uint64_t sum_of(const unsigned char *bytes, size_t count) {
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        sum = (sum ^ word) * 1099511628211u;
        sum ^= sum >> 29;
    }
    return sum;
}

} // namespace

static struct device d;

const char *rh_run(const struct rh_program *p, uint64_t *checksum) {
    static const char *const failed = prepare(&d);
    struct maps maps;
    uint64_t threads = 0;
    if (failed != NULL) {
        return failed;
    }
    if (!describe_all(&maps, p, d.memory)) {
        return "cuTensorMapEncodeTiled refuses a tensor";
    }
    size_t operations = sizeof *p->operations * (size_t)p->count;
    if (cudaMemcpy(d.operations, p->operations, operations, cudaMemcpyHostToDevice) !=
            cudaSuccess ||
        cudaMemset(d.memory.out, 0x5a, output_bytes(p)) != cudaSuccess ||
        cudaMemset(d.memory.checksum, 0, 8) != cudaSuccess) {
        return cudaGetErrorString(cudaGetLastError());
    }
    const char *wrong = launch(&d, p, maps);
    if (wrong != NULL) {
        return wrong;
    }
    if (cudaMemcpy(d.host, d.memory.out, output_bytes(p), cudaMemcpyDeviceToHost) != cudaSuccess ||
        cudaMemcpy(&threads, d.memory.checksum, 8, cudaMemcpyDeviceToHost) != cudaSuccess) {
        return cudaGetErrorString(cudaGetLastError());
    }
    *checksum = sum_of(d.host, output_bytes(p)) ^ threads;
    return NULL;
}

void rh_end(void) {
    (void)cudaFree((void *)d.memory.in);
    (void)cudaFree(d.memory.out);
    (void)cudaFree(d.memory.checksum);
    (void)cudaFree(d.operations);
    free(d.host);
}
