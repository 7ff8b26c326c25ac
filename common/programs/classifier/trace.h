/**
 * @file trace.h
 * @brief Writes a trace for chrome://tracing and ui.perfetto.dev.
 *
 * Trace Event Format, JSON object form: complete events ("ph": "X") with ts
 * and dur in microseconds, on one track for batches, one for operators and one
 * for kernels. Kernels are timed in another run of the batch: the span of a
 * kernel has the kernel's time, and begins where its operator begins or where
 * the kernel before it ends.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_TRACE_H_
#define WARPBOOK_COMMON_PROGRAMS_CLASSIFIER_TRACE_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/models/profile.h"

/** Most spans kept; further ones are only counted. */
enum { TRACE_MOST_SPANS = 100000 };

enum trace_track { TRACE_BATCHES = 1, TRACE_OPERATORS = 2, TRACE_KERNELS = 3, TRACE_TRACKS };

struct trace_span {
    const char *name; /**< outlives the trace */
    enum trace_track track;
    uint64_t number;   /**< of its track, from 0 */
    double start, end; /**< seconds */
};

/** Zero-initialise, free with trace_free(). */
struct trace {
    struct trace_span *spans;
    size_t count, capacity;
    uint64_t numbers[TRACE_TRACKS]; /**< next number of each track */
    uint64_t lost;                  /**< spans not kept */
};

/** Adds a span, or counts it as lost. */
void trace_add(struct trace *trace, const char *name, enum trace_track track, double start,
               double end);

/** Adds an operator; is a profile_observer. @param trace a struct trace */
void trace_observe(void *trace, enum profile_operator op, double start, double end);

/** Where the times of a trace come from. */
struct trace_origin {
    const char *process; /**< "stage 04_sgemm on NVIDIA H200" */
    const char *clock;   /**< "measured: ..." or "modelled: ..." */
};

/**
 * @brief Writes the trace; the first span begins at 0.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY, or the failure of file_write()
 */
MUST_CHECK enum status trace_write(const struct trace *trace, const struct trace_origin *origin,
                                   const char *path, struct error *error);

void trace_free(struct trace *trace);

#endif
