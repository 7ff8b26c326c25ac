/**
 * @file semaphore.cuh
 * @brief Blocks that add to the same memory one after the other: a counter says whose turn it is.
 *
 * One thread waits, then a barrier lets the others of its block read what the blocks before stored
 * (past L1); after a barrier that follows the block's last store one thread releases. Whoever has
 * turns before this one must be running or have run.
 */
#ifndef WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_SEMAPHORE_CUH_
#define WARPBOOK_SOLUTIONS_11_TRAINING_STEPS_SEMAPHORE_CUH_

static __device__ __forceinline__ void semaphore_wait(const unsigned *semaphore, unsigned turn) {
    unsigned now;
    do {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(semaphore) : "memory");
    } while (now != turn);
}

static __device__ __forceinline__ void semaphore_release(unsigned *semaphore) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(semaphore) : "memory");
}

#endif
