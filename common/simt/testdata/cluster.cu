/* Kernels for cluster_test: clusters of several blocks, right ones and faulty ones. */
#include <cooperative_groups.h>
#include <cuda.h>

namespace cg = cooperative_groups;

static __device__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ unsigned rank() {
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

static __device__ unsigned size() {
    unsigned r;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}

static __device__ unsigned at(const void *p, unsigned block) {
    unsigned a;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(a) : "r"(shared_address(p)), "r"(block));
    return a;
}

static __device__ void sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

static __device__ int remote_load(unsigned a) {
    int x;
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(x) : "r"(a) : "memory");
    return x;
}

static __device__ void remote_store(unsigned a, int x) {
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(a), "r"(x) : "memory");
}

static __device__ void init(const void *barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(count)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ void arm(const void *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

static __device__ void arrive_remote(const void *barrier, unsigned block) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                     at(barrier, block))
                 : "memory");
}

static __device__ void wait(const void *barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(shared_address(barrier)),
                 "r"(parity)
                 : "memory");
}

static __device__ void multicast(unsigned to, const void *from, unsigned bytes, unsigned barrier,
                                 unsigned short blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier), "h"(blocks)
                 : "memory");
}

/* All registers of a cluster; 16 numbers a block. */
extern "C" __global__ void registers(unsigned *out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned *o = out + 16 * block;
#define SPECIAL(n, name) asm volatile("mov.u32 %0, %%" name ";" : "=r"(o[n]))
    SPECIAL(0, "clusterid.x");
    SPECIAL(1, "clusterid.y");
    SPECIAL(2, "clusterid.z");
    SPECIAL(3, "nclusterid.x");
    SPECIAL(4, "nclusterid.y");
    SPECIAL(5, "nclusterid.z");
    SPECIAL(6, "cluster_ctaid.x");
    SPECIAL(7, "cluster_ctaid.y");
    SPECIAL(8, "cluster_ctaid.z");
    SPECIAL(9, "cluster_nctaid.x");
    SPECIAL(10, "cluster_nctaid.y");
    SPECIAL(11, "cluster_nctaid.z");
    SPECIAL(12, "cluster_ctarank");
    SPECIAL(13, "cluster_nctarank");
    asm volatile("{\n.reg .pred p;\nmov.pred p, %%is_explicit_cluster;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(o[14]));
    __shared__ int x;
    asm volatile("getctarank.shared::cluster.u32 %0, %1;" : "=r"(o[15]) : "r"(at(&x, 0)));
}

/* A histogram over the shared memory of all blocks; the library's own words. */
extern "C" __global__ void histogram(const unsigned *in, unsigned *out, int count) {
    extern __shared__ unsigned bins[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int n = threadIdx.x; n < 64; n += blockDim.x) {
        bins[n] = 0;
    }
    cluster.sync();
    int all = (int)cluster.num_blocks(), own = (int)cluster.block_rank();
    for (int n = own * (int)blockDim.x + (int)threadIdx.x; n < count; n += all * (int)blockDim.x) {
        unsigned bin = in[n] % (64 * all);
        unsigned *there = cluster.map_shared_rank(bins, bin / 64);
        atomicAdd(there + bin % 64, 1);
    }
    cluster.sync();
    for (int n = threadIdx.x; n < 64; n += blockDim.x) {
        out[(blockIdx.x / all * all + own) * 64 + n] = bins[n];
    }
}

/* Each block stores to the next one and reads from the one before: what `fault` leaves out. */
extern "C" __global__ void ring(int *out, int fault) {
    __shared__ int here[64], sent[64];
    int t = threadIdx.x;
    unsigned all = size(), next = (rank() + 1) % all, before = (rank() + all - 1) % all;
    here[t] = 100 * (int)blockIdx.x + t;
    if (fault != 1) {
        sync();
    }
    remote_store(at(&sent[t], next), here[t] + 1000);
    int x = remote_load(at(&here[63 - t], before));
    if (fault == 2) {
        __syncthreads();
    } else {
        sync();
    }
    out[64 * blockIdx.x + t] = sent[t] + x;
}

/* The last access to another block comes after the last barrier. */
extern "C" __global__ void late_reader(int *out) {
    __shared__ int here[64];
    int t = threadIdx.x;
    here[t] = t;
    sync();
    out[64 * blockIdx.x + t] = remote_load(at(&here[t], 1 - rank()));
}

/* Rank 0 works on for a while before it writes. */
extern "C" __global__ void late_writer(int *out, int rounds) {
    __shared__ int here[64];
    int t = threadIdx.x, x = 0;
    here[t] = t;
    sync();
    for (int n = 0; n < rounds && rank() == 0; n++) {
        x = x * 3 + n;
    }
    if (rank() == 0) {
        remote_store(at(&here[t], 1), x);
    }
    out[64 * blockIdx.x + t] = t;
}

/* Two blocks store to the same place of the third. */
extern "C" __global__ void two_writers(int *out) {
    __shared__ int here;
    here = 5;
    sync();
    if (rank() != 2) {
        remote_store(at(&here, 2), (int)rank());
    }
    sync();
    out[blockIdx.x] = here;
}

extern "C" __global__ void no_such_block(int *out) {
    __shared__ int here;
    here = 1;
    sync();
    *out = remote_load(at(&here, 2));
    sync();
}

extern "C" __global__ void beyond(int *out) {
    extern __shared__ int space[];
    space[threadIdx.x] = 1;
    sync();
    *out = remote_load(at(space, 1 - rank()) + 4096);
    sync();
}

extern "C" __global__ void unwritten(int *out) {
    __shared__ int here[64];
    if (rank() == 0) {
        here[threadIdx.x] = 1;
    }
    sync();
    out[threadIdx.x] = remote_load(at(&here[threadIdx.x], 1));
    sync();
}

/* Barriers that are not used in turn: 1 arrives twice, 2 waits without, 3 one block only. */
extern "C" __global__ void barriers(int fault) {
    if (fault == 3 && rank() == 1) {
        __syncthreads();
        if (threadIdx.x < 32) {
            asm volatile("bar.sync 1, 64;" ::: "memory");
        }
        return;
    }
    if (fault != 2) {
        asm volatile("barrier.cluster.arrive;" ::: "memory");
    }
    if (fault == 1) {
        asm volatile("barrier.cluster.arrive;" ::: "memory");
    }
    asm volatile("barrier.cluster.wait;" ::: "memory");
}

/* Blocks return at different times; those that are left still meet. */
extern "C" __global__ void fewer_and_fewer(int *out) {
    for (unsigned n = 0; n < rank(); n++) {
        sync();
    }
    out[blockIdx.x] = (int)rank();
}

/* Work between arriving and waiting, by some lanes, and a barrier without memory in front. */
extern "C" __global__ void split_barrier(int *out) {
    __shared__ int here[64];
    int t = threadIdx.x, x = 0;
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
    here[t] = 7 * t + (int)rank();
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    if (t % 3 == 0) {
        for (int n = 0; n < t; n++) {
            x += n;
        }
    }
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    x += remote_load(at(&here[t], 1 - rank()));
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    out[64 * blockIdx.x + t] = x;
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* Data behind a barrier that orders no memory. */
extern "C" __global__ void relaxed(int *out) {
    __shared__ int here[64];
    int t = threadIdx.x;
    here[t] = t;
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
    out[64 * blockIdx.x + t] = remote_load(at(&here[t], 1 - rank()));
    sync();
}

/* Rank 0 hands `steps` rows of 64 ints to rank 1 through one slot: mbarriers full and empty, of
 * which the writer knows those of the reader. `fault` 1: it does not wait for the slot; 2: the
 * reader does not say that it is free; 3: the writer does not say that it is full. */
extern "C" __global__ void hand_over(int *out, int steps, int fault) {
    __shared__ int slot[64];
    __shared__ __align__(8) unsigned long long full, empty;
    int t = threadIdx.x;
    if (t == 0) {
        init(&full, 64);
        init(&empty, 64);
    }
    sync();
    for (int n = 0; n < steps; n++) {
        if (rank() == 0) {
            if (n > 0 && fault != 1) {
                wait(&empty, (n - 1) % 2);
            }
            remote_store(at(&slot[t], 1), 64 * n + t);
            if (fault != 3) {
                arrive_remote(&full, 1);
            }
        } else {
            wait(&full, n % 2);
            out[64 * n + t] = slot[63 - t];
            if (fault != 2) {
                arrive_remote(&empty, 0);
            }
        }
    }
    sync();
}

/* st.async: 8 bytes of each thread to the other block. `fault` 1: too few bytes are announced; 2:
 * the values are read without waiting; 3: the mbarrier is that of the sender. */
extern "C" __global__ void send(int *out, int fault) {
    __shared__ __align__(16) int got[128];
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    unsigned other = 1 - rank();
    if (t == 0) {
        init(&full, 1);
        arm(&full, fault == 1 ? 256 : 512);
    }
    sync();
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, "
                 "[%3];" ::"r"(at(&got[2 * t], other)),
                 "r"((int)rank() * 1000 + t), "r"(-t), "r"(at(&full, fault == 3 ? rank() : other))
                 : "memory");
    if (fault != 2) {
        wait(&full, 0);
    }
    out[64 * blockIdx.x + t] = got[2 * t] + 3 * got[127 - 2 * t];
    sync();
}

/* red.async: every thread of both blocks adds to a word of rank 0. */
extern "C" __global__ void send_sum(int *out) {
    __shared__ int sum, most;
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    if (t == 0) {
        sum = 10;
        most = 3;
        init(&full, 1);
        if (rank() == 0) {
            arm(&full, 2 * 64 * 8);
        }
    }
    sync();
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32 "
                 "[%0], %1, [%2];" ::"r"(at(&sum, 0)),
                 "r"(t + 100 * (int)rank()), "r"(at(&full, 0))
                 : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 "
                 "[%0], %1, [%2];" ::"r"(at(&most, 0)),
                 "r"(t - 20), "r"(at(&full, 0))
                 : "memory");
    if (rank() == 0) {
        wait(&full, 0);
        if (t == 0) {
            out[0] = sum;
            out[1] = most;
        }
    }
    sync();
}

