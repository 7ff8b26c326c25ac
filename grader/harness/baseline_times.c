#include "grader/harness/baseline_times.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

/* "kernel\tmodelled for NVIDIA H200 by simt\t2.37"; @return whether that is the time sought */
static bool read_line(char *line, const char *measure, const char *clock, double *ms) {
    char *rest = line;
    const char *its_measure = strsep(&rest, "\t");
    const char *its_clock = strsep(&rest, "\t");
    if (rest == NULL || strcmp(its_measure, measure) != 0 || strcmp(its_clock, clock) != 0) {
        return false;
    }
    double value = strtod(rest, NULL);
    if (!isfinite(value) || value <= 0.0) {
        return false;
    }
    *ms = value;
    return true;
}

bool baseline_times_find(const char *path, const char *measure, const char *clock, double *ms) {
    char line[512];
    FILE *file = fopen(path, "r");
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = read_line(line, measure, clock, ms);
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

bool baseline_times_recording(void) {
    return getenv("WARPBOOK_BASELINE_TIMES") != NULL;
}

const char *baseline_times_of_rest(const char *measure, char *text, size_t size) {
    snprintf(text, size, "%s, the rest", measure);
    return text;
}

static bool write_line(FILE *file, const char *measure, const char *clock, double ms) {
    return fprintf(file, "%s\t%s\t%.17g\n", measure, clock, ms) > 0;
}

void baseline_times_record(const struct speedup *speedup) {
    char rest[80];
    FILE *file = fopen(getenv("WARPBOOK_BASELINE_TIMES"), "a");
    bool written = file != NULL &&
                   write_line(file, speedup->measure, speedup->clock, speedup->baseline_ms) &&
                   (speedup->rest_ms == 0.0 ||
                    write_line(file, baseline_times_of_rest(speedup->measure, rest, sizeof rest),
                               speedup->clock, speedup->rest_ms));
    if (file == NULL || fclose(file) != 0 || !written) {
        TEST_FAIL("$WARPBOOK_BASELINE_TIMES cannot be written");
    }
}
