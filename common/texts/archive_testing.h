/**
 * @file archive_testing.h
 * @brief Makes archives in memory, for tests of their readers.
 */
#ifndef WARPBOOK_COMMON_TEXTS_ARCHIVE_TESTING_H_
#define WARPBOOK_COMMON_TEXTS_ARCHIVE_TESTING_H_

#include <stdbool.h>
#include <stddef.h>

/** A growing archive; zero-initialise before use, free(data) after. */
struct archive {
    unsigned char *data;
    size_t size;
};

/**
 * @brief Appends a ustar entry with its content.
 * @param type '0' a file, '5' a folder, 'x' pax records, 'L' a long name, ...
 * @param name at most 100 bytes
 */
void archive_add(struct archive *archive, char type, const char *name, const void *content,
                 size_t size);

/** Puts the right checksum into the header at @p offset, after a test has changed it. */
void archive_sign(struct archive *archive, size_t offset);

/** Appends @p size bytes as they are. */
void archive_append(struct archive *archive, const void *data, size_t size);

/** Appends the end mark: two blocks of zeros. */
void archive_end(struct archive *archive);

/** @return the archive as .xz; @p made receives false in a build without liblzma. */
struct archive archive_xz(const struct archive *archive, bool *made);

#endif
