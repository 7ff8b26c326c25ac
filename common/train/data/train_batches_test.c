#include "common/train/data/train_batches.h"

#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/train/data/data_testing.h"

/* Texts, their vocabulary, and batches. */
struct fixture {
    struct train_vocabulary vocabulary;
    struct train_texts texts;
    struct train_batches batches;
    struct train_batch_memory memory;
};

static void fixture_create_asking(struct fixture *f, enum train_task task, const char *content,
                                  size_t batch_size, size_t max_length, uint64_t seed,
                                  float asked) {
    data_testing_vocabulary(&f->vocabulary, task);
    data_testing_texts(&f->texts, content, task == TRAIN_CLASSIFY ? TRAIN_MLM : task,
                       &f->vocabulary, max_length);
    const struct train_part all = {&f->texts, 0, f->texts.count};
    const struct train_batches_options options = {.task = task,
                                                  .batch_size = batch_size,
                                                  .max_length = max_length,
                                                  .seed = seed,
                                                  .vocabulary = &f->vocabulary,
                                                  .asked = asked};
    EXPECT_OK(train_batches_create(&f->batches, &all, &options, NULL));
    EXPECT_OK(train_batch_memory_create(&f->memory, &options, NULL));
}

static void fixture_create(struct fixture *f, enum train_task task, const char *content,
                           size_t batch_size, size_t max_length, uint64_t seed) {
    fixture_create_asking(f, task, content, batch_size, max_length, seed, 0.15f);
}

static void fixture_free(struct fixture *f) {
    train_batch_memory_free(&f->memory);
    train_batches_free(&f->batches);
    train_texts_free(&f->texts);
    train_vocabulary_close(&f->vocabulary);
}

/* 62 texts of one letter or digit. */
static const char LETTERS[] =
    "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\nq\nr\ns\nt\nu\nv\nw\nx\ny\nz\n"
    "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n.\n!\n?";

C_TEST(train_batches, have_each_text_once_an_epoch) {
    struct fixture f;
    fixture_create(&f, TRAIN_CLASSIFY, LETTERS, 8, 4, 7);
    EXPECT_INT_EQ(5, train_batches_count(&f.batches));
    int32_t orders[2][39];
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        int seen[512] = {0};
        size_t count = 0;
        for (size_t batch = 0; batch < 5; batch++) {
            train_batches_fill(&f.batches, epoch, batch, &f.memory);
            EXPECT_INT_EQ(batch < 4 ? 8 : 7, f.memory.batch.B);
            for (size_t i = 0; i < f.memory.batch.B; i++) {
                int32_t id = f.memory.ids[f.memory.starts[i] + 1];
                orders[epoch][count++] = id;
                seen[id]++;
            }
        }
        EXPECT_INT_EQ(39, count);
        for (size_t i = 0; i < 39; i++) {
            EXPECT_INT_EQ(1, seen[orders[epoch][i]]);
        }
    }
    EXPECT_TRUE(memcmp(orders[0], orders[1], sizeof orders[0]) != 0);
    train_batches_fill(&f.batches, TRAIN_IN_ORDER, 0, &f.memory);
    EXPECT_STR_EQ("a", wordpiece_piece(f.vocabulary.wordpiece, f.memory.ids[1]));
    fixture_free(&f);
}

/* Ids and labels of a batch. */
static void copy(const struct train_batch_memory *m, int32_t *out) {
    memcpy(out, m->ids, m->rows * sizeof *out);
    memcpy(out + m->rows, m->labels, m->rows * sizeof *out);
}

C_TEST(train_batches, are_the_same_whatever_came_before) {
    struct fixture f, g;
    fixture_create(&f, TRAIN_MLM, LETTERS, 8, 4, 7);
    fixture_create(&g, TRAIN_MLM, LETTERS, 8, 4, 8);
    int32_t first[64], again[64], other[64];
    train_batches_fill(&f.batches, 3, 2, &f.memory);
    copy(&f.memory, first);
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        train_batches_fill(&f.batches, epoch, 0, &f.memory);
    }
    train_batches_fill(&f.batches, 3, 2, &f.memory);
    copy(&f.memory, again);
    train_batches_fill(&g.batches, 3, 2, &g.memory);
    copy(&g.memory, other);
    size_t bytes = 2 * f.memory.rows * sizeof *first;
    EXPECT_INT_EQ(24, f.memory.rows);
    EXPECT_TRUE(memcmp(first, again, bytes) == 0);
    EXPECT_TRUE(memcmp(first, other, bytes) != 0);
    fixture_free(&f);
    fixture_free(&g);
}

