/**
 * @file supervisor.h
 * @brief The process between the caller and the program: starts, watches, kills, reaps.
 */
#ifndef WARPBOOK_GRADER_SANDBOX_SUPERVISOR_H_
#define WARPBOOK_GRADER_SANDBOX_SUPERVISOR_H_

#include <limits.h>
#include <stdatomic.h>

#include "grader/sandbox/code_files.h"
#include "grader/sandbox/sandbox.h"

/** What the supervisor and the caller share. */
struct supervisor_shared {
    struct sandbox_result result;
    atomic_int done;          /**< result is complete */
    atomic_int pause, paused; /**< whether the program is to stand still, and whether it does */
    char folder[PATH_MAX]; /**< the program's, made and removed by the supervisor; "": none yet */
};

struct supervisor_plan {
    const struct sandbox_command *command;
    const char *program; /**< absolute path */
    const struct code_files *code;
    int lifeline;   /**< a pipe's read end: when the other end closes, the program is killed */
    int done;       /**< a pipe's write end: closes with the supervisor */
    unsigned holds; /**< enum sandbox_holds, as far as the caller knows */
    struct supervisor_shared *shared;
};

/** Runs the program to its end. For a process that was forked for it. */
void supervisor_run(const struct supervisor_plan *plan) __attribute__((noreturn));

#endif
