/* Tokens made on all CPUs equal tokens made one text after the other. */
#include "common/train/data/train_encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/train/data/data_testing.h"

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

static void compare(const struct train_vocabulary *v, enum train_task task,
                    const struct text_sample *sample, const struct train_encoded *got) {
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
            compare(&v, tasks[i], &t->samples[text], &encoded[text]);
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
