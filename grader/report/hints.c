#include "grader/report/hints.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "grader/report/memory.h"

enum { MOST_BYTES = 1 << 20 };

/* Finds text at the beginning of a line. */
static const char *find_line(const char *text, const char *begin) {
    size_t length = strlen(begin);
    while (text != NULL && strncmp(text, begin, length) != 0) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text;
}

size_t hints_find(const char *handout, struct hint hints[MOST_HINTS]) {
    static const char open[] = "<details><summary>Hint ";
    static const char word[] = "<details><summary>";
    static const char close[] = "</summary>";
    size_t count = 0;
    const char *at = handout;
    while (count < MOST_HINTS && (at = find_line(at, open)) != NULL) {
        struct hint *h = &hints[count];
        h->title = at + sizeof word - 1;
        const char *title_end = strstr(h->title, close);
        const char *end = find_line(at, "</details>");
        if (title_end == NULL || end == NULL || title_end > end) {
            break;
        }
        h->title_length = (size_t)(title_end - h->title);
        h->body = title_end + sizeof close - 1;
        h->body += strspn(h->body, "\r\n");
        while (end > h->body && (end[-1] == '\n' || end[-1] == '\r')) {
            end--;
        }
        h->body_length = end > h->body ? (size_t)(end - h->body) : 0;
        count++;
        at = end;
    }
    return count;
}

enum status hints_load(struct hints_shown *shown, const char *path, struct error *error) {
    char *text;
    size_t size;
    *shown = (struct hints_shown){0};
    if (access(path, F_OK) != 0) {
        return STATUS_OK;
    }
    TRY(file_read(path, MOST_BYTES, &text, &size, error));
    cJSON *json = cJSON_ParseWithLength(text, size);
    free(text);
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        (void)error_set(error, STATUS_BAD_FORMAT, "%s: not a JSON object", path);
        return set_aside(path, error);
    }
    for (size_t i = 0; i < HANDOUT_COUNT; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, handout_at(i)->name);
        double count = cJSON_IsNumber(item) ? item->valuedouble : 0.0;
        shown->count[i] = count >= 0.0 && count <= MOST_HINTS ? (int)count : 0;
    }
    cJSON_Delete(json);
    return STATUS_OK;
}

static enum status save(const struct hints_shown *shown, const char *path, struct error *error) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < HANDOUT_COUNT; i++) {
        cJSON_AddNumberToObject(json, handout_at(i)->name, shown->count[i]);
    }
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", path);
    }
    enum status status = file_write(path, text, strlen(text), error);
    free(text);
    return status;
}

const char *hints_path(const char *folder, char *path, size_t size) {
    snprintf(path, size, "%s/hints.json", folder);
    return path;
}

enum status hints_remember(struct hints_shown *shown, size_t lab, int end, const char *folder,
                           struct error *error) {
    char path[1300];
    if (end <= shown->count[lab]) {
        return STATUS_OK;
    }
    shown->count[lab] = end;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: %s", folder, strerror(errno));
    }
    return save(shown, hints_path(folder, path, sizeof path), error);
}
