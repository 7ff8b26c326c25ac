/**
 * @file summary.h
 * @brief What a failed run of a graded test comes to: the last case that passed, the first that
 *        failed, the first message.
 */
#ifndef WARPBOOK_GRADER_HARNESS_SUMMARY_H_
#define WARPBOOK_GRADER_HARNESS_SUMMARY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief A case begins; grader_watch() says so.
 * @param name         "shape M=1 N=2 K=3"; copied; "" begins none
 * @param failed_so_far whether the running test has failed
 */
void grade_summary_case(const char *name, bool failed_so_far);

/** A test has ended. @param message of its first failure; NULL: it passed */
void grade_summary_test(const char *test, const char *message);

/** A fault that simt wrote to standard error, as it stands in a worker's output. */
struct grade_fault {
    const char *text; /**< its lines; not terminated */
    size_t size;
    bool again;   /**< of the same kind, at the same place as the first one of this program */
    bool endless; /**< a loop that does not end */
};

/**
 * @brief Finds the first fault of simt in what a worker wrote, and remembers the program's first
 * one.
 * @return false when there is none
 */
bool grade_summary_fault(const char *output, size_t size, struct grade_fault *fault);

/** Prints what the run came to; nothing when no test failed. */
void grade_summary_print(FILE *out);

#ifdef __cplusplus
}
#endif

#endif
