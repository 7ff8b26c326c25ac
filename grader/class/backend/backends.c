#include <string.h>

#include "grader/class/backend/backend.h"

static const struct backend *const backends[] = {
    &backend_local,
};

const struct backend *backend_find(const char *name, struct error *error) {
    struct error line = {0};
    (void)error_set(&line, STATUS_INVALID_ARGUMENT, "--backend %.40s: choose", name);
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        if (strcmp(backends[i]->name, name) == 0) {
            return backends[i];
        }
        (void)error_set(error, STATUS_INVALID_ARGUMENT, "%s%s %s", line.message, i > 0 ? " or" : "",
                        backends[i]->name);
        if (error != NULL) {
            line = *error;
        }
    }
    return NULL;
}
