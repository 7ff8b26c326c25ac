/*
 * The kernels of mistakes.h. Way 0 of each is right; the others say what they change.
 */
#include "common/simt/runtime/mistakes/mistakes.h"

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

namespace {

enum { ROWS = 64, COLUMNS = 8, DEPTH = 16, SUMS = ROWS * COLUMNS };
enum { STEPS = 6, ROW = 128, OUT_WORDS = 4096, IN_WORDS = 4096 };

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ unsigned address_of(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void proxy_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void init(const void *barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arm(const void *barrier, unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)),
        "r"(bytes)
        : "memory");
}

__device__ __forceinline__ void arrive(const void *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}

__device__ __forceinline__ void wait(const void *barrier, unsigned parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(
            address_of(barrier)),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ bool is_over(const void *barrier, unsigned parity) {
    int over;
    asm volatile("{\n.reg .pred done;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                 "selp.s32 %0, 1, 0, done;\n}"
                 : "=r"(over)
                 : "r"(address_of(barrier)), "r"(parity)
                 : "memory");
    return over != 0;
}

__device__ __forceinline__ void load(unsigned to, const void *from, unsigned bytes,
                                     const void *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], "
                 "%2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(address_of(barrier))
                 : "memory");
}

__device__ __forceinline__ void commit_stores() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void store(void *to, unsigned from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}

/* ---- Products ---- */

__device__ __forceinline__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* The sums are named, so that the compiler leaves their uses behind the wait. */
template <int PENDING> __device__ __forceinline__ void wait_products(float *d) {
    asm volatile("wgmma.wait_group.sync.aligned %4;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "n"(PENDING)
                 : "memory");
}

__device__ __forceinline__ void multiply(float *d, uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, "
        "1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(a), "l"(b)
        : "memory");
}

__device__ __forceinline__ void multiply_registers(float *d, unsigned *a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, "
                 "%7}, %8, 1, 1, 1, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
                 : "memory");
}

/* Without a swizzle: cores of eight rows of 16 bytes; K's are 128 bytes apart, rows' 256. */
__device__ __forceinline__ uint64_t descriptor(const void *p) {
    return (uint64_t)(256 >> 4) << 32 | (uint64_t)(128 >> 4) << 16 | address_of(p) >> 4;
}

__device__ __forceinline__ int place(int row, int k) {
    return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8;
}

struct operands {
    __half a[ROWS * DEPTH], b[COLUMNS * DEPTH];
};

__device__ __forceinline__ float a_at(int row, int k) {
    return (float)(row % 7 - k % 3);
}

__device__ void fill(struct operands *o) {
    for (int n = threadIdx.x; n < ROWS * DEPTH; n += 128) {
        o->a[place(n / DEPTH, n % DEPTH)] = __float2half_rn(a_at(n / DEPTH, n % DEPTH));
    }
    int n = threadIdx.x;
    o->b[place(n / DEPTH, n % DEPTH)] = __float2half_rn((float)(n / DEPTH - n % DEPTH % 5));
}

/* out (64, 8) of words that are whole numbers. */
__device__ void store_sums(int *out, const float *d) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++) {
        out[(warp * 16 + lane / 4 + i / 2 * 8) * COLUMNS + lane % 4 * 2 + i % 2] = (int)d[i];
    }
}

/* This thread's registers of A. */
__device__ void fill_registers(unsigned *a) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++) {
        int row = warp * 16 + lane / 4 + i % 2 * 8, k = lane % 4 * 2 + i / 2 * 8;
        __half2 pair = __floats2half2_rn(a_at(row, k), a_at(row, k + 1));
        a[i] = *(unsigned *)&pair;
    }
}

#endif

/*
 * Wrong: 1 no wgmma.fence; 2 sums are stored before the wait; 3 the wait leaves the youngest group
 * alone; 4 no commit; 5 sums change between fence and wgmma; 6 sums are read between two wgmma; 7 B
 * or 8 A is written again before the wait; 9 a bulk load goes to B before the wait; 10 no proxy
 * fence; 11 one in front of the writes; 13 sums are
 * scaled, and no fence in front of the next wgmma; 14 one warp of four leaves a wgmma out; 15
 * another descriptor in one warp.
 * Right: 20 operands are written again behind the wait; 21 the older of two groups is used while
 * the younger one runs; 22 sums are scaled behind a fence of their own; 23 one thread's proxy fence
 * behind the barrier; 24 several wgmma on the same sums behind one fence; 25 A in registers; 26
 * that change behind the wait; 27 B is loaded again behind the wait; 28 another warpgroup works on.
 */