/* Of 50,000 tokens the asked share is selected, and masked as Devlin et al. describe. */
static void check_masked(float asked) {
    enum { LENGTH = 128, TEXTS = 400 };
    struct fixture f;
    char *content = malloc(TEXTS * (2 * LENGTH + 1) + 1);
    size_t size = 0, counts[4] = {0}; /* selected; of these [MASK], unchanged, others */
    for (size_t i = 0; i < TEXTS; i++) {
        for (size_t token = 0; token < LENGTH - 2; token++) {
            content[size++] = (char)('a' + (i + token) % 26);
            content[size++] = ' ';
        }
        content[size++] = '\n';
    }
    content[size] = '\0';
    fixture_create_asking(&f, TRAIN_MLM, content, TEXTS, LENGTH, 1, asked);
    free(content);
    train_batches_fill(&f.batches, 0, 0, &f.memory);
    const struct train_batch_memory *m = &f.memory;
    EXPECT_INT_EQ((size_t)TEXTS * LENGTH, m->rows);
    struct wordpiece_special special = wordpiece_special(f.vocabulary.wordpiece);
    for (size_t i = 0; i < m->rows; i++) {
        int32_t was = f.texts.ids[f.batches.order[i / LENGTH] * LENGTH + i % LENGTH];
        if (m->labels[i] < 0) {
            EXPECT_INT_EQ(was, m->ids[i]);
            continue;
        }
        EXPECT_INT_EQ(was, m->labels[i]);
        EXPECT_TRUE(was != special.cls && was != special.sep);
        counts[0]++;
        counts[m->ids[i] == f.vocabulary.mask ? 1 : m->ids[i] == was ? 2 : 3]++;
    }
    double tokens = (double)TEXTS * (LENGTH - 2), all = (double)counts[0];
    EXPECT_INT_EQ(counts[0], m->asked);
    EXPECT_NEAR((double)asked, all / tokens, 0.009); /* deviation 0.0022 at most */
    EXPECT_NEAR(0.80, (double)counts[1] / all, 0.02);
    EXPECT_NEAR(0.10, (double)counts[2] / all, 0.015);
    EXPECT_NEAR(0.10, (double)counts[3] / all, 0.015);
    fixture_free(&f);
}

C_TEST(train_batches, mask_the_share_of_tokens_asked_for) {
    check_masked(0.15f);
    check_masked(0.4f);
}

C_TEST(train_batches, of_a_stream_ask_for_the_next_token) {
    struct fixture f;
    fixture_create(&f, TRAIN_LM, "ab\ncde", 2, 3, 1); /* 1 _ a b 1 _ c d e: 8 labels */
    EXPECT_INT_EQ(3, f.batches.sequences);
    EXPECT_INT_EQ(2, train_batches_count(&f.batches));
    train_batches_fill(&f.batches, TRAIN_IN_ORDER, 0, &f.memory);
    static const int32_t starts[] = {0, 3, 6};
    EXPECT_TRUE(memcmp(starts, f.memory.starts, sizeof starts) == 0);
    EXPECT_TRUE(memcmp(f.texts.ids, f.memory.ids, 6 * sizeof(int32_t)) == 0);
    EXPECT_TRUE(memcmp(f.texts.ids + 1, f.memory.labels, 6 * sizeof(int32_t)) == 0);
    EXPECT_INT_EQ(6, f.memory.asked);
    train_batches_fill(&f.batches, TRAIN_IN_ORDER, 1, &f.memory);
    EXPECT_INT_EQ(2, f.memory.rows);
    EXPECT_INT_EQ('d' + 3, f.memory.labels[0]);
    EXPECT_INT_EQ('e' + 3, f.memory.labels[1]);
    f.batches.options.texts_alone = true; /* 1 _ a, b 1 _: the BOS is not a label */
    train_batches_fill(&f.batches, TRAIN_IN_ORDER, 0, &f.memory);
    EXPECT_INT_EQ('b' + 3, f.memory.labels[2]);
    EXPECT_INT_EQ(-1, f.memory.labels[3]);
    EXPECT_INT_EQ(' ' + 3, f.memory.labels[4]);
    EXPECT_INT_EQ(5, f.memory.asked);
    fixture_free(&f);
}

C_TEST(train_batches, need_something_to_learn_from) {
    struct train_texts none = {0};
    struct train_batches batches;
    const struct train_part part = {&none, 0, 0};
    const struct train_batches_options options = {
        .task = TRAIN_LM, .batch_size = 1, .max_length = 8};
    EXPECT_ERROR(STATUS_BAD_FORMAT, "there are no texts to learn from",
                 train_batches_create(&batches, &part, &options, &error));
    train_batches_free(&batches);
}
