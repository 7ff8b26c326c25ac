/*
 * Kernels for products_test: wgmma, m64n8k16 in fp16, sums in fp32, by one warpgroup; right ones and
 * ones with a mistake in how it runs beside the threads.
 */
#include <cuda_fp16.h>

static __device__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

/* Without a swizzle: cores of eight rows of 16 bytes; K's halves 128 bytes apart, rows' 256. */
static __device__ unsigned long long descriptor(const void *p) {
    return (unsigned long long)(256 >> 4) << 32 | (unsigned long long)(128 >> 4) << 16 |
           shared_address(p) >> 4;
}

static __device__ int place(int row, int k) {
    return row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8;
}

static __device__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ void commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> static __device__ void wait(float *d) {
    asm volatile("wgmma.wait_group.sync.aligned %4;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "n"(PENDING)
                 : "memory");
}

static __device__ void multiply(float *d, const void *a, const void *b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, "
                 "1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(descriptor(a)), "l"(descriptor(b))
                 : "memory");
}

static __device__ void proxy_fence() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

struct operands {
    __half a[1024], b[128];
};

/* a(row, k) = row % 7 - k % 3, b(column, k) = column - k % 5 + `shift`. */
static __device__ void fill(struct operands *o, int shift) {
    for (int n = threadIdx.x; n < 64 * 16; n += 128) {
        o->a[place(n / 16, n % 16)] = __int2half_rn(n / 16 % 7 - n % 16 % 3);
    }
    int n = threadIdx.x;
    o->b[place(n / 16, n % 16)] = __int2half_rn(n / 16 - n % 16 % 5 + shift);
}

/* out (64, 8). */
static __device__ void store(float *out, const float *d) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++) {
        out[(warp * 16 + lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
    }
}

enum mistake {
    NONE,
    NO_FENCE,            /* no wgmma.fence at all */
    NO_WAIT,             /* sums are stored before the wait */
    WAIT_FOR_OLDER,      /* the wait leaves the youngest group alone */
    NO_COMMIT,           /* the wait knows no group */
    REWRITTEN,           /* an operand is written again before the wait */
    NO_PROXY_FENCE,      /* the operands were written by threads */
    CHANGED_SUMS,        /* between fence and wgmma */
    READ_BEFORE_NEXT,    /* a sum is read between two wgmma of a group */
    REWRITTEN_BEHIND,    /* none: each warp writes operands of all four behind its own wait */
};

template <int MISTAKE> static __device__ void product(float *out) {
    __shared__ __align__(128) struct operands o;
    float d[4];
    for (int i = 0; i < 4; i++) {
        d[i] = (float)threadIdx.x;
    }
    fill(&o, 0);
    if (MISTAKE != NO_PROXY_FENCE) {
        proxy_fence();
    }
    __syncthreads();
    if (MISTAKE != NO_FENCE) {
        fence();
    }
    if (MISTAKE == CHANGED_SUMS) {
        asm volatile("add.f32 %0, %0, 0f3F800000;" : "+f"(d[2]));
    }
    multiply(d, o.a, o.b);
    if (MISTAKE == READ_BEFORE_NEXT) {
        asm volatile("st.global.f32 [%0], %1;" ::"l"(out), "f"(d[0]) : "memory");
    }
    if (MISTAKE != NO_COMMIT) {
        commit();
    }
    if (MISTAKE == REWRITTEN) {
        o.b[threadIdx.x] = __int2half_rn(1);
    }
    if (MISTAKE == NO_WAIT) {
        store(out, d);
    }
    wait<MISTAKE == WAIT_FOR_OLDER ? 1 : 0>(d);
    if (MISTAKE == REWRITTEN_BEHIND) {
        fill(&o, (int)threadIdx.x / 32);
    }
    if (MISTAKE != NO_WAIT) {
        store(out, d);
    }
}

#define KERNEL(name, MISTAKE)                           \
    extern "C" __global__ void name(float *out) {       \
        product<MISTAKE>(out);                          \
    }

KERNEL(right, NONE)
KERNEL(no_fence, NO_FENCE)
KERNEL(no_wait, NO_WAIT)
KERNEL(wait_for_older, WAIT_FOR_OLDER)
KERNEL(no_commit, NO_COMMIT)
KERNEL(rewritten, REWRITTEN)
KERNEL(no_proxy_fence, NO_PROXY_FENCE)
KERNEL(changed_sums, CHANGED_SUMS)
KERNEL(read_before_next, READ_BEFORE_NEXT)
KERNEL(rewritten_behind, REWRITTEN_BEHIND)

/* Two stages: one is written while a product reads the other; sums of the older group are used while
 * the younger one runs; they are scaled behind a fence of their own; one thread's proxy fence
 * behind the barrier will do. */
extern "C" __global__ void pipeline(float *out, int steps) {
    __shared__ __align__(128) struct operands stage[2];
    float d[4] = {0.0f, 0.0f, 0.0f, 0.0f}, e[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    fill(&stage[0], 0);
    __syncthreads();
    if (threadIdx.x == 0) {
        proxy_fence();
    }
    __syncthreads();
    for (int n = 0; n < steps; n++) {
        fence();
        multiply(d, stage[n % 2].a, stage[n % 2].b);
        commit();
        if (n + 1 < steps) {
            fill(&stage[(n + 1) % 2], n + 1);
            proxy_fence();
        }
        wait<0>(d);
        for (int i = 0; i < 4; i++) {
            d[i] = 0.5f * d[i];
        }
        __syncthreads();
    }
    fence();
    multiply(d, stage[(steps - 1) % 2].a, stage[(steps - 1) % 2].b);
    commit();
    multiply(e, stage[(steps - 1) % 2].a, stage[(steps - 1) % 2].b);
    multiply(e, stage[(steps - 1) % 2].a, stage[(steps - 1) % 2].b);
    commit();
    wait<1>(d);
    store(out, d);
    wait<0>(e);
    store(out + 512, e);
}

/* Barriers of a stage that is filled twice: `mistake` 1: the second wait is for the first phase; 2:
 * the barrier is never armed; 3: a stage is filled again before all have read it; 4: the store
 * of the result reads what threads wrote, without a proxy fence. */
extern "C" __global__ void stages(const int *in, int *out, int mistake) {
    __shared__ __align__(128) int stage[128], result[128];
    __shared__ __align__(8) unsigned long long full;
    int t = threadIdx.x;
    unsigned barrier = shared_address(&full);
    if (t == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    for (int n = 0; n < 2; n++) {
        if (t == 0) {
            if (mistake != 2) {
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(barrier)
                             : "memory");
            }
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                         "[%1], 512, [%2];" ::"r"(shared_address(stage)),
                         "l"(in + 128 * n), "r"(barrier)
                         : "memory");
        }
        int parity = mistake == 1 ? 0 : n;
        asm volatile("{\n.reg .pred done;\nagain:\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::
                         "r"(barrier),
                     "r"(parity)
                     : "memory");
        result[t] = stage[127 - t] + n;
        if (mistake != 4) {
            proxy_fence();
        }
        if (mistake != 3) {
            __syncthreads();
        }
        if (t == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;\n"
                         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::"l"(
                             out + 128 * n),
                         "r"(shared_address(result))
                         : "memory");
        }
        __syncthreads();
    }
}

