#include "common/testing/recording.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "common/testing/testing.h"

const cJSON *recording_case(const cJSON *root, const char *path, const char *name) {
    const cJSON *one;
    cJSON_ArrayForEach(one, recording_member(root, "cases")) {
        if (strcmp(recording_string(one, "name"), name) == 0) {
            return one;
        }
    }
    TEST_FAIL("%s has no case %s", path, name);
    return NULL;
}

const cJSON *recording_member(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(value) ? NULL : value;
}

double recording_number(const cJSON *object, const char *key) {
    return cJSON_GetNumberValue(recording_member(object, key));
}

const char *recording_string(const cJSON *object, const char *key) {
    const char *value = cJSON_GetStringValue(recording_member(object, key));
    return value != NULL ? value : "";
}
