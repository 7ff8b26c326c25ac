/**
 * @file data_testing.h
 * @brief Vocabularies and texts in the test's temporary folder.
 */
#ifndef WARPBOOK_COMMON_TRAIN_DATA_DATA_TESTING_H_
#define WARPBOOK_COMMON_TRAIN_DATA_DATA_TESTING_H_

#include "common/train/data/train_data.h"

/** Writes a file. @return its path */
const char *data_testing_file(const char *name, const char *content, char path[1024]);

/** Writes a WordPiece vocabulary of letters, or llama2.c's tokenizer of bytes, and opens it. */
void data_testing_vocabulary(struct train_vocabulary *vocabulary, enum train_task task);

/** Reads texts, one a line, for a task. */
void data_testing_texts(struct train_texts *texts, const char *content, enum train_task task,
                        const struct train_vocabulary *vocabulary, size_t max_length);

#endif
