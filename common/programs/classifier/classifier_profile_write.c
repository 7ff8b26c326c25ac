/* Writes the three files of the profile program. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/programs/classifier/classifier_profile.h"
#include "common/programs/classifier/classifier_profile_internal.h"

enum { PATH_BYTES = 4096 };

enum status profile_folder(const char *folder, struct error *error) {
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s", folder);
    if (length == 0) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--output-dir '': give a folder; . is this one");
    }
    if (length < 0 || length >= PATH_BYTES - 64) {
        return error_set(error, STATUS_TOO_LONG, "--output-dir: the path is longer than %d bytes",
                         PATH_BYTES - 65);
    }
    for (char *c = path + 1; *c != '\0'; c++) {
        if (*c == '/') {
            *c = '\0';
            mkdir(path, 0777); /* failures show in the check of the last folder */
            *c = '/';
        }
    }
    mkdir(path, 0777);
    struct stat info;
    if (stat(path, &info) != 0) {
        return error_set(error, STATUS_IO, "%s: cannot make the folder: %s", folder,
                         strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return error_set(error, STATUS_IO, "%s: not a folder", folder);
    }
    return access(path, W_OK | X_OK) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: cannot write there: %s", folder, strerror(errno));
}

double percentile(const double *values, size_t count, double percent) {
    size_t rank = (size_t)ceil(percent / 100.0 * (double)count);
    rank = rank < 1 ? 1 : rank > count ? count : rank;
    return values[rank - 1];
}

static bool modelled(const struct classifier_session *s) {
    return s->stage->on_device && s->device.modelled;
}

static const char *clock_name(const struct classifier_session *s) {
    return modelled(s)           ? "modelled: time of simt's cost model; no GPU was timed"
           : s->stage->on_device ? "measured: the host's clock, after the GPU finished"
                                 : "measured: the host's clock";
}

/* Adds the fields that all files have: stage, device, clock and sizes. */
static bool add_head(cJSON *root, const struct profile_run *run) {
    const struct classifier_session *s = &run->session;
    const char *device = s->stage->on_device ? s->device.name : "CPU";
    return cJSON_AddStringToObject(root, "stage", s->stage->name) != NULL &&
           cJSON_AddStringToObject(root, "device", device) != NULL &&
           cJSON_AddBoolToObject(root, "modelled", modelled(s)) != NULL &&
           cJSON_AddStringToObject(root, "clock", clock_name(s)) != NULL &&
           cJSON_AddStringToObject(root, "dtype", nn_dtype_name(s->dtype)) != NULL &&
           cJSON_AddNumberToObject(root, "batch_size", (double)s->batch) != NULL &&
           cJSON_AddNumberToObject(root, "max_length", (double)s->max_length) != NULL &&
           cJSON_AddBoolToObject(root, "padded", run->padded) != NULL;
}

static bool add_operator(cJSON *list, const struct profile *profile, int op, double total) {
    const struct profile_entry *entry = &profile->entries[op];
    cJSON *item = cJSON_CreateObject();
    double ms = 1e3 * entry->seconds;
    cJSON_AddItemToArray(list, item);
    return cJSON_AddStringToObject(item, "name", profile_operator_name(op)) != NULL &&
           cJSON_AddNumberToObject(item, "calls", (double)entry->calls) != NULL &&
           cJSON_AddNumberToObject(item, "total_ms", ms) != NULL &&
           cJSON_AddNumberToObject(item, "mean_ms", ms / (double)entry->calls) != NULL &&
           cJSON_AddNumberToObject(item, "share", total > 0.0 ? entry->seconds / total : 0.0) !=
               NULL;
}

static bool add_kernel(cJSON *list, const struct kernel_total *kernel, double total) {
    cJSON *item = cJSON_CreateObject();
    cJSON_AddItemToArray(list, item);
    return cJSON_AddStringToObject(item, "name", kernel->name) != NULL &&
           cJSON_AddNumberToObject(item, "calls", (double)kernel->calls) != NULL &&
           cJSON_AddNumberToObject(item, "total_ms", kernel->ms) != NULL &&
           cJSON_AddNumberToObject(item, "mean_ms", kernel->ms / (double)kernel->calls) != NULL &&
           cJSON_AddNumberToObject(item, "share", total > 0.0 ? kernel->ms / total : 0.0) != NULL;
}

