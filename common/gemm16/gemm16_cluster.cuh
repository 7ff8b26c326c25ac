/**
 * @file gemm16_cluster.cuh
 * @brief Barriers in shared memory, clusters of two blocks, and the TMA: thin names for PTX.
 */
#ifndef WARPBOOK_COMMON_GEMM16_GEMM16_CLUSTER_CUH_
#define WARPBOOK_COMMON_GEMM16_GEMM16_CLUSTER_CUH_

#include <cuda.h>
#include <stdint.h>

static __device__ __forceinline__ unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* All threads of both blocks; what one wrote before, the others see behind. */
static __device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}

static __device__ __forceinline__ void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Makes initialised barriers known to the other block and to the TMA. */
static __device__ __forceinline__ void barrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and announces so many bytes of copies. */
static __device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives at the same barrier of block `rank` of the cluster. Nothing else is made known to it:
   what is given back has only been read, by wgmma. (With .release.cluster each arrival would wait
   for all of the thread's memory operations.) */
static __device__ __forceinline__ void barrier_arrive_at(unsigned barrier, unsigned rank) {
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

/* Waits until the phase of this parity is complete. */
static __device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* Starts copying a box of a matrix to shared memory; `barrier` counts its bytes. */
static __device__ __forceinline__ void tma_load(unsigned to, const CUtensorMap *map, int column,
                                                int row, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

/* The same to both blocks of the cluster, each counting at its own barrier. */
static __device__ __forceinline__ void tma_load_for_both(unsigned to, const CUtensorMap *map,
                                                         int column, int row, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier), "h"((unsigned short)3)
                 : "memory");
}

/* Starts copying a box to a matrix, but for what is outside; closes a group. */
static __device__ __forceinline__ void tma_store(const CUtensorMap *map, int column, int row,
                                                 unsigned from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(column), "r"(row), "r"(from)
                 : "memory");
}

/* Waits until all but the PENDING youngest stores have read their shared memory. */
template <int PENDING> static __device__ __forceinline__ void tma_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* Waits until all stores are done. */
static __device__ __forceinline__ void tma_wait_stored() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* What this thread wrote to shared memory, the TMA may read. */
static __device__ __forceinline__ void tma_may_read() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
