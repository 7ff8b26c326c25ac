/**
 * @file classifier_profile_internal.h
 * @brief Structs and functions shared by the files of the profile program.
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

/** One launch, or an operator whose launches could not be recorded. */
struct kernel_span {
    const char *name;         /**< one of log->names */
    uint64_t call;            /**< number of its operator's call, as in the trace */
    double ms[KERNEL_PASSES]; /**< (log->passes) */
};

/** The launches of the traced batches. */
struct kernel_log {
    char reason[256]; /**< why there is no log; "": there is one */
    int passes;
    struct kernel_span *spans; /**< (count), in order */
    size_t count, capacity;
    char **names; /**< (names_count), each once */
    size_t names_count;
    uint64_t whole; /**< operator calls of the first pass that were timed as a whole */

    /** @name State while the log is written
     * @{ */
    const struct classifier_kernels *kernels;
    void *times;
    int pass;
    size_t at;      /**< the next span */
    uint64_t call;  /**< the next operator */
    bool undivided; /**< the current operator is timed as a whole */
    char entry[48]; /**< name of the current operator */
    enum status status;
    struct error error;
    /** @} */
};

/** All launches of one name. */
struct kernel_total {
    const char *name;
    uint64_t calls;
    double ms;
};

/**
 * @brief Makes a log for the session's engine.
 * @param log its reason is set if this engine's launches cannot be recorded
 * @return STATUS_OK, also with a reason; the failure of the device
 */
MUST_CHECK enum status kernel_log_open(struct kernel_log *log, const struct classifier_session *s,
                                       const struct classifier_stages *stages, struct error *error);

/** A position in the log at which a batch begins. */
struct kernel_log_position {
    size_t at;
    uint64_t call;
};

struct kernel_log_position kernel_log_position(const struct kernel_log *log);

/** Goes back to the beginning of a batch, for its run number @p pass. */
void kernel_log_rewind(struct kernel_log *log, struct kernel_log_position begin, int pass);

/** @return a recorder that writes the log. */
struct profile_recorder kernel_log_recorder(struct kernel_log *log);

/** @return the median of the span's times. */
double kernel_span_ms(const struct kernel_log *log, const struct kernel_span *span);

/** Compares two doubles, for qsort(). */
int compare_doubles(const void *a, const void *b);

/**
 * @brief Sums up the launches of each name, longest first.
 * @param totals receives (log->names_count), which the caller frees; NULL without memory
 * @return milliseconds of all launches
 */
double kernel_log_totals(const struct kernel_log *log, struct kernel_total **totals);

/** Adds the spans to the trace's track of kernels. */
void kernel_log_trace(const struct kernel_log *log, struct trace *trace);

/** Prints calls, ms and share of each name, longest first. */
void kernel_log_print(const struct kernel_log *log, FILE *stream);

void kernel_log_close(struct kernel_log *log);

/** All measurements of the program. */
struct profile_run {
    struct classifier_session session;
    struct classifier_text *texts; /**< (texts_count) */
    size_t texts_count;
    bool padded;
    double *seconds;         /**< (batches), of each batch run without tracing */
    size_t batches;          /**< run without tracing */
    size_t samples;          /**< texts in them */
    size_t tokens;           /**< tokens in them, without padding */
    size_t traced;           /**< batches of profile and trace */
    struct profile profile;  /**< of the traced batches */
    struct profile recorded; /**< of the batches in the kernel log; only its recorder is used */
    struct trace trace;
    struct kernel_log kernels;
};

/** Makes the folder and missing folders above it; checks that the program can write there. */
MUST_CHECK enum status profile_folder(const char *folder, struct error *error);

/** Writes the three files; sorts run->seconds. */
MUST_CHECK enum status profile_write(struct profile_run *run, const char *folder,
                                     struct error *error);

#endif
