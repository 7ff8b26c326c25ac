/**
 * @file tensor_file.h
 * @brief For tests of checkpoints: a safetensors file in memory whose tensors a test changes,
 *        folders on the disk, and configurations.
 */
#ifndef WARPBOOK_COMMON_CHECKPOINTS_TESTING_TENSOR_FILE_H_
#define WARPBOOK_COMMON_CHECKPOINTS_TESTING_TENSOR_FILE_H_

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/checkpoints/llama2/llama2_weights.h"
#include "common/checkpoints/safetensors/safetensors.h"

/** A file's bytes and what they parse to. A test may change the tensors and write them again. */
struct tensor_file {
    unsigned char *data;
    size_t size;
    struct safetensors file;
};

/** Parses data again after a test changed the bytes themselves. */
MUST_CHECK enum status tensor_file_parse(struct tensor_file *f);

/** Serialises the changed tensors and parses the result. @return whether both succeeded */
bool tensor_file_write_again(struct tensor_file *f);

void tensor_file_free(struct tensor_file *f);

/** @return the tensor, or NULL. */
struct safetensors_tensor *tensor_file_find(struct tensor_file *f, const char *name);

void tensor_file_rename(struct safetensors_tensor *tensor, const char *name);

/** The last tensor takes the place of @p tensor. */
void tensor_file_remove(struct tensor_file *f, struct safetensors_tensor *tensor);

/** Replaces the last three bytes of @p entry, text of the header, by @p type; tensors stay. */
void tensor_file_retype(struct tensor_file *f, const char *entry, const char *type);

enum tensor_change { TENSOR_REMOVE, TENSOR_TRANSPOSE, TENSOR_FLATTEN };

/** A change of one tensor, and the result that loading must have. */
struct tensor_case {
    const char *tensor;
    enum tensor_change change;
    enum status status;
    const char *message; /**< of the error, or part of it */
};

/** Changes the tensor as the case says and writes the file again; else the test has failed. */
bool tensor_file_change(struct tensor_file *f, const struct tensor_case *change);

/** Makes the folder @p name for the test. @return @p folder, its path of at most @p size bytes */
const char *checkpoint_folder(const char *name, char *folder, size_t size);

/** Writes the file @p name into a folder. */
void checkpoint_write(const char *folder, const char *name, const void *data, size_t size);

/** Expects the same value of every member. */
void checkpoint_expect_same_config(const struct llama2_config *want,
                                   const struct llama2_config *got);

#endif
