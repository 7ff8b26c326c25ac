#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/json_lines.h"
#include "common/bench/bench.h"

/* Copies one line without white space at its ends. */
static void trim_into(char *out, size_t size, const char *text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        length--;
    }
    snprintf(out, size, "%.*s", (int)length, text);
}

/* Value of a line "field : value"; NULL for any other line. */
static const char *cpuinfo_field(const char *line, const char *field) {
    size_t length = strlen(field);
    if (strncmp(line, field, length) != 0) {
        return NULL;
    }
    const char *colon = line + length + strspn(line + length, " \t");
    return *colon == ':' ? colon + 1 : NULL;
}

/* Value of a field of the first CPU in /proc/cpuinfo; false when there is no such field. */
static bool cpuinfo_value(const char *field, char *out, size_t size) {
    char line[512];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL && line[0] != '\n') {
        const char *value = cpuinfo_field(line, field);
        if (value != NULL) {
            trim_into(out, size, value);
            found = true;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* Some vendors name all their server CPUs alike; the family number tells generations apart. */
const char *bench_cpu_name(char *name, size_t size) {
    char model[128] = "unknown CPU";
    char family[32];
    cpuinfo_value("model name", model, sizeof model);
    if (cpuinfo_value("cpu family", family, sizeof family)) {
        snprintf(name, size, "%s (family %s)", model, family);
    } else {
        snprintf(name, size, "%s", model);
    }
    return name;
}

const char *bench_results_path(const char *name, char *path, size_t size) {
    const char *file = getenv("WARPBOOK_RESULTS");
    const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
    if (file != NULL && file[0] != '\0') {
        snprintf(path, size, "%s", file);
    } else if (workspace != NULL && workspace[0] != '\0') {
        snprintf(path, size, "%s/results/%s", workspace, name);
    } else {
        snprintf(path, size, "results/%s", name);
    }
    return path;
}

/* Reads the first line of FOLDER/NAME. */
static bool read_line(const char *folder, const char *name, char *line, size_t size) {
    char path[1024];
    char text[256];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    bool good = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (good) {
        trim_into(line, size, text);
    }
    return good;
}

/* Finds a branch among the packed references, lines such as "HASH refs/heads/main". */
static bool find_packed(const char *git, const char *reference, char *hash, size_t size) {
    char path[1024];
    char line[512];
    bool found = false;
    snprintf(path, sizeof path, "%s/packed-refs", git);
    FILE *file = fopen(path, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *space = strchr(line, ' ');
        if (space != NULL && strncmp(space + 1, reference, strlen(reference)) == 0 &&
            isspace((unsigned char)space[1 + strlen(reference)])) {
            snprintf(hash, size, "%.*s", (int)(space - line), line);
            found = true;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

const char *bench_commit(char *hash, size_t size) {
    static const char prefix[] = "ref: ";
    const char *given = getenv("WARPBOOK_COMMIT");
    const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
    char git[512];
    char head[256];
    if (given != NULL && given[0] != '\0') {
        snprintf(hash, size, "%s", given);
        return hash;
    }
    snprintf(git, sizeof git, "%s/.git", workspace != NULL ? workspace : ".");
    if (!read_line(git, "HEAD", head, sizeof head)) {
        return NULL;
    }
    if (strncmp(head, prefix, strlen(prefix)) != 0) {
        snprintf(hash, size, "%s", head);
        return hash;
    }
    const char *reference = head + strlen(prefix);
    bool found = read_line(git, reference, hash, size) || find_packed(git, reference, hash, size);
    return found ? hash : NULL;
}

static void add_string(cJSON *object, const char *name, const char *value) {
    if (value != NULL) {
        cJSON_AddStringToObject(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

/* JSON has no NaN and no infinity; both are written as null. */
static void add_number(cJSON *object, const char *name, double value) {
    if (isfinite(value)) {
        cJSON_AddNumberToObject(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

static void add_provenance(cJSON *object) {
    char text[256];
    time_t now = time(NULL);
    struct tm utc;
    cJSON_AddNumberToObject(object, "schema", BENCH_SCHEMA);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    add_string(object, "time", text);
    add_string(object, "commit", bench_commit(text, sizeof text));
}

static void add_cpu(cJSON *device) {
    char name[192];
    char mhz[32];
    add_string(device, "kind", "cpu");
    add_string(device, "name", bench_cpu_name(name, sizeof name));
    cJSON_AddBoolToObject(device, "modelled", false);
    add_number(device, "mhz", cpuinfo_value("cpu MHz", mhz, sizeof mhz) ? atof(mhz) : NAN);
}

/* Writes 13000 as "13.0" and 0 as null. */
static void add_version(cJSON *object, const char *name, int version) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    add_string(object, name, version > 0 ? text : NULL);
}

/* Writes a clock of 0, which is not known, as null. */
static void add_clock(cJSON *object, const char *name, double mhz) {
    add_number(object, name, mhz > 0.0 ? mhz : NAN);
}

static void add_gpu(cJSON *device, const struct bench_record *record) {
    const struct bench_gpu *gpu = record->gpu;
    add_string(device, "kind", "gpu");
    add_string(device, "name", gpu->name);
    cJSON_AddBoolToObject(device, "modelled", gpu->modelled);
    add_clock(device, "mhz", gpu->mhz);
    add_clock(device, "measured_mhz", record->timing.clock_mhz);
    add_clock(device, "memory_mhz", gpu->memory_mhz);
    add_version(device, "driver", gpu->driver);
    add_version(device, "runtime", gpu->runtime);
}

static void add_device(cJSON *object, const struct bench_record *record) {
    cJSON *device = cJSON_AddObjectToObject(object, "device");
    if (record->gpu != NULL) {
        add_gpu(device, record);
    } else {
        add_cpu(device);
    }
    add_number(device, "threads", record->threads);
}

static void add_timing(cJSON *object, const struct bench_timing *timing) {
    cJSON *ms = cJSON_AddObjectToObject(object, "ms");
    add_number(ms, "min", timing->min_ms);
    add_number(ms, "median", timing->median_ms);
    add_number(ms, "max", timing->max_ms);
    add_number(ms, "runs", timing->runs);
}

enum status bench_append(const struct bench_record *record, struct error *error) {
    char path[1024];
    if (getenv("WARPBOOK_PROFILED") != NULL) {
        return STATUS_OK; /* times under a profiler are none */
    }
    cJSON *object = cJSON_CreateObject();
    if (object == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for a bench record");
    }
    double seconds = 1e-3 * record->timing.median_ms;
    add_provenance(object);
    add_string(object, "lab", record->lab);
    add_string(object, "subject", record->subject);
    add_string(object, "stage", record->stage);
    add_string(object, "op", record->op);
    add_string(object, "shape", record->shape);
    add_string(object, "dtype", record->dtype);
    add_device(object, record);
    add_timing(object, &record->timing);
    add_number(object, "bytes", record->bytes);
    add_number(object, "flops", record->flops);
    add_number(object, "gb_per_s", 1e-9 * record->bytes / seconds);
    add_number(object, "gflop_per_s", 1e-9 * record->flops / seconds);
    add_string(object, "peer", record->peer);
    add_number(object, "peer_ratio", record->peer != NULL ? record->peer_ratio : NAN);
    add_string(object, "figure", record->figure);
    add_number(object, "figure_value", record->figure != NULL ? record->figure_value : NAN);
    enum status status =
        json_lines_append(bench_results_path("bench.jsonl", path, sizeof path), object, error);
    cJSON_Delete(object);
    return status;
}
