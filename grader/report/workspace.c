#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "grader/report/labs.h"

/* A path to this folder or to one above it: the last LEVELS parts of "../../.." */
static const char parents[] = "../../../../../../../..";

static const char *parent(size_t levels) {
    return levels == 0 ? "." : parents + sizeof parents - 3 * levels;
}

static int is_workspace(size_t levels) {
    char path[sizeof parents + sizeof "/WORKSPACE"];
    snprintf(path, sizeof path, "%s/WORKSPACE", parent(levels));
    if (access(path, F_OK) != 0) {
        return 0;
    }
    snprintf(path, sizeof path, "%s/labs", parent(levels));
    return access(path, F_OK) == 0;
}

const char *lab_workspace(void) {
    const char *workspace = getenv("BUILD_WORKSPACE_DIRECTORY");
    if (workspace != NULL && workspace[0] != '\0') {
        return workspace;
    }
    for (size_t levels = 0; levels <= sizeof parents / 3; levels++) {
        if (is_workspace(levels)) {
            return parent(levels);
        }
    }
    return ".";
}
