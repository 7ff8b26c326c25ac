#include "common/testing/expectation.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

struct cJSON *expectation_load(const char *path) {
    enum { LIMIT = 1 << 24 };
    char *text;
    size_t size;
    struct error error = {0};
    enum status status = file_read(path, LIMIT, &text, &size, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
        return NULL;
    }
    struct cJSON *json = cJSON_ParseWithLength(text, size);
    free(text);
    if (json == NULL) {
        TEST_FAIL("%s is not JSON", path);
    }
    return json;
}

const char *expectation_string(const struct cJSON *object, const char *name) {
    const char *string = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    if (string == NULL) {
        TEST_FAIL("the expectation has no string %s", name);
        return "";
    }
    return string;
}

char *expectation_text(const struct cJSON *object, const char *name, size_t *length) {
    const char *digits = expectation_string(object, name);
    *length = strlen(digits) / 2;
    char *text = malloc(*length > 0 ? *length : 1);
    for (size_t i = 0; text != NULL && i < *length; i++) {
        unsigned byte = 0;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1) {
            TEST_FAIL("the expectation's %s is not hexadecimal: %s", name, digits);
        }
        text[i] = (char)byte;
    }
    if (text == NULL) {
        TEST_FAIL("out of memory");
    }
    return text;
}

void expectation_check_ids(const struct cJSON *recorded, const int32_t *ids, size_t count,
                           const char *what) {
    size_t index = 0;
    const struct cJSON *want;
    cJSON_ArrayForEach(want, recorded) {
        if (index >= count || (double)ids[index] != cJSON_GetNumberValue(want)) {
            TEST_FAIL("%s: id %zu of %zu is %d, the library's is %.0f", what, index, count,
                      index < count ? ids[index] : -1, cJSON_GetNumberValue(want));
            return;
        }
        index++;
    }
    if (!cJSON_IsArray(recorded) || index != count) {
        TEST_FAIL("%s: %zu ids, the library gives %zu", what, count, index);
    }
}

void expectation_check_hash(const char *recorded, uint64_t hash, const char *what) {
    char got[17];
    snprintf(got, sizeof got, "%016llx", (unsigned long long)hash);
    if (strcmp(recorded, got) != 0) {
        TEST_FAIL("%s: hash of ids is %s, the library's %s", what, got, recorded);
    }
}

uint64_t expectation_hash_start(void) {
    return 0xcbf29ce484222325u;
}

uint64_t expectation_hash(uint64_t hash, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (int shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ ((uint32_t)ids[i] >> shift & 0xff)) * 0x100000001b3u;
        }
    }
    return hash;
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
