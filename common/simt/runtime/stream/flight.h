/**
 * @file flight.h
 * @brief Work that is not done when its call returns: with several devices.
 *
 * Kernels of two devices may wait for each other, and collective operations do. So with several
 * devices a kernel whose results depend on the order of blocks (atomics, volatile accesses), a
 * collective operation, and a graph with such work run on host threads of their own. They take
 * turns with each other and with the calls of the program: one runs at a time, and gives up its
 * turn after some instructions. Where it is not done then, its call returns, and later work of the
 * stream waits in a list. Calls that submit work or wait for it give each flight its turn. The
 * order of turns depends on calls alone, so results repeat.
 *
 * While races are looked for, a flight that waits gets its next turn only when no other one gets
 * on. So each gets as far ahead of the others as it can, and uses memory again as early as it can.
 *
 * Where nothing happens for SIMT_WAIT_SECONDS while a call waits, flights are told so and fail; but
 * only after many turns in vain: on a busy machine seconds say little.
 */
#ifndef WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_FLIGHT_H_
#define WARPBOOK_COMMON_SIMT_RUNTIME_STREAM_FLIGHT_H_

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "common/simt/memory/access/late.h"

struct runtime;
struct work;
struct CUstream_st;
struct CUevent_st;
struct simt_yield;
struct simt_global_shadow;

/** A device process cannot wait: the program asks again later. Never seen by programs. */
#define SIMT_ERROR_AGAIN ((cudaError_t)31337)

/** @return whether work must become a flight: its stream has some, or it may wait for others. */
bool flight_is_needed(const struct runtime *runtime, const struct CUstream_st *stream,
                      const struct work *work);

/** Makes a flight of a copy of the work, and gives it its first turn. @return the work's error if
 *  it is done then */
cudaError_t flight_add(struct runtime *runtime, struct CUstream_st *stream,
                       const struct work *work);

/** Records an event after what the stream has to do, or lets the stream wait for one. @return
 *  false: there is nothing to wait for, the caller does it at once */
bool flight_records(struct runtime *runtime, struct CUstream_st *stream, cudaEvent_t event,
                    cudaError_t *error);
bool flight_waits(struct runtime *runtime, struct CUstream_st *stream, cudaEvent_t event,
                  cudaError_t *error);

/** Waits for all work of a stream, and of those that its work is in order with; of all streams of
 *  the selected device; for an event. @return cudaSuccess, or SIMT_ERROR_AGAIN */
cudaError_t flights_wait_for(struct runtime *runtime, struct CUstream_st *stream);
cudaError_t flights_wait_for_device(struct runtime *runtime);
cudaError_t flights_wait_for_event(struct runtime *runtime, struct CUevent_st *event);

/** Gives each flight its turn. @return cudaErrorNotReady: the stream has work to do */
cudaError_t flights_ask(struct runtime *runtime, struct CUstream_st *stream);
cudaError_t flights_ask_event(struct runtime *runtime, struct CUevent_st *event);

/** Work that is no flight has run: something has happened on some device. */
void flights_stir(struct runtime *runtime);

/** The flight that runs lets others have their turn. @param waits while races are looked for: until
 *  nobody else gets on @return false: it has waited too long */
bool flight_yield(struct runtime *runtime, bool progress, bool waits);

/** A launch begins. @return where it lets others run in the middle of what it tells them: launches
 *  take turns, so that neighbours meet in different ways */
enum simt_late_way flight_way(struct runtime *runtime);

/** @return whether the calling thread is a flight's */
bool flight_runs(const struct runtime *runtime);

/** @return whether another flight has begun, and is not done */
bool flights_are_begun(const struct runtime *runtime);

/** A shadow that no other launch in flight uses; NULL where memory is short. */
struct simt_global_shadow *flight_take_shadow(struct runtime *runtime);
void flight_give_shadow(struct runtime *runtime, struct simt_global_shadow *shadow);

/** The program has gone: ends all that it had begun, and drops the rest. */
void flights_abandon(struct runtime *runtime);

/** At the end of the program: lets flights end; names those that do not, and forgets them. */
void flights_finish(struct runtime *runtime);

#endif
