/**
 * @file order.h
 * @brief Which work of streams comes before which: events, waiting and the default stream order it.
 *
 * Everything runs in the order of its submission here. On a GPU, work of two streams may overlap
 * unless something orders it. Each stream knows of how much work of every stream comes before its
 * next piece (a vector clock), and so do events and the host. Work that the host has not waited for
 * is kept with the words of memory that it touched, and compared with later work that does not come
 * after it.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_ORDER_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_ORDER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "common/simt/memory/run.h"

struct runtime;
struct work;
struct CUstream_st;

/** How many pieces of work of each stream come before; by the stream's number. */
struct order_clock {
    uint64_t *pieces;
    size_t count;
};

void order_clock_free(struct order_clock *clock);

/** What @p from knows, @p clock knows from now on. Without memory it is taken for known. */
void order_learn(struct order_clock *clock, const struct order_clock *from);

/** @return whether @p from knows something that @p clock does not. */
bool order_has_news(const struct order_clock *clock, const struct order_clock *from);

/** The host has waited for what @p clock knows; NULL: for everything. */
void order_waited(struct runtime *runtime, const struct order_clock *clock);

/** The host has waited for all work of the selected device. */
void order_waited_for_device(struct runtime *runtime);

/** The host has waited for a stream; for the default stream also for those that it waits for. */
void order_waited_for_stream(struct runtime *runtime, struct CUstream_st *stream);

/** The same after a copy for which the host waits. @return @p error */
cudaError_t order_waited_for_copy(struct runtime *runtime, cudaError_t error);

/** What comes before an event that is recorded in a stream now. */
void order_record(struct runtime *runtime, struct CUstream_st *stream, struct order_clock *clock);

/** Before work is run in a stream: launches note what they touch. */
void order_begin(struct runtime *runtime, struct CUstream_st *stream);

/** A copy between devices in a default stream comes after all work of both devices, and before what
 *  these do next. @param before it runs; else it has run */
void order_copy_of(struct runtime *runtime, struct CUstream_st *stream, int device, bool before);

/** A piece of that work has run. */
void order_note(struct runtime *runtime, const struct work *work);

/** All of it has: compares it with what it does not come after, and reports the first meeting.
 *  @param name of the work, for messages */
void order_end(struct runtime *runtime, struct CUstream_st *stream, const char *name);

/** The host reads or writes managed memory: reports the work that it has not waited for and that
 *  touches the same word. @param used the address that work uses: not the host's for a managed
 *  variable */
void order_host_access(struct runtime *runtime, const void *address, uint64_t used, bool writes);

/** @return bytes of other devices' memory that the work that runs has touched so far. */
uint64_t order_peer_bytes(const struct runtime *runtime);

/** The kernel that runs orders what it did for those of other devices, or comes after what they
 *  have ordered: with fences and accesses of the scope of the system. A flag is known by its
 *  address: who looks at it comes after what was in order before the store whose value it has.
 *  @param how of enum simt_order @param address of `bytes` bytes, for loads and stores */
void order_of_system(struct runtime *runtime, unsigned how, uint64_t address, uint32_t bytes);

/** Forgets the work of the selected program, which ends. */
void order_end_program(struct runtime *runtime);

/** Forgets all work. */
void order_free(struct runtime *runtime);

#endif
