/**
 * @file devices.h
 * @brief Kernels of tests with several devices, behind C functions that launch and return.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_DEVICES_DEVICES_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_DEVICES_DEVICES_H_

#include <stdbool.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/** to[i] = value + i; 128 threads a block. */
void launch_fill(int *d_to, int value, int count, cudaStream_t stream);

/** to[i] = from[i] + 1. */
void launch_next(int *d_to, const int *d_from, int count, cudaStream_t stream);

/** Adds to a __device__ variable, and stores it. */
void launch_own(int *d_out, int add, cudaStream_t stream);

/** Two kernels throw a number to and fro: each writes `theirs` and waits for `mine`. */
void launch_play(int *d_mine, int *d_theirs, int rounds, bool first, cudaStream_t stream);

/** The same by a block of 128 threads, of which the first `pollers` wait. */
void launch_play_together(int *d_mine, int *d_theirs, int rounds, bool first, int pollers,
                          cudaStream_t stream);

/** One thread stores words 1, 2, ... to words[1], words[2], ... and each one's number to the flag
 *  behind it; the other side waits for each number, then counts the words that are not there. All
 *  accesses are volatile. @param fence between word and number */
void launch_tell_words(int *d_words, int *d_flag, int count, bool fence, cudaStream_t stream);
void launch_count_missing(int *d_words, int *d_flag, int count, int *d_missing,
                          cudaStream_t stream);

/** Waits until the flag is `count`, and computes with WORK_AT_A_CHANGE operations in each round of
 *  that loop in which it has changed. @param d_times how often that was; behind it something of the
 *  result */
enum { WORK_AT_A_CHANGE = 512 };
void launch_work_while_waiting(int *d_flag, int count, int *d_times, cudaStream_t stream);

/** Waits until the flag has a value, then stores that in d_out. */
void launch_wait(int *d_flag, int value, int *d_out, cudaStream_t stream);

/** The same with atomics. */
void launch_wait_atomic(int *d_flag, int value, int *d_out, cudaStream_t stream);

/** Writes `count` ints from `value` on to a peer, then the flag. @param fence a system-wide one
 *  between the two */
void launch_send(int *d_data, int *d_flag, int value, int count, bool fence, cudaStream_t stream);

/** Waits for the flag, then adds up the data. */
void launch_receive(const int *d_data, int *d_flag, int count, int *d_sum, bool fence,
                    cudaStream_t stream);

/** Fills a slot of `count` ints once a round: waits until `back` has the round before, stores, then
 *  sets `ready`. */
void launch_fill_slot(int *d_slot, int *d_ready, int *d_back, int count, int rounds,
                      cudaStream_t stream);

/** The other side: waits for `ready`, sets `come`, reads the slot, then sets `back`. */
void launch_empty_slot(const int *d_slot, int *d_ready, int *d_come, int *d_back, int count,
                       int rounds, int *d_sum, cudaStream_t stream);

/** What stands between data and flag. */
enum order_by { BY_NOTHING, BY_DEVICE_FENCE, BY_SYSTEM_FENCE, BY_THE_ACCESS };

/** A thread stores a word, then a flag; and one that waits for the flag and reads the word. */
void launch_send_word(int *d_data, int *d_flag, enum order_by by, cudaStream_t stream);
void launch_receive_word(const int *d_data, int *d_flag, int *d_out, enum order_by by,
                         cudaStream_t stream);

/** A thread stores a word and adds one to a counter; and one that waits for `wanted` of these and
 *  adds up their words. */
void launch_send_counted(int *d_data, int *d_counter, bool fence, cudaStream_t stream);
void launch_receive_counted(const int *d_data, int *d_counter, int wanted, int *d_out,
                            cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
