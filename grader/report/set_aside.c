#include "grader/report/set_aside.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum { MOST_BROKEN = 100 };

enum status set_aside(const char *path, struct error *error) {
    char why[256], aside[1300];
    snprintf(why, sizeof why, "%.200s", error->message);
    for (int i = 1; i < MOST_BROKEN; i++) {
        snprintf(aside, sizeof aside, i == 1 ? "%s.broken" : "%s.broken.%d", path, i);
        /* Unlike rename(), link() never replaces a file. */
        if (link(path, aside) == 0 && unlink(path) == 0) {
            *error = (struct error){0};
            (void)error_set(error, STATUS_BAD_FORMAT, "%s; begun anew, the old file is %s", why,
                            aside);
            return STATUS_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    *error = (struct error){0};
    return error_set(error, STATUS_IO, "%s, and it cannot be moved away", why);
}