template <int WAY> __global__ void __launch_bounds__(256) product(const int *in, int *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) struct operands o;
    __shared__ __align__(8) uint64_t full;
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f}, e[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    unsigned a[4];
    if (threadIdx.x >= 128) { /* WAY 28 */
        for (int n = threadIdx.x - 128; n < SUMS; n += 128) {
            out[SUMS + n] = in[n];
        }
        return;
    }
    constexpr bool REGISTERS = WAY == 25 || WAY == 26;
    constexpr bool LOADS = WAY == 9 || WAY == 27;
    if (threadIdx.x == 0) {
        init(&full, 1);
    }
    if (WAY == 11) {
        proxy_fence();
    }
    fill(&o);
    fill_registers(a);
    if (WAY != 10 && WAY != 11 && WAY != 23) {
        proxy_fence();
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (WAY == 23) {
        if (threadIdx.x == 0) {
            proxy_fence();
        }
        asm volatile("bar.sync 1, 128;" ::: "memory");
    }
    if (WAY != 1) {
        fence();
    }
    if (WAY == 5) {
        asm volatile("add.f32 %0, %0, 0f3F800000;" : "+f"(d[2]));
    }
    if (REGISTERS) {
        multiply_registers(d, a, descriptor(o.b));
    } else if (WAY == 15 && threadIdx.x / 32 == 2) {
        multiply(d, descriptor(o.a), descriptor(o.a));
    } else if (WAY != 14 || threadIdx.x / 32 != 2) {
        multiply(d, descriptor(o.a), descriptor(o.b));
    }
    if (WAY == 6) {
        asm volatile("st.global.f32 [%0], %1;" ::"l"(out), "f"(d[0]) : "memory");
        multiply(d, descriptor(o.a), descriptor(o.b));
    }
    if (WAY == 24) {
        multiply(d, descriptor(o.a), descriptor(o.b));
        multiply(d, descriptor(o.a), descriptor(o.b));
    }
    if (WAY != 4) {
        commit();
    }
    if (WAY == 7) {
        o.b[threadIdx.x] = __float2half_rn(1.0f);
    }
    if (WAY == 8) {
        o.a[threadIdx.x] = __float2half_rn(1.0f);
    }
    if (WAY == 9 && threadIdx.x == 0) {
        arm(&full, 256);
        load(address_of(o.b), in, 256, &full);
    }
    if (WAY == 2) {
        store_sums(out, d);
    }
    if (WAY == 21) {
        multiply(e, descriptor(o.a), descriptor(o.b));
        commit();
    }
    wait_products<WAY == 3 || WAY == 21 ? 1 : 0>(d);
    if (WAY == 13 || WAY == 22) {
        for (int i = 0; i < 4; i++) {
            asm volatile("mul.f32 %0, %0, 0f40000000;" : "+f"(d[i]));
        }
        if (WAY == 22) {
            fence();
        }
        multiply(d, descriptor(o.a), descriptor(o.b));
        commit();
        wait_products<0>(d);
    }
    if (WAY == 20) {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        fill(&o);
    }
    if (WAY == 26) {
        a[1]++;
        e[0] = __uint_as_float(a[1]);
    }
    if (WAY == 27) {
        asm volatile("bar.sync 1, 128;" ::: "memory");
    }
    if (LOADS) {
        if (WAY == 27 && threadIdx.x == 0) {
            arm(&full, 256);
            load(address_of(o.b), in, 256, &full);
        }
        wait(&full, 0);
    }
    if (WAY != 2) {
        store_sums(out, d);
    }
    if (WAY == 21) {
        wait_products<0>(e);
        store_sums(out + SUMS, e);
    }
    if (WAY == 26 && e[0] == -1.0f) {
        out[0] = 0;
    }
#endif
}

/* ---- A ring of two stages ---- */

/*
 * Rows of 128 ints: a producer's thread loads them, 128 consumers write them backwards.
 * Wrong: 1 the consumers wait for parity 0 each time; 2 for the other parity; 3 too few bytes are
 * announced, 4 too many; 5 the barrier is never armed, 6 twice in a phase; 7 bytes are announced
 * without an arrival; 8 the barrier expects two arrivals; 9 the producer does not wait for the
 * consumers; 10 these give a stage back before they have read it; 11 they wait for the other
 * stage's barrier; 12 the copy is 16 bytes short; 13 the barriers are not initialised; 14 consumers
 * do not wait; 15 the size and 16 the place of a copy is no multiple of 16; 17 a row beyond the end
 * of the input; 18 one consumer gives nothing back; 19 the copy goes beyond shared memory.
 * Right: 20 the copy is started before its bytes are announced; 21 announcement and arrival apart;
 * 22 two copies for one phase; 23 consumers poll by test_wait; 24 one thread a warp gives back; 25
 * all lanes of the producer's warp copy a part; 26 the producer waits from the first step on, by
 * the parity before; 27 all 32 lanes arrive; 28 a stage that is left is invalidated and used by
 * threads; 29 consumers meet at a barrier of their own before one of them gives back.
 */
__global__ void __launch_bounds__(160) ring(const int *in, int *out, int way) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) int stage[2][ROW];
    __shared__ __align__(8) uint64_t full[2], empty[2];
    int t = threadIdx.x, lane = t % 32;
    if (t == 0 && way != 13) {
        for (int s = 0; s < 2; s++) {
            init(&full[s], way == 8 ? 2 : way == 27 ? 32 : 1);
            init(&empty[s], way == 24 ? 4 : way == 29 ? 1 : 128);
        }
    }
    __syncthreads();
    for (int n = 0; n < STEPS; n++) {
        int s = n % 2, round = n / 2;
        if (t >= 128 && lane > 0 && way != 25 && way != 27) {
            continue; /* a lane that waits must keep up with the phases */
        }
        if (t >= 128) {
            if (way == 26) {
                wait(&empty[s], (round & 1) ^ 1);
            } else if (round > 0 && way != 9) {
                wait(&empty[s], (round - 1) & 1);
            }
            const int *from = in + ROW * n + (way == 17 ? IN_WORDS - 64 : 0);
            if (way == 25) {
                if (lane == 0) {
                    arm(&full[s], 512);
                }
                __syncwarp();
                load(address_of(stage[s] + 4 * lane), from + 4 * lane, 16, &full[s]);
            } else if (way == 27) {
                if (lane == 0) {
                    arm(&full[s], 512);
                    load(address_of(stage[s]), from, 512, &full[s]);
                } else {
                    arrive(&full[s]);
                }
            } else {
                if (way == 20) {
                    load(address_of(stage[s]), from, 512, &full[s]);
                }
                if (way == 7 || way == 21) {
                    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 512;" ::"r"(
                                     address_of(&full[s]))
                                 : "memory");
                    if (way == 21) {
                        arrive(&full[s]);
                    }
                } else if (way != 5) {
                    arm(&full[s], way == 3 ? 256 : way == 4 ? 1024 : 512);
                }
                if (way == 6) {
                    arm(&full[s], 512);
                }
                if (way == 22) {
                    load(address_of(stage[s]), from, 256, &full[s]);
                    load(address_of(stage[s] + 64), from + 64, 256, &full[s]);
                } else if (way != 20) {
                    load(address_of(stage[s]) + (way == 16   ? 8
                                                 : way == 19 ? 8192
                                                             : 0),
                         from,
                         way == 12   ? 496
                         : way == 15 ? 504
                                     : 512,
                         &full[s]);
                }
            }
        } else {
            if (way == 23) {
                while (!is_over(&full[s], round & 1)) {
                }
            } else if (way != 14) {
                wait(&full[way == 11 ? 1 - s : s], way == 1 ? 0 : (round & 1) ^ (way == 2));
            }
            if (way == 10) {
                arrive(&empty[s]);
            }
            out[ROW * n + t] = stage[s][ROW - 1 - t];
            if (way == 24) {
                __syncwarp();
            }
            if (way == 29) {
                asm volatile("bar.sync 1, 128;" ::: "memory");
            }
            bool gives = way == 10   ? false
                         : way == 18 ? t != 77
                         : way == 24 ? lane == 0
                         : way == 29 ? t == 5
                                     : true;
            if (gives) {
                arrive(&empty[s]);
            }
        }
    }
    if (way == 28) {
        __syncthreads();
        if (t == 0) {
            asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address_of(&full[0]))
                         : "memory");
        }
        if (t < ROW) {
            stage[0][t] = t;
        }
        __syncthreads();
        if (t < ROW && stage[0][ROW - 1 - t] != ROW - 1 - t) {
            out[t] = -1;
        }
    }
