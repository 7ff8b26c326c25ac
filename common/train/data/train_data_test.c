#include "common/train/data/train_data.h"

#include <stdio.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/train/data/data_testing.h"

/* Writes all sequences as "[CLS] a b [SEP]|...". */
static void describe(const struct train_texts *t, const struct train_vocabulary *v, char *out,
                     size_t room) {
    out[0] = '\0';
    for (size_t i = 0; i < t->count; i++) {
        for (size_t at = t->starts[i]; at < t->starts[i + 1]; at++) {
            size_t used = strlen(out);
            snprintf(out + used, room - used, "%s%s",
                     at > t->starts[i] ? " "
                     : i > 0           ? "|"
                                       : "",
                     wordpiece_piece(v->wordpiece, t->ids[at]));
        }
    }
}

static void check(enum train_task task, const char *content, size_t max_length, const char *want,
                  size_t cut) {
    struct train_vocabulary v;
    struct train_texts t;
    char out[1024];
    data_testing_vocabulary(&v, TRAIN_MLM);
    data_testing_texts(&t, content, task, &v, max_length);
    describe(&t, &v, out, sizeof out);
    EXPECT_STR_EQ(want, out);
    EXPECT_INT_EQ(cut, t.cut);
    train_texts_free(&t);
    train_texts_free(&t);
    train_vocabulary_close(&v);
    train_vocabulary_close(&v);
}

C_TEST(train_data, long_texts_become_several_sequences_of_masked_language) {
    check(TRAIN_MLM, "a b\nc", 8, "[CLS] a b [SEP]|[CLS] c [SEP]", 0);
    check(TRAIN_MLM, "a b c d e\nf", 4,
          "[CLS] a b [SEP]|[CLS] c d [SEP]|[CLS] e [SEP]|[CLS] f [SEP]", 1);
    check(TRAIN_MLM, "a b c d", 4, "[CLS] a b [SEP]|[CLS] c d [SEP]", 1);
    check(TRAIN_MLM, "a b c", 3, "[CLS] a [SEP]|[CLS] b [SEP]|[CLS] c [SEP]", 1);
}

C_TEST(train_data, counts_bytes_once) {
    struct train_vocabulary v;
    struct train_texts t;
    data_testing_vocabulary(&v, TRAIN_MLM);
    data_testing_texts(&t, "a b c d\nee", TRAIN_MLM, &v, 4);
    const struct train_part all = {&t, 0, t.count}, first = {&t, 0, 1}, rest = {&t, 1, 2};
    EXPECT_INT_EQ(9, train_part_bytes(&all));
    EXPECT_INT_EQ(7, train_part_bytes(&first));
    EXPECT_INT_EQ(2, train_part_bytes(&rest));
    EXPECT_INT_EQ(12, train_part_ids(&all));
    EXPECT_INT_EQ(2, t.texts);
    EXPECT_TRUE(train_part_checksum(&first) != train_part_checksum(&rest));
    train_texts_free(&t);
    train_vocabulary_close(&v);
}

C_TEST(train_data, cuts_texts_with_labels) {
    struct train_vocabulary v;
    struct train_texts t;
    char path[1024], out[1024];
    data_testing_vocabulary(&v, TRAIN_CLASSIFY);
    data_testing_file("news.csv", "3,a,b c d e f\n1,g,h\n", path);
    const struct train_source source = {TEXT_DATASET_AGNEWS, path, "train", 0, 5};
    ASSERT_OK(train_texts_read(&t, &source, TRAIN_CLASSIFY, &v, 5, NULL));
    describe(&t, &v, out, sizeof out);
    EXPECT_STR_EQ("[CLS] a b c [SEP]|[CLS] g h [SEP]", out);
    EXPECT_INT_EQ(2, t.labels[0]);
    EXPECT_INT_EQ(0, t.labels[1]);
    EXPECT_INT_EQ(4, t.label_count);
    EXPECT_INT_EQ(1, t.cut);
    train_texts_free(&t);
    const struct train_source plain = {TEXT_DATASET_TEXT, path, "train", 0, 0};
    EXPECT_ERROR_CONTAINS(STATUS_INVALID_ARGUMENT, "news.csv: these texts have no labels",
                          train_texts_read(&t, &plain, TRAIN_CLASSIFY, &v, 5, &error));
    train_vocabulary_close(&v);
}

C_TEST(train_data, joins_texts_of_a_language_model) {
    struct train_vocabulary v;
    struct train_texts t;
    data_testing_vocabulary(&v, TRAIN_LM);
    EXPECT_STR_EQ("tokenizer.bin", v.name);
    data_testing_texts(&t, "ab\nc", TRAIN_LM, &v, 0);
    static const int32_t want[] = {1, ' ' + 3, 'a' + 3, 'b' + 3, 1, ' ' + 3, 'c' + 3};
    ASSERT_TRUE(t.starts[2] == sizeof want / sizeof *want);
    EXPECT_TRUE(memcmp(t.ids, want, sizeof want) == 0);
    train_texts_free(&t);
    train_vocabulary_close(&v);
}

C_TEST(train_data, says_what_is_wrong_with_a_vocabulary) {
    struct train_vocabulary v;
    struct error error = {0};
    char path[1024];
    data_testing_file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", path);
    EXPECT_OK(train_vocabulary_open(&v, TRAIN_CLASSIFY, path, 5, &error));
    train_vocabulary_close(&v);
    EXPECT_ERROR_CONTAINS(STATUS_BAD_FORMAT, "vocab.txt: there is no [MASK]",
                          train_vocabulary_open(&v, TRAIN_MLM, path, 0, &error));
    EXPECT_ERROR_CONTAINS(STATUS_MISMATCH, "the vocabulary has 5 pieces, the model 6",
                          train_vocabulary_open(&v, TRAIN_CLASSIFY, path, 6, &error));
    EXPECT_STATUS(STATUS_NOT_FOUND,
                  train_vocabulary_open(&v, TRAIN_CLASSIFY, "/nowhere", 0, &error));
}
