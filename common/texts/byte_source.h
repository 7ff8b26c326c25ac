/**
 * @file byte_source.h
 * @brief A stream of bytes, the input of a streaming reader.
 */
#ifndef WARPBOOK_COMMON_TEXTS_BYTE_SOURCE_H_
#define WARPBOOK_COMMON_TEXTS_BYTE_SOURCE_H_

#include <stddef.h>

#include "common/base/status.h"

struct byte_source {
    /**
     * Reads up to @p size bytes into @p buffer, host. *got is less than @p size only at the end of
     * the stream, which is not an error.
     */
    enum status (*read)(void *context, void *buffer, size_t size, size_t *got, struct error *error);
    void *context;
};

/** Bytes in memory as a stream: the context of memory_source_read(). */
struct memory_source {
    const unsigned char *data;
    size_t size;
    size_t offset; /**< of the next byte */
};

/** The read function of a struct byte_source whose context is a struct memory_source. */
MUST_CHECK enum status memory_source_read(void *source, void *buffer, size_t size, size_t *got,
                                          struct error *error);

#endif
