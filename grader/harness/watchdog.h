/**
 * @file watchdog.h
 * @brief The watchdog of a submission: says what it was doing when it crashed or did not end.
 */
#ifndef WARPBOOK_GRADER_HARNESS_WATCHDOG_H_
#define WARPBOOK_GRADER_HARNESS_WATCHDOG_H_

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief From here to the next call, the line about a worker that crashes, or that has not
 *        answered within @p seconds, names @p what; see isolation/remote.h.
 * @param what    "shape M=1 N=2 K=3, 2 threads"; copied, at most 200 characters
 * @param seconds for all requests until the next call; 0 ends the watch
 */
void grader_watch(const char *what, unsigned seconds);

#ifdef __cplusplus
}
#endif

#endif