#endif
}

/* ---- Stores ---- */

/*
 * Threads write two rows, one after the other, which go to global memory in bulk.
 * Wrong: 1 no proxy fence; 2 a row is written again before its store has read it; 3 the wait leaves
 * the group alone that reads it; 4 the group is not committed; 5 the proxy fence stands in front of
 * the writes; 6 a load goes to the row before the store has read it; 7 another thread than the
 * store's waits; 8 the addition has no proxy fence; 9 global memory ends within the store.
 * Right: 20 two rows in turn, the older one is waited for; 21 one thread's fence behind the
 * barrier; 22 added to what is there; 23 two stores in a group; 24 all groups at the end.
 */
__global__ void __launch_bounds__(128) store_rows(const int *in, int *out, int way) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) int row[2][ROW];
    __shared__ __align__(8) uint64_t full;
    int t = threadIdx.x;
    if (t == 0) {
        init(&full, 1);
    }
    __syncthreads();
    bool two = way == 20 || way == 3 || way == 24;
    for (int n = 0; n < 4; n++) {
        int s = two ? n % 2 : 0;
        if (way == 5) {
            proxy_fence();
        }
        row[s][t] = in[ROW * n + t] + 1;
        if (way != 1 && way != 5 && way != 8 && way != 21) {
            proxy_fence();
        }
        __syncthreads();
        if (way == 21) {
            if (t == 0) {
                proxy_fence();
            }
            __syncthreads();
        }
        if (t == 0) {
            int *to = out + ROW * n + (way == 9 ? OUT_WORDS - 64 : 0);
            if (way == 8 || way == 22) {
                asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], "
                             "[%1], 512;" ::"l"(to),
                             "r"(address_of(row[s]))
                             : "memory");
            } else if (way == 23) {
                store(to, address_of(row[s]), 256);
                store(to + 64, address_of(row[s]) + 256, 256);
            } else {
                store(to, address_of(row[s]), 512);
            }
            if (way != 4) {
                commit_stores();
            }
            if (way == 6) {
                arm(&full, 512);
                load(address_of(row[s]), in, 512, &full);
                wait(&full, n & 1);
            }
            if (way == 20) {
                wait_read<1>();
            } else if (way == 3) {
                wait_read<2>();
            } else if (way == 24 && n % 2 == 1) {
                wait_read<0>();
            } else if (way != 2 && way != 7 && way != 24) {
                wait_read<0>();
            }
        }
        if (way == 7 && t == 32) {
            wait_read<0>();
        }
        __syncthreads();
    }
    if (t == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
#endif
}

