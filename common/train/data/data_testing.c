#include "common/train/data/data_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/checkpoints/bert/bert_example.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

const char *data_testing_file(const char *name, const char *content, char path[1024]) {
    test_temporary_path(name, path, 1024);
    EXPECT_OK(file_write(path, content, strlen(content), NULL));
    return path;
}

static void write_letters(const char *path) {
    char *text = NULL;
    size_t size = 0;
    EXPECT_OK(bert_letters_vocabulary(0, &text, &size));
    EXPECT_OK(file_write(path, text, size, NULL));
    free(text);
}

void data_testing_vocabulary(struct train_vocabulary *vocabulary, enum train_task task) {
    char path[1024];
    struct error error = {0};
    if (task == TRAIN_LM) {
        EXPECT_OK(
            tokenizer_testing_write_bytes(test_temporary_path("tokenizer.bin", path, sizeof path)));
    } else {
        write_letters(test_temporary_path("vocab.txt", path, sizeof path));
    }
    EXPECT_OK(train_vocabulary_open(vocabulary, task, path, 0, &error));
    EXPECT_STR_EQ("", error.message);
}

void data_testing_texts(struct train_texts *texts, const char *content, enum train_task task,
                        const struct train_vocabulary *vocabulary, size_t max_length) {
    char path[1024];
    struct error error = {0};
    const struct train_source source = {.kind = TEXT_DATASET_TEXT,
                                        .path = data_testing_file("texts.txt", content, path),
                                        .split = "train"};
    EXPECT_OK(train_texts_read(texts, &source, task, vocabulary, max_length, &error));
    EXPECT_STR_EQ("", error.message);
}
