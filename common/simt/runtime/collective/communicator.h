/**
 * @file communicator.h
 * @brief Communicators of libnccl.so.2, as the devices know them: ranks, and operations in flight.
 *
 * Ranks come and go by calls that never wait; the library asks again. An operation of a rank is
 * work of a stream (WORK_COLLECTIVE): it waits, as a flight, until those of the other ranks are
 * there; the last one to come does the work of all.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_COLLECTIVE_COMMUNICATOR_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_COLLECTIVE_COMMUNICATOR_H_

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "common/simt/nccl/collective.h"
#include "common/simt/runtime/stream/order.h"

struct runtime;
struct work;

/** What a stream has to do: an operation, or the parts of an exchange. */
struct collective_work {
    struct collective operation;
    uint32_t part_count;
    struct collective_part parts[];
};

/** @return bytes of such work. */
size_t collective_work_bytes(const struct collective_work *work);

/** One operation of all ranks, until all have left it. */
struct meeting {
    uint64_t number; /**< of the communicator's operations */
    uint32_t arrived, left;
    bool done, failed;
    double begin, end;        /**< modelled nanoseconds: the last one's arrival, and the end */
    struct order_clock clock; /**< what all ranks did before */
    struct collective calls[COLLECTIVE_MOST_RANKS];
    bool has_called[COLLECTIVE_MOST_RANKS];
    struct meeting *next;
};

/** A send or receive that waits for its other side; lies in its flight. */
struct pending_part {
    struct collective_part part;
    uint32_t rank; /**< whose it is */
    bool done, failed;
    struct pending_part *next;
};

struct communicator {
    uint64_t key[2], number;
    uint32_t ranks, come, gone;
    bool has_come[COLLECTIVE_MOST_RANKS], has_gone[COLLECTIVE_MOST_RANKS];
    int devices[COLLECTIVE_MOST_RANKS];
    struct program *programs[COLLECTIVE_MOST_RANKS]; /**< whose rank it is; NULL: of this process */
    uint64_t operations[COLLECTIVE_MOST_RANKS];      /**< that each rank has begun */
    enum collective_state state; /**< COLLECTIVE_GOOD until something went wrong */
    bool aborted;
    char text[400];
    struct program *told; /**< that the text was printed for last */
    struct meeting *meetings;
    struct pending_part *pending;
    uint32_t split_come, split_left;
    int colors[COLLECTIVE_MOST_RANKS], keys[COLLECTIVE_MOST_RANKS];
    bool has_split[COLLECTIVE_MOST_RANKS];
    uint64_t splits;
    struct communicator *next;
};

/** @return the communicator of that number, or NULL. */
struct communicator *communicator_find(const struct runtime *runtime, uint64_t number);

/** Something went wrong: the first such line stays, and is printed. */
void communicator_fail(struct runtime *runtime, struct communicator *communicator,
                       enum collective_state state, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** The selected program has ended: its ranks go, and those that remain learn it. */
void communicators_leave(struct runtime *runtime);

/** Forgets communicators that all ranks have left. */
void communicators_sweep(struct runtime *runtime);

/** Prints what went wrong, where another program was told. */
void communicator_tell(const struct runtime *runtime, struct communicator *communicator);

/** Looks at the communicator, types, counts and buffers of an operation. What is wrong is
 * explained.
 *  @param device receives the rank's, when it is right */
cudaError_t collective_check(struct runtime *runtime, const struct collective_work *work);

/** Takes part in the operation, until it is done. */
cudaError_t collective_run(struct runtime *runtime, const struct collective_work *work);

/** "ncclAllReduce". */
const char *collective_name(uint32_t kind);

#endif