/* ---- Boxes of tensors ---- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ void load_box(unsigned to, const CUtensorMap *map, int column, int row,
                                         const void *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(address_of(barrier))
                 : "memory");
}

#endif

enum { BOX_ROWS = 64, BOX_COLUMNS = 64, BOX_BYTES = BOX_ROWS * BOX_COLUMNS * 2 };

/*
 * A box of 64 x 64 halves, 128 bytes a row with that swizzle, is copied and written out, or
 * multiplied by its own first eight rows.
 * Wrong: 1 fewer and 2 more bytes are announced than the box has; 3 the instruction has three
 * dimensions, the map two; 4 the box's place is a multiple of 64 bytes alone; 5 the map is none; 6
 * the wgmma has a swizzle of 64 and 7 none; 8 the box is read before it is waited for; 9 the wgmma
 * does not wait; 10 a box is stored without a proxy fence, 11 written again before its store has
 * read it; 12 the map's address is no multiple of 64; 13 the box ends beyond shared memory; 14 the
 * descriptor points beyond it; 15 the box begins between two multiples of 16 bytes; 16 one begins
 * before its tensor and is stored.
 * Right: 20 a box half outside, 21 wholly; 22 the product; 23 of a box with a swizzle of 64 bytes
 * and its descriptor; 24 stored as a box; 25 the box's bytes are written by threads, whose layout
 * is their own, and multiplied.
 */
__global__ void __launch_bounds__(128)
    boxes(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap narrow,
          const char *other, int *out, int way) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char bytes[];
    __shared__ __align__(8) uint64_t full;
    int t = threadIdx.x;
    unsigned char *box = bytes + (1024 - address_of(bytes) % 1024) % 1024;
    if (t == 0) {
        init(&full, 1);
    }
    __syncthreads();
    bool is_narrow = way == 23 || way == 6;
    unsigned size = is_narrow ? BOX_BYTES / 2 : BOX_BYTES;
    if (t == 0) {
        arm(&full, way == 1 ? size / 2 : way == 2 ? 2 * size : size);
        if (way == 3) {
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::"
                         "bytes [%0], [%1, {%2, %2, %2}], [%3];" ::"r"(address_of(box)),
                         "l"(&map), "r"(0), "r"(address_of(&full))
                         : "memory");
        } else {
            const char *named = (const char *)(is_narrow ? &narrow : &map);
            named = way == 5 ? other : way == 12 ? other + 16 : named;
            load_box(address_of(box) + (way == 4    ? 64
                                        : way == 13 ? 4096
                                                    : 0),
                     (const CUtensorMap *)named,
                     way == 20   ? -32
                     : way == 15 ? 3
                                 : 0,
                     way == 21 ? 64 : 0, &full);
        }
    }
    if (way != 8 && way != 9) {
        wait(&full, 0);
    }
    if (way == 25) {
        for (int n = t; n < 64 * 64; n += 128) { /* without a swizzle, as place() has it */
            if (n % 64 < DEPTH) {
                ((__half *)box)[place(n / 64, n % 64)] =
                    __float2half_rn((float)((n / 64 + n % 64) % 5));
            }
        }
        proxy_fence();
        __syncthreads();
    }
    if (way == 6 || way == 7 || way == 9 || way == 14 || way == 22 || way == 23 || way == 25) {
        float d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        uint64_t swizzle = way == 7 ? 0 : way == 23 ? 2 : 1;
        uint64_t at = (address_of(box) + (way == 14 ? 4 * BOX_BYTES : 0)) >> 4;
        uint64_t stride = way == 23 ? 512 >> 4 : 1024 >> 4;
        uint64_t in = way == 25 ? descriptor(box) : swizzle << 62 | stride << 32 | 1 << 16 | at;
        fence();
        multiply(d, in, in);
        commit();
        wait_products<0>(d);
        store_sums(out, d);
        return;
    }
    if (way == 10 || way == 11 || way == 16 || way == 24) {
        __syncthreads();
        for (int n = t; n < BOX_BYTES / 4; n += 128) {
            ((int *)box)[n] = 0x3c003c00;
        }
        if (way != 10) {
            proxy_fence();
        }
        __syncthreads();
        if (t == 0) {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %1}], "
                         "[%2];" ::"l"(&map),
                         "r"(way == 16 ? -8 : 0), "r"(address_of(box))
                         : "memory");
            commit_stores();
            if (way != 11) {
                wait_read<0>();
            }
        }
        __syncthreads();
    }
    if (way == 11 || way == 24) {
        ((int *)box)[t] = 5;
    }
    if (t == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
    for (int n = t; way < 10 || way == 20 || way == 21 || way == 0 ? n < BOX_BYTES / 16 : false;
         n += 128) {
        int row = n / 8, chunk = n % 8;
        uint4 v = *(const uint4 *)(box + row * 128 + ((chunk ^ row % 8) * 16));
        ((uint4 *)out)[n] = v;
    }
#endif
}

