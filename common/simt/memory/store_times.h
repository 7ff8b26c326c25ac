/**
 * @file store_times.h
 * @brief When words of global memory were stored by blocks of the running launch.
 *
 * For blocks that wait for each other: a block that reads a word goes on no earlier than the block
 * that stored it had come so far. A word keeps the latest of its times, so that nobody can make it
 * look older by storing there once more.
 *
 * Memory is bounded: behind 32 MiB of words, a word shares its time with another one. Then a time
 * may be too late, never too early.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_STORE_TIMES_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_STORE_TIMES_H_

#include <stddef.h>
#include <stdint.h>

struct simt_store_times;

/** A store, or the latest of several. */
struct simt_store_time {
    uint64_t cycles; /**< on the clock of its block */
    uint64_t block;  /**< that made it: position in the grid; the low 24 bits are kept */
};

/** @return no times at all; NULL when memory is short. */
struct simt_store_times *simt_store_times_create(void);

/** NULL is allowed. */
void simt_store_times_free(struct simt_store_times *times);

/** Forgets all times: the launch begins once more. */
void simt_store_times_clear(struct simt_store_times *times);

/** Bytes from @p address on are stored. */
void simt_store_times_note(struct simt_store_times *times, uint64_t address, size_t bytes,
                           const struct simt_store_time *store);

/**
 * @brief Finds the latest store of other blocks to any of these bytes.
 * @param block that asks
 * @return cycles; 0: there is none
 */
uint64_t simt_store_times_latest(struct simt_store_times *times, uint64_t address, size_t bytes,
                                 uint64_t block);

#endif
