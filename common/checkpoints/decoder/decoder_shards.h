/**
 * @file decoder_shards.h
 * @brief The safetensors files of a checkpoint: model.safetensors, or shards with an index.
 *
 * model.safetensors.index.json: {"metadata": {..}, "weight_map": {"tensor": "file", ..}}, files in
 * the folder of the index.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_SHARDS_H_
#define WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_SHARDS_H_

#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/safetensors/safetensors.h"

/** Which file of an index holds a tensor. */
struct decoder_index_entry {
    const char *tensor;
    size_t file; /**< in [0, file_count) */
};

struct decoder_index {
    const char **files; /**< (file_count) sorted, each once */
    size_t file_count;
    struct decoder_index_entry *entries; /**< (count) in the order of the text */
    size_t count;
    char *text; /**< memory of the names */
};

/**
 * @brief Reads the text of an index.
 * @return STATUS_OK; STATUS_BAD_FORMAT (also for a file that is not inside the folder: an absolute
 *         path, or one with ".." in it), STATUS_BAD_UTF8, STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status decoder_index_parse(struct decoder_index *index, const char *json,
                                           size_t size, struct error *error);

/** Frees; a zero-initialised one is allowed. */
void decoder_index_free(struct decoder_index *index);

struct decoder_shard {
    char *path; /**< for messages */
    struct safetensors file;
};

/** A tensor, and the shard that holds it. */
struct decoder_located {
    const struct safetensors_tensor *tensor;
    const struct decoder_shard *shard;
};

struct decoder_shards {
    char *path; /**< of the index, or of the only file; for messages about missing tensors */
    struct decoder_shard *shards; /**< (count) */
    size_t count;
    struct decoder_located *tensors; /**< (tensor_count) of all shards, sorted by name */
    size_t tensor_count;
};

/**
 * @brief Maps FOLDER/model.safetensors, or else the files that FOLDER/model.safetensors.index.json
 *        lists.
 * @return STATUS_OK; STATUS_NOT_FOUND if there is neither or a shard is missing; the statuses of
 *         safetensors_open(), decoder_index_parse() and decoder_shards_join()
 */
MUST_CHECK enum status decoder_shards_open(struct decoder_shards *shards, const char *folder,
                                           struct error *error);

/** Maps one file of any name. @return as decoder_shards_open() */
MUST_CHECK enum status decoder_shards_open_file(struct decoder_shards *shards, const char *path,
                                                struct error *error);

/**
 * @brief Fills `tensors` from the headers of the shards.
 * @param index NULL for a single file; else shard i is its file i, and must have the tensors that
 *        the index lists for it
 * @return STATUS_OK; STATUS_BAD_FORMAT if a shard lacks a tensor that the index lists for it, or
 *         two shards have the same tensor; STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status decoder_shards_join(struct decoder_shards *shards,
                                           const struct decoder_index *index, struct error *error);

/** @return the tensor, or NULL. */
const struct decoder_located *decoder_shards_find(const struct decoder_shards *shards,
                                                  const char *name);

/**
 * @brief Checks that there is a tensor of this shape (rank extents) whose values are weights.
 * @return STATUS_OK, STATUS_BAD_FORMAT (it is missing), STATUS_MISMATCH (its shape differs),
 *         STATUS_UNSUPPORTED (its type is not F32, F16 or BF16)
 */
MUST_CHECK enum status decoder_shards_check(const struct decoder_shards *shards, const char *name,
                                            const size_t *shape, size_t rank, struct error *error);

/** Unmaps and frees; a zero-initialised one is allowed. */
void decoder_shards_close(struct decoder_shards *shards);

#endif