/* ---- Clusters ---- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ unsigned rank_of_block() {
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ __forceinline__ unsigned at(const void *p, unsigned block) {
    unsigned a;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(address_of(p)), "r"(block));
    return a;
}

__device__ __forceinline__ void sync_cluster() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ int load_remote(unsigned a) {
    int x;
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(x) : "r"(a) : "memory");
    return x;
}

__device__ __forceinline__ void store_remote(unsigned a, int x) {
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(a), "r"(x) : "memory");
}

__device__ __forceinline__ void send_remote(unsigned a, int x, unsigned barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(a),
        "r"(x), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void arrive_remote(unsigned barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void wait_cluster(const void *barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(address_of(barrier)),
                 "r"(parity)
                 : "memory");
}

#endif

/*
 * Two blocks of 64 threads; each brings its number and its thread's to the other one.
 * Wrong: 1 a block returns while the other one may still read from it, 2 write to it, 3 send to it
 * by st.async, 4 multicast to it, 5 arrive at its mbarrier; 6 no barrier before the store; 7 none
 * behind it; 8 a barrier that orders no memory; 9 a thread arrives twice; 10 waits without having
 * arrived; 11 the mbarrier of the other block announces too few bytes; 12 the sent value is read
 * before it is waited for; 13 a block that the cluster does not have; 14 the slot is filled again
 * before the other one has read it; 15 a multicast to a block beyond the cluster.
 * Right: 20 by a read; 21 by st.async; 22 by a multicast; 23 by arrivals; 24 an atomic operation;
 * 25 work between arrive and wait; 26 a relaxed barrier before anything was written; 27 a slot that
 * is given back; 28 the sender returns first, the receiver has all bytes.
 */
