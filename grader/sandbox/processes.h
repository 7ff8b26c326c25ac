/**
 * @file processes.h
 * @brief What /proc says of a process and of all that it started.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_PROCESSES_H_
#define WARPBOOK_GRADER_SANDBOX_PROCESSES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** What some processes use together. */
struct processes_use {
    unsigned processes; /**< that exist, dead ones that nobody waited for included */
    unsigned threads;
    uint64_t address_bytes;
    uint64_t resident_bytes;
    double cpu_s;
};

/** Adds what one process uses. @return false when /proc does not say */
bool processes_use_of(pid_t pid, struct processes_use *use);

/**
 * @return seconds that the thread of @p pid which waited longest for a processor has waited since
 * it began; 0 when the kernel does not say
 */
double processes_waited(pid_t pid);

/**
 * @return whether all threads of @p pid are on their way out, killed or by themselves: what they
 *         still use of a processor is the kernel's work; true also when there is no such process
 */
bool processes_dying(pid_t pid);

/**
 * @brief Adds what all descendants of @p ancestor use; it itself does not count.
 * @return false when /proc cannot be read or memory is short
 */
bool processes_use_below(pid_t ancestor, struct processes_use *use);

/**
 * @brief Sends SIGKILL to all descendants of @p ancestor.
 * @return how many there are
 */
unsigned processes_kill_below(pid_t ancestor);

/** @return tasks that the calling process's user has, which is what RLIMIT_NPROC counts. */
unsigned processes_tasks_of_user(void);

#endif
