#include "grader/harness/vendor_library.h"

#include <stdio.h>
#include <string.h>

/* How their files' names begin. */
static const char *const libraries[] = {"libcublas",   "libcudnn",    "libcutensor", "libnvblas",
                                        "libcusolver", "libopenblas", "libblas",     "libcblas",
                                        "libmkl",      "libblis",     "libnvrtc",    "libtorch"};

static bool is_vendor_library(const char *name) {
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (strncmp(name, libraries[i], strlen(libraries[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool grader_vendor_library(char *name, size_t size) {
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) {
        const char *slash = strrchr(line, '/');
        if (slash != NULL && is_vendor_library(slash + 1)) {
            snprintf(name, size, "%.*s", (int)strcspn(slash + 1, "\n"), slash + 1);
            found = true;
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return found;
}
