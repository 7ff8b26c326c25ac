/**
 * @file train_peers.h
 * @brief How a model that is trained by several ranks, a GPU each, exchanges gradients and weights
 *        with the others: C functions that share one opaque context, as struct train_engine.
 *
 * Data parallel training: every rank has all weights, and computes the gradients of its own
 * batches. Buckets of gradients are added up over the ranks beneath the backward pass, on a stream
 * of their own, in an order that gives all ranks the same bits in every run. With ZeRO-1
 * (Rajbhandari et al. 2020) a rank has AdamW's two moments of its part of the parameters alone,
 * updates that part, and gets the others' from them.
 *
 * All ranks make the same calls in the same order. Offsets and counts are elements of fp32. Calls
 * only submit work, and return STATUS_OK or an error, whose line failed() gives.
 */
#ifndef WARPBOOK_COMMON_TRAIN_TRAIN_PEERS_H_
#define WARPBOOK_COMMON_TRAIN_TRAIN_PEERS_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TRAIN_MOST_RANKS = 8 };

struct train_peers {
    void *context;
    int rank, ranks;
    bool zero;           /**< ZeRO-1 */
    size_t bucket_bytes; /**< smallest bucket of gradients; a layer or more */

    /** Allocates memory that all ranks reach, zeros, the same size on each. */
    enum status (*alloc)(void *context, size_t bytes, void **memory, struct error *error);
    /** @return the address here of rank r's allocation that goes with this rank's. */
    void *(*at)(void *context, const void *memory, int rank);
    /** Frees it; NULL is allowed. */
    void (*release)(void *context, void *memory);

    /** Adds up a bucket over all ranks when the engine's work so far is done. */
    enum status (*reduce)(void *context, void *memory, size_t first, size_t count);
    /** The engine's further work waits for all buckets. */
    enum status (*join)(void *context);
    /** Copies the others' parts, after the engine's work so far on all ranks: rank r has
     *  [firsts[r], firsts[r + 1]). The engine's further work waits. */
    enum status (*gather)(void *context, void *memory, const size_t *firsts);
    /** COLLECTIVE: frees the context and zeroes the struct. */
    void (*free)(struct train_peers *peers);
    /** Takes the line of a call that failed. */
    void (*failed)(void *context, struct error *error);
};

#ifdef __cplusplus
}
#endif

#endif
