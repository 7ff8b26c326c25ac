#include "common/base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base/file.h"

enum status folder_join(char path[FOLDER_PATH_BYTES], const char *folder, const char *name,
                        const char *what, struct error *error) {
    int length = snprintf(path, FOLDER_PATH_BYTES, "%s/%s", folder, name);
    if (length < 0 || length >= FOLDER_PATH_BYTES) {
        return error_set(error, STATUS_TOO_LONG, "path of the %s is longer than %d bytes", what,
                         FOLDER_PATH_BYTES - 1);
    }
    return STATUS_OK;
}

enum status folder_write(const char *folder, const char *name, const void *data, size_t size,
                         const char *what, struct error *error) {
    char path[FOLDER_PATH_BYTES];
    TRY(folder_join(path, folder, name, what, error));
    return file_write(path, data, size, error);
}

bool folder_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool path_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}
