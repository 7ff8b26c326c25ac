/**
 * @file plain_text.h
 * @brief Text of a submission, without what a terminal or a page would obey.
 */
#ifndef WARPBOOK_GRADER_ISOLATION_PLAIN_TEXT_H_
#define WARPBOOK_GRADER_ISOLATION_PLAIN_TEXT_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @brief Looks at the first character of a text.
 *
 * Not plain are bytes that are not UTF-8, control characters (C0 but for line end and tab, DEL,
 * C1), characters that only format (writing direction, zero width, line and paragraph separators)
 * and code points that Unicode assigns to nobody or to private use.
 *
 * @param size bytes of @p text, at least 1
 * @param plain receives whether it may be shown as it is
 * @return its length in bytes; 1 for a byte that is not UTF-8
 */
size_t plain_text_first(const char *text, size_t size, bool *plain);

/** Replaces each character that is not plain by one ?, in place. @param text ends with a NUL */
void plain_text(char *text);

#ifdef __cplusplus
}
#endif

#endif
