/**
 * @file words.h
 * @brief Phrases that several messages share.
 */
#ifndef WARPBOOK_COMMON_SIMT_MEMORY_SPACE_WORDS_H_
#define WARPBOOK_COMMON_SIMT_MEMORY_SPACE_WORDS_H_

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** @return the ending of a noun in the plural. */
static inline const char *simt_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

/** "N bytes past the end of", "just past the end of". */
static inline void simt_describe_past(uint64_t distance, char *text, size_t size) {
    if (distance == 0) {
        snprintf(text, size, "just past the end of");
    } else {
        snprintf(text, size, "%" PRIu64 " byte%s past the end of", distance, simt_plural(distance));
    }
}

#endif
