/**
 * @file utf8.h
 * @brief Reads UTF-8 code point by code point; invalid bytes are reported with their offset.
 */
#ifndef WARPBOOK_COMMON_BASE_UTF8_H_
#define WARPBOOK_COMMON_BASE_UTF8_H_

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Reads the code point at @p *offset and advances the offset to the next one.
 *
 * Overlong forms, surrogates, code points above U+10FFFF, stray and missing
 * continuation bytes are STATUS_BAD_UTF8; the message gives the byte offset.
 *
 * @param text   @p length bytes; NUL is a code point like others
 * @param offset in [0, length); unchanged on failure
 */
MUST_CHECK enum status utf8_next(const char *text, size_t length, size_t *offset,
                                 int32_t *code_point, struct error *error);

/** @brief Checks all of @p text. @return STATUS_OK or STATUS_BAD_UTF8 as utf8_next(). */
MUST_CHECK enum status utf8_check(const char *text, size_t length, struct error *error);

#ifdef __cplusplus
}
#endif

#endif
