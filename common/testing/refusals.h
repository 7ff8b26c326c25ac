/**
 * @file refusals.h
 * @brief Inputs that a parser or an opener must refuse: with a status, a message of one line, and
 *        nothing left behind.
 */
#ifndef WARPBOOK_COMMON_TESTING_REFUSALS_H_
#define WARPBOOK_COMMON_TESTING_REFUSALS_H_

#include <stddef.h>

#include "common/base/status.h"

/** Parses, checks that a refusal left nothing behind, and frees what was made. */
typedef enum status refusing_parser(const void *data, size_t size, struct error *error);

/** As refusing_parser, for a file or folder. */
typedef enum status refusing_opener(const char *path, struct error *error);

/** A text that a parser must refuse. */
struct refusal {
    const char *text;
    enum status status;
    const char *message; /**< or a part of it */
};

enum { NOT_UTF8_COUNT = 13 };

/** Texts that are not UTF-8, each wrong in another way; the messages are "byte OFFSET (0xHH)". */
extern const struct refusal not_utf8[NOT_UTF8_COUNT];

/** Expects that @p parse refuses data in memory of exactly their size, where sanitizers see reads
 * past the end. @param message of the error, or a part of it */
void expect_refusal(refusing_parser *parse, const void *data, size_t size, enum status status,
                    const char *message);

/** Expects that @p parse refuses each of the texts. */
void expect_refusals(refusing_parser *parse, const struct refusal *cases, size_t count);

/** Expects that @p parse refuses every prefix of data, from 0 bytes to all but the last one. */
void expect_prefixes_refused(refusing_parser *parse, const void *data, size_t size,
                             enum status status, const char *message);

/**
 * @brief Expects that @p open fails at @p path.
 * @param file the file at fault in the folder @p path; "": the path itself. The message begins with
 *             its path.
 */
void expect_open_fails(refusing_opener *open, const char *path, const char *file,
                       enum status status, const char *message);

/** Expects that @p open fails at a file that is missing, at a folder, and at an empty file, the
 * last of which has @p status and @p message. */
void expect_bad_files_named(refusing_opener *open, enum status status, const char *message);

/** @return a copy of exactly @p size bytes, which the caller frees. */
void *exact_copy(const void *data, size_t size);

#endif
