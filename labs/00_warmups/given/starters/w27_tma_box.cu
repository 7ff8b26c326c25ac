/*
 * One box of a matrix by the TMA, and the mbarrier that says when it is there.
 *
 * On Hopper one thread asks for a whole box, here 16 x 64 numbers of 16 bits; a unit beside the
 * multiprocessor fetches it. The thread's registers are not needed, and nobody waits yet. An
 * mbarrier in shared memory counts what is still to come in its phase:
 *
 *     thread 0                        mbarrier                         the other threads
 *     init(1)                         1 arrival, 0 bytes to come
 *     arrive and expect n bytes  ->   0 arrivals, n bytes to come      wait (phase 0)
 *     load the box               ->   n bytes to come ... 0            |
 *     wait (phase 0)                  phase 0 is over             ->   they go on
 *
 * With n = 0 the phase is over at once, before anything has come. Any other wrong n may never be
 * reached exactly, and then the phase is never over. The next box would be phase 1, the one after
 * it phase 0 again. What lies outside of the matrix comes as zeros and counts as bytes like the
 * rest. The box's place is (column, row), as PTX has it.
 */
#include <cuda.h>

#include "labs/00_warmups/warmups.h"

enum { ROWS = 16, COLUMNS = 64 };

#if __CUDA_ARCH__ >= 900
static __device__ void init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ void arrive_and_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

static __device__ void load_box(unsigned to, const CUtensorMap *map, int column, int row,
                                unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

static __device__ void wait(unsigned barrier, int phase) {
    asm volatile("{\n.reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(barrier),
                 "r"(phase)
                 : "memory");
}
#endif

static __global__ void fetch(int *y, const __grid_constant__ CUtensorMap map, int row, int column) {
#if __CUDA_ARCH__ >= 900
    __shared__ __align__(128) uint16_t box[ROWS * COLUMNS];
    __shared__ uint64_t memory;
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&memory);
    if (threadIdx.x == 0) {
        init(barrier, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        arrive_and_expect(barrier, 0); // TODO: how many bytes come
        load_box((unsigned)__cvta_generic_to_shared(box), &map, column, row, barrier);
    }
    wait(barrier, 0);
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += blockDim.x) {
        y[i] = box[i];
    }
#endif
}

void w27_tma_box(int *d_y, const struct CUtensorMap_st *map, int row, int column) {
    fetch<<<1, 128>>>(d_y, *map, row, column);
}
