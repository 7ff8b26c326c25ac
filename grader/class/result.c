#include "grader/class/result.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/json_object.h"

enum { MOST_RESULT = 16 << 20 };

static double number_of(const cJSON *json, const char *key) {
    const cJSON *item = json_member(json, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0.0;
}

static void text_of(char *out, size_t size, const cJSON *json, const char *key, bool newlines) {
    const char *text = cJSON_GetStringValue(json_member(json, key));
    text_clean(out, size, text != NULL ? text : "", newlines);
}

static cJSON *built_to_json(const struct result *r) {
    cJSON *all = cJSON_CreateObject();
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct built *b = &r->built[i];
        if (b->tried) {
            cJSON *one = cJSON_AddObjectToObject(all, lab_at(i)->name);
            cJSON_AddBoolToObject(one, "good", b->good);
            cJSON_AddNumberToObject(one, "compile_s", b->compile_s);
            cJSON_AddNumberToObject(one, "link_s", b->link_s);
            cJSON_AddStringToObject(one, "said", b->said);
        }
    }
    return all;
}

static char *to_text(const struct result *r, unsigned id) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "schema", 1);
    cJSON_AddNumberToObject(json, "id", id);
    cJSON_AddStringToObject(json, "host", r->host);
    cJSON_AddNumberToObject(json, "seconds", r->seconds);
    cJSON_AddNumberToObject(json, "graded_s", r->graded_s);
    cJSON_AddItemToObject(json, "built", built_to_json(r));
    cJSON_AddItemToObject(json, "run", run_to_json(&r->run));
    char *text = cJSON_PrintUnformatted(json);
    cJSON_Delete(json);
    return text;
}

/* link() makes the name appear with all of the content, and fails where it exists. */
static enum status publish(const char *part, const char *path, struct error *error) {
    enum status status = STATUS_OK;
    if (link(part, path) != 0 && errno != EEXIST) {
        status = error_set(error, STATUS_IO, "%.400s: cannot write: %s", path, strerror(errno));
    }
    unlink(part);
    return status;
}

enum status result_save(const struct result *r, const char *output, unsigned id,
                        struct error *error) {
    char path[TASK_PATH], part[TASK_PATH + 64];
    TRY(task_path(path, output, id, "result.json", error));
    snprintf(part, sizeof part, "%s.%.60s.%d", path, r->host, (int)getpid());
    char *text = to_text(r, id);
    enum status status = text != NULL ? file_write(part, text, strlen(text), error)
                                      : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    cJSON_free(text);
    TRY(status);
    return publish(part, path, error);
}

bool result_exists(const char *output, unsigned id) {
    char path[TASK_PATH];
    return task_path(path, output, id, "result.json", NULL) == STATUS_OK && access(path, F_OK) == 0;
}

static void built_from_json(struct result *r, const cJSON *all) {
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const cJSON *one = json_member(all, lab_at(i)->name);
        struct built *b = &r->built[i];
        if (cJSON_IsObject(one)) {
            b->tried = true;
            b->good = cJSON_IsTrue(json_member(one, "good"));
            b->compile_s = number_of(one, "compile_s");
            b->link_s = number_of(one, "link_s");
            text_of(b->said, sizeof b->said, one, "said", true);
        }
    }
}

enum status result_load(struct result *r, const char *output, unsigned id, struct error *error) {
    char path[TASK_PATH], *text;
    size_t size;
    cJSON *json;
    *r = (struct result){0};
    TRY(task_path(path, output, id, "result.json", error));
    TRY(file_read(path, MOST_RESULT, &text, &size, error));
    enum status status = json_object_parse(&json, text, size, error);
    free(text);
    if (status != STATUS_OK) {
        return error_prefix(error, status, path);
    }
    text_of(r->host, sizeof r->host, json, "host", false);
    r->seconds = number_of(json, "seconds");
    r->graded_s = number_of(json, "graded_s");
    built_from_json(r, json_member(json, "built"));
    status = run_from_json(&r->run, json_member(json, "run"), error);
    cJSON_Delete(json);
    return status == STATUS_OK ? status : error_prefix(error, status, path);
}

void result_free(struct result *r) {
    run_free(&r->run);
}
