/**
 * @file gguf.h
 * @brief The GGUF container (versions 2 and 3): named values, then tensors, many of them in blocks
 *        of 8, 6 or 4 bits.
 *
 * The file, little-endian: "GGUF", u32 version, u64 number of tensors, u64 number of values; the
 * values, each a string (u64 length, bytes) as key, u32 type, content; the tensors, each a name,
 * u32 rank, u64 extents (the innermost first), u32 type, u64 offset; padding to a multiple of
 * "general.alignment" (32); data, at which offsets begin. Format: ggml's docs/gguf.md.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_H_
#define WARPBOOK_COMMON_CHECKPOINTS_GGUF_GGUF_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/checkpoints/gguf/gguf_blocks.h"

enum { GGUF_MAX_RANK = 4 };

/** Types of values, by their numbers in files. */
enum gguf_value_type {
    GGUF_UINT8,
    GGUF_INT8,
    GGUF_UINT16,
    GGUF_INT16,
    GGUF_UINT32,
    GGUF_INT32,
    GGUF_FLOAT32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_UINT64,
    GGUF_INT64,
    GGUF_FLOAT64,
    GGUF_VALUE_TYPES
};

/** Bytes inside the file; not NUL-terminated. */
struct gguf_string {
    const char *text;
    size_t length;
};

/** A named value. A single one is an array of one element. */
struct gguf_value {
    struct gguf_string key;
    bool is_array;
    enum gguf_value_type type; /**< of the elements; never GGUF_ARRAY */
    size_t count;
    const unsigned char *data; /**< the elements as in the file, which have been checked */
};

struct gguf_tensor {
    struct gguf_string name;
    uint32_t type; /**< enum gguf_type, or the number of a type that cannot be read */
    size_t rank;
    size_t shape[GGUF_MAX_RANK]; /**< the innermost last, as elsewhere in this project */
    size_t count;
    const void *data; /**< inside the file; may be unaligned */
    size_t bytes;     /**< 0 for a type that cannot be read */
};

struct gguf {
    struct gguf_value *values;   /**< (value_count) sorted by key */
    struct gguf_tensor *tensors; /**< (tensor_count) sorted by name */
    size_t value_count, tensor_count;
    struct file_view view; /**< the mapped file; empty after gguf_parse() */
};

/** @return whether a regular file begins as GGUF does. */
bool gguf_is(const char *path);

/**
 * @brief Maps a file and checks it: lengths, types, tensors inside the file, no key and no name
 *        twice.
 * @return STATUS_OK, the status of file_view_open(), STATUS_TRUNCATED, STATUS_BAD_FORMAT,
 *         STATUS_UNSUPPORTED (another version, arrays of arrays), STATUS_OVERFLOW,
 *         STATUS_OUT_OF_MEMORY; the message names file and place
 */
MUST_CHECK enum status gguf_open(struct gguf *file, const char *path, struct error *error);

/** As gguf_open() on bytes that must outlive @p file. */
MUST_CHECK enum status gguf_parse(struct gguf *file, const void *data, size_t size,
                                  struct error *error);

/** Unmaps and frees; a zero-initialised or closed file is allowed. */
void gguf_close(struct gguf *file);

/** @return the tensor, or NULL. */
const struct gguf_tensor *gguf_find(const struct gguf *file, const char *name);

/** @return the value, or NULL. */
const struct gguf_value *gguf_value(const struct gguf *file, const char *key);

/** @brief A whole number, not negative, of any integer type. @return false if there is none. */
bool gguf_size(const struct gguf *file, const char *key, size_t *out);

/** @brief A single number of any numeric type. @return false if there is none. */
bool gguf_number(const struct gguf *file, const char *key, double *out);

/** @brief A single truth value. @return false if there is none. */
bool gguf_bool(const struct gguf *file, const char *key, bool *out);

/** @return whether there is this single string. */
bool gguf_text_is(const struct gguf *file, const char *key, const char *want);

/** @brief A single string. @return false if there is none. */
bool gguf_text(const struct gguf *file, const char *key, struct gguf_string *out);

/** @return element @p index of an array of numbers. */
double gguf_element(const struct gguf_value *array, size_t index);

/** Visits an array's strings in order; advances @p next, which is array->data at first. */
struct gguf_string gguf_next_string(const unsigned char **next);

/** Bytes of a text that messages show of a string from a file: as argument of "%.*s". */
int gguf_shown(struct gguf_string string);

#endif
