/**
 * @file interrupt.h
 * @brief Ctrl-C as a wish: the first SIGINT or SIGTERM is noticed between two steps of the work, a
 *        second one kills as always.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_INTERRUPT_H_
#define WARPBOOK_COMMON_PROGRAMS_INTERRUPT_H_

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Watches for SIGINT and SIGTERM, and ignores SIGPIPE, so that a closed pipe is an error of
 *        writing. For programs, before interrupt_seen().
 *
 * A signal that the caller's parent had ignored stays ignored. A read that waits ends with EINTR.
 */
void interrupt_watch(void);

/** @return the signal that has come, 0: none. */
int interrupt_seen(void);

#ifdef __cplusplus
}
#endif

#endif
