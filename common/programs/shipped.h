/**
 * @file shipped.h
 * @brief Checkpoints and texts that come with the project, for programs that are given none.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_SHIPPED_H_
#define WARPBOOK_COMMON_PROGRAMS_SHIPPED_H_

#include "common/base/folder.h"
#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A BERT that tells good reviews from bad ones. */
#define SHIPPED_CLASSIFIER "reviews_bert"

/** A Llama2 that writes reviews. */
#define SHIPPED_DECODER "tiny_llama"

/** Sentences with labels, a file of the kind "sample" of text_dataset.h. */
#define SHIPPED_SAMPLE "reviews_sample.tsv"

/**
 * @brief Finds datasets/NAME, a folder or a file.
 *
 * Looked for in the workspace that `bazel run` was called in, in the program's own runfiles, in the
 * current folder, in the nearest folder above it that holds a file WORKSPACE, then in the nearest
 * above the program that holds a file manifest.tsv: the grader's archive, unpacked.
 *
 * @param flag  what the user could have given, for the message: "--checkpoint"
 * @param hint  what to do where it is not there, for the end of the message
 * @param path  receives the path
 * @return STATUS_OK; STATUS_NOT_FOUND with "no FLAG given, and datasets/NAME is not there: HINT"
 */
MUST_CHECK enum status shipped_find(const char *name, const char *flag, const char *hint,
                                    char path[FOLDER_PATH_BYTES], struct error *error);

#ifdef __cplusplus
}
#endif

#endif
