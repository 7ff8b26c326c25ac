/**
 * @file results.h
 * @brief Results of the course's 16-bit kernels, printed on a GPU and compared on simt.
 *
 * A result is a line: its name, type and number of elements, a checksum of all bits, the largest
 * magnitude, and some of its elements. Inputs come from seeds, so the same program prints the same
 * lines on two machines whose arithmetic is the same.
 */
#ifndef WARPBOOK_SOLUTIONS_HOPPER_RESULTS_RESULTS_H_
#define WARPBOOK_SOLUTIONS_HOPPER_RESULTS_RESULTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/nn/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RESULTS_NAME = 200, RESULTS_SAMPLES = 16, RESULTS_MOST = 1024 };

/** A line. */
struct result {
    char name[RESULTS_NAME];
    enum nn_dtype dtype;
    size_t count;
    unsigned long long checksum;    /**< FNV-1a of the elements' bytes */
    float largest;                  /**< magnitude */
    float samples[RESULTS_SAMPLES]; /**< elements evenly spaced from the first to the last */
    bool met;                       /**< recorded, and has been compared */
};

/** What was recorded, and what came of the comparison. */
struct results {
    const char *only;        /**< beginning of the names that are wanted */
    struct result *recorded; /**< (recorded_count); NULL: results are printed */
    size_t recorded_count;
    size_t equal, near, wrong; /**< so far */
    double furthest;           /**< of the near ones, in roundings of the largest magnitude */
};

/** Reads recorded lines. @return STATUS_BAD_FORMAT with the line, or of the file */
MUST_CHECK enum status results_read(struct results *results, const char *path, struct error *error);

/** @return whether results of that name are wanted. */
bool results_want(const struct results *results, const char *name);

/** @return how many recorded results that are wanted have not come; prints the name of each */
size_t results_left(const struct results *results);

/**
 * @brief Prints a result, or compares it: prints a line if its bits are not those recorded.
 * @param values host, (count) of dtype
 * @param bound  how far an element may be from the recorded one where bits differ, in roundings of
 *               dtype of the largest magnitude; 0: bits must be equal
 */
void results_take(struct results *results, const char *name, enum nn_dtype dtype,
                  const void *values, size_t count, double bound);

/** The same of device memory, after all work is done. */
MUST_CHECK enum status results_take_device(struct results *results, const char *name,
                                           enum nn_dtype dtype, const void *d_values, size_t count,
                                           double bound, struct error *error);

/** @name Each runs a lab's kernels. Stops at the first call that fails.
 * @{ */
MUST_CHECK enum status results_of_products(struct results *results, struct error *error);
MUST_CHECK enum status results_of_attention(struct results *results, struct error *error);
MUST_CHECK enum status results_of_encoder(struct results *results, struct error *error);
MUST_CHECK enum status results_of_decoder(struct results *results, struct error *error);
MUST_CHECK enum status results_of_training(struct results *results, struct error *error);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