__global__ void __launch_bounds__(64) blocks(const int *in, int *out, int way) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ __align__(128) int here[64], got[64];
    __shared__ __align__(8) uint64_t full, back;
    int t = threadIdx.x;
    unsigned own = rank_of_block(), other = 1 - own;
    here[t] = 100 * (int)own + t;
    got[t] = -1;
    if (t == 0) {
        init(&full, way == 5 || way == 23 || way == 14 || way == 27 ? 64 : 1);
        init(&back, 64);
        if (way == 3 || way == 21 || way == 28 || way == 12) {
            arm(&full, 256);
        }
        if (way == 11) {
            arm(&full, 128);
        }
        if (way == 4 || way == 22 || way == 15) {
            arm(&full, 256);
        }
    }
    if (way == 26) {
        asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
    }
    if (way == 9) {
        asm volatile("barrier.cluster.arrive;\nbarrier.cluster.arrive;" ::: "memory");
        asm volatile("barrier.cluster.wait;" ::: "memory");
    } else if (way == 10) {
        asm volatile("barrier.cluster.wait;" ::: "memory");
    } else if (way == 25) {
        asm volatile("barrier.cluster.arrive.release;" ::: "memory");
        int x = 0;
        for (int n = 0; n < t; n++) {
            x += n;
        }
        out[256 + t] = x;
        asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    } else if (way == 8) {
        asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
    } else if (way != 6) {
        sync_cluster();
    }
    switch (way) {
    case 1: /* the last access comes behind the last barrier */
        out[64 * own + t] = load_remote(at(&here[t], other));
        return;
    case 2:
        store_remote(at(&got[t], other), here[t]);
        return;
    case 3:
        if (own == 0) {
            send_remote(at(&got[t], other), here[t], at(&full, other));
        }
        return;
    case 4:
    case 15:
    case 22:
        if (own == 0 && t == 0) {
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(address_of(got)),
                         "l"(in), "r"(address_of(&full)), "h"((short)(way == 15 ? 5 : 3))
                         : "memory");
        }
        if (way == 4 && own == 1) {
            return;
        }
        wait(&full, 0);
        out[64 * own + t] = got[t];
        sync_cluster();
        return;
    case 5:
        if (own == 0) {
            arrive_remote(at(&full, other));
        }
        return;
    case 11:
    case 12:
    case 21:
        send_remote(at(&got[t], other), here[t], at(&full, other));
        if (way != 12) {
            wait_cluster(&full, 0);
        }
        out[64 * own + t] = got[t];
        sync_cluster();
        return;
    case 28:
        if (own == 0) {
            send_remote(at(&got[t], 1), here[t], at(&full, 1));
            out[t] = 100 + t;
        } else {
            wait_cluster(&full, 0);
            out[64 + t] = got[t];
        }
        return;
    case 23:
        store_remote(at(&got[t], other), here[t]);
        arrive_remote(at(&full, other));
        wait_cluster(&full, 0);
        out[64 * own + t] = got[63 - t] + 2 * t - 63;
        sync_cluster();
        return;
    case 24:
        asm volatile(
            "red.relaxed.cluster.shared::cluster.add.s32 [%0], %1;" ::"r"(at(&got[t], other)),
            "r"(here[t] + 1)
            : "memory");
        sync_cluster();
        out[64 * own + t] = got[t];
        return;
    case 14:
    case 27:
        for (int n = 0; n < 3; n++) {
            if (own == 0) {
                if (n > 0 && way == 27) {
                    wait_cluster(&back, (n - 1) & 1);
                }
                store_remote(at(&got[t], 1), 100 * n + t);
                arrive_remote(at(&full, 1));
            } else {
                wait_cluster(&full, n & 1);
                out[64 + t] = got[63 - t] - 200 + 2 * t - 63;
                arrive_remote(at(&back, 0));
            }
        }
        if (own == 0) {
            out[t] = 100 + t;
        }
        sync_cluster();
        return;
    default:
        store_remote(at(&got[t], way == 13 ? 2 : other), here[t]);
        if (way == 20) {
            out[64 * own + t] = load_remote(at(&here[t], other));
        }
        if (way == 7) {
            __syncthreads();
        } else {
            sync_cluster();
        }
        if (way != 20) {
            out[64 * own + t] = got[t];
        }
    }
#endif
}

/* ---- Registers ---- */

#define REGISTERS(way, count) asm volatile("setmaxnreg." way ".sync.aligned.u32 " #count ";")

/*
 * Three warpgroups, which begin with 168 registers a thread.
 * Wrong: 1 too many in all; 2 a warp leaves it out; 3 another number in one; 4 .inc to fewer; 5
 * .dec to more. Right: 20 nobody gives back what it has not; 21 twice; 22 one warpgroup alone.
 */
__global__ void __launch_bounds__(384, 1) registers(int *out, int way) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    int warp = threadIdx.x / 32;
    if (way == 22) {
        if (warp < 4) {
            REGISTERS("dec", 40);
        }
    } else if (way == 20) {
        REGISTERS("inc", 168);
    } else if (warp < 4) {
        if (way == 5) {
            REGISTERS("dec", 176);
        } else if (way == 21) {
            REGISTERS("dec", 40);
            REGISTERS("dec", 24);
        } else {
            REGISTERS("dec", 24);
        }
    } else if (way == 1 && warp < 8) {
        REGISTERS("inc", 248);
    } else if (way == 2 && warp == 6) {
        return;
    } else if (way == 3 && warp == 5) {
        REGISTERS("inc", 232);
    } else if (way == 4) {
        REGISTERS("inc", 160);
    } else {
        REGISTERS("inc", 240);
    }
    out[threadIdx.x] = (int)threadIdx.x;
#endif
}

/* ---- Dependent launches ---- */

__global__ void produce(const int *in, int *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    out[n] = in[n] + 1;
#endif
}

/*
 * Wrong: 1 no wait; 2 behind the read; 3 only threads of the other warp wait; 4 nothing is read,
 * but overwritten what the first kernel reads; 5 only block 0 waits. Right: 20 one thread waits,
 * then all meet; 21 the input of its own is read first; 22 the wait is in a branch that all take.
 */
