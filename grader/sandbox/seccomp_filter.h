/**
 * @file seccomp_filter.h
 * @brief The system calls that a sandboxed program may not make.
 *
 * Built on libseccomp. All that is not listed is allowed: the list is of what
 * reaches other processes, the network, the machine, or gets round the filter.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_SECCOMP_FILTER_H_
#define WARPBOOK_GRADER_SANDBOX_SECCOMP_FILTER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Arguments four to six that let one execve() pass; the kernel itself ignores them. */
struct filter_key {
    uint64_t words[3];
};

struct filter_settings {
    struct filter_key key;
    size_t largest_mapping; /**< bytes one mmap() may ask for; 0: any number */
    bool gpu;               /**< NVIDIA's driver tries to fork, and binds Unix sockets */
    bool no_writes;         /**< nothing may be opened for writing: there is no Landlock */
    bool named;             /**< refused calls are reported, where the kernel can */
    bool programs;          /**< it may start programs, and these may do what compilers do */
};

enum filter_state { FILTER_NONE, FILTER_UNNAMED, FILTER_NAMED };

/**
 * @brief Filters the calls of this process and all that it becomes; sets no-new-privileges.
 *
 * A refused call stops its thread until somebody reads the report from the
 * listener, and kills; without a listener it kills the process with SIGSYS.
 *
 * @param listener receives a descriptor that closes at exec, or -1 unless FILTER_NAMED
 */
enum filter_state filter_load(const struct filter_settings *settings, int *listener);

/** A refused call, as it was reported. */
struct filter_report {
    char call[40];
    bool mapping; /**< it asked for more memory at once than is allowed: */
    uint64_t asked_bytes;
    bool code;   /**< it asks for executable memory: */
    int fd;      /**< from this file; -1: from none */
    pid_t pid;   /**< who asked */
    uint64_t id; /**< for filter_go_on() */
};

/** @return whether who made the call still waits for an answer: it has not died, nor got a signal
 */
bool filter_waits(int listener, const struct filter_report *report);

/** Lets a call that asks for executable memory happen. @return whether the kernel did */
bool filter_go_on(int listener, const struct filter_report *report);

/** Reads one report. @return false when there is none after all: whoever made it is dead */
bool filter_read(int listener, struct filter_report *report);

#endif
