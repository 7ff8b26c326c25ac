/* Compiled into each graded test: BUILD says whom it grades, and what its workers are called. */
#include <stddef.h>

#include "grader/harness/speedup.h"
#include "grader/isolation/remote.h"

const struct graded_subject graded_subject = {GRADER_SUBJECT, GRADER_MARGIN};

const struct remote_program remote_program = {
    {GRADER_WORKER, GRADER_BASELINE_WORKER, GRADER_STARTER_WORKER},
    GRADER_DEVICE ? REMOTE_GPU : REMOTE_NO_GPU,
    GRADER_BASELINE_TIMES};
