/* The kernel log: the launches of each operator, each timed between two events. */
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/programs/classifier/classifier_profile_internal.h"

/* ---- Writing ---- */

enum status kernel_log_open(struct kernel_log *log, const struct classifier_session *s,
                            const struct classifier_stages *stages, struct error *error) {
    struct error cause = {0};
    bool modelled = s->stage->on_device && s->device.modelled;
    *log = (struct kernel_log){.kernels = stages->kernels, .passes = modelled ? 1 : KERNEL_PASSES};
    if (!s->stage->on_device || stages->kernels == NULL) {
        snprintf(log->reason, sizeof log->reason, "stage %s launches no kernels", s->stage->name);
        return STATUS_OK;
    }
    enum status status = stages->kernels->create(&log->times, &s->engine, &cause);
    if (status == STATUS_UNSUPPORTED) {
        snprintf(log->reason, sizeof log->reason, "stage %.60s: %.180s", s->stage->name,
                 cause.message);
        return STATUS_OK;
    }
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "%s", error_text(&cause, status));
}

struct kernel_log_position kernel_log_position(const struct kernel_log *log) {
    return (struct kernel_log_position){log->at, log->call};
}

void kernel_log_rewind(struct kernel_log *log, struct kernel_log_position begin, int pass) {
    log->at = begin.at;
    log->call = begin.call;
    log->pass = pass;
}

static void fail(struct kernel_log *log, enum status status, const char *message) {
    if (log->status == STATUS_OK) {
        log->status = error_set(&log->error, status, "%s", message);
    }
}

/* @return the one copy of the name, or NULL without memory */
static const char *keep_name(struct kernel_log *log, const char *name) {
    for (size_t i = 0; i < log->names_count; i++) {
        if (strcmp(log->names[i], name) == 0) {
            return log->names[i];
        }
    }
    char **names = realloc(log->names, (log->names_count + 1) * sizeof *names);
    if (names == NULL) {
        return NULL;
    }
    log->names = names;
    char *copy = strdup(name);
    if (copy != NULL) {
        log->names[log->names_count++] = copy;
    }
    return copy;
}

/* @return a new span at the end, or NULL without memory */
static struct kernel_span *append(struct kernel_log *log, const char *name) {
    const char *kept = keep_name(log, name);
    if (kept == NULL ||
        !array_grow(&log->spans, &log->capacity, log->count + 1, sizeof *log->spans)) {
        return NULL;
    }
    log->spans[log->count] = (struct kernel_span){.name = kept, .call = log->call};
    return &log->spans[log->count++];
}

static void note(void *context, const char *name, double ms) {
    struct kernel_log *log = context;
    struct kernel_span *span;
    if (log->pass == 0) {
        span = append(log, name);
        if (span == NULL) {
            fail(log, STATUS_OUT_OF_MEMORY, "out of memory for the kernels' times");
            return;
        }
    } else if (log->at >= log->count || strcmp(log->spans[log->at].name, name) != 0) {
        fail(log, STATUS_MISMATCH, "a batch launched other kernels when it ran again");
        return;
    } else {
        span = &log->spans[log->at];
    }
    span->ms[log->pass] = ms;
    log->at++;
}

static void begin(void *context, enum profile_operator op, const char *entry) {
    struct kernel_log *log = context;
    struct error error = {0};
    snprintf(log->entry, sizeof log->entry, "%s", entry);
    /* write() and read() wait for the device, so they cannot be recorded. */
    log->undivided = log->undivided || op == PROFILE_COPY;
    enum status status = log->undivided ? log->kernels->start(log->times, &error)
                                        : log->kernels->begin(log->times, &error);
    if (status != STATUS_OK) {
        fail(log, status, error_text(&error, status));
    }
}

