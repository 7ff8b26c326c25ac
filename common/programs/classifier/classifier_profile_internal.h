/**
 * @file classifier_profile_internal.h
 * @brief What the two halves of the profile program share: measuring and writing.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_PROFILE_INTERNAL_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_CLASSIFIER_PROFILE_INTERNAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/models/profile.h"
#include "common/programs/classifier/classifier_session.h"
#include "common/programs/classifier/trace.h"

/** Runs of a batch kernel by kernel; each launch's time is their median. */
enum { KERNEL_PASSES = 3 };

/** One launch, or an operator that could not be taken apart. */
struct kernel_span {
    const char *name;         /**< one of log->names */
    uint64_t call;            /**< of the operator it belongs to, as the trace counts them */
    double ms[KERNEL_PASSES]; /**< (log->passes) */
};

/** What happened kernel by kernel. */
struct kernel_log {
    char reason[256]; /**< why there is nothing; "": there is */
    int passes;
    struct kernel_span *spans; /**< (count), in order */
    size_t count, capacity;
    char **names; /**< (names_count), each once */
    size_t names_count;
    uint64_t whole; /**< operators not taken apart, of the first pass */

    /** @name While it is written
     * @{ */
    const struct classifier_kernels *kernels;
    void *times;
    int pass;
    size_t at;      /**< the next span */
    uint64_t call;  /**< the next operator */
    bool undivided; /**< the operator at hand is timed as a whole */
    char entry[48]; /**< its name */
    enum status status;
    struct error error;
    /** @} */
};

/** One name's launches. */
struct kernel_total {
    const char *name;
    uint64_t calls;
    double ms;
};

/**
 * @brief Makes a log for the session's engine; log->reason says where there is nothing to log.
 * @return STATUS_OK, also where there is a reason; what the device says
 */
MUST_CHECK enum status kernel_log_open(struct kernel_log *log, const struct classifier_session *s,
                                       const struct classifier_stages *stages, struct error *error);

/** Where the log's writing stands, to come back to. */
struct kernel_place {
    size_t at;
    uint64_t call;
};

struct kernel_place kernel_log_place(const struct kernel_log *log);

/** Goes back to where the batch began, for its run number @p pass. */
void kernel_log_rewind(struct kernel_log *log, struct kernel_place place, int pass);

/** @return what writes the log. */
struct profile_recorder kernel_log_recorder(struct kernel_log *log);

/** @return the median of the span's times. */
double kernel_span_ms(const struct kernel_log *log, const struct kernel_span *span);

/**
 * @brief Sums up by name, by falling time.
 * @param totals receives (log->names_count), which the caller frees; NULL without memory
 * @return milliseconds of all
 */
double kernel_log_totals(const struct kernel_log *log, struct kernel_total **totals);

/** Lays the spans on the trace's track of kernels. */
void kernel_log_trace(const struct kernel_log *log, struct trace *trace);

/** Prints names by falling time: calls, ms, share. */
void kernel_log_print(const struct kernel_log *log, FILE *stream);

void kernel_log_close(struct kernel_log *log);

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
    struct kernel_log kernels;
};

/** Makes the folder, and those above it, where they are missing; checks that it can be written. */
MUST_CHECK enum status profile_folder(const char *folder, struct error *error);

/** Writes the three files; sorts run->seconds. */
MUST_CHECK enum status profile_write(struct profile_run *run, const char *folder,
                                     struct error *error);

#endif
