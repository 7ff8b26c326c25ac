#include "common/simt/runtime/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"

/** A block that takes more is taken for endless: one to four seconds. */
static const uint64_t DEFAULT_LIMIT = 100000000;
enum { MOST_THREADS = 1024, MOST_SECONDS = 86400 };

/** @return value of a variable, NULL when it is not set or empty. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/** Reads a whole decimal number in [least, most]; leaves *number alone when it is not set. */
static enum status read_number(const char *name, uint64_t least, uint64_t most, uint64_t *number,
                               struct error *error) {
    const char *value = variable(name);
    if (value == NULL) {
        return STATUS_OK;
    }
    char *end = NULL;
    errno = 0;
    unsigned long long parsed = strtoull(value, &end, 10);
    if (errno != 0 || *end != '\0' || value[0] < '0' || value[0] > '9' || parsed < least ||
        parsed > most) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "%s is a whole number from %llu to %llu, not '%s'", name,
                         (unsigned long long)least, (unsigned long long)most, value);
    }
    *number = parsed;
    return STATUS_OK;
}

/** Reads one of @p count words; leaves *choice alone when the variable is not set. */
static enum status read_choice(const char *name, const char *const *words, int count, int *choice,
                               struct error *error) {
    const char *value = variable(name);
    if (value == NULL) {
        return STATUS_OK;
    }
    char all[128] = "";
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], value) == 0) {
            *choice = i;
            return STATUS_OK;
        }
        strncat(all, i == 0 ? "" : ", ", sizeof all - strlen(all) - 1);
        strncat(all, words[i], sizeof all - strlen(all) - 1);
    }
    return error_set(error, STATUS_INVALID_ARGUMENT, "%s is one of %s, not '%s'", name, all, value);
}

/** Words of SIMT_CHECK. All checks but "off" need those of bounds. */
static const struct {
    const char *word;
    enum simt_check check;
} checks[] = {{"off", SIMT_CHECK_OFF},
              {"bounds", SIMT_CHECK_BOUNDS},
              {"uninitialised", SIMT_CHECK_UNINITIALISED},
              {"races", SIMT_CHECK_RACES},
              {"copies", SIMT_CHECK_COPIES},
              {"shuffles", SIMT_CHECK_SHUFFLES},
              {"leaks", SIMT_CHECK_LEAKS},
              {"streams", SIMT_CHECK_STREAMS},
              {"sampled", SIMT_CHECK_SAMPLED},
              {"full", SIMT_CHECK_FULL}};

/** @return the check of a word of that length; -1: no such word */
static int find_check(const char *word, size_t length) {
    for (size_t n = 0; n < sizeof checks / sizeof *checks; n++) {
        if (strlen(checks[n].word) == length && memcmp(checks[n].word, word, length) == 0) {
            return (int)checks[n].check;
        }
    }
    return -1;
}

static enum status wrong_check(const char *value, struct error *error) {
    char all[128] = "";
    for (size_t n = 0; n < sizeof checks / sizeof *checks; n++) {
        strncat(all, n == 0 ? "" : ", ", sizeof all - strlen(all) - 1);
        strncat(all, checks[n].word, sizeof all - strlen(all) - 1);
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "SIMT_CHECK is one or more of %s, separated by commas (full,-races: all but "
                     "races), not '%s'",
                     all, value);
}

/** Reads "off", "bounds,races", "full,-uninitialised". */
static enum status read_checks(enum simt_check *check, struct error *error) {
    const char *value = variable("SIMT_CHECK");
    int sum = 0;
    *check = SIMT_CHECK_FULL;
    if (value == NULL) {
        return STATUS_OK;
    }
    for (const char *at = value;; at++) {
        bool without = *at == '-';
        at += without;
        size_t length = strcspn(at, ",");
        int found = find_check(at, length);
        bool off = found == SIMT_CHECK_OFF;
        if (found < 0 || (off && (without || strcmp(value, "off") != 0)) ||
            (without && found == SIMT_CHECK_BOUNDS)) {
            return wrong_check(value, error);
        }
        sum = without ? sum & ~found : sum | found | (off ? 0 : (int)SIMT_CHECK_BOUNDS);
        at += length;
        if (*at == '\0') {
            *check = (enum simt_check)sum;
            return STATUS_OK;
        }
    }
}

static enum status read_gpu(const struct simt_gpu **gpu, struct error *error) {
    const char *key = variable("SIMT_GPU");
    char keys[128];
    *gpu = simt_gpu_find(key != NULL ? key : SIMT_DEFAULT_GPU);
    if (*gpu == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "SIMT_GPU is one of %s, not '%s'",
                         simt_gpu_keys(keys, sizeof keys), key);
    }
    return STATUS_OK;
}

/** Reads the name of a file; the program may change its folder before the file is written. */
static enum status read_path(const char *name, char path[PATH_MAX], struct error *error) {
    const char *value = variable(name);
    char folder[PATH_MAX] = "";
    path[0] = '\0';
    if (value == NULL) {
        return STATUS_OK;
    }
    if (value[0] != '/' && getcwd(folder, sizeof folder) == NULL) {
        folder[0] = '\0';
    }
    int used = snprintf(path, PATH_MAX, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", value);
    if (used < 0 || used >= PATH_MAX) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "%s: the path is too long", name);
    }
    return file_check_writable(path, error);
}

static uint64_t processors(void) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > MOST_THREADS ? MOST_THREADS : (uint64_t)online;
}

enum status simt_settings_read(struct simt_settings *settings, struct error *error) {
    static const char *const REPORTS[] = {[SIMT_REPORT_NONE] = "none",
                                          [SIMT_REPORT_TEXT] = "text",
                                          [SIMT_REPORT_JSON] = "json",
                                          [SIMT_REPORT_SARIF] = "sarif"};
    int report = SIMT_REPORT_NONE;
    uint64_t threads = processors();
    uint64_t limit = DEFAULT_LIMIT;
    uint64_t devices = 1;
    uint64_t seconds = 10;
    TRY(read_checks(&settings->check, error));
    TRY(read_choice("SIMT_REPORT", REPORTS, 4, &report, error));
    TRY(read_number("SIMT_THREADS", 1, MOST_THREADS, &threads, error));
    TRY(read_number("SIMT_INSTRUCTION_LIMIT", 0, UINT64_MAX, &limit, error));
    settings->seed = 0;
    TRY(read_number("SIMT_SEED", 0, UINT64_MAX, &settings->seed, error));
    TRY(read_number("SIMT_WAIT_SECONDS", 1, MOST_SECONDS, &seconds, error));
    TRY(read_number("SIMT_DEVICES", 1, SIMT_MOST_DEVICES, &devices, error));
    TRY(read_gpu(&settings->gpu, error));
    TRY(read_path("SIMT_XRAY", settings->xray, error));
    TRY(read_path("SIMT_REPORT_FILE", settings->report_file, error));
    settings->report = (enum simt_report_format)report;
    settings->threads = (int)threads;
    settings->instruction_limit = limit;
    settings->devices = (int)devices;
    settings->wait_seconds = (double)seconds;
    return STATUS_OK;
}

enum status simt_error_exitcode(int *code, struct error *error) {
    enum { MOST_STATUS = 255 };
    uint64_t number = 0;
    TRY(read_number("SIMT_ERROR_EXITCODE", 0, MOST_STATUS, &number, error));
    *code = (int)number;
    return STATUS_OK;
}
