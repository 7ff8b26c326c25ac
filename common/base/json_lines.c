#include "common/base/json_lines.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"

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

/* Prints an object as one line, with its line feed; NULL: out of memory. The caller frees it. */
static char *print_line(const cJSON *object, size_t *size) {
    char *text = cJSON_PrintUnformatted(object);
    size_t length = text != NULL ? strlen(text) : 0;
    char *line = text != NULL ? realloc(text, length + 2) : NULL;
    if (line == NULL) {
        free(text);
        return NULL;
    }
    memcpy(line + length, "\n", 2);
    *size = length + 1;
    return line;
}

enum status json_lines_write(int descriptor, const char *path, const cJSON *object,
                             struct error *error) {
    size_t size;
    char *line = print_line(object, &size);
    if (line == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    ssize_t written = write(descriptor, line, size);
    int code = written < 0 ? errno : ENOSPC;
    free(line);
    return written == (ssize_t)size
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: cannot append: %s", path, strerror(code));
}

enum status json_lines_append(const char *path, const cJSON *object, struct error *error) {
    if (!make_folders(path)) {
        return error_set(error, STATUS_IO, "%s: cannot append: %s", path, strerror(errno));
    }
    int descriptor;
    TRY(file_open_append(path, &descriptor, error));
    enum status status = json_lines_write(descriptor, path, object, error);
    close(descriptor);
    return status;
}
