/**
 * @file words.h
 * @brief What messages count.
 */
#ifndef WARPBOOK_COMMON_TESTING_WORDS_H_
#define WARPBOOK_COMMON_TESTING_WORDS_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @return what a noun behind the number ends with: "1 row", "2 rows". */
static inline const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

#ifdef __cplusplus
}
#endif

#endif
