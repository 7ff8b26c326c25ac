#include "common/programs/classifier/trace.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/grow.h"

static const char *const TRACK_NAMES[TRACE_TRACKS] = {"", "batches", "operators", "kernels"};

void trace_add(struct trace *trace, const char *name, enum trace_track track, double start,
               double end) {
    uint64_t number = trace->numbers[track]++;
    if (trace->count == TRACE_MOST_SPANS ||
        !array_grow(&trace->spans, &trace->capacity, trace->count + 1, sizeof *trace->spans)) {
        trace->lost++;
        return;
    }
    trace->spans[trace->count++] = (struct trace_span){name, track, number, start, end};
}

void trace_observe(void *trace, enum profile_operator op, double start, double end) {
    trace_add(trace, profile_operator_name(op), TRACE_OPERATORS, start, end);
}

/* Adds a metadata event: the name of a process or a track. */
static bool add_name(cJSON *events, const char *what, int track, const char *name) {
    cJSON *event = cJSON_CreateObject();
    cJSON_AddItemToArray(events, event);
    return cJSON_AddStringToObject(event, "name", what) != NULL &&
           cJSON_AddStringToObject(event, "ph", "M") != NULL &&
           cJSON_AddNumberToObject(event, "pid", 1) != NULL &&
           cJSON_AddNumberToObject(event, "tid", track) != NULL &&
           cJSON_AddStringToObject(cJSON_AddObjectToObject(event, "args"), "name", name) != NULL;
}

static bool add_span(cJSON *events, const struct trace_span *span, double origin) {
    cJSON *event = cJSON_CreateObject();
    cJSON_AddItemToArray(events, event);
    return cJSON_AddStringToObject(event, "name", span->name) != NULL &&
           cJSON_AddStringToObject(event, "cat", TRACK_NAMES[span->track]) != NULL &&
           cJSON_AddStringToObject(event, "ph", "X") != NULL &&
           cJSON_AddNumberToObject(event, "ts", 1e6 * (span->start - origin)) != NULL &&
           cJSON_AddNumberToObject(event, "dur", 1e6 * (span->end - span->start)) != NULL &&
           cJSON_AddNumberToObject(event, "pid", 1) != NULL &&
           cJSON_AddNumberToObject(event, "tid", span->track) != NULL &&
           cJSON_AddNumberToObject(cJSON_AddObjectToObject(event, "args"), "number",
                                   (double)span->number) != NULL;
}

static double earliest(const struct trace *trace) {
    double start = trace->count > 0 ? trace->spans[0].start : 0.0;
    for (size_t i = 1; i < trace->count; i++) {
        start = trace->spans[i].start < start ? trace->spans[i].start : start;
    }
    return start;
}

static bool fill(cJSON *root, const struct trace *trace, const struct trace_origin *origin) {
    double start = earliest(trace);
    cJSON *other = cJSON_AddObjectToObject(root, "otherData");
    bool added = cJSON_AddStringToObject(root, "displayTimeUnit", "ms") != NULL &&
                 cJSON_AddStringToObject(other, "clock", origin->clock) != NULL &&
                 cJSON_AddNumberToObject(other, "spans_lost", (double)trace->lost) != NULL;
    cJSON *events = cJSON_AddArrayToObject(root, "traceEvents");
    added = added && add_name(events, "process_name", 0, origin->process);
    for (int track = TRACE_BATCHES; track < TRACE_TRACKS && added; track++) {
        added = add_name(events, "thread_name", track, TRACK_NAMES[track]);
    }
    for (size_t i = 0; i < trace->count && added; i++) {
        added = add_span(events, &trace->spans[i], start);
    }
    return added;
}

enum status trace_write(const struct trace *trace, const struct trace_origin *origin,
                        const char *path, struct error *error) {
    cJSON *root = cJSON_CreateObject();
    char *text = fill(root, trace, origin) ? cJSON_PrintUnformatted(root) : NULL;
    cJSON_Delete(root);
    enum status status = text != NULL ? file_write(path, text, strlen(text), error)
                                      : error_set(error, STATUS_OUT_OF_MEMORY,
                                                  "%s: out of memory for the trace", path);
    cJSON_free(text);
    return status;
}

void trace_free(struct trace *trace) {
    free(trace->spans);
    *trace = (struct trace){0};
}
