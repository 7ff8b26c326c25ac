/**
 * @file fuzz.h
 * @brief The two functions of a fuzz target: its entry point, and the seeds that it makes.
 *
 * Declare it in a BUILD file with fuzz_target() of //common/bazel:fuzz.bzl. The
 * ordinary tests replay it under ASan and UBSan; libFuzzer runs it with
 *
 *     mkdir -p corpus
 *     WARPBOOK_SEEDS=corpus bazel run --config=fuzz //common/texts:NAME_fuzz -- \
 *         -max_total_time=60 corpus
 */
#ifndef WARPBOOK_COMMON_TESTING_FUZZ_H_
#define WARPBOOK_COMMON_TESTING_FUZZ_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Feeds @p size bytes to the code under test. @return 0 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/**
 * @brief Makes seed number @p index: a small valid input.
 * @param seed receives memory that the caller frees
 * @return false if there is no such seed
 */
bool fuzz_seed(size_t index, unsigned char **seed, size_t *size);

#endif
