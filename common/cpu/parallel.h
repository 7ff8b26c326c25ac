/**
 * @file parallel.h
 * @brief A loop on several threads, and the most that a waiting thread may spin.
 *
 * Threads are OpenMP's, as in the learner's matmul, so that a program has one set of them.
 * libgomp's threads spin for tens of milliseconds before they sleep, which takes a core from other
 * work. Every program that links this file has GOMP_SPINCOUNT set before libgomp reads it, unless
 * the user has set that or OMP_WAIT_POLICY.
 */
#ifndef WARPBOOK_COMMON_CPU_PARALLEL_H_
#define WARPBOOK_COMMON_CPU_PARALLEL_H_

#include <stddef.h>

/**
 * Works on the items begin .. end - 1.
 * @param thread the number of the thread, 0 .. threads - 1: two calls at a time never have the same
 */
typedef void cpu_parallel_body(void *arguments, int thread, size_t begin, size_t end);

/**
 * @brief Calls @p body for all of @p count items, at most @p chunk of them a call.
 *
 * A thread takes the next chunk when it has finished one, so a thread that the system interrupts
 * delays one chunk. Chunks do not depend on the number of threads. Returns when all is done.
 *
 * @param threads at least 1
 * @param chunk   at least 1
 */
void cpu_parallel_for(int threads, size_t count, size_t chunk, cpu_parallel_body *body,
                      void *arguments);

#endif
