/**
 * @file tar_reader.h
 * @brief Reads a tar archive, entry by entry, from a stream of bytes.
 *
 * Formats: ustar (POSIX.1-1988) with its name prefix; pax (POSIX.1-2001) with the
 * records "path" and "size", ignoring others; GNU's long names and base-256
 * sizes. Every header's checksum is verified. A name has at most 4095 bytes.
 */
#ifndef WARPBOOK_COMMON_TEXTS_TAR_READER_H_
#define WARPBOOK_COMMON_TEXTS_TAR_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

/** A stream of bytes, the input of the reader. */
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

enum { TAR_MAX_NAME = 4096 };

enum tar_kind { TAR_FILE, TAR_FOLDER, TAR_OTHER };

struct tar_entry {
    char name[TAR_MAX_NAME]; /**< as in the archive, NUL-terminated */
    enum tar_kind kind;
    uint64_t size; /**< bytes of content */
};

struct tar_reader {
    struct byte_source source;
    uint64_t offset;  /**< in the archive, for messages */
    uint64_t content; /**< bytes of the entry's content not yet read */
    uint64_t padding; /**< bytes from there to the next header */
    bool ended;
};

/** Starts at the first header of @p source. */
void tar_reader_create(struct tar_reader *reader, struct byte_source source);

/**
 * @brief Skips the rest of the current entry and reads the next header.
 *
 * At the end of the archive it reads @p source to its end, so that damage there is found, too.
 *
 * @param found receives false after the last entry
 * @return STATUS_OK; STATUS_BAD_FORMAT, STATUS_TRUNCATED (no end mark), STATUS_TOO_LONG with the
 *         offset; STATUS_OUT_OF_MEMORY; or the status of the source
 */
MUST_CHECK enum status tar_reader_next(struct tar_reader *reader, struct tar_entry *entry,
                                       bool *found, struct error *error);

/**
 * @brief Reads the next @p size bytes of the entry's content.
 * @return STATUS_OK, STATUS_INVALID_ARGUMENT (more than is left), STATUS_TRUNCATED, or the status
 *         of the source
 */
MUST_CHECK enum status tar_reader_read(struct tar_reader *reader, void *buffer, size_t size,
                                       struct error *error);

#endif
