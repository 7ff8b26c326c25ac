/**
 * @file xz_reader.h
 * @brief Decompresses an .xz file piece by piece, with liblzma.
 *
 * The memory needed is that of the dictionary (64 MiB for files of `xz -9`),
 * whatever the length of the data; a file that needs more than 256 MiB is
 * refused. Concatenated streams are read as one. Checksums are verified at the
 * end of each block.
 */
#ifndef WARPBOOK_COMMON_TEXTS_XZ_READER_H_
#define WARPBOOK_COMMON_TEXTS_XZ_READER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

struct xz_reader;

/** @return whether the data begin with the signature of an .xz file. */
bool xz_recognise(const unsigned char *data, size_t size);

/**
 * @brief Creates a reader of @p size bytes, which must outlive it.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY; STATUS_UNSUPPORTED in a build without liblzma
 */
MUST_CHECK enum status xz_reader_create(struct xz_reader **reader, const unsigned char *data,
                                        size_t size, struct error *error);

/**
 * @brief The read function of a struct byte_source whose context is the reader.
 * @return STATUS_OK; STATUS_BAD_FORMAT, STATUS_TRUNCATED, STATUS_UNSUPPORTED, STATUS_OUT_OF_MEMORY
 *         with the offset in the compressed bytes; after a failure every call fails
 */
MUST_CHECK enum status xz_reader_read(void *reader, void *buffer, size_t size, size_t *got,
                                      struct error *error);

/** @return number of compressed bytes read so far. */
size_t xz_reader_offset(const struct xz_reader *reader);

/** Frees; NULL is allowed. */
void xz_reader_free(struct xz_reader *reader);

#endif
