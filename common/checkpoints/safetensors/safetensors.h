/**
 * @file safetensors.h
 * @brief The safetensors container: a JSON header, then raw tensors.
 *
 * The file: a little-endian u64 N, N bytes of JSON ({"name": {"dtype": "F32",
 * "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}}), then
 * data; offsets count from the end of the header. The header may be at most
 * 100 MB. Format: safetensors' README. The header is parsed with cJSON.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_SAFETENSORS_SAFETENSORS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_SAFETENSORS_SAFETENSORS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/file.h"
#include "common/base/status.h"

enum { SAFETENSORS_MAX_RANK = 8 };

enum safetensors_dtype {
    SAFETENSORS_F32,
    SAFETENSORS_F16,
    SAFETENSORS_BF16,
    SAFETENSORS_F64, /**< not for weights of a model: state of training in double */
    SAFETENSORS_I32, /**< packed weights of few bits */
    SAFETENSORS_I64,
    SAFETENSORS_OTHER /**< any other type: listed, but cannot be read */
};

/** @return whether safetensors_read_f32() can convert the type, without rounding. */
static inline bool safetensors_is_weight(enum safetensors_dtype dtype) {
    return dtype == SAFETENSORS_F32 || dtype == SAFETENSORS_F16 || dtype == SAFETENSORS_BF16;
}

struct safetensors_tensor {
    char *name;
    enum safetensors_dtype dtype;
    size_t rank;
    size_t shape[SAFETENSORS_MAX_RANK];
    size_t count;     /**< product of the shape; 1 for a scalar */
    const void *data; /**< inside the file; may be unaligned */
    size_t bytes;
};

struct safetensors {
    struct safetensors_tensor *tensors; /**< sorted by name */
    size_t count;
    struct file_view view;
};

/**
 * @brief Maps a file and checks the header: lengths, types, shapes against offsets, offsets inside
 *        the file, no duplicate name, no overlap, no gap, no bytes after the last tensor.
 * @return STATUS_OK, or the status of file_view_open() or json_object_parse(), STATUS_TRUNCATED,
 *         STATUS_BAD_FORMAT, STATUS_UNSUPPORTED, STATUS_OVERFLOW, STATUS_MISMATCH,
 *         STATUS_OUT_OF_MEMORY; the message names the file and the tensor
 */
MUST_CHECK enum status safetensors_open(struct safetensors *file, const char *path,
                                        struct error *error);

/** As safetensors_open() on bytes that must outlive @p file. */
MUST_CHECK enum status safetensors_parse(struct safetensors *file, const void *data, size_t size,
                                         struct error *error);

/** Unmaps and frees; a zero-initialised or closed file is allowed. */
void safetensors_close(struct safetensors *file);

/** @return the tensor, or NULL. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);

enum { SAFETENSORS_SHAPE_BYTES = SAFETENSORS_MAX_RANK * 24 };

/**
 * @brief Writes a shape as "(2, 3)", for messages.
 * @param rank at most SAFETENSORS_MAX_RANK
 * @return @p text
 */
const char *safetensors_shape_text(const size_t *shape, size_t rank,
                                   char text[SAFETENSORS_SHAPE_BYTES]);

/**
 * @brief Copies a tensor as fp32, converting F16 and BF16 exactly.
 * @param out host, tensor->count floats
 * @return STATUS_OK or STATUS_UNSUPPORTED for another dtype
 */
MUST_CHECK enum status safetensors_read_f32(const struct safetensors_tensor *tensor, float *out);

/**
 * @brief Serialises tensors (name, dtype, rank, shape, data, bytes) into memory that the caller
 *        frees.
 * @return STATUS_OK; STATUS_INVALID_ARGUMENT (reserved name, rank), STATUS_UNSUPPORTED (dtype),
 *         STATUS_MISMATCH (shape and bytes disagree), STATUS_OVERFLOW, STATUS_TOO_LONG (header),
 *         STATUS_BAD_UTF8 or STATUS_BAD_FORMAT (a name), STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status safetensors_serialize(const struct safetensors_tensor *tensors, size_t count,
                                             unsigned char **data, size_t *size,
                                             struct error *error);

/**
 * @brief Makes the beginning of a file, the length and the header, in memory that the caller frees.
 * @param tensors   as for safetensors_serialize(); data is not read
 * @param data_size receives the size of all tensors, which follow in this order, in bytes
 * @return the statuses of safetensors_serialize()
 */
MUST_CHECK enum status safetensors_header(const struct safetensors_tensor *tensors, size_t count,
                                          unsigned char **header, size_t *size, size_t *data_size,
                                          struct error *error);

#endif
