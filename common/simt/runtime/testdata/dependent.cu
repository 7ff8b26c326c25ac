/*
 * dependent CASE
 *
 * Programmatic dependent launches for dependent_test.sh: a primary kernel, and a secondary one that
 * may begin before it ends. Prints the error of the device; exit status 2 for an unknown case.
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 64, BLOCKS = 4, COUNT = THREADS * BLOCKS };

static __device__ int index_of() {
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

/* The primary: y += x, y = x, a sum into y[0]; it triggers first. */
static __global__ void produce(const int *x, int *y, int adds) {
    cudaTriggerProgrammaticLaunchCompletion();
    if (adds) {
        atomicAdd(y, x[index_of()]);
    } else {
        y[index_of()] = x[index_of()];
    }
}

static __global__ void nothing(int *unused) {
    (void)unused;
}

/* A kernel in between that waits, or does not. */
static __global__ void pass(int waits) {
    if (waits) {
        cudaGridDependencySynchronize();
    }
}

static __device__ void copy(const int *x, int *y) {
    y[index_of()] = x[index_of()];
}

static __global__ void never_waits(const int *x, int *y) {
    copy(x, y);
}

static __global__ void waits(const int *x, int *y) {
    cudaGridDependencySynchronize();
    copy(x, y);
}

static __global__ void waits_late(const int *x, int *y) {
    int value = x[index_of()];
    cudaGridDependencySynchronize();
    y[index_of()] = value;
}

static __global__ void block_0_waits(const int *x, int *y) {
    if (blockIdx.x == 0) {
        cudaGridDependencySynchronize();
    }
    copy(x, y);
}

static __global__ void thread_0_waits(const int *x, int *y, int meets) {
    if (threadIdx.x == 0) {
        cudaGridDependencySynchronize();
    }
    if (meets) {
        __syncthreads();
    }
    copy(x, y);
}

/* What it reads first is no primary's. */
static __global__ void prologue(const int *weights, const int *x, int *y) {
    int weight = weights[index_of()];
    cudaGridDependencySynchronize();
    y[index_of()] = weight * x[index_of()];
}

static __global__ void adds(int *sum) {
    atomicAdd(sum, 1);
}

/* A thread copies in bulk, before it has waited or behind. */
static __global__ void bulk(const int *x, int *y, int early) {
    __shared__ __align__(128) int stage[THREADS];
    __shared__ __align__(8) unsigned long long full;
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        if (!early) {
            cudaGridDependencySynchronize();
        }
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2], "
            "256, [%0];" ::"r"(barrier),
            "r"((unsigned)__cvta_generic_to_shared(stage)), "l"(x + blockIdx.x * THREADS)
            : "memory");
        if (early) {
            cudaGridDependencySynchronize();
        }
    }
    __syncthreads();
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra again;\n}" ::"r"(
            barrier)
        : "memory");
    y[index_of()] = stage[threadIdx.x];
}

/* One thread of the cluster waits for both blocks. */
static __global__ void __cluster_dims__(2, 1, 1) cluster_waits(const int *x, int *y) {
    if (blockIdx.x % 2 == 0 && threadIdx.x == 0) {
        cudaGridDependencySynchronize();
    }
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
    copy(x, y);
}

static int *a, *b, *c, *d;

/* Launches a kernel; `dependent`: it may begin before the one in front of it has ended. */
template <typename... PARAMETERS, typename... ARGUMENTS>
static void start(void (*kernel)(PARAMETERS...), bool dependent, ARGUMENTS... arguments) {
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = dependent;
    config.gridDim = dim3(BLOCKS);
    config.blockDim = dim3(THREADS);
    config.attrs = &attribute;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, kernel, (PARAMETERS)arguments...);
}

/* The primary writes b. */
static void start_primary(void) {
    start(produce, false, a, b, 0);
}

/* A case: what follows the primary. */
static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"reads", [] { start_primary(), start(never_waits, true, b, c); }},
    {"overwrites", [] { start_primary(), start(never_waits, true, c, a); }},
    {"writes_the_same", [] { start_primary(), start(never_waits, true, c, b); }},
    {"waits_late", [] { start_primary(), start(waits_late, true, b, c); }},
    {"one_block_waits", [] { start_primary(), start(block_0_waits, true, b, c); }},
    {"no_barrier", [] { start_primary(), start(thread_0_waits, true, b, c, 0); }},
    {"adds_to_written", [] { start_primary(), start(adds, true, b); }},
    {"reads_sum", [] { start(produce, false, a, b, 1), start(never_waits, true, b, c); }},
    {"early_bulk_copy", [] { start_primary(), start(bulk, true, b, c, 1); }},
    {"not_waited_between", [] { start_primary(), start(pass, true, 0), start(waits, true, b, c); }},
    {"second_of_two",
     [] { start_primary(), start(waits, true, b, c), start(never_waits, true, c, d); }},
    {"waits", [] { start_primary(), start(waits, true, b, c); }},
    {"thread_waits", [] { start_primary(), start(thread_0_waits, true, b, c, 1); }},
    {"prologue", [] { start_primary(), start(prologue, true, a, b, c); }},
    {"cluster_waits", [] { start_primary(), start(cluster_waits, true, b, c); }},
    {"bulk_copy", [] { start_primary(), start(bulk, true, b, c, 0); }},
    {"both_read", [] { start_primary(), start(never_waits, true, a, c); }},
    {"both_add", [] { start(produce, false, a, b, 1), start(adds, true, b); }},
    {"ordinary", [] { start_primary(), start(never_waits, false, b, c); }},
    {"host_waits",
     [] { start_primary(), cudaDeviceSynchronize(), start(never_waits, true, b, c); }},
    {"set_between",
     [] { start_primary(), cudaMemsetAsync(d, 0, 4), start(never_waits, true, b, c); }},
    {"waited_between", [] { start_primary(), start(pass, true, 1), start(waits, true, b, c); }},
    {"kernel_between",
     [] { start_primary(), start(nothing, false, d), start(never_waits, true, b, c); }},
};

int main(int argc, char **argv) {
    for (const auto &one : cases) {
        if (argc != 2 || strcmp(argv[1], one.name) != 0) {
            continue;
        }
        for (int **buffer : {&a, &b, &c, &d}) {
            (void)cudaMalloc((void **)buffer, COUNT * sizeof **buffer);
            (void)cudaMemset(*buffer, 0, COUNT * sizeof **buffer);
        }
        one.run();
        cudaError_t error = cudaDeviceSynchronize();
        printf("%s\n", cudaGetErrorName(error));
        for (int *buffer : {a, b, c, d}) {
            (void)cudaFree(buffer);
        }
        return error == cudaSuccess ? 0 : 3;
    }
    fprintf(stderr, "dependent: give the name of a case\n");
    return 2;
}
