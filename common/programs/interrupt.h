/**
 * @file interrupt.h
 * @brief Stops a program cleanly: the program checks for a first SIGINT or SIGTERM between two
 * steps of its work; a second one kills it.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_INTERRUPT_H_
#define WARPBOOK_COMMON_PROGRAMS_INTERRUPT_H_

/**
 * @brief Watches for SIGINT and SIGTERM, and ignores SIGPIPE, so that writing to a closed pipe
 *        returns an error. A program calls it before interrupt_seen().
 *
 * A signal that the parent process ignores stays ignored. A waiting read() ends with EINTR.
 */
void interrupt_watch(void);

/** @return the signal that came; 0: none. */
int interrupt_seen(void);

#endif
