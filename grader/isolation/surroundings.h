/**
 * @file surroundings.h
 * @brief What a worker is given: its file, its environment, whether it has a GPU.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_SURROUNDINGS_H_
#define WARPBOOK_GRADER_ISOLATION_SURROUNDINGS_H_

#include <stdbool.h>

#include "common/base/status.h"
#include "grader/isolation/remote.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SURROUNDINGS_VARIABLES = 32 };

struct surroundings {
    char worker[4096];                                   /**< path of its file */
    const char *environment[SURROUNDINGS_VARIABLES + 1]; /**< of ours, what it needs, then NULL */
    const char *device_environment[SURROUNDINGS_VARIABLES + 1]; /**< simt's settings, which are the
                                                                     device's, then NULL */
    bool gpu;                                                   /**< a real one */
};

/**
 * @brief Finds them for one side's worker; they point into this process's environment.
 * @return STATUS_OK; STATUS_NOT_FOUND when this test has no such worker; STATUS_TOO_LONG
 */
MUST_CHECK enum status surroundings_find(struct surroundings *s, enum remote_side which,
                                         struct error *error);

#ifdef __cplusplus
}
#endif

#endif