__global__ void consume(int *in, const int *from, int *out, int way) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    int n = blockIdx.x * blockDim.x + threadIdx.x, x = 0;
    if (way == 4) {
        in[n] = 7;
    }
    if (way == 2) {
        x = from[n];
    }
    if (way == 21) {
        x = in[n] - in[n];
    }
    bool waits = way == 1    ? false
                 : way == 3  ? threadIdx.x < 32
                 : way == 5  ? blockIdx.x == 0
                 : way == 20 ? threadIdx.x == 0
                             : true;
    if (waits) {
        asm volatile("griddepcontrol.wait;" ::: "memory");
    }
    if (way == 20) {
        __syncthreads();
    }
    out[n] = (way == 2 ? x : from[n] + x) * 2;
#endif
}

/* ---- Launches ---- */

struct buffers {
    int *in, *out, *middle;
    int host[IN_WORDS];
};

typedef CUresult encode_tiled(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

bool describe(CUtensorMap *map, void *address, bool narrow) {
    void *function = NULL;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cuuint64_t sizes[2] = {BOX_COLUMNS, BOX_ROWS}, strides[1] = {BOX_COLUMNS * 2};
    const cuuint32_t box[2] = {narrow ? 32u : 64u, BOX_ROWS}, steps[2] = {1, 1};
    return cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                            cudaEnableDefault, &found) == cudaSuccess &&
           found == cudaDriverEntryPointSuccess &&
           ((encode_tiled *)function)(
               map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, address, sizes, strides, box, steps,
               CU_TENSOR_MAP_INTERLEAVE_NONE,
               narrow ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* Halves that are whole numbers from 0 to 4, the box's; two a word. */
int half_at(int row, int column) {
    return (row + column) % 5;
}

void fill_input(struct buffers *b, enum kernel kernel) {
    static const int halves[5] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    for (int n = 0; n < IN_WORDS; n++) {
        b->host[n] = n * 7 % 1000;
    }
    for (int n = 0; kernel == KERNEL_BOX && n < BOX_BYTES / 4; n++) {
        int row = n / 32, column = n % 32 * 2;
        b->host[n] = halves[half_at(row, column)] | halves[half_at(row, column + 1)] << 16;
    }
}

cudaError_t allocate(struct buffers *b, enum kernel kernel) {
    fill_input(b, kernel);
    cudaError_t error = cudaMalloc((void **)&b->in, sizeof b->host);
    error = error == cudaSuccess ? cudaMalloc((void **)&b->out, OUT_WORDS * 4) : error;
    error = error == cudaSuccess ? cudaMalloc((void **)&b->middle, OUT_WORDS * 4) : error;
    error = error == cudaSuccess
                ? cudaMemcpy(b->in, b->host, sizeof b->host, cudaMemcpyHostToDevice)
                : error;
    error = error == cudaSuccess ? cudaMemset(b->out, 0, OUT_WORDS * 4) : error;
    return error == cudaSuccess ? cudaMemset(b->middle, 0, OUT_WORDS * 4) : error;
}

#define MISTAKES_WAYS(X) \
    X(0)                 \
    X(1)                 \
    X(2)                 \
    X(3)                 \
    X(4)                 \
    X(5)                 \
    X(6)                 \
    X(7)                 \
    X(8) X(9) X(10) X(11) X(13) X(14) X(15) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28)

cudaError_t launch_product(const struct buffers *b, int way) {
    unsigned threads = way == 28 ? 256 : 128;
    switch (way) {
#define CASE(WAY)                                    \
    case WAY:                                        \
        product<WAY><<<1, threads>>>(b->in, b->out); \
        break;
        MISTAKES_WAYS(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

cudaError_t launch_blocks(const struct buffers *b, int way) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(2);
    launch.blockDim = dim3(64);
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    return cudaLaunchKernelEx(&launch, blocks, (const int *)b->in, b->out, way);
}

cudaError_t launch_dependent(const struct buffers *b, int way) {
    produce<<<4, 64>>>(b->in, b->middle);
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(4);
    launch.blockDim = dim3(64);
    launch.attrs = &early;
    launch.numAttrs = 1;
    return cudaLaunchKernelEx(&launch, consume, b->in, (const int *)b->middle, b->out, way);
}

cudaError_t launch_boxes(const struct buffers *b, int way) {
    CUtensorMap map, narrow;
    if (!describe(&map, b->in, false) || !describe(&narrow, b->in, true)) {
        return cudaErrorInvalidValue;
    }
    boxes<<<1, 128, BOX_BYTES + 1024>>>(map, narrow, (const char *)b->middle, b->out, way);
    return cudaGetLastError();
}

cudaError_t launch(const struct buffers *b, enum kernel kernel, int way) {
    switch (kernel) {
    case KERNEL_PRODUCT:
        return launch_product(b, way);
    case KERNEL_RING:
        ring<<<1, 160>>>(b->in, b->out, way);
        return cudaGetLastError();
    case KERNEL_STORE:
        store_rows<<<1, 128>>>(b->in, b->out, way);
        return cudaGetLastError();
    case KERNEL_BOX:
        return launch_boxes(b, way);
    case KERNEL_CLUSTER:
        return launch_blocks(b, way);
    case KERNEL_REGISTERS:
        registers<<<1, 384>>>(b->out, way);
        return cudaGetLastError();
    case KERNEL_DEPENDENT:
        return launch_dependent(b, way);
    }
    return cudaErrorInvalidValue;
}

/* ---- What comes of the right ones ---- */

int product_at(int n) {
    int row = n / COLUMNS, column = n % COLUMNS, sum = 0;
    for (int k = 0; k < DEPTH; k++) {
        sum += (row % 7 - k % 3) * (column - k % 5);
    }
    return sum;
}

int box_product_at(int n) {
    int row = n / COLUMNS, column = n % COLUMNS, sum = 0;
    for (int k = 0; k < DEPTH; k++) {
        sum += half_at(row, k) * half_at(column, k);
    }
    return sum;
}

bool is_product(const int *out, int way) {
    int times = way == 24 ? 3 : way == 22 ? 3 : 1;
    for (int n = 0; n < SUMS; n++) {
        bool second = way != 21 || out[SUMS + n] == product_at(n);
        if (out[n] != times * product_at(n) || !second) {
            return false;
        }
    }
    return true;
}

bool is_box(const struct buffers *b, const int *out, int way) {
    static const int one = 0x3c003c00;
    if (way == 22 || way == 23 || way == 25) {
        for (int n = 0; n < SUMS; n++) {
            if (out[n] != box_product_at(n)) {
                return false;
            }
        }
        return true;
    }
    if (way == 24) {
        static int stored[IN_WORDS];
        if (cudaMemcpy(stored, b->in, sizeof stored, cudaMemcpyDeviceToHost) != cudaSuccess) {
            return false;
        }
        for (int n = 0; n < BOX_BYTES / 4; n++) {
            if (stored[n] != one) {
                return false;
            }
        }
        return true;
    }
    for (int n = 0; n < BOX_BYTES / 4; n++) {
        int row = n / 32, word = n % 32;
        int wanted = way == 21   ? 0
                     : way == 20 ? (word < 16 ? 0 : b->host[row * 32 + word - 16])
                                 : b->host[n];
        if (out[n] != wanted) {
            return false;
        }
    }
    return true;
}

bool is_exchange(const struct buffers *b, const int *out, int way) {
    for (int n = 0; n < 128; n++) {
        int own = n / 64, t = n % 64, theirs = 100 * (1 - own) + t;
        int wanted = way == 22 ? b->host[t] : theirs;
        if (out[n] != wanted) {
            return false;
        }
    }
    return true;
}

bool is_right(const struct buffers *b, const int *out, enum kernel kernel, int way) {
    bool right = true;
    switch (kernel) {
    case KERNEL_PRODUCT:
        return is_product(out, way);
    case KERNEL_RING:
        for (int n = 0; n < STEPS * ROW; n++) {
            right = right && out[n] == b->host[n / ROW * ROW + ROW - 1 - n % ROW];
        }
        return right;
    case KERNEL_STORE:
        for (int n = 0; n < 4 * ROW; n++) {
            right = right && out[n] == b->host[n] + 1;
        }
        return right;
    case KERNEL_BOX:
        return is_box(b, out, way);
    case KERNEL_CLUSTER:
        return is_exchange(b, out, way);
    case KERNEL_REGISTERS:
        for (int n = 0; n < 384; n++) {
            right = right && out[n] == n;
        }
        return right;
    case KERNEL_DEPENDENT:
        for (int n = 0; n < 256; n++) {
            right = right && out[n] == 2 * (b->host[n] + 1);
        }
        return right;
    }
    return false;
}

} // namespace

const char *mistakes_run(enum kernel kernel, int way) {
    static struct buffers b;
    static int out[OUT_WORDS];
    cudaError_t error = allocate(&b, kernel);
    error = error == cudaSuccess ? launch(&b, kernel, way) : error;
    error = error == cudaSuccess ? cudaDeviceSynchronize() : error;
    error =
        error == cudaSuccess ? cudaMemcpy(out, b.out, sizeof out, cudaMemcpyDeviceToHost) : error;
    bool right = error == cudaSuccess && is_right(&b, out, kernel, way);
    (void)cudaFree(b.in);
    (void)cudaFree(b.out);
    (void)cudaFree(b.middle);
    return error != cudaSuccess ? cudaGetErrorName(error) : right ? NULL : "wrong results";
}
