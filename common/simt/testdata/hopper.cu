/* Kernels for hopper_test: mbarriers that count bytes, bulk copies, boxes of tensors. */
#include <cuda.h>

static __device__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ void init(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ void arm(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

static __device__ void wait(unsigned barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::
                     "r"(barrier),
                 "r"(parity)
                 : "memory");
}

static __device__ void load(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
                 "[%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

static __device__ void store(void *to, unsigned from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(to),
                 "r"(from), "r"(bytes)
                 : "memory");
}

static __device__ void fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* out = in + 1, `steps` pieces of 64 ints, through two stages; `expected` bytes are announced. */
extern "C" __global__ void bulk(const int *in, int *out, int steps, unsigned expected) {
    __shared__ __align__(128) int stage[2][64], result[64];
    __shared__ __align__(8) unsigned long long full[2];
    int t = threadIdx.x;
    if (t == 0) {
        init(shared_address(&full[0]), 1);
        init(shared_address(&full[1]), 1);
    }
    __syncthreads();
    for (int i = 0; i < 2 && i < steps && t == 0; i++) {
        arm(shared_address(&full[i]), expected);
        load(shared_address(stage[i]), in + 64 * i, 256, shared_address(&full[i]));
    }
    for (int i = 0; i < steps; i++) {
        wait(shared_address(&full[i % 2]), i / 2 % 2);
        result[t] = stage[i % 2][t] + 1;
        fence();
        __syncthreads();
        if (t == 0 && i + 2 < steps) {
            arm(shared_address(&full[i % 2]), expected);
            load(shared_address(stage[i % 2]), in + 64 * (i + 2), 256, shared_address(&full[i % 2]));
        }
        if (t == 0) {
            store(out + 64 * i, shared_address(result), 256);
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncthreads();
    }
}

/* Reads the stage before the copy into it is waited for. */
extern "C" __global__ void bulk_unwaited(const int *in, int *out) {
    __shared__ __align__(128) int stage[64];
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    if (t == 0) {
        init(shared_address(&full), 1);
        arm(shared_address(&full), 256);
        load(shared_address(stage), in, 256, shared_address(&full));
    }
    __syncthreads();
    out[t] = stage[t];
    wait(shared_address(&full), 0);
}

/* The same where all of shared memory has been written before. */
extern "C" __global__ void bulk_unwaited_again(const int *in, int *out) {
    __shared__ __align__(128) int stage[64];
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    stage[t] = t;
    if (t == 0) {
        init(shared_address(&full), 1);
    }
    fence();
    __syncthreads();
    out[t] = stage[t];
    __syncthreads();
    if (t == 0) {
        arm(shared_address(&full), 256);
        load(shared_address(stage), in, 256, shared_address(&full));
    }
    __syncthreads();
    out[t] += stage[t];
    wait(shared_address(&full), 0);
}

/* The address of the copy is no multiple of 16. */
extern "C" __global__ void bulk_misaligned(const int *in, int *out) {
    __shared__ __align__(128) int stage[64];
    __shared__ __align__(8) unsigned long long full;
    if (threadIdx.x == 0) {
        init(shared_address(&full), 1);
        arm(shared_address(&full), 128);
        load(shared_address(stage), in + 1, 128, shared_address(&full));
        wait(shared_address(&full), 0);
        out[0] = stage[0];
    }
}

#define COORDINATES_1 "{%2}"
#define COORDINATES_2 "{%2, %3}"
#define COORDINATES_3 "{%2, %3, %4}"
#define COORDINATES_4 "{%2, %3, %4, %5}"
#define COORDINATES_5 "{%2, %3, %4, %5, %6}"

/* Loads a box of a tensor; out gets shared memory as it is then, with words of 7 around. */
#define BOX(D)                                                                                    \
    extern "C" __global__ void box_##D(const __grid_constant__ CUtensorMap map, int x, int y,     \
                                       int z, int u, int v, unsigned bytes, int *out) {           \
        extern __shared__ __align__(1024) int stage[];                                            \
        __shared__ __align__(8) unsigned long long full;                                          \
        for (int n = threadIdx.x; n < 4096; n += 32) {                                            \
            stage[n] = 0x07070707;                                                                \
        }                                                                                         \
        fence();                                                                                  \
        __syncthreads();                                                                          \
        if (threadIdx.x == 0) {                                                                   \
            init(shared_address(&full), 1);                                                       \
            arm(shared_address(&full), bytes);                                                    \
            asm volatile("cp.async.bulk.tensor." #D                                               \
                         "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "           \
                         "[%1, " COORDINATES_##D "], [%7];" ::"r"(shared_address(stage)),         \
                         "l"(&map), "r"(x), "r"(y), "r"(z), "r"(u), "r"(v),                       \
                         "r"(shared_address(&full))                                               \
                         : "memory");                                                             \
        }                                                                                         \
        __syncthreads();                                                                          \
        wait(shared_address(&full), 0);                                                           \
        for (int n = threadIdx.x; n < 4096; n += 32) {                                            \
            out[n] = stage[n];                                                                    \
        }                                                                                         \
    }

BOX(1)
BOX(2)
BOX(3)
BOX(4)
BOX(5)

/* Stores a box whose bytes in shared memory are those of `in`; the map lies in global memory. */
extern "C" __global__ void store_box(const CUtensorMap *map, int x, int y, const int *in) {
    extern __shared__ __align__(1024) int stage[];
    for (int n = threadIdx.x; n < 4096; n += 32) {
        stage[n] = in[n];
    }
    fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(map),
                     "r"(x), "r"(y), "r"(shared_address(stage))
                     : "memory");
    }
}

