/**
 * @file slurm_command.h
 * @brief Runs sbatch, squeue and scancel without waiting for them: slurmctld may be away.
 */
#ifndef WARPBOOK_GRADER_CLASS_SLURM_SLURM_COMMAND_H_
#define WARPBOOK_GRADER_CLASS_SLURM_SLURM_COMMAND_H_

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/status.h"

/** A command under way; .process is 0 when there is none. */
struct slurm_command {
    pid_t process;
    int out, said; /**< standard output and error, in memory */
    double begun;
    const char *name;
};

/** How a command ended. */
struct slurm_reply {
    char *text;     /**< what it printed; freed by slurm_reply_free() */
    char line[300]; /**< why it failed, or "" */
};

/** @return seconds on a clock that only goes forwards */
double slurm_clock(void);

/**
 * @brief Starts a command by its name in $PATH, in a process group of its own, so that Ctrl-C is
 * not its; it is killed when this process ends.
 * @param arguments its name first, NULL last
 */
MUST_CHECK enum status slurm_command_start(struct slurm_command *command, char *const *arguments,
                                           struct error *error);

/**
 * @brief Looks whether it has ended; kills it once it has taken longer than @p limit_s.
 * @param reply set when it has ended
 * @return whether it has ended
 */
bool slurm_command_ended(struct slurm_command *command, double limit_s, struct slurm_reply *reply);

/** Waits for its end. @return whether it succeeded; reply->line says why not. */
bool slurm_command_wait(struct slurm_command *command, double limit_s, struct slurm_reply *reply);

/** Starts one and waits for its end. @return as slurm_command_wait() */
bool slurm_command_run(char *const *arguments, double limit_s, struct slurm_reply *reply);

/** Kills it if it is under way. */
void slurm_command_stop(struct slurm_command *command);

void slurm_reply_free(struct slurm_reply *reply);

#endif
