/**
 * @file steps.h
 * @brief What is run after a save: a build, parity, the bench, which takes a second, and speedup.
 */
#ifndef WARPBOOK_GRADER_WATCH_STEPS_H_
#define WARPBOOK_GRADER_WATCH_STEPS_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/report/labs.h"

/** In the order in which they run. */
enum watch_step { WATCH_BUILD, WATCH_PARITY, WATCH_LINK, WATCH_BENCH, WATCH_SPEEDUP, WATCH_STEPS };

/** @return "build", "parity", "bench" twice, as its build counts as part of it, "speedup". */
const char *watch_step_name(enum watch_step step);

/** What all commands have in common. */
struct watch_setup {
    const char *workspace; /**< folder with WORKSPACE */
    const char *folder;    /**< for logs and records; it exists */
    const char *subject;   /**< "labs" or "solutions" */
    const char *bazel;     /**< the command, with startup options: "bazel" */
    const char *config;    /**< --config of each build, or NULL */
};

enum { WATCH_PATH = 1200, WATCH_ARGUMENTS = 24 };

/** One command line; points into itself. */
struct watch_command {
    char *arguments[WATCH_ARGUMENTS]; /**< NULL last */
    char text[2 * WATCH_PATH];        /**< of the arguments */
    char log[WATCH_PATH];             /**< file for its output */
    char grades[WATCH_PATH];          /**< file for its records, or "": it is no graded program */
};

/** @return whether the lab's bench has a step: a ladder of kernels that is done in seconds. */
bool watch_has_bench(const struct lab *lab);

/**
 * @brief Makes the command line of a step.
 * @return false when a path or the command is too long
 */
bool watch_command(struct watch_command *command, const struct watch_setup *setup,
                   const struct lab *lab, enum watch_step step);

#endif
