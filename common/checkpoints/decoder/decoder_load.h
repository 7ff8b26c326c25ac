/**
 * @file decoder_load.h
 * @brief What the loaders of decoder checkpoints share: config.json's text, and visitors that check
 *        a family's tensors and point its stored weights at them.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_LOAD_H_
#define WARPBOOK_COMMON_CHECKPOINTS_DECODER_DECODER_LOAD_H_

#include "common/base/folder.h"
#include "common/checkpoints/decoder/decoder_shards.h"
#include "common/checkpoints/decoder/decoder_tensors.h"

/** Loading visits all tensors twice: first to check them, then to set the pointers. */
struct decoder_loader {
    const struct decoder_shards *shards;
    struct error *error;
};

/** Visitor, @p loader a struct decoder_loader. @return as decoder_shards_check() */
enum status decoder_check_tensor(void *loader, const struct decoder_weight *tensor);

/** Visitor, behind decoder_check_tensor(): points the stored weights at the tensor. */
enum status decoder_point_tensor(void *loader, const struct decoder_weight *tensor);

/** @return a tensor as stored at @p data; a vector is one row. */
struct decoder_stored_tensor decoder_stored_at(const struct decoder_weight *tensor,
                                               const void *data, enum nn_dtype dtype);

/**
 * @brief Checks that files have no layer behind the last one: they would give a model that computes
 *        something else.
 * @param next name of a tensor of layer L
 */
MUST_CHECK enum status decoder_check_layers(const struct decoder_loader *loader, const char *next,
                                            size_t L);

/**
 * @brief Reads FOLDER/config.json.
 * @param text receives @p size bytes, which the caller frees
 * @param path receives the file's path, for messages
 */
MUST_CHECK enum status decoder_config_read(const char *folder, char **text, size_t *size,
                                           char path[FOLDER_PATH_BYTES], struct error *error);

#endif
