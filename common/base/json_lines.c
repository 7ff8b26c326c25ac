#include "common/base/json_lines.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Creates the folders before the last slash, as mkdir -p does. */
static bool make_folders(const char *path) {
    char *copy = strdup(path);
    if (copy == NULL) {
        return false;
    }
    bool good = true;
    for (char *slash = strchr(copy + 1, '/'); slash != NULL && good;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        good = mkdir(copy, 0777) == 0 || errno == EEXIST;
        *slash = '/';
    }
    free(copy);
    return good;
}

static enum status append_line(const char *path, const char *line, size_t size,
                               struct error *error) {
    int descriptor = -1;
    if (make_folders(path)) {
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    }
    if (descriptor < 0) {
        return error_set(error, STATUS_IO, "%s: cannot append: %s", path, strerror(errno));
    }
    ssize_t written = write(descriptor, line, size);
    int code = errno;
    close(descriptor);
    if (written != (ssize_t)size) {
        return error_set(error, STATUS_IO, "%s: cannot append: %s", path,
                         written < 0 ? strerror(code) : "disk full");
    }
    return STATUS_OK;
}

enum status json_lines_append(const char *path, const struct cJSON *object, struct error *error) {
    char *text = cJSON_PrintUnformatted(object);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    size_t length = strlen(text);
    char *line = realloc(text, length + 2);
    if (line == NULL) {
        free(text);
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    line[length] = '\n';
    line[length + 1] = '\0';
    enum status status = append_line(path, line, length + 1, error);
    free(line);
    return status;
}