#define REGISTERS(way, count) asm volatile("setmaxnreg." way ".sync.aligned.u32 " #count ";")

/* A producer and two consumers, which began with 168 registers a thread. `mistake` 1: too many in all;
 * 2: a warp of a warpgroup leaves it out; 3: another number in a warp; 4: .inc to fewer. */
extern "C" __global__ void __launch_bounds__(384, 1) registers(int mistake) {
    int warp = threadIdx.x / 32;
    if (warp < 4) {
        REGISTERS("dec", 24);
    } else if (mistake == 1 && warp < 8) {
        REGISTERS("inc", 248);
    } else if (mistake == 2 && warp == 6) {
        return;
    } else if (mistake == 3 && warp == 5) {
        REGISTERS("inc", 232);
    } else if (mistake == 4) {
        REGISTERS("inc", 160);
    } else {
        REGISTERS("inc", 240);
    }
}

/* All of A is 127, all of B `b`; sums begin at `first`. */
extern "C" __global__ void saturating(int *out, int first, int b) {
    __shared__ __align__(128) unsigned operand[2][512];
    int d[4] = {first, first, first, first};
    for (int n = threadIdx.x; n < 512; n += 128) {
        operand[0][n] = 0x7f7f7f7f;
        operand[1][n] = (b & 0xff) * 0x01010101u;
    }
    proxy_fence();
    __syncthreads();
    fence();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8.satfinite {%0, %1, %2, %3}, %4, %5, "
                 "1;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "l"(descriptor(operand[0])), "l"(descriptor(operand[1]))
                 : "memory");
    commit();
    asm volatile("wgmma.wait_group.sync.aligned 0;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])::"memory");
    for (int i = 0; i < 4; i++) {
        out[4 * threadIdx.x + i] = d[i];
    }
}