/* Each block copies its quarter of a row to all blocks. `fault` 1: a block that is not there; 2:
 * without waiting; 3: the second round does not wait until all have read the first. */
extern "C" __global__ void multicast_rows(const int *in, int *out, int fault) {
    __shared__ __align__(128) int row[256];
    __shared__ __align__(8) unsigned long long full, empty;
    int t = threadIdx.x;
    unsigned all = size();
    if (t == 0) {
        init(&full, 1);
        init(&empty, 64 * all);
    }
    sync();
    for (int n = 0; n < 2; n++) {
        if (t == 0) {
            if (n > 0 && fault != 3) {
                wait(&empty, 0);
            }
            arm(&full, 256 * all);
            multicast(shared_address(row + 64 * rank()), in + 256 * n + 64 * rank(), 256,
                      shared_address(&full), fault == 1 ? 0x1f : (1 << all) - 1);
        }
        if (fault != 2) {
            wait(&full, n);
        }
        int x = 0;
        for (unsigned k = 0; k < all; k++) {
            x = x * 3 + row[64 * k + (t + k) % 64];
        }
        out[(2 * blockIdx.x + n) * 64 + t] = x;
        for (unsigned k = 0; k < all; k++) {
            arrive_remote(&empty, k);
        }
    }
    sync();
}

