/**
 * @file task.h
 * @brief One submission to grade: its folder below the output folder, and what is in it.
 *
 *     OUTPUT/class.json      labs, limits: struct class_settings
 *     OUTPUT/kit/            see kit.bzl
 *     OUTPUT/tasks/ID/       task.json, files/labs/LAB/FILE, result.json, lock, said, work/
 */
#ifndef WARPBOOK_GRADER_CLASS_TASK_H_
#define WARPBOOK_GRADER_CLASS_TASK_H_

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "grader/report/labs.h"

enum { TASK_PATH = 4096, TASK_NAME = 256, MOST_TASKS = 10000, RUN_NAME = 17 };

/** Exit statuses of grade_submission; any other, and a signal, is as TASK_RETRY. */
enum task_exit { TASK_DONE = 0, TASK_BROKEN = 64, TASK_RETRY = 75, TASK_BUSY = 76 };

/** What holds for all tasks of an output folder. */
struct class_settings {
    char run[RUN_NAME]; /**< random, hexadecimal: tells one output folder from another */
    bool chosen[LAB_COUNT];
    bool isolated;  /**< --require-isolation */
    double limit_s; /**< of one graded program */
};

struct task {
    unsigned id;          /**< from 1 */
    char name[TASK_NAME]; /**< of the submission: UTF-8 without control characters */
    char refused[400];    /**< why nothing of it is graded, or "" */
    bool has[LAB_COUNT];  /**< labs whose file was handed in */
};

/** Writes OUTPUT/tasks/ID/NAME; STATUS_TOO_LONG when it does not fit. */
MUST_CHECK enum status task_path(char path[TASK_PATH], const char *output, unsigned id,
                                 const char *name, struct error *error);

/** Writes where a lab's file of a task lies, below its folder: files/labs/LAB/FILE. */
void task_file(char *name, size_t size, const struct lab *lab);

MUST_CHECK enum status settings_save(const struct class_settings *settings, const char *output,
                                     struct error *error);
MUST_CHECK enum status settings_load(struct class_settings *settings, const char *output,
                                     struct error *error);

/** Saves task.json, which makes the folder a task. */
MUST_CHECK enum status task_save(const struct task *task, const char *output, struct error *error);
MUST_CHECK enum status task_load(struct task *task, const char *output, unsigned id,
                                 struct error *error);

#endif