/* A cluster of one block, elect.sync, setmaxnreg, a remote arrival at the block's own barrier. */
extern "C" __global__ void alone(int *out) {
    __shared__ __align__(8) unsigned long long barrier;
    __shared__ int seen;
    int t = threadIdx.x;
    if (t == 0) {
        init(shared_address(&barrier), 2);
        seen = 5;
    }
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    asm volatile("{\n.reg .pred p;\n.reg .b32 remote;\nelect.sync _|p, 0xffffffff;\n"
                 "mapa.shared::cluster.u32 remote, %0, 0;\n"
                 "@p mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(
                     shared_address(&barrier))
                 : "memory");
    wait(shared_address(&barrier), 0);
    out[t] = seen + t;
}

/* The stage is written again: before the store from it is waited for, or behind (`waits`). */
extern "C" __global__ void rewritten(int *out, int waits) {
    __shared__ __align__(128) int stage[64];
    int t = threadIdx.x;
    for (int i = 0; i < 2; i++) {
        stage[t] = 10 * t + i;
        fence();
        __syncthreads();
        if (t == 0) {
            store(out + 64 * i, shared_address(stage), 256);
            if (waits) {
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            }
        }
        __syncthreads();
    }
}

/* A thread clears the stage while the copy into it is on its way. */
extern "C" __global__ void cleared(const int *in, int *out) {
    __shared__ __align__(128) int stage[64];
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    if (t == 0) {
        init(shared_address(&full), 1);
        arm(shared_address(&full), 256);
        load(shared_address(stage), in, 256, shared_address(&full));
    }
    __syncthreads();
    stage[t] = -1;
    __syncthreads();
    wait(shared_address(&full), 0);
    out[t] = stage[t];
}

#define REDUCE(operation)                                                                     \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." operation             \
                 " [%0], [%1], 256;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"( \
                     out + 64 * kind),                                                        \
                 "r"(shared_address(stage))                                                   \
                 : "memory")

/* Every block puts 256 bytes together with those of out: each kind of operation has its own. */
extern "C" __global__ void reduce(const int *in, int *out) {
    __shared__ __align__(128) int stage[64];
    for (int kind = 0; kind < 6; kind++) {
        stage[threadIdx.x] = in[(kind * (int)gridDim.x + (int)blockIdx.x) * 64 + threadIdx.x];
        fence();
        __syncthreads();
        if (threadIdx.x == 0) {
            if (kind == 0) {
                REDUCE("add.s32");
            } else if (kind == 1) {
                REDUCE("min.s32");
            } else if (kind == 2) {
                REDUCE("xor.b32");
            } else if (kind == 3) {
                REDUCE("add.f32");
            } else if (kind == 4) {
                REDUCE("add.noftz.f16");
            } else {
                REDUCE("max.bf16");
            }
        }
        __syncthreads();
    }
}

