/**
 * @file json_object.h
 * @brief JSON objects out of files nobody vouches for: cJSON, minus what it lets pass.
 *
 * cJSON takes duplicate keys, raw control characters, bytes that are not
 * UTF-8, and cuts strings at an escaped NUL. A checkpoint that has one of
 * these is damaged or hostile, and is refused here.
 */
#ifndef WARPBOOK_COMMON_BASE_JSON_OBJECT_H_
#define WARPBOOK_COMMON_BASE_JSON_OBJECT_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/**
 * @brief Parses @p size bytes that must be one JSON object and white space.
 *
 * Nesting is limited to cJSON's 1000 levels.
 *
 * @param object receives a tree for cJSON_Delete(), or NULL
 * @param text   need not end in NUL
 * @return STATUS_OK, STATUS_BAD_UTF8, STATUS_BAD_FORMAT (with the offset where there is one),
 *         STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status json_object_parse(struct cJSON **object, const char *text, size_t size,
                                         struct error *error);

/** @return true and *out, when @p item is a whole number in [0, 2^53], which a double holds
 * exactly. */
bool json_size(const struct cJSON *item, size_t *out);

/** @return the value of a key; NULL when it is absent, and when it is null, as Python has it. */
const struct cJSON *json_member(const struct cJSON *object, const char *key);

/**
 * @brief Reads a size: a whole number in [1, INT32_MAX]. Products of two of them, times 4, fit a
 *        size_t.
 * @param fallback what it is when the key is absent; 0: it must be there
 * @return STATUS_OK or STATUS_BAD_FORMAT with the key
 */
MUST_CHECK enum status json_read_size(const struct cJSON *object, const char *key, size_t fallback,
                                      size_t *out, struct error *error);

/**
 * @brief Reads a number that lies between 0 and 1, neither of them, as fp32.
 * @param fallback what it is when the key is absent
 */
MUST_CHECK enum status json_read_fraction(const struct cJSON *object, const char *key,
                                          float fallback, float *out, struct error *error);

/** @return the precision that shows at most 100 bytes of @p text, whole code points, with "%.*s".
 */
int json_shown(const char *text);

#ifdef __cplusplus
}
#endif

#endif
