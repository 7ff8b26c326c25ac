/**
 * @file fixture.h
 * @brief The fixture that all cases of one parity test on the GPU share.
 */
#ifndef WARPBOOK_GRADER_HARNESS_FIXTURE_H_
#define WARPBOOK_GRADER_HARNESS_FIXTURE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fixture {
    struct rng rng; /**< starts at the run's seed */
    device_stream stream;
    void *workspace; /**< device, or NULL when none was asked for */
    bool modelled;   /**< on simt */
    unsigned cases;  /**< calls of fixture_has_guards() so far */
};

/**
 * @brief Opens the GPU and creates a stream and a workspace; fails the running test if it cannot.
 *        Call fixture_close() in either case.
 * @param workspace_bytes 0 for none
 */
bool fixture_open(struct fixture *fixture, size_t workspace_bytes);

/**
 * @brief Whether the next case puts canaries around its buffers. On simt every other case has none,
 *        because simt itself names the line that goes beyond an allocation.
 */
bool fixture_has_guards(struct fixture *fixture);

/** Frees, and fails the running test when a library did the submission's work. */
void fixture_close(struct fixture *fixture);

/**
 * Defines a test whose body gets an open `struct fixture *fixture`; it does not run when there is
 * none. Afterwards the fixture is closed.
 */
#define FIXTURE_TEST(suite, name, workspace_bytes)       \
    static void body_##suite##_##name(struct fixture *); \
    C_TEST(suite, name) {                                \
        struct fixture opened;                           \
        if (fixture_open(&opened, workspace_bytes)) {    \
            body_##suite##_##name(&opened);              \
        }                                                \
        fixture_close(&opened);                          \
    }                                                    \
    static void body_##suite##_##name(struct fixture *fixture)

#ifdef __cplusplus
}
#endif

#endif
