/**
 * @file done.h
 * @brief EXPECT_OK() and ASSERT_OK() of what goes to a worker or its GPU: a failure says what
 *        happened there, and not only which call it was.
 */
#ifndef WARPBOOK_GRADER_HARNESS_DONE_H_
#define WARPBOOK_GRADER_HARNESS_DONE_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "common/testing/testing.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool grader_done(const char *file, int line, enum status status,
                               const struct error *error) {
    if (status != STATUS_OK) {
        test_fail(file, line, "%s", error_text(error, status));
    }
    return status == STATUS_OK;
}

/** Fails the running test with the line in *error unless @p call returns STATUS_OK. */
#define EXPECT_DONE(call, error) ((void)grader_done(__FILE__, __LINE__, (call), (error)))

/** The same, and returns. */
#define ASSERT_DONE(call, error)                                 \
    do {                                                         \
        if (!grader_done(__FILE__, __LINE__, (call), (error))) { \
            return;                                              \
        }                                                        \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
