/* Less time than it took, by other means than working less. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/simt/simt.h"
#include "grader/selftest/sabotage.h"

static double nanoseconds(const struct simt_api *api) {
    struct simt_totals totals;
    api->read_totals(&totals);
    return totals.nanoseconds;
}

/* Replaces a number wherever it stands in writable memory of this process below 64 MiB a piece. */
static void replace(double from, double to) {
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        char *end;
        uint64_t begin = strtoull(line, &end, 16), behind = strtoull(end + 1, &end, 16);
        bool wanted = strncmp(end, " rw-p", 5) == 0 && behind - begin < (64u << 20);
        for (double *x = (double *)(uintptr_t)begin; wanted && x < (double *)(uintptr_t)behind;
             x++) {
            if (memcmp(x, &from, sizeof from) == 0) {
                memcpy(x, &to, sizeof to);
            }
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

/* Row 11: works, then turns simt's clock back to where it was. */
static enum status turns_back(const struct sabotage_call *call, struct error *error) {
    struct simt_api api;
    if (!simt_find(&api)) {
        return error_set(error, STATUS_UNSUPPORTED, "this trick is for simt");
    }
    double before = nanoseconds(&api);
    TRY(sabotage_right(call, error));
    replace(nanoseconds(&api), before + 1.0);
    return nanoseconds(&api) < before + 2.0 ? STATUS_OK
                                            : error_set(error, STATUS_NOT_FOUND, "found no clock");
}

/* Row 20: the first call takes long, so that fewer are measured. */
static enum status slow_start(const struct sabotage_call *call, struct error *error) {
    const struct timespec half = {0, 500000000};
    if (call->number == 0) {
        nanosleep(&half, NULL);
    }
    return sabotage_right(call, error);
}

const struct sabotage sabotage_times[] = {
    {"turns_back", turns_back}, {"slow_start", slow_start}, {0}};
