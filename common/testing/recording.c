#include "common/testing/recording.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

cJSON *recording_load(const char *path) {
    char *text;
    size_t size;
    struct error error = {0};
    if (file_read(path, 1 << 20, &text, &size, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return NULL;
    }
    cJSON *root = cJSON_ParseWithLength(text, size);
    free(text);
    if (root == NULL) {
        TEST_FAIL("%s is not JSON", path);
    }
    return root;
}

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
