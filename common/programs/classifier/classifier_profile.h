/**
 * @file classifier_profile.h
 * @brief The program that profiles a classifier, for any engine.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_PROFILE_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_PROFILE_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/programs/classifier/classifier_stages.h"

/**
 * @brief main() of the program: prints operators by time, and writes into --output-dir
 *
 * trace.json             each operator and each kernel of the traced batches, see trace.h
 * kernel_statistics.json per operator, and per kernel: calls, total_ms, mean_ms, share
 * benchmark_stats.json   of batches run without tracing: samples_per_second, mean_batch_ms,
 *                        percentiles
 *
 * Times are those of the stage's clock: wall time on the CPU, the device's time on a GPU, modelled
 * time on simt. Every file names the clock.
 *
 * @return exit status: 0; 1 after one line on stderr; 128 + a signal, after the times so far, with
 *         no file written
 */
int classifier_profile_main(int argc, char **argv, const struct classifier_stages *stages);

/**
 * @brief The percentile by nearest rank: the smallest value that at least @p percent percent of the
 *        values do not exceed.
 * @param values  (count), ascending; at least 1
 * @param percent above 0, at most 100
 */
double percentile(const double *values, size_t count, double percent);

#endif
