/**
 * @file words.h
 * @brief Plural forms for messages.
 */
#ifndef WARPBOOK_COMMON_TESTING_WORDS_H_
#define WARPBOOK_COMMON_TESTING_WORDS_H_

#include <stdint.h>

/** @return the ending of a noun after @p count: "" as in "1 row", "s" as in "2 rows". */
static inline const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

#endif