/* Logs the current operator as one span. */
static void note_undivided(struct kernel_log *log, enum profile_operator op) {
    struct error error = {0};
    char name[64];
    double ms;
    enum status status = log->kernels->stop(log->times, &ms, &error);
    if (status != STATUS_OK) {
        fail(log, status, error_text(&error, status));
        return;
    }
    if (op == PROFILE_COPY) {
        bool write = strcmp(log->entry, "write") == 0;
        snprintf(name, sizeof name, "copy to the %s", write ? "device" : "host");
    } else {
        snprintf(name, sizeof name, "%s, undivided", log->entry);
        log->whole += log->pass == 0;
    }
    note(log, name, ms);
}

static bool end(void *context, enum profile_operator op, enum status *status) {
    struct kernel_log *log = context;
    struct error error = {0};
    if (log->status == STATUS_OK && log->undivided) {
        if (*status == STATUS_OK) {
            note_undivided(log, op);
        }
    } else if (log->status == STATUS_OK) {
        enum status ended = log->kernels->end(log->times, *status, note, log, &error);
        if (ended == STATUS_UNSUPPORTED) {
            log->undivided = true;
            return true;
        }
        if (ended != STATUS_OK) {
            fail(log, ended, error_text(&error, ended));
        }
    }
    log->undivided = false;
    log->call++;
    *status = log->status != STATUS_OK ? log->status : *status;
    return false;
}

struct profile_recorder kernel_log_recorder(struct kernel_log *log) {
    return (struct profile_recorder){log, begin, end};
}

void kernel_log_close(struct kernel_log *log) {
    if (log->kernels != NULL) {
        log->kernels->free(log->times);
    }
    for (size_t i = 0; i < log->names_count; i++) {
        free(log->names[i]);
    }
    free(log->names);
    free(log->spans);
    *log = (struct kernel_log){.count = 0};
}

/* ---- Reading ---- */

int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double kernel_span_ms(const struct kernel_log *log, const struct kernel_span *span) {
    double ms[KERNEL_PASSES];
    memcpy(ms, span->ms, sizeof ms);
    qsort(ms, (size_t)log->passes, sizeof *ms, compare_doubles);
    return ms[log->passes / 2];
}

static int longest_first(const void *a, const void *b) {
    const struct kernel_total *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

double kernel_log_totals(const struct kernel_log *log, struct kernel_total **totals) {
    double all = 0.0;
    *totals = calloc(log->names_count + 1, sizeof **totals);
    for (size_t i = 0; i < log->names_count && *totals != NULL; i++) {
        struct kernel_total *total = &(*totals)[i];
        total->name = log->names[i];
        for (size_t k = 0; k < log->count; k++) {
            if (log->spans[k].name == total->name) {
                total->calls++;
                total->ms += kernel_span_ms(log, &log->spans[k]);
            }
        }
        all += total->ms;
    }
    if (*totals != NULL) {
        qsort(*totals, log->names_count, sizeof **totals, longest_first);
    }
    return all;
}

void kernel_log_trace(const struct kernel_log *log, struct trace *trace) {
    double free_from = 0.0;
    size_t spans = trace->count, k = 0;
    for (size_t i = 0; i < spans; i++) {
        const struct trace_span op = trace->spans[i];
        if (op.track != TRACE_OPERATORS) {
            continue;
        }
        for (; k < log->count && log->spans[k].call == op.number; k++) {
            double start = op.start > free_from ? op.start : free_from;
            free_from = start + 1e-3 * kernel_span_ms(log, &log->spans[k]);
            trace_add(trace, log->spans[k].name, TRACE_KERNELS, start, free_from);
        }
    }
}

/* The name is the last column, as names of templates are long. */
void kernel_log_print(const struct kernel_log *log, FILE *stream) {
    struct kernel_total *totals;
    double all = kernel_log_totals(log, &totals);
    fprintf(stream, "  %9s %11s %8s  %s\n", "calls", "ms", "share", "kernel");
    for (size_t i = 0; i < log->names_count && totals != NULL; i++) {
        fprintf(stream, "  %9llu %11.3f %7.1f%%  %s\n", (unsigned long long)totals[i].calls,
                totals[i].ms, all > 0.0 ? 100.0 * totals[i].ms / all : 0.0, totals[i].name);
    }
    free(totals);
}
