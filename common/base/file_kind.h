/**
 * @file file_kind.h
 * @brief Names the format of a file that was given in place of another one.
 */
#ifndef WARPBOOK_COMMON_BASE_FILE_KIND_H_
#define WARPBOOK_COMMON_BASE_FILE_KIND_H_

#include <stddef.h>

#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** @return "a GGUF file", "a zip archive (PyTorch's .bin and .pt are such)", ... by the first bytes
 *          of a file; NULL: none of the formats that are often given by mistake */
const char *file_kind(const void *data, size_t size);

/**
 * @brief Says why a file could not be read: what it is, if that is known, instead of which of its
 *        numbers was wrong.
 * @param error  the reader's message
 * @param wanted what would be right: "give llama2.c's file or a Hugging Face folder"
 * @return @p status, with "PATH: this is KIND; WANTED", or with PATH before the reader's message
 */
enum status file_kind_explain(struct error *error, enum status status, const char *path,
                              const void *data, size_t size, const char *wanted);

#ifdef __cplusplus
}
#endif

#endif
