/**
 * @file replays.h
 * @brief Work that comes again is recorded in a CUDA graph and launched at once.
 *
 * A launch takes the host some microseconds, and a graph of a hundred launches little more than
 * one. Recording costs as much as some calls, so what comes once is not recorded: the first call of
 * a key does its work as if there were no graph, the second one records it, and from then on it is
 * launched. A bounded number of keys is remembered; the one that was used longest ago makes room.
 *
 * One thread uses a set of replays at a time.
 */
#ifndef WARPBOOK_COMMON_DEVICE_REPLAYS_H_
#define WARPBOOK_COMMON_DEVICE_REPLAYS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Puts work on @p stream, which may be recording: it neither waits, nor allocates, nor uses
 *        another stream.
 *
 * With the same key it always puts the same launches with the same arguments; only the contents of
 * memory differ.
 */
typedef enum status replay_work(const void *argument, device_stream stream, struct error *error);

struct replays;

/**
 * @param most keys to remember, at least 1
 * @return STATUS_OK or STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status replays_create(struct replays **replays, size_t most, struct error *error);

/**
 * @brief Does the work of @p key on @p stream, without waiting for it.
 *
 * While the caller itself records @p stream, the launches are added to its recording.
 *
 * @param key       compared byte by byte, and copied
 * @param key_bytes at least 1
 * @return STATUS_OK; the work's failure; STATUS_OUT_OF_MEMORY; STATUS_DEVICE when CUDA refuses to
 *         record or to launch
 */
MUST_CHECK enum status replays_run(struct replays *replays, const void *key, size_t key_bytes,
                                   replay_work *work, const void *argument, device_stream stream,
                                   struct error *error);

/** What a set of replays did. */
struct replay_counts {
    size_t recorded; /**< graphs made since the set was created */
    size_t launched; /**< times that a graph was launched */
    size_t kept;     /**< graphs that it has now */
};

struct replay_counts replays_counts(const struct replays *replays);

/** Frees the graphs; their work is done. NULL is allowed. */
void replays_free(struct replays *replays);

#ifdef __cplusplus
}
#endif

#endif