/* Adds the kernels' times, or the reason why there are none. */
static bool add_kernels(cJSON *root, const struct kernel_log *log) {
    struct kernel_total *totals;
    double total = kernel_log_totals(log, &totals);
    cJSON *list = cJSON_AddArrayToObject(root, "kernels");
    bool added = totals != NULL && list != NULL &&
                 cJSON_AddNumberToObject(root, "kernels_total_ms", total) != NULL &&
                 cJSON_AddNumberToObject(root, "kernel_runs", log->passes) != NULL &&
                 cJSON_AddNumberToObject(root, "operators_undivided", (double)log->whole) != NULL;
    if (added && log->reason[0] != '\0') {
        added = cJSON_AddStringToObject(root, "no_kernels", log->reason) != NULL;
    }
    for (size_t i = 0; i < log->names_count && added; i++) {
        added = add_kernel(list, &totals[i], total);
    }
    free(totals);
    return added;
}

static bool fill_statistics(cJSON *root, const struct profile_run *run) {
    double total = profile_total(&run->profile);
    bool added = add_head(root, run) &&
                 cJSON_AddNumberToObject(root, "batches", (double)run->traced) != NULL &&
                 cJSON_AddNumberToObject(root, "total_ms", 1e3 * total) != NULL;
    cJSON *list = cJSON_AddArrayToObject(root, "operators");
    for (int op = 0; op < PROFILE_COUNT && added; op++) {
        if (run->profile.entries[op].calls > 0) {
            added = add_operator(list, &run->profile, op, total);
        }
    }
    return added && list != NULL && add_kernels(root, &run->kernels);
}

static bool add_percentiles(cJSON *root, const struct profile_run *run) {
    static const struct {
        const char *name;
        double percent;
    } wanted[] = {{"p50_batch_ms", 50},
                  {"p90_batch_ms", 90},
                  {"p95_batch_ms", 95},
                  {"p99_batch_ms", 99},
                  {"max_batch_ms", 100}};
    bool added = cJSON_AddNumberToObject(root, "min_batch_ms", 1e3 * run->seconds[0]) != NULL;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && added; i++) {
        double value = percentile(run->seconds, run->batches, wanted[i].percent);
        added = cJSON_AddNumberToObject(root, wanted[i].name, 1e3 * value) != NULL;
    }
    return added;
}

static bool fill_benchmark(cJSON *root, const struct profile_run *run) {
    double total = 0.0;
    for (size_t i = 0; i < run->batches; i++) {
        total += run->seconds[i];
    }
    qsort(run->seconds, run->batches, sizeof *run->seconds, compare_doubles);
    return add_head(root, run) &&
           cJSON_AddNumberToObject(root, "batches", (double)run->batches) != NULL &&
           cJSON_AddNumberToObject(root, "samples", (double)run->samples) != NULL &&
           cJSON_AddNumberToObject(root, "tokens", (double)run->tokens) != NULL &&
           cJSON_AddNumberToObject(root, "samples_per_second", (double)run->samples / total) !=
               NULL &&
           cJSON_AddNumberToObject(root, "tokens_per_second", (double)run->tokens / total) !=
               NULL &&
           cJSON_AddNumberToObject(root, "mean_batch_ms", 1e3 * total / (double)run->batches) !=
               NULL &&
           add_percentiles(root, run);
}

static enum status write_object(bool (*fill)(cJSON *root, const struct profile_run *run),
                                const struct profile_run *run, const char *path,
                                struct error *error) {
    cJSON *root = cJSON_CreateObject();
    char *text = fill(root, run) ? cJSON_Print(root) : NULL;
    cJSON_Delete(root);
    enum status status = text != NULL
                             ? file_write(path, text, strlen(text), error)
                             : error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    cJSON_free(text);
    return status;
}

enum status profile_write(struct profile_run *run, const char *folder, struct error *error) {
    char path[PATH_BYTES], where[400];
    const struct trace_origin origin = {
        .process = classifier_session_where(&run->session, where, sizeof where),
        .clock = clock_name(&run->session),
    };
    snprintf(path, sizeof path, "%s/trace.json", folder);
    TRY(trace_write(&run->trace, &origin, path, error));
    snprintf(path, sizeof path, "%s/kernel_statistics.json", folder);
    TRY(write_object(fill_statistics, run, path, error));
    snprintf(path, sizeof path, "%s/benchmark_stats.json", folder);
    return write_object(fill_benchmark, run, path, error);
}
