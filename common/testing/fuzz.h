/**
 * @file fuzz.h
 * @brief The two functions of a fuzz target, its entry point and the seeds that it makes, and what
 *        targets share.
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
#include <stdlib.h>

#include "common/base/status.h"

/** Feeds @p size bytes to the code under test. @return 0 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/**
 * @brief Makes seed number @p index: a small valid input.
 * @param seed receives memory that the caller frees
 * @return false if there is no such seed
 */
bool fuzz_seed(size_t index, unsigned char **seed, size_t *size);

/** Ends the program, as a finding, unless @p condition holds. */
static inline void fuzz_require(bool condition) {
    if (!condition) {
        abort();
    }
}

/** @return whether @p status is STATUS_OK; a refusal must have set @p error. */
static inline bool fuzz_accepted(enum status status, const struct error *error) {
    fuzz_require(status == STATUS_OK || (error->message[0] != '\0' && error->status == status));
    return status == STATUS_OK;
}

/** What is left of an input, or a part of it. */
struct fuzz_input {
    const uint8_t *data;
    size_t size;
};

/**
 * @brief Takes the next part of an input that has several: its length, a little-endian u32, and
 *        that many bytes, or as many as there are.
 * @return false if not even a length is left
 */
bool fuzz_take(struct fuzz_input *input, struct fuzz_input *part);

/** Appends a part to a seed, as fuzz_take() takes it. @param seed NULL at first */
void fuzz_append(unsigned char **seed, size_t *size, const void *data, size_t length);

#endif