/* A box of a tensor to both blocks of a cluster. */
extern "C" __global__ void multicast_box(const __grid_constant__ CUtensorMap map, int *out) {
    __shared__ __align__(1024) int box[2][512];
    __shared__ __align__(8) unsigned long long full;
    unsigned own = rank();
    if (threadIdx.x == 0) {
        init(&full, 1);
    }
    sync();
    if (threadIdx.x == 0) {
        arm(&full, 4096);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(
                         shared_address(box[own])),
                     "l"(&map), "r"(0), "r"(16 * (int)blockIdx.x), "r"(shared_address(&full)),
                     "h"((unsigned short)3)
                     : "memory");
    }
    wait(&full, 0);
    for (int n = threadIdx.x; n < 1024; n += 64) {
        out[1024 * blockIdx.x + n] = box[n / 512][n % 512];
    }
    sync();
}

/* A copy from shared memory to that of the next block; `fault` 1: its source changes meanwhile; 2:
 * the receiver returns without waiting. */
extern "C" __global__ void pass_on(int *out, int fault) {
    __shared__ __align__(128) int from[64], to[64];
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    unsigned next = (rank() + 1) % size();
    from[t] = 1000 * (int)rank() + t;
    if (t == 0) {
        init(&full, 1);
        arm(&full, 256);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    sync();
    if (t == 0) {
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], "
                     "[%1], %2, [%3];" ::"r"(at(to, next)),
                     "r"(shared_address(from)), "r"(256), "r"(at(&full, next))
                     : "memory");
    }
    __syncthreads();
    if (fault == 1) {
        from[t] = 0;
    }
    if (fault == 2 && rank() == 1) {
        return;
    }
    wait(&full, 0);
    out[64 * blockIdx.x + t] = to[t];
    if (fault != 2) {
        sync();
    }
}

