/**
 * @file run_grader.h
 * @brief Runs one graded program to its end, or to its limit: the only place that starts one, and
 *        what //grader:watch runs beside them.
 */
#ifndef WARPBOOK_GRADER_REPORT_RUN_GRADER_H_
#define WARPBOOK_GRADER_REPORT_RUN_GRADER_H_

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct grader_command {
    const char *program;
    char *const *arguments;       /**< its name first, NULL last; NULL: there are none */
    const char *grades;           /**< file for its records; $WARPBOOK_GRADES of the program */
    const char *log;              /**< file for its output; replaced */
    const char *commit;           /**< $WARPBOOK_COMMIT of the program, or NULL */
    double limit;                 /**< seconds, then its whole process group is killed */
    void (*tick)(void *argument); /**< called some times a second while it runs, or NULL */
    void *argument;
    const char *folder; /**< where it starts; NULL: here */
    /** It is no graded program but one of ours, by the name in $PATH: `grades` is NULL, and its
     * environment and its limits are those of this process. */
    bool tool;
};

enum grader_how { GRADER_EXITED, GRADER_SIGNALLED, GRADER_TIMED_OUT, GRADER_INTERRUPTED };

struct grader_end {
    enum grader_how how;
    int code; /**< exit status or signal */
    double seconds;
};

/**
 * @brief Starts it as run_grader() does, and does not wait for it. The caller waits, and kills the
 *        process group at the end; `limit` and `tick` are not looked at.
 * @param child receives the process, which is also the group
 */
MUST_CHECK enum status grader_start(const struct grader_command *command, pid_t *child,
                                    struct error *error);

/**
 * @brief Runs it in a process group of its own, without input, with the environment of this
 *        process but for GoogleTest's variables, which could leave tests out.
 *
 * Processes of the group that outlive the program are killed. Ctrl-C ends the program and is
 * noted: grader_interrupted(). The program is killed when the calling thread ends, however it does.
 *
 * @return STATUS_OK however it ended; STATUS_NOT_FOUND, STATUS_IO when it cannot be started
 */
MUST_CHECK enum status run_grader(const struct grader_command *command, struct grader_end *end,
                                  struct error *error);

/** Has Ctrl-C and a request to end noted from now on instead of ending the process. */
void grader_catch_interrupts(void);

/** @return not 0 once there was one. */
int grader_interrupted(void);

#ifdef __cplusplus
}
#endif

#endif
