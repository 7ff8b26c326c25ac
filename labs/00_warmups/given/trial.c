/* What an exercise's try_NAME() calls, in the process of the trial. */
#include "labs/00_warmups/given/trial.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/device/device.h"

void trial_fail(struct trial *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(t->verdict->message, sizeof t->verdict->message, format, args);
    va_end(args);
    t->verdict->state = TRIAL_NOT_YET;
    fflush(NULL);
    _exit(0);
}

static void must(struct trial *t, enum status status, const struct error *error) {
    if (status != STATUS_OK) {
        trial_fail(t, "%s", error_text(error, status));
    }
}

void *trial_host(struct trial *t, size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        trial_fail(t, "out of memory on the host");
    }
    return memory;
}

float *trial_random(struct trial *t, size_t count) {
    float *x = trial_host(t, count, sizeof *x);
    for (size_t i = 0; i < count; i++) {
        x[i] = 2.0f * rng_uniform(&t->rng) - 1.0f;
    }
    return x;
}

void *trial_put(struct trial *t, const void *host, size_t bytes) {
    void *memory = NULL;
    struct error error = {0};
    must(t, device_alloc(&memory, bytes, &error), &error);
    must(t, device_write(memory, host, bytes, NULL, &error), &error);
    return memory;
}

float *trial_output(struct trial *t, size_t count) {
    float *nothing = trial_host(t, count, sizeof *nothing);
    for (size_t i = 0; i < count; i++) {
        nothing[i] = NAN;
    }
    return trial_put(t, nothing, count * sizeof *nothing);
}

int *trial_integers(struct trial *t, size_t count, int value) {
    int *values = trial_host(t, count, sizeof *values);
    for (size_t i = 0; i < count; i++) {
        values[i] = value;
    }
    return trial_put(t, values, count * sizeof *values);
}

void trial_wait(struct trial *t) {
    struct error error = {0};
    must(t, device_launched(t->exercise->name, &error), &error);
    must(t, device_synchronize(NULL, &error), &error);
}

/* Waits and copies a result to the host. */
static void *get(struct trial *t, const void *d_got, size_t count, size_t size) {
    struct error error = {0};
    void *got = trial_host(t, count, size);
    trial_wait(t);
    must(t, device_read(got, d_got, count * size, NULL, &error), &error);
    return got;
}

/* "y[12]", or "y[1, 2]" of a matrix. */
static const char *element_name(char text[64], const char *name, size_t i, size_t columns) {
    if (columns == 0) {
        snprintf(text, 64, "%s[%zu]", name, i);
    } else {
        snprintf(text, 64, "%s[%zu, %zu]", name, i / columns, i % columns);
    }
    return text;
}

void trial_expect(struct trial *t, const char *name, const float *d_got, const double *want,
                  size_t count, size_t columns, double tolerance) {
    const float *got = get(t, d_got, count, sizeof *got);
    size_t wrong = 0, first = 0;
    for (size_t i = count; i-- > 0;) {
        if (!(fabs(got[i] - want[i]) <= tolerance)) {
            first = i;
            wrong++;
        }
    }
    if (wrong > 0) {
        char element[64];
        trial_fail(t, "%s: got %.6g%s, expected %.6g; %zu of %zu elements are wrong",
                   element_name(element, name, first, columns), got[first],
                   isnan(got[first]) ? " (no thread wrote it, or one wrote nan)" : "", want[first],
                   wrong, count);
    }
}

void trial_expect_integers(struct trial *t, const char *name, const int *d_got, const int *want,
                           size_t count) {
    const int *got = get(t, d_got, count, sizeof *got);
    for (size_t i = 0; i < count; i++) {
        if (got[i] != want[i]) {
            trial_fail(t, "%s[%zu]: got %d, expected %d", name, i, got[i], want[i]);
        }
    }
}

void trial_count(struct trial *t) {
    if (t->counts) {
        t->simt.read_totals(&t->before);
    }
}

bool trial_counted(struct trial *t, struct simt_counters *counters) {
    if (!t->counts) {
        snprintf(t->verdict->message, sizeof t->verdict->message,
                 "the result is right; what it costs is counted by simt alone (--config=simt)");
        return false;
    }
    struct simt_totals after;
    trial_wait(t);
    t->simt.read_totals(&after);
    *counters = simt_totals_between(&t->before, &after).counters;
    return true;
}
