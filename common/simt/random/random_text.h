/**
 * @file random_text.h
 * @brief Text that grows while it is written.
 */
#ifndef WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_TEXT_H_
#define WARPBOOK_COMMON_SIMT_RANDOM_RANDOM_TEXT_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Zero-initialise before use; free(data) after it. */
struct random_text {
    char *data; /**< NUL-terminated; NULL while empty */
    size_t size, capacity;
    bool failed; /**< out of memory: later text is lost */
};

/** Appends @p size bytes. */
void random_text_add(struct random_text *text, const char *bytes, size_t size);

/** Appends as printf does. */
void random_text_print(struct random_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif
