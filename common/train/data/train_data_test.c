#include "common/train/data/train_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"
#include "common/train/data/data_testing.h"
#include "common/train/data/train_encode.h"

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
    const struct train_source source = {
        .kind = TEXT_DATASET_AGNEWS, .path = path, .split = "train", .limit = 5};
    ASSERT_OK(train_texts_read(&t, &source, TRAIN_CLASSIFY, &v, 5, NULL));
    describe(&t, &v, out, sizeof out);
    EXPECT_STR_EQ("[CLS] a b c [SEP]|[CLS] g h [SEP]", out);
    EXPECT_INT_EQ(2, t.labels[0]);
    EXPECT_INT_EQ(0, t.labels[1]);
    EXPECT_INT_EQ(4, t.label_count);
    EXPECT_INT_EQ(1, t.cut);
    train_texts_free(&t);
    const struct train_source plain = {.kind = TEXT_DATASET_TEXT, .path = path, .split = "train"};
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
                  train_vocabulary_open(&v, TRAIN_CLASSIFY, "/proc/nowhere", 0, &error));
    char *json =
        tokenizer_testing_byte_level(TOKENIZER_TESTING_BYTE_LEVEL, "\"ab\":256", "",
                                     "{\"id\":257,\"content\":\"<u>\"},{\"id\":258,"
                                     "\"content\":\"</s>\"},{\"id\":259,\"content\":\"<s>\"}");
    ASSERT_TRUE(json != NULL);
    data_testing_file("tokenizer.json", json, path);
    free(json);
    EXPECT_ERROR_CONTAINS(STATUS_UNSUPPORTED, "training needs a tokenizer as Llama2's",
                          train_vocabulary_open(&v, TRAIN_LM, path, 0, &error));
}

/* ---- Tokens made on all CPUs equal tokens made one text after the other ---- */

enum { TEXTS = 999, MOST_BYTES = 64 };

/* Texts of 1 to 30 letters, each another one than its neighbours. */
struct texts {
    char bytes[TEXTS][MOST_BYTES];
    struct text_sample samples[TEXTS];
    struct text_dataset dataset;
};

static struct texts *make_texts(void) {
    struct texts *t = calloc(1, sizeof *t);
    for (size_t i = 0; i < TEXTS; i++) {
        for (size_t c = 0; c < 1 + i % 30; c++) {
            t->bytes[i][2 * c] = (char)('a' + (i * 7 + c) % 26);
            t->bytes[i][2 * c + 1] = ' ';
        }
        t->samples[i] = (struct text_sample){t->bytes[i], strlen(t->bytes[i]), -1};
    }
    t->dataset = (struct text_dataset){.samples = t->samples, .count = TEXTS};
    return t;
}

static void expect_encoded_alone(const struct train_vocabulary *v, enum train_task task,
                                 const struct text_sample *sample,
                                 const struct train_encoded *got) {
    int32_t *want;
    size_t count;
    if (task == TRAIN_LM) {
        EXPECT_OK(
            bpe_encode(v->bpe, sample->text, sample->length, true, false, &want, &count, NULL));
    } else {
        EXPECT_OK(
            wordpiece_encode(v->wordpiece, sample->text, sample->length, 0, &want, &count, NULL));
    }
    EXPECT_INT_EQ(count, got->count);
    EXPECT_TRUE(count == got->count && memcmp(want, got->ids, count * sizeof *want) == 0);
    free(want);
}

C_TEST(train_encode, gives_every_text_its_own_tokens) {
    static const enum train_task tasks[] = {TRAIN_CLASSIFY, TRAIN_MLM, TRAIN_LM};
    for (size_t i = 0; i < 3; i++) {
        struct texts *t = make_texts();
        struct train_vocabulary v;
        struct train_encoded *encoded = NULL;
        data_testing_vocabulary(&v, tasks[i]);
        ASSERT_OK(train_encode(&v, tasks[i], &t->dataset, &encoded, NULL));
        for (size_t text = 0; text < TEXTS; text++) {
            expect_encoded_alone(&v, tasks[i], &t->samples[text], &encoded[text]);
        }
        train_encoded_free(encoded, TEXTS);
        train_vocabulary_close(&v);
        free(t);
    }
}

C_TEST(train_encode, reports_the_first_bad_text) {
    static const size_t bad[] = {998, 500, 17, 16, 3};
    struct texts *t = make_texts();
    struct train_vocabulary v;
    data_testing_vocabulary(&v, TRAIN_MLM);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct train_encoded *encoded = NULL;
        struct error error = {0};
        char want[100];
        t->bytes[bad[i]][0] = (char)(0xfa + i); /* not UTF-8; another byte each time */
        EXPECT_STATUS(STATUS_BAD_UTF8, train_encode(&v, TRAIN_MLM, &t->dataset, &encoded, &error));
        snprintf(want, sizeof want, "not valid UTF-8 at byte 0 (0x%X) of %zu bytes",
                 (unsigned)(0xfa + i), t->samples[bad[i]].length);
        EXPECT_STR_EQ(want, error.message);
        EXPECT_TRUE(encoded == NULL);
    }
    train_encoded_free(NULL, 0);
    train_vocabulary_close(&v);
    free(t);
}
