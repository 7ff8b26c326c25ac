/**
 * @file result.h
 * @brief What became of one submission: result.json of its task.
 */
#ifndef WARPBOOK_GRADER_CLASS_RESULT_H_
#define WARPBOOK_GRADER_CLASS_RESULT_H_

#include "grader/class/task.h"
#include "grader/report/run.h"

enum { SAID_BYTES = 4000 };

/** How one lab's worker was made. */
struct built {
    bool tried, good;
    double compile_s, link_s;
    char said[SAID_BYTES]; /**< what the compiler or the linker said */
};

struct result {
    char host[65];
    double seconds;  /**< from the program's begin to its end */
    double graded_s; /**< of it, in graded programs */
    struct built built[LAB_COUNT];
    struct run run; /**< run_free() it */
};

/**
 * @brief Writes OUTPUT/tasks/ID/result.json: whole or not at all, and never over another one.
 * @return STATUS_OK, also where another one is there
 */
MUST_CHECK enum status result_save(const struct result *result, const char *output, unsigned id,
                                   struct error *error);

/** @return whether the task has a result. */
bool result_exists(const char *output, unsigned id);

/** Reads it. @param result result_free() it, also after a failure */
MUST_CHECK enum status result_load(struct result *result, const char *output, unsigned id,
                                   struct error *error);

void result_free(struct result *result);

#endif
