#include "grader/class/task.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/json_object.h"
#include "grader/report/run.h"

enum { MOST_TASK = 64 << 10, SCHEMA = 1 };

enum status task_path(char path[TASK_PATH], const char *output, unsigned id, const char *name,
                      struct error *error) {
    int length = snprintf(path, TASK_PATH, "%s/tasks/%06u/%s", output, id, name);
    return length < TASK_PATH
               ? STATUS_OK
               : error_set(error, STATUS_TOO_LONG, "the path of the output folder is too long");
}

void task_file(char *name, size_t size, const struct lab *lab) {
    snprintf(name, size, "files/labs/%s/%s", lab->name, lab->file);
}

static cJSON *labs_to_json(const bool labs[LAB_COUNT]) {
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < LAB_COUNT; i++) {
        if (labs[i]) {
            cJSON_AddItemToArray(list, cJSON_CreateString(lab_at(i)->name));
        }
    }
    return list;
}

static void labs_from_json(bool labs[LAB_COUNT], const cJSON *list) {
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        for (size_t i = 0; i < LAB_COUNT; i++) {
            const char *name = cJSON_GetStringValue(item);
            labs[i] |= name != NULL && strcmp(name, lab_at(i)->name) == 0;
        }
    }
}

/* Writes and deletes it. */
static enum status save(cJSON *json, const char *path, struct error *error) {
    char *text = json != NULL ? cJSON_Print(json) : NULL;
    enum status status = text != NULL ? file_write(path, text, strlen(text), error)
                                      : error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    cJSON_free(text);
    cJSON_Delete(json);
    return status;
}

static enum status load(cJSON **json, const char *path, struct error *error) {
    char *text;
    size_t size;
    TRY(file_read(path, MOST_TASK, &text, &size, error));
    enum status status = json_object_parse(json, text, size, error);
    free(text);
    return status == STATUS_OK ? status : error_prefix(error, status, path);
}

static double number_of(const cJSON *json, const char *key) {
    const cJSON *item = json_member(json, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0.0;
}

static const char *text_of(const cJSON *json, const char *key) {
    const char *text = cJSON_GetStringValue(json_member(json, key));
    return text != NULL ? text : "";
}

enum status settings_save(const struct class_settings *s, const char *output, struct error *error) {
    char path[TASK_PATH];
    snprintf(path, sizeof path, "%.4000s/class.json", output);
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "schema", SCHEMA);
    cJSON_AddStringToObject(json, "run", s->run);
    cJSON_AddItemToObject(json, "labs", labs_to_json(s->chosen));
    cJSON_AddBoolToObject(json, "require_isolation", s->isolated);
    cJSON_AddNumberToObject(json, "limit_s", s->limit_s);
    return save(json, path, error);
}

enum status settings_load(struct class_settings *s, const char *output, struct error *error) {
    char path[TASK_PATH];
    cJSON *json;
    *s = (struct class_settings){0};
    snprintf(path, sizeof path, "%.4000s/class.json", output);
    TRY(load(&json, path, error));
    bool good = number_of(json, "schema") == SCHEMA;
    snprintf(s->run, sizeof s->run, "%s", text_of(json, "run"));
    labs_from_json(s->chosen, json_member(json, "labs"));
    s->isolated = cJSON_IsTrue(json_member(json, "require_isolation"));
    s->limit_s = number_of(json, "limit_s");
    cJSON_Delete(json);
    return good && s->limit_s > 0.0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_FORMAT, "%.400s: not of this version", path);
}

enum status task_save(const struct task *task, const char *output, struct error *error) {
    char path[TASK_PATH];
    TRY(task_path(path, output, task->id, "task.json", error));
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "schema", SCHEMA);
    cJSON_AddStringToObject(json, "name", task->name);
    cJSON_AddStringToObject(json, "refused", task->refused);
    cJSON_AddItemToObject(json, "labs", labs_to_json(task->has));
    return save(json, path, error);
}

enum status task_load(struct task *task, const char *output, unsigned id, struct error *error) {
    char path[TASK_PATH];
    cJSON *json;
    *task = (struct task){.id = id};
    TRY(task_path(path, output, id, "task.json", error));
    TRY(load(&json, path, error));
    bool good = number_of(json, "schema") == SCHEMA;
    text_clean(task->name, sizeof task->name, text_of(json, "name"), false);
    text_clean(task->refused, sizeof task->refused, text_of(json, "refused"), false);
    labs_from_json(task->has, json_member(json, "labs"));
    cJSON_Delete(json);
    return good ? STATUS_OK
                : error_set(error, STATUS_BAD_FORMAT, "%.400s: not of this version", path);
}
