/**
 * @file json_object.h
 * @brief Strict parsing of JSON objects from untrusted files, on top of cJSON.
 *
 * cJSON accepts duplicate keys, raw control characters and bytes that are not
 * UTF-8, and it cuts strings at an escaped NUL. A checkpoint with one of these
 * is damaged or hostile: this parser refuses it.
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
 * @brief Parses @p size bytes, which must be one JSON object and otherwise only white space.
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

/** Sets *out and returns true if @p item is a whole number in [0, 2^53], which a double holds
 * exactly. */
bool json_size(const struct cJSON *item, size_t *out);

/** @return the value of a key; NULL if the key is absent or its value is null (Python's None). */
const struct cJSON *json_member(const struct cJSON *object, const char *key);

/**
 * @brief Reads a size: a whole number in [1, INT32_MAX]. The product of two of them, times 4, fits
 *        a size_t.
 * @param fallback value used if the key is absent; 0: the key is required
 * @return STATUS_OK or STATUS_BAD_FORMAT with the key
 */
MUST_CHECK enum status json_read_size(const struct cJSON *object, const char *key, size_t fallback,
                                      size_t *out, struct error *error);

/**
 * @brief Reads a number in the open interval (0, 1), as fp32.
 * @param fallback value used if the key is absent
 * @return STATUS_OK or STATUS_BAD_FORMAT with the key
 */
MUST_CHECK enum status json_read_fraction(const struct cJSON *object, const char *key,
                                          float fallback, float *out, struct error *error);

/**
 * @brief Adds a finite number with six digits, as many as a value computed in fp32 is good for.
 * @return false if there is no memory
 */
bool json_add_rounded(struct cJSON *object, const char *key, double value);

/** @return precision for "%.*s" that prints at most 100 bytes of @p text and cuts no code point. */
int json_shown(const char *text);

#ifdef __cplusplus
}
#endif

#endif
