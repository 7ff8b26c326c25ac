/**
 * @file train_report.h
 * @brief What a run says: lines for people, and curves as JSON lines.
 *
 * On a terminal one line on standard error is rewritten, with loss, tokens a second and time left;
 * elsewhere a line on standard output comes every few steps. The file has an object a line:
 * {"kind": "train", "step", "epoch", "loss", "lr", "norm", "tokens_per_s", "seconds"} and
 * {"kind": "eval", "step", "epoch", "loss", "accuracy" or "bits_per_byte", "best"}; rates on simt,
 * which means nothing by the clock, are null.
 */
#ifndef WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_REPORT_H_
#define WARPBOOK_COMMON_TRAIN_PROGRAM_TRAIN_REPORT_H_

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/folder.h"
#include "common/base/status.h"
#include "common/train/program/train_evaluate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct train_report {
    char path[FOLDER_PATH_BYTES];
    bool terminal, modelled;
    uint64_t total;      /**< steps of the run */
    uint64_t first_step; /**< steps done before the program started */
    struct timespec start, last;
    uint64_t tokens; /**< since `last` */
};

/** What is known about some steps. */
struct train_news {
    uint64_t step;
    double epoch; /**< passes through the texts until then */
    double loss, norm, rate;
};

/**
 * @brief Begins the file anew, or, for a run that goes on, drops what came behind its step.
 * @param report path, modelled, total and first_step are set
 */
MUST_CHECK enum status train_report_open(struct train_report *report, struct error *error);

/** Counts tokens, and shows on a terminal how far the run is. @param loss of the last line */
void train_report_progress(struct train_report *report, uint64_t step, double loss,
                           uint64_t tokens);

/** Clears what train_report_progress() shows. */
void train_report_clear(const struct train_report *report);

/** Says how some steps went, and begins to count tokens anew. */
MUST_CHECK enum status train_report_steps(struct train_report *report,
                                          const struct train_news *news, struct error *error);

/** Says how an evaluation went. */
MUST_CHECK enum status train_report_result(struct train_report *report,
                                           const struct train_result *result, uint64_t step,
                                           double epoch, bool best, struct error *error);

/** Time that has passed is not of steps: an evaluation's, a checkpoint's. */
void train_report_restart(struct train_report *report);

#ifdef __cplusplus
}
#endif

#endif
