/**
 * @file worker_process.h
 * @brief One worker, as the grader sees it: its process, its channel, its arena.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_WORKER_PROCESS_H_
#define WARPBOOK_GRADER_ISOLATION_WORKER_PROCESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "grader/isolation/message.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/simt_device.h"
#include "grader/sandbox/sandbox.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes at the arena's beginning through which device memory is read and written. */
enum { SIDE_STAGING = 64 << 20 };

/** Zero-initialised: not started. */
struct side {
    struct sandbox *sandbox; /**< NULL: not started, or ended */
    int channel, arena_file;
    unsigned char *arena;
    size_t used;               /**< bytes of the arena */
    uint64_t number;           /**< of the last request: nobody can foresee it */
    bool answered;             /**< at least once */
    double unwatched_s;        /**< that requests without grader_watch() took */
    double waited_s;           /**< for a processor, as far as time was added for it */
    double took_s;             /**< from the last request to its answer */
    double added_s;            /**< to the last request's time, because the machine was busy */
    bool modelled;             /**< its device is simt: the grader's own knowledge */
    struct simt_device device; /**< then; not started else */
    bool late;                 /**< lost because it did not come to an end */
    char lost[400];            /**< how it ended before its time; "" as long as it answers */
    struct device_properties properties; /**< once its device is open */
};

/**
 * @brief Starts it, unless it runs.
 * @param seconds after which one that has not begun is ended
 * @return STATUS_OK; STATUS_INTERRUPTED when it was lost; STATUS_UNSUPPORTED where the kernel
 *         cannot confine it; STATUS_NOT_FOUND, STATUS_OUT_OF_MEMORY, STATUS_IO
 */
MUST_CHECK enum status side_start(struct side *side, enum remote_side which, double seconds,
                                  struct error *error);

bool side_runs(const struct side *side);

/**
 * @brief Sends a request and waits for its answer, which replaces it.
 *
 * What the worker spent waiting for a processor, because the machine was busy with other things, is
 * no time of its own: it is added to its seconds, up to nine times as many.
 *
 * @param seconds after which the worker is ended
 * @param whose   "your code", for the line
 * @return STATUS_OK, or STATUS_INTERRUPTED with a line that says how the worker ended
 */
MUST_CHECK enum status side_ask(struct side *side, struct message *message, double seconds,
                                const char *whose, struct error *error);

/** @return false, and the worker is ended, when it says something that nobody has asked. */
bool side_is_silent(struct side *side, const char *whose);

/** @return false, and the worker is ended, when its emulated GPU has ended. */
bool side_has_device(struct side *side, const char *whose);

/** Ends a side whose device does not answer; its line says how the device ended. */
void side_lose_device(struct side *side, const char *whose);

/** Takes memory from the arena; STATUS_OUT_OF_MEMORY when it is full. */
MUST_CHECK enum status side_alloc(struct side *side, void **memory, size_t bytes,
                                  struct error *error);

/** Ends it and prints what it wrote; nothing when it was not started. */
void side_end(struct side *side, const char *whose);

#ifdef __cplusplus
}
#endif

#endif
