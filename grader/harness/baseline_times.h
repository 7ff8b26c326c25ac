/**
 * @file baseline_times.h
 * @brief Modelled times of a lab's baseline, which the build records.
 *
 * On simt a baseline's time follows from its code, the emulator and the shapes that are timed: it
 * is the same in every run, whatever the inputs. baseline_times() in grader/baseline_times.bzl has
 * it modelled once, and again when one of the files changes that it follows from. A graded test
 * finds the times in a file beside its program and runs its own side alone. Without that file, for
 * another GPU than the one it was recorded for, and where time is measured, the baseline runs in
 * the test.
 *
 * Such a file has a line for each time: measure, clock, milliseconds, with tabs between them.
 */
#ifndef WARPBOOK_GRADER_HARNESS_BASELINE_TIMES_H_
#define WARPBOOK_GRADER_HARNESS_BASELINE_TIMES_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/harness/speedup.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Looks for the baseline's time of a measure.
 * @param path of the file; it need not exist
 * @param ms   receives milliseconds
 * @return whether it is recorded for this clock
 */
bool baseline_times_find(const char *path, const char *measure, const char *clock, double *ms);

/** Prints the name that the rest of a model has in such a file. @return @p text */
const char *baseline_times_of_rest(const char *measure, char *text, size_t size);

/** @return whether this run is there to record times: only the baseline runs, nothing is graded. */
bool baseline_times_recording(void);

/** Appends the baseline's time, and the rest's where it is known, to $WARPBOOK_BASELINE_TIMES; the
 * running test fails if it cannot. */
void baseline_times_record(const struct speedup *speedup);

#ifdef __cplusplus
}
#endif

#endif
