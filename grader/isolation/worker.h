/**
 * @file worker.h
 * @brief The process that holds the learner's code, and nothing that the grader must keep to
 *        itself.
 *
 *     test program (oracle, seed, clock, verdict)
 *        | socket: requests and answers        | arena: host memory of both, at one address
 *     worker (learner's code, engines, the GPU), in the sandbox
 *
 * A lab's worker is common code and one file, grader/LAB/worker.c, with the table of what may be
 * called. It is built twice, so that the learner's code is not near when the baseline is timed: on
 * the learner's library, and with GRADER_BASELINE defined on the lab's starter. Labs whose baseline
 * needs another table or engine ask for that.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_WORKER_H_
#define WARPBOOK_GRADER_ISOLATION_WORKER_H_

#include <stddef.h>

#include "common/base/status.h"
#include "grader/isolation/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief One function that the grader may call.
 * @param arguments what the grader sent; as the function leaves them, so they go back. Pointers in
 *                  them are the device's, the arena's, or what an earlier call gave
 */
typedef enum status worker_function(void *arguments, struct error *error);

struct worker_entry {
    const char *name;
    size_t size; /**< of the arguments */
    worker_function *run;
};

/** The device's side of a worker: worker_device.c; a lab on the CPU has none. */
struct worker_device {
    void (*serve)(struct message *message); /**< a DEVICE request becomes its answer */
    void (*call)(const struct worker_entry *entry,
                 struct message *message); /**< any mode but CALL_ONCE */
    void (*flush)(void);                   /**< before an answer: simt_flush_calls(); may be NULL */
};
extern const struct worker_device worker_device;

/** Defined once in each lab's worker. */
struct worker {
    const struct worker_entry *entries; /**< ends with a name of NULL */
    const struct worker_device *device; /**< NULL for a lab on the CPU */
};
extern const struct worker worker;

/** Puts a status and its line into an answer. */
void worker_answer(struct message *message, enum status status, const struct error *error);

#ifdef __cplusplus
}
#endif

#endif
