/**
 * @file xz_reader.h
 * @brief An .xz file, inflated piece by piece with liblzma.
 *
 * Memory is the dictionary's, whatever the length of the text (64 MiB for
 * files of `xz -9`); a file that asks for more than 256 MiB is refused. Streams
 * that lie one after the other are read as one. Checksums are verified as the
 * end of each block is reached.
 */
#ifndef WARPBOOK_COMMON_TEXTS_XZ_READER_H_
#define WARPBOOK_COMMON_TEXTS_XZ_READER_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct xz_reader;

/** @return whether the bytes begin as an .xz file does. */
bool xz_recognise(const unsigned char *data, size_t size);

/**
 * @brief Begins to inflate bytes that must outlive the reader.
 * @return STATUS_OK, STATUS_OUT_OF_MEMORY; STATUS_UNSUPPORTED in a build without liblzma
 */
MUST_CHECK enum status xz_reader_create(struct xz_reader **reader, const unsigned char *data,
                                        size_t size, struct error *error);

/**
 * @brief The read function of a struct byte_source whose context is the reader.
 * @return STATUS_OK; STATUS_BAD_FORMAT, STATUS_TRUNCATED, STATUS_UNSUPPORTED, STATUS_OUT_OF_MEMORY
 *         with the offset in the compressed bytes; the same again when called again
 */
MUST_CHECK enum status xz_reader_read(void *reader, void *buffer, size_t size, size_t *got,
                                      struct error *error);

/** @return how many of the compressed bytes have been used. */
size_t xz_reader_offset(const struct xz_reader *reader);

/** Frees; NULL is allowed. */
void xz_reader_free(struct xz_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
