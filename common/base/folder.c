#include "common/base/folder.h"

#include <stdio.h>
#include <sys/stat.h>

enum status folder_join(char path[FOLDER_PATH_BYTES], const char *folder, const char *name,
                        const char *what, struct error *error) {
    int length = snprintf(path, FOLDER_PATH_BYTES, "%s/%s", folder, name);
    if (length < 0 || length >= FOLDER_PATH_BYTES) {
        return error_set(error, STATUS_TOO_LONG, "path of the %s is longer than %d bytes", what,
                         FOLDER_PATH_BYTES - 1);
    }
    return STATUS_OK;
}

bool folder_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool path_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}