/* Every block adds a box to a tensor. */
extern "C" __global__ void reduce_box(const __grid_constant__ CUtensorMap map, int x, int y,
                                      const int *in) {
    extern __shared__ __align__(1024) int stage[];
    for (int n = threadIdx.x; n < 256; n += 32) {
        stage[n] = in[n];
    }
    fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, "
                     "%2}], [%3];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(
                         &map),
                     "r"(x), "r"(y), "r"(shared_address(stage))
                     : "memory");
    }
}

/* What changes nothing: cache hints, prefetches; by the lane that elect.sync names. `in` are 64 ints, the
 * map's tensor is of 16 columns and 8 rows of ints, out gets a sum with the input, then the box. */
extern "C" __global__ void hinted(const __grid_constant__ CUtensorMap map, const int *in, int *out) {
    __shared__ __align__(128) int row[64], box[128];
    __shared__ __align__(8) unsigned long long full;
    unsigned barrier = shared_address(&full), elected;
    unsigned long long policy;
    if (threadIdx.x == 0) {
        init(barrier, 1);
    }
    __syncthreads();
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(elected));
    if (threadIdx.x < 32 && elected != 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %1}];" ::"l"(&map),
                     "r"(0)
                     : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 256;" ::"l"(in) : "memory");
        arm(barrier, 768);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".L2::cache_hint [%0], [%1], 256, [%2], %3;" ::"r"(shared_address(row)),
                     "l"(in), "r"(barrier), "l"(policy)
                     : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
                     "bytes.L2::cache_hint [%0], [%1, {%2, %2}], [%3], %4;" ::"r"(
                         shared_address(box)),
                     "l"(&map), "r"(0), "r"(barrier), "l"(policy)
                     : "memory");
    }
    wait(barrier, 0);
    for (int n = threadIdx.x; n < 128; n += blockDim.x) {
        out[64 + n] = box[n];
    }
    if (threadIdx.x < 32 && elected != 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.s32 "
                     "[%0], [%1], 128, %2;" ::"l"(out),
                     "r"(shared_address(row)), "l"(policy)
                     : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], 128, "
                     "%2;" ::"l"(out + 32),
                     "r"(shared_address(row + 32)), "l"(policy)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}

/* A warp makes a tensor map of another one: thread 0 changes each field of a copy in shared memory,
 * the warp brings it to global memory, and the box of the new map's tensor comes to out. `columns` by
 * `rows` ints at `tensor`, of which the box has `box` by `box`. */
extern "C" __global__ void changed_map(const __grid_constant__ CUtensorMap map, int *made,
                                       const int *tensor, int columns, int rows, int box, int *out) {
    __shared__ __align__(128) int copy[32], stage[1024];
    __shared__ __align__(8) unsigned long long full;
    unsigned barrier = shared_address(&full), shared = shared_address(copy);
    copy[threadIdx.x] = ((const int *)&map)[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0) {
        init(barrier, 1);
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(
                         shared),
                     "l"(tensor)
                     : "memory");
        asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;\n"
                     "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 3;\n"
                     "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;\n"
                     "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 0;\n"
                     "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(shared)
                     : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;\n"
                     "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %2;\n"
                     "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %3;\n"
                     "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %3;\n"
                     "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, 1;\n"
                     "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, 1;\n"
                     "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %4;" ::"r"(
                         shared),
                     "r"(columns), "r"(rows), "r"(box), "l"((unsigned long long)columns * 4)
                     : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync."
                 "aligned [%0], [%1], 128;" ::"l"(made),
                 "r"(shared)
                 : "memory");
    if (threadIdx.x == 0) {
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(made) : "memory");
        arm(barrier, box * box * 4);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
                     "bytes [%0], [%1, {%2, %2}], [%3];" ::"r"(shared_address(stage)),
                     "l"(made), "r"(0), "r"(barrier)
                     : "memory");
    }
    wait(barrier, 0);
    for (int n = threadIdx.x; n < box * box; n += 32) {
        out[n] = stage[n];
    }
}
