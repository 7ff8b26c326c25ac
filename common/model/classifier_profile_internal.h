/**
 * @file classifier_profile_internal.h
 * @brief What the two halves of the profile program share: measuring and writing.
 */
#ifndef WARPBOOK_COMMON_MODEL_CLASSIFIER_PROFILE_INTERNAL_H_
#define WARPBOOK_COMMON_MODEL_CLASSIFIER_PROFILE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/model/classifier_session.h"
#include "common/model/profile.h"
#include "common/model/trace.h"

/** All that was found out. */
struct profile_run {
    struct classifier_session session;
    struct classifier_text *texts; /**< (texts_count) */
    size_t texts_count;
    bool padded;
    double *seconds; /**< (batches), of each batch run without tracing */
    size_t batches;  /**< run without tracing */
    size_t samples;  /**< texts in them */
    size_t tokens;   /**< tokens in them, without padding */
    size_t traced;   /**< batches of profile and trace */
    struct profile profile;
    struct trace trace;
};

/** Makes the folder, and those above it, where they are missing; checks that it can be written. */
MUST_CHECK enum status profile_folder(const char *folder, struct error *error);

/** Writes the three files; sorts run->seconds. */
MUST_CHECK enum status profile_write(struct profile_run *run, const char *folder,
                                     struct error *error);

#endif
