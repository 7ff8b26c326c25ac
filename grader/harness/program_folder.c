#include "grader/harness/program_folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum status program_folder_path(char *path, size_t size, const char *name, struct error *error) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "cannot find this program's own folder");
    }
    size_t room = size - (size_t)(slash + 1 - path);
    if ((size_t)snprintf(slash + 1, room, "%s", name) >= room) {
        return error_set(error, STATUS_TOO_LONG, "the path of %s is too long", name);
    }
    return STATUS_OK;
}
