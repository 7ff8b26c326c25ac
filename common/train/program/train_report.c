#include "common/train/program/train_report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/json_lines.h"

static const size_t LOG_LIMIT = (size_t)1 << 30;

static struct timespec now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time;
}

static double seconds_since(const struct timespec *start) {
    struct timespec time = now();
    return (double)(time.tv_sec - start->tv_sec) + 1e-9 * (double)(time.tv_nsec - start->tv_nsec);
}

/* ---- The file ---- */

/* Whether a line is of a step up to `last`. */
static bool is_kept(const char *line, size_t length, uint64_t last) {
    cJSON *object = cJSON_ParseWithLength(line, length);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(object, "step");
    bool kept = cJSON_IsNumber(step) && step->valuedouble <= (double)last;
    cJSON_Delete(object);
    return kept;
}

/* Bytes before the first line to remove; steps rise from line to line. */
static size_t count_kept(const char *text, size_t size, uint64_t last) {
    size_t at = 0;
    while (at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - text) + 1 - at : 0;
        if (end == NULL || !is_kept(text + at, length, last)) {
            break;
        }
        at += length;
    }
    return at;
}

/* Bytes of the file to keep. */
static enum status find_end(const struct train_report *r, size_t *end, struct error *error) {
    *end = 0;
    if (r->first_step == 0) {
        return STATUS_OK;
    }
    char *text;
    size_t size;
    TRY(file_read(r->path, LOG_LIMIT, &text, &size, error));
    *end = count_kept(text, size, r->first_step);
    free(text);
    return STATUS_OK;
}

/* Cuts the lines that the run will write again. */
static enum status cut_file(const struct train_report *r, struct error *error) {
    size_t end;
    if (!file_is_regular(r->path)) {
        return STATUS_OK;
    }
    TRY(find_end(r, &end, error));
    return ftruncate(r->file, (off_t)end) == 0
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: cannot write: %s", r->path, strerror(errno));
}

enum status train_report_start(struct train_report *r, struct error *error) {
    r->terminal = isatty(STDERR_FILENO);
    r->start = r->last = now();
    r->tokens = 0;
    return cut_file(r, error);
}

void train_report_close(struct train_report *r) {
    if (r->file >= 0) {
        close(r->file);
    }
    r->file = -1;
}

static void add_number(cJSON *object, const char *name, double value) {
    if (isfinite(value)) {
        cJSON_AddNumberToObject(object, name, value);
    } else {
        cJSON_AddNullToObject(object, name);
    }
}

/* Appends an object and frees it. */
static enum status append(const struct train_report *r, cJSON *object, struct error *error) {
    enum status status = object != NULL ? json_lines_write(r->file, r->path, object, error)
                                        : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    cJSON_Delete(object);
    return status;
}

static cJSON *begin(const char *kind, uint64_t step, double epoch, double loss) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "kind", kind);
    add_number(object, "step", (double)step);
    add_number(object, "epoch", epoch);
    add_number(object, "loss", loss);
    return object;
}

/* ---- Lines ---- */

/* "12 min", "95 s". */
static const char *duration(double seconds, char text[32]) {
    if (seconds < 120.0) {
        snprintf(text, 32, "%.0f s", seconds);
    } else if (seconds < 7200.0) {
        snprintf(text, 32, "%.0f min", seconds / 60.0);
    } else {
        snprintf(text, 32, "%.1f h", seconds / 3600.0);
    }
    return text;
}

static double seconds_left(const struct train_report *r, uint64_t step) {
    double done = (double)(step - r->first_step);
    return seconds_since(&r->start) / done * (double)(r->total - step);
}

void train_report_progress(struct train_report *r, uint64_t step, double loss, uint64_t tokens) {
    char left[32], known[48] = "";
    r->tokens += tokens;
    if (!r->terminal || seconds_since(&r->start) < 2.0) {
        return;
    }
    if (isfinite(loss)) {
        snprintf(known, sizeof known, ", loss %.4f", loss);
    }
    fprintf(stderr, "\rstep %" PRIu64 "/%" PRIu64 "%s", step, r->total, known);
    if (!r->modelled) {
        fprintf(stderr, ", %.0f tokens/s", (double)r->tokens / seconds_since(&r->last));
    }
    fprintf(stderr, ", %s left \033[K", duration(seconds_left(r, step), left));
    fflush(stderr);
}

void train_report_clear(const struct train_report *r) {
    if (r->terminal) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

void train_report_restart(struct train_report *r) {
    r->last = now();
    r->tokens = 0;
}

enum status train_report_steps(struct train_report *r, const struct train_news *n,
                               struct error *error) {
    double seconds = seconds_since(&r->last);
    double speed = r->modelled ? NAN : (double)r->tokens / seconds;
    char left[32];
    if (!r->terminal) {
        printf("step %" PRIu64 "/%" PRIu64 ", epoch %.2f: loss %.4f, lr %.3g, norm %.3g", n->step,
               r->total, n->epoch, n->loss, n->rate, n->norm);
        if (!r->modelled) {
            printf(", %.0f tokens/s", speed);
        }
        printf(", %s left\n", duration(seconds_left(r, n->step), left));
        fflush(stdout);
    }
    cJSON *object = begin("train", n->step, n->epoch, n->loss);
    add_number(object, "lr", n->rate);
    add_number(object, "norm", n->norm);
    add_number(object, "tokens_per_s", speed);
    add_number(object, "seconds", r->modelled ? NAN : seconds);
    train_report_restart(r);
    return append(r, object, error);
}

enum status train_report_result(struct train_report *r, const struct train_result *result,
                                uint64_t step, double epoch, bool best, struct error *error) {
    train_report_clear(r);
    if (r->path[0] != '\0') {
        printf("step %" PRIu64 ", epoch %.2f: ", step, epoch);
    }
    printf("evaluation: loss %.4f", result->loss);
    cJSON *object = begin("eval", step, epoch, result->loss);
    if (result->task == TRAIN_CLASSIFY) {
        printf(", accuracy %.4f", result->accuracy);
        add_number(object, "accuracy", result->accuracy);
    } else {
        printf(", perplexity %.3f", exp(result->loss));
    }
    if (result->task == TRAIN_LM) {
        printf(", %.4f bits per byte", result->bits_per_byte);
        add_number(object, "bits_per_byte", result->bits_per_byte);
    }
    printf("%s\n", best ? ", the best so far" : "");
    fflush(stdout);
    cJSON_AddBoolToObject(object, "best", best);
    return r->path[0] != '\0' ? append(r, object, error) : (cJSON_Delete(object), STATUS_OK);
}
