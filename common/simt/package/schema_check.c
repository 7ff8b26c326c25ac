/* schema_check SCHEMA FILE: whether a JSON file is as a JSON Schema says. Of the schema's language
 * it knows what simt's schemas use, and refuses a schema with more. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "common/base/file.h"
#include "common/base/json_object.h"
#include "common/base/terminal.h"

/** Where it is in the file, and the schema's root for "#/$defs/...". */
struct place {
    const cJSON *root;
    char path[512];
};

static enum status check(const struct place *place, const cJSON *schema, const cJSON *value,
                         struct error *error);

static enum status wrong(const struct place *place, const char *what, const char *name,
                         struct error *error) {
    return error_set(error, STATUS_BAD_FORMAT, "%s: %s %s", place->path, what, name);
}

static bool has_type(const cJSON *value, const char *type) {
    return strcmp(type, "object") == 0   ? cJSON_IsObject(value)
           : strcmp(type, "array") == 0  ? cJSON_IsArray(value)
           : strcmp(type, "string") == 0 ? cJSON_IsString(value)
           : strcmp(type, "number") == 0 ? cJSON_IsNumber(value)
           : strcmp(type, "integer") == 0
               ? cJSON_IsNumber(value) && floor(value->valuedouble) == value->valuedouble
               : false;
}

static enum status check_members(const struct place *place, const cJSON *schema, const cJSON *value,
                                 struct error *error) {
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(schema, "properties");
    const cJSON *more = cJSON_GetObjectItemCaseSensitive(schema, "additionalProperties");
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(schema, "required")) {
        if (!cJSON_HasObjectItem(value, item->valuestring)) {
            return wrong(place, "lacks", item->valuestring, error);
        }
    }
    cJSON_ArrayForEach(item, value) {
        const cJSON *member = cJSON_GetObjectItemCaseSensitive(properties, item->string);
        struct place below = *place;
        size_t used = strlen(below.path);
        snprintf(below.path + used, sizeof below.path - used, "/%s", item->string);
        if (member == NULL && cJSON_IsFalse(more)) {
            return wrong(place, "has an unknown member", item->string, error);
        }
        if (member != NULL) {
            TRY(check(&below, member, item, error));
        }
    }
    return STATUS_OK;
}

static enum status check_items(const struct place *place, const cJSON *items, const cJSON *value,
                               struct error *error) {
    int index = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, value) {
        struct place below = *place;
        size_t used = strlen(below.path);
        snprintf(below.path + used, sizeof below.path - used, "/%d", index++);
        TRY(check(&below, items, item, error));
    }
    return STATUS_OK;
}

/** What stands at a member of a schema that describes a value by itself. */
static enum status check_value(const struct place *place, const cJSON *rule, const cJSON *value,
                               struct error *error) {
    if (strcmp(rule->string, "type") == 0) {
        return has_type(value, rule->valuestring)
                   ? STATUS_OK
                   : wrong(place, "is not of type", rule->valuestring, error);
    }
    if (strcmp(rule->string, "const") == 0) {
        return cJSON_Compare(rule, value, true)
                   ? STATUS_OK
                   : wrong(place, "has another value than", "const", error);
    }
    if (strcmp(rule->string, "minimum") == 0) {
        return !cJSON_IsNumber(value) || value->valuedouble >= rule->valuedouble
                   ? STATUS_OK
                   : wrong(place, "is below the", "minimum", error);
    }
    if (strcmp(rule->string, "minItems") == 0) {
        return cJSON_GetArraySize(value) >= rule->valueint
                   ? STATUS_OK
                   : wrong(place, "has fewer items than", "minItems", error);
    }
    if (strcmp(rule->string, "items") == 0) {
        return check_items(place, rule, value, error);
    }
    return STATUS_OK;
}

static enum status check_reference(const struct place *place, const char *name, const cJSON *value,
                                   struct error *error) {
    static const char PREFIX[] = "#/$defs/";
    const cJSON *defs = cJSON_GetObjectItemCaseSensitive(place->root, "$defs");
    const cJSON *target = strncmp(name, PREFIX, sizeof PREFIX - 1) == 0
                              ? cJSON_GetObjectItemCaseSensitive(defs, name + sizeof PREFIX - 1)
                              : NULL;
    return target != NULL ? check(place, target, value, error)
                          : wrong(place, "the schema has no", name, error);
}

static enum status check(const struct place *place, const cJSON *schema, const cJSON *value,
                         struct error *error) {
    static const char *const KNOWN[] = {
        "$schema", "$defs",    "$ref",       "title",    "description",          "type", "const",
        "minimum", "minItems", "properties", "required", "additionalProperties", "items"};
    const cJSON *rule;
    cJSON_ArrayForEach(rule, schema) {
        bool known = false;
        for (size_t n = 0; n < sizeof KNOWN / sizeof *KNOWN; n++) {
            known = known || strcmp(KNOWN[n], rule->string) == 0;
        }
        if (!known) {
            return wrong(place, "the schema uses", rule->string, error);
        }
        if (strcmp(rule->string, "$ref") == 0) {
            TRY(check_reference(place, rule->valuestring, value, error));
        } else {
            TRY(check_value(place, rule, value, error));
        }
    }
    return cJSON_IsObject(value) ? check_members(place, schema, value, error) : STATUS_OK;
}

static enum status load(const char *path, cJSON **tree, struct error *error) {
    enum { LIMIT = 1 << 26 };
    char *text = NULL;
    size_t size = 0;
    TRY(file_read(path, LIMIT, &text, &size, error));
    enum status status = json_object_parse(tree, text, size, error);
    free(text);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, path);
}

int main(int argc, char **argv) {
    struct error error = {0};
    cJSON *schema = NULL;
    cJSON *value = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: schema_check SCHEMA FILE\n");
        return 2;
    }
    enum status status = load(argv[1], &schema, &error);
    status = status == STATUS_OK ? load(argv[2], &value, &error) : status;
    if (status == STATUS_OK) {
        struct place place = {.root = schema, .path = ""};
        snprintf(place.path, sizeof place.path, "%.400s", argv[2]);
        status = check(&place, schema, value, &error);
    }
    cJSON_Delete(schema);
    cJSON_Delete(value);
    return status == STATUS_OK ? 0 : report_failure("schema_check", &error, status);
}
