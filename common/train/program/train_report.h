/**
 * @file train_report.h
 * @brief The output of a run: progress for people, and curves as JSON lines.
 *
 * On a terminal it rewrites one line on standard error with loss, tokens a second and time left;
 * otherwise it prints a line on standard output every few steps. The file has one object a line:
 * {"kind": "train", "step", "epoch", "loss", "lr", "norm", "tokens_per_s", "seconds"} or
 * {"kind": "eval", "step", "epoch", "loss", "accuracy" or "bits_per_byte", "best"}. On simt rates
 * are null, because the clock means nothing there.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_REPORT_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_REPORT_H_

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/folder.h"
#include "common/base/status.h"
#include "common/train/program/train_evaluate.h"

struct train_report {
    char path[FOLDER_PATH_BYTES]; /**< "": no file */
    int file;                     /**< descriptor; -1: not open */
    bool terminal, modelled;
    uint64_t total;      /**< steps of the run */
    uint64_t first_step; /**< steps done before the program started */
    struct timespec start, last;
    uint64_t tokens; /**< since `last` */
};

/** Figures of the steps since the last line. */
struct train_news {
    uint64_t step;
    double epoch; /**< passes through the texts until then */
    double loss, norm, rate;
};

/**
 * @brief Empties the file; if the run is resumed, removes only the lines after its step. What is no
 *        regular file, for example /dev/fd/3 or a pipe, is only appended to.
 * @param report path, file (by file_open_append()), modelled, total and first_step are set
 */
MUST_CHECK enum status train_report_start(struct train_report *report, struct error *error);

/** Closes the file, if it is open. */
void train_report_close(struct train_report *report);

/** Counts tokens, and shows on a terminal how far the run is. @param loss of the last line */
void train_report_progress(struct train_report *report, uint64_t step, double loss,
                           uint64_t tokens);

/** Clears the line of train_report_progress(). */
void train_report_clear(const struct train_report *report);

/** Reports some steps, and restarts the count of tokens. */
MUST_CHECK enum status train_report_steps(struct train_report *report,
                                          const struct train_news *news, struct error *error);

/** Reports an evaluation. */
MUST_CHECK enum status train_report_result(struct train_report *report,
                                           const struct train_result *result, uint64_t step,
                                           double epoch, bool best, struct error *error);

/** Restarts the clock after an evaluation or a checkpoint, so that their time is not counted. */
void train_report_restart(struct train_report *report);

#endif