/* A loop in which nothing happens, while the other block waits for it: no stall. */
extern "C" __global__ void patient(int *out, int rounds) {
    __shared__ __align__(8) unsigned long long full;
    unsigned x = 1;
    if (threadIdx.x == 0) {
        init(&full, 1);
    }
    sync();
    if (rank() == 0) {
        for (int n = 0; n < rounds; n++) {
            x = x * 1664525 + 1013904223;
        }
        if (threadIdx.x == 0) {
            arrive_remote(&full, 1);
        }
    } else {
        wait(&full, 0);
    }
    out[blockIdx.x] = (int)x;
    sync();
}

/* Numbers and clusters that the kernel itself says. */
extern "C" __global__ void __cluster_dims__(2, 1, 1) fixed(int *out) {
    cg::cluster_group cluster = cg::this_cluster();
    __shared__ int x;
    if (threadIdx.x == 0) {
        x = 40 + (int)blockIdx.x;
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        out[blockIdx.x] = *cluster.map_shared_rank(&x, cluster.block_rank() ^ 1);
    }
    cluster.sync();
}

/* One step of a random program: which operation, how far the other block is, a number. */
struct exchange_step {
    int operation, distance, number;
};

/* Each block has 64 numbers, which the steps of a program exchange with other blocks. */
extern "C" __global__ void exchange(const int *in, int *out, const struct exchange_step *program,
                                    int steps) {
    __shared__ __align__(128) int own[64], got[64];
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    unsigned all = size(), phase = 0;
    own[t] = in[64 * blockIdx.x + t];
    if (t == 0) {
        init(&full, 1);
    }
    sync();
    for (int n = 0; n < steps; n++) {
        const struct exchange_step s = program[n];
        unsigned other = (rank() + s.distance) % all;
        if (s.operation == 0) {
            remote_store(at(&got[t], other), own[t]);
            sync();
            own[t] = got[t] - s.number;
        } else if (s.operation == 1) {
            int x = remote_load(at(&own[(t * s.number) % 64], other));
            sync();
            own[t] += x;
        } else if (s.operation == 2) {
            asm volatile("red.relaxed.cluster.shared::cluster.add.s32 [%0], %1;" ::"r"(
                             at(&own[(t + s.number) % 64], other)),
                         "r"(t + s.number * (int)rank())
                         : "memory");
        } else {
            if (t == 0) {
                arm(&full, 256);
            }
            sync();
            if (s.operation == 3) {
                asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, "
                             "[%2];" ::"r"(at(&got[63 - t], other)),
                             "r"(own[t] ^ s.number), "r"(at(&full, other))
                             : "memory");
            } else if (s.operation == 4 && t == 0) {
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                             "[%0], [%1], 256, [%2];" ::"r"(at(got, other)),
                             "r"(shared_address(own)), "r"(at(&full, other))
                             : "memory");
            } else if (s.operation == 5 && t == 0 && rank() == s.distance % all) {
                asm volatile("fence.proxy.async;" ::: "memory");
                multicast(shared_address(got), in + 4 * s.number, 256, shared_address(&full),
                          (1 << all) - 1);
            }
            wait(&full, phase);
            phase ^= 1;
            sync();
            own[t] += got[t];
        }
        sync();
    }
    out[64 * blockIdx.x + t] = own[t];
}

/* Each thread sends four words to the other block; then that block's words are added to those here, in
 * bulk. */
extern "C" __global__ void send_and_add(unsigned *out) {
    __shared__ __align__(128) unsigned got[256], sum[256];
    __shared__ __align__(8) unsigned long long full, added;
    int t = threadIdx.x;
    unsigned other = 1 - rank(), v = 1000 * rank() + 4 * t;
    if (t == 0) {
        init(&full, 1);
        init(&added, 1);
        arm(&full, 1024);
        arm(&added, 1024);
    }
    for (int n = t; n < 256; n += 64) {
        sum[n] = 7 * n;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    sync();
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, "
                 "%4}, [%5];" ::"r"(at(&got[4 * t], other)),
                 "r"(v), "r"(v + 1), "r"(v + 2), "r"(v + 3), "r"(at(&full, other))
                 : "memory");
    wait(&full, 0);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                     ".add.u32 [%0], [%1], 1024, [%2];" ::"r"(at(sum, other)),
                     "r"(shared_address(got)), "r"(at(&added, other))
                     : "memory");
    }
    wait(&added, 0);
    for (int n = t; n < 256; n += 64) {
        out[256 * blockIdx.x + n] = sum[n];
    }
    sync();
}
