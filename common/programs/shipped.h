/**
 * @file shipped.h
 * @brief Finds the checkpoints and texts that come with the project, the defaults of programs.
 */
#ifndef WARPBOOK_COMMON_PROGRAMS_SHIPPED_H_
#define WARPBOOK_COMMON_PROGRAMS_SHIPPED_H_

#include "common/base/folder.h"
#include "common/base/status.h"

/** A BERT that classifies reviews as good or bad. */
#define SHIPPED_CLASSIFIER "reviews_bert"

/** A Llama2 that writes reviews. */
#define SHIPPED_DECODER "tiny_llama"

/** Sentences with labels, a file of the kind "sample" of text_dataset.h. */
#define SHIPPED_SAMPLE "reviews_sample.tsv"

/**
 * @brief Finds datasets/NAME, a folder or a file.
 *
 * Looks in the workspace that `bazel run` was called in, in the program's own runfiles, in the
 * current folder, in the nearest folder above it with a file WORKSPACE, and in the nearest folder
 * above the program with a file manifest.tsv, which is the grader's unpacked archive.
 *
 * @param flag  flag or argument that the user could have given, for the message: "--checkpoint"
 * @param hint  advice for the end of the message
 * @param path  receives the path
 * @return STATUS_OK; STATUS_NOT_FOUND with "no FLAG given, and datasets/NAME is not there: HINT"
 */
MUST_CHECK enum status shipped_find(const char *name, const char *flag, const char *hint,
                                    char path[FOLDER_PATH_BYTES], struct error *error);

#endif
