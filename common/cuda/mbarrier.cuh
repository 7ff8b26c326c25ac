/**
 * @file mbarrier.cuh
 * @brief mbarrier: barriers in shared memory that count arrivals and the bytes of asynchronous
 *        copies.
 *
 * Compute capability 9.0; include it in code for that alone. A barrier is 8 bytes of shared memory,
 * aligned to 8, given by its address there (shared_address()). One thread executes each function
 * for itself; mbarrier_wait() is called by every thread that is to wait. Phases have parity 0, 1,
 * 0, ...
 */
#ifndef WARPBOOK_COMMON_CUDA_MBARRIER_CUH_
#define WARPBOOK_COMMON_CUDA_MBARRIER_CUH_

/* A phase completes after `arrivals` arrivals and all announced bytes. */
static __device__ __forceinline__ void mbarrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Makes this thread's initialised barriers visible to the cluster and to the TMA. */
static __device__ __forceinline__ void mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and announces `bytes` of copies to this phase. */
static __device__ __forceinline__ void mbarrier_arrive_expect_tx(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives at the same barrier of block `rank` of the cluster. It releases this thread's writes to
   its own block only: enough to give back a buffer that wgmma has read. (With .release.cluster each
   arrival would wait for all of the thread's memory operations.) */
static __device__ __forceinline__ void mbarrier_arrive_cluster(unsigned barrier, unsigned rank) {
    asm volatile("{\n.reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* Waits until the phase of this parity is complete. */
static __device__ __forceinline__ void mbarrier_wait(unsigned barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

#endif
