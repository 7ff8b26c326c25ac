#include "common/base/json_object.h"

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* JSON forbids these code points unescaped. (White space inside strings, too, but not here.) */
static bool is_control(utf8proc_int32_t code_point) {
    return code_point < 0x20 && code_point != '\t' && code_point != '\n' && code_point != '\r';
}

/* The text must be valid UTF-8, without control characters and without an escaped NUL. */
static enum status check_bytes(const char *text, size_t size, struct error *error) {
    for (size_t i = 0; i < size;) {
        utf8proc_int32_t code_point;
        utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)text + i,
                                                   (utf8proc_ssize_t)(size - i), &code_point);
        if (length <= 0) {
            return error_set(error, STATUS_BAD_UTF8, "JSON is not valid UTF-8 at byte %zu", i);
        }
        if (is_control(code_point)) {
            return error_set(error, STATUS_BAD_FORMAT, "JSON has a control character at byte %zu",
                             i);
        }
        if (code_point == '\\' && size - i >= 2) {
            if (size - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0) {
                return error_set(error, STATUS_BAD_FORMAT,
                                 "JSON has a string with a NUL at byte %zu", i);
            }
            length = (unsigned char)text[i + 1] < 0x80 ? 2 : 1; /* "\\" does not start an escape */
        }
        i += (size_t)length;
    }
    return STATUS_OK;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuses an object with the same key twice. */
static enum status check_duplicate_keys(const cJSON *object, struct error *error) {
    size_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        count++;
    }
    if (count < 2) {
        return STATUS_OK;
    }
    const char **keys = malloc(count * sizeof *keys);
    if (keys == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory for %zu JSON keys", count);
    }
    size_t n = 0;
    cJSON_ArrayForEach(item, object) {
        keys[n++] = item->string;
    }
    qsort(keys, count, sizeof *keys, compare_keys);
    enum status status = STATUS_OK;
    for (size_t i = 1; i < count && status == STATUS_OK; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            status = error_set(error, STATUS_BAD_FORMAT, "JSON has the key \"%.*s\" twice",
                               json_shown(keys[i]), keys[i]);
        }
    }
    free(keys);
    return status;
}

/* Checks the keys of every object. Recursion is as deep as cJSON's: at most 1000 levels. */
static enum status check_keys(const cJSON *value, struct error *error) {
    if (cJSON_IsObject(value)) {
        TRY(check_duplicate_keys(value, error));
    } else if (!cJSON_IsArray(value)) {
        return STATUS_OK;
    }
    const cJSON *item;
    cJSON_ArrayForEach(item, value) {
        TRY(check_keys(item, error));
    }
    return STATUS_OK;
}

/* Only white space may follow the object. */
static enum status check_rest(const char *text, size_t size, size_t parsed, struct error *error) {
    for (size_t i = parsed; i < size; i++) {
        if (strchr(" \t\r\n", text[i]) == NULL) {
            return error_set(error, STATUS_BAD_FORMAT, "JSON has text after its end, at byte %zu",
                             i);
        }
    }
    return STATUS_OK;
}

/* Checks what cJSON parsed from the first `offset` bytes of the text. */
static enum status check_parsed(const cJSON *parsed, const char *text, size_t size, size_t offset,
                                struct error *error) {
    if (!cJSON_IsObject(parsed)) {
        return error_set(error, STATUS_BAD_FORMAT, "JSON is not an object");
    }
    TRY(check_rest(text, size, offset, error));
    return check_keys(parsed, error);
}

enum status json_object_parse(struct cJSON **object, const char *text, size_t size,
                              struct error *error) {
    *object = NULL;
    TRY(check_bytes(text, size, error));
    const char *end = NULL;
    cJSON *parsed = size > 0 ? cJSON_ParseWithLengthOpts(text, size, &end, 0) : NULL;
    size_t offset = end != NULL ? (size_t)(end - text) : 0;
    if (parsed == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "not valid JSON at byte %zu", offset);
    }
    enum status status = check_parsed(parsed, text, size, offset, error);
    if (status != STATUS_OK) {
        cJSON_Delete(parsed);
        return status;
    }
    *object = parsed;
    return STATUS_OK;
}

bool json_size(const struct cJSON *item, size_t *out) {
    if (!cJSON_IsNumber(item)) {
        return false;
    }
    double value = item->valuedouble;
    if (!(value >= 0.0 && value <= 0x1p53)) { /* false for NaN */
        return false;
    }
    *out = (size_t)value;
    return (double)*out == value;
}

const cJSON *json_member(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNull(item) ? NULL : item;
}

enum status json_read_size(const cJSON *object, const char *key, size_t fallback, size_t *out,
                           struct error *error) {
    const cJSON *item = json_member(object, key);
    if (item == NULL && fallback > 0) {
        *out = fallback;
        return STATUS_OK;
    }
    if (item == NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is missing", key);
    }
    if (!cJSON_IsNumber(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is not a number", key);
    }
    if (!json_size(item, out) || *out < 1 || *out > INT32_MAX) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "\"%s\" is %.17g, must be a whole number from 1 to %d", key,
                         item->valuedouble, INT32_MAX);
    }
    return STATUS_OK;
}

enum status json_read_fraction(const cJSON *object, const char *key, float fallback, float *out,
                               struct error *error) {
    const cJSON *item = json_member(object, key);
    *out = fallback;
    if (item == NULL) {
        return STATUS_OK;
    }
    if (!cJSON_IsNumber(item)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is not a number", key);
    }
    /* Rounded to fp32 before the check: 1e-60 becomes 0, and something may divide by it. */
    *out = item->valuedouble < 1.0 ? (float)item->valuedouble : 1.0f;
    if (!(*out > 0.0f && *out < 1.0f)) {
        return error_set(error, STATUS_BAD_FORMAT, "\"%s\" is %g, must be between 0 and 1", key,
                         item->valuedouble);
    }
    return STATUS_OK;
}

bool json_add_rounded(cJSON *object, const char *key, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    return cJSON_AddRawToObject(object, key, text) != NULL;
}

int json_shown(const char *text) {
    enum { LIMIT = 100 };
    size_t length = strnlen(text, LIMIT + 1);
    if (length <= LIMIT) {
        return (int)length;
    }
    length = LIMIT;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
        length--; /* do not cut inside a code point */
    }
    return (int)length;
}
