/**
 * @file text_dataset_test.c
 * @brief Texts and labels of both data sets, from every layout; what is missing or broken is told.
 */
#include "common/texts/text_dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"
#include "common/texts/archive_testing.h"

static const struct text_dataset_options ALL = {.split = "test"};

/* A file of the test, in its temporary folder. */
struct entry {
    const char *name, *content;
};

/* Makes the folders that the path has below the temporary folder. */
static void make_folders(char *path, size_t from) {
    for (char *c = path + from; *c != '\0'; c++) {
        if (*c == '/') {
            *c = '\0';
            mkdir(path, 0777);
            *c = '/';
        }
    }
}

static const char *write_file(const char *name, const void *content, size_t size, char *path,
                              size_t room) {
    test_temporary_path(name, path, room);
    make_folders(path, strlen(path) - strlen(name));
    EXPECT_OK(file_write(path, content, size, NULL));
    return path;
}

/* "LABEL:TEXT|LABEL:TEXT" of the data set, or the message without the temporary folder's name. */
static void describe(enum text_dataset_kind kind, const char *path,
                     const struct text_dataset_options *options, char *out, size_t room) {
    struct text_dataset dataset;
    struct error error = {0};
    char folder[1024] = "";
    out[0] = '\0';
    if (text_dataset_open(&dataset, kind, path, options, &error) != STATUS_OK) {
        test_temporary_path("", folder, sizeof folder);
        const char *at = strstr(error.message, folder);
        snprintf(out, room, "%s", at != NULL ? at + strlen(folder) : error.message);
        EXPECT_TRUE(dataset.samples == NULL && dataset.count == 0);
    }
    for (size_t i = 0; i < dataset.count; i++) {
        const struct text_sample *s = &dataset.samples[i];
        size_t used = strlen(out);
        EXPECT_INT_EQ(strlen(s->text), s->length);
        snprintf(out + used, room - used, "%s%d:%s", i > 0 ? "|" : "", (int)s->label, s->text);
    }
    text_dataset_close(&dataset);
    text_dataset_close(&dataset);
}

/* ---- AG News ---- */

static void check_csv(const char *content, const struct text_dataset_options *options,
                      const char *want) {
    char path[1024], out[1024];
    write_file("news.csv", content, strlen(content), path, sizeof path);
    describe(TEXT_DATASET_AGNEWS, path, options, out, sizeof out);
    EXPECT_STR_EQ(want, out);
    unlink(path);
}

static const char FOUR[] = "\"3\",\"T one\",\"D, \"\"one\"\"\"\n\"1\",\"T\",\"second\\team\"\n"
                           "4,t,d\n2,x,\"y\nz\"\n";

C_TEST(agnews, reads_classes_titles_and_descriptions) {
    check_csv(FOUR, &ALL, "2:T one D, \"one\"|0:T second\nteam|3:t d|1:x y\nz");
    check_csv("Class Index,Title,Description\n1,a,b\n",
              &(struct text_dataset_options){.split = "test", .skip = 0, .limit = 5}, "0:a b");
}

C_TEST(agnews, skips_and_limits) {
    check_csv(FOUR, &(struct text_dataset_options){.split = "test", .skip = 0, .limit = 2},
              "2:T one D, \"one\"|0:T second\nteam");
    check_csv(FOUR, &(struct text_dataset_options){.split = "test", .skip = 2, .limit = 0},
              "3:t d|1:x y\nz");
    check_csv(FOUR, &(struct text_dataset_options){.split = "test", .skip = 3, .limit = 99},
              "1:x y\nz");
    check_csv(FOUR, &(struct text_dataset_options){.split = "test", .skip = 1, .limit = SIZE_MAX},
              "0:T second\nteam|3:t d|1:x y\nz");
    check_csv(FOUR, &(struct text_dataset_options){.split = "test", .skip = 4, .limit = 1},
              "news.csv: no texts after the first 4");
}

C_TEST(agnews, tells_what_is_wrong_and_where) {
    static const struct {
        const char *content, *want;
    } cases[] = {
        {"", "news.csv: there are no texts in it"},
        {"1,a,b\n\"2\",\"c\n", "news.csv: line 2: the quote that opens here is never closed"},
        {"1,a,b\n\"2\",\"c\"d\",\"e\"\n",
         "news.csv: line 2: broken quotes: text after the closing quote of a field that began in "
         "line 2"},
        {"0,a,b\n", "news.csv: line 1: a class is 1 to 4, not '0'"},
        {"1,a,b\n5,a,b\n", "news.csv: line 2: a class is 1 to 4, not '5'"},
        {"1,a,b\n\n\n,a,b\n", "news.csv: line 4: a class is 1 to 4, not ''"},
        {"12,a,b\n", "news.csv: line 1: a class is 1 to 4, not '12'"},
        {"sports,a,b\n", "news.csv: line 1: a class is 1 to 4, not 'sports'"},
        {"1,a\n", "news.csv: line 1: the row has 2 fields, must have class, title and description"},
        {"1,a,b,c\n", "news.csv: line 1: more than 3 fields"},
        {"1,a,\xff\n", "news.csv: line 1: not valid UTF-8 at byte 2 (0xFF) of 3 bytes"},
        {"1,,\n", "news.csv: line 1: there is no text"},
        {"1,\" \",\\\n", "news.csv: line 1: there is no text"},
        {"1,a,b\n2,a,b\n4,a,b\n", "news.csv: no text has the label 'Business'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_csv(cases[i].content, &ALL, cases[i].want);
    }
}

C_TEST(agnews, finds_the_split_in_a_folder) {
    char path[1024], folder[1024], out[1024];
    write_file("ag/train.csv", "1,a,b\n", 6, path, sizeof path);
    write_file("ag/ag_news_test.csv", "2,c,d\n", 6, path, sizeof path);
    test_temporary_path("ag", folder, sizeof folder);
    describe(TEXT_DATASET_AGNEWS, folder,
             &(struct text_dataset_options){.split = "train", .skip = 0, .limit = 1}, out,
             sizeof out);
    EXPECT_STR_EQ("0:a b", out);
    describe(TEXT_DATASET_AGNEWS, folder,
             &(struct text_dataset_options){.split = "test", .skip = 0, .limit = 1}, out,
             sizeof out);
    EXPECT_STR_EQ("1:c d", out);
    unlink(path);
    describe(TEXT_DATASET_AGNEWS, folder, &ALL, out, sizeof out);
    EXPECT_STR_EQ("ag: holds neither test.csv nor ag_news_test.csv", out);
}

C_TEST(agnews, reads_the_real_file) {
    char path[1024];
    if (!test_data_path("ag_news_test.csv", path, sizeof path)) {
        TEST_SKIP("set WARPBOOK_DATA to a folder with ag_news_test.csv");
    }
    struct text_dataset dataset;
    size_t labels[4] = {0};
    EXPECT_OK(text_dataset_open(&dataset, TEXT_DATASET_AGNEWS, path, &ALL, NULL));
    EXPECT_INT_EQ(7600, dataset.count);
    for (size_t i = 0; i < dataset.count; i++) {
        labels[dataset.samples[i].label]++;
    }
    for (int i = 0; i < 4; i++) {
        EXPECT_INT_EQ(1900, labels[i]);
    }
    text_dataset_close(&dataset);
}

/* ---- IMDB ---- */

/* Marks of line breaks in every form, at the beginning, in a row and at the end; and what is none.
 */
#define MARKS "<br />a<br /><br />b <BR>c<bR/>d < br><br/ ><b><br<br />"

static const struct entry REVIEWS[] = {
    {"aclImdb/README", "not a review"},           {"aclImdb/test/pos/0_9.txt", "good"},
    {"aclImdb/test/pos/10_8.txt", "fine"},        {"aclImdb/test/pos/1_7.txt", "nice"},
    {"aclImdb/test/pos/list.md", "not a review"}, {"aclImdb/test/neg/0_1.txt", "bad"},
    {"aclImdb/test/neg/10_2.txt", "dull"},        {"aclImdb/train/neg/0_3.txt", "train bad"},
    {"aclImdb/train/pos/0_9.txt", "train good"},  {"aclImdb/train/unsup/0_0.txt", "unlabelled"},
    {"aclImdb/train/unsup/1_0.txt", "more"},      {"aclImdb/train/unsup/2_0.txt", MARKS},
};

enum { REVIEW_COUNT = sizeof REVIEWS / sizeof *REVIEWS };

static struct archive make_archive(void) {
    struct archive a = {0};
    for (size_t i = 0; i < REVIEW_COUNT; i++) {
        archive_add(&a, '0', REVIEWS[i].name, REVIEWS[i].content, strlen(REVIEWS[i].content));
    }
    archive_end(&a);
    return a;
}

/* The same answers whichever way the reviews are stored. */
static void check_reviews(const char *path) {
    static const struct {
        struct text_dataset_options options;
        const char *want;
    } cases[] = {
        {{.split = "test", .skip = 0, .limit = 0}, "0:bad|1:good|0:dull|1:fine|1:nice"},
        {{.split = "test", .skip = 0, .limit = 1}, "0:bad"},
        {{.split = "test", .skip = 0, .limit = 3}, "0:bad|1:good|0:dull"},
        {{.split = "test", .skip = 1, .limit = 2}, "1:good|0:dull"},
        {{.split = "test", .skip = 4, .limit = 0}, "1:nice"},
        {{.split = "train", .skip = 0, .limit = 0}, "0:train bad|1:train good"},
        {{.split = "unsup", .skip = 0, .limit = 0},
         "-1:unlabelled|-1:more|-1:\na\n\nb \nc\nd < br><br/ ><b><br\n"},
        {{.split = "unsup", .skip = 0, .limit = 1}, "-1:unlabelled"},
        {{.split = "unsup", .skip = 1, .limit = 1}, "-1:more"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[1024];
        describe(TEXT_DATASET_IMDB, path, &cases[i].options, out, sizeof out);
        EXPECT_STR_EQ(cases[i].want, out);
    }
}

C_TEST(imdb, reads_folders) {
    char path[1024], root[1024];
    for (size_t i = 0; i < REVIEW_COUNT; i++) {
        write_file(REVIEWS[i].name, REVIEWS[i].content, strlen(REVIEWS[i].content), path,
                   sizeof path);
    }
    test_temporary_path("aclImdb", root, sizeof root);
    check_reviews(root);
    check_reviews(test_temporary_path("", root, sizeof root)); /* the folder above */
}

C_TEST(imdb, reads_archives) {
    char path[1024];
    bool made;
    struct archive a = make_archive();
    struct archive packed = archive_xz(&a, &made);
    write_file("imdb.tar", a.data, a.size, path, sizeof path);
    check_reviews(path);
    if (made) {
        write_file("imdb.tar.xz", packed.data, packed.size, path, sizeof path);
        check_reviews(path);
    }
    free(packed.data);
    free(a.data);
}

static void check_refused(const char *name, const void *content, size_t size, const char *want) {
    char path[1024], out[1024];
    write_file(name, content, size, path, sizeof path);
    describe(TEXT_DATASET_IMDB, path, &ALL, out, sizeof out);
    EXPECT_STR_EQ(want, out);
}

C_TEST(imdb, tells_what_is_wrong_with_an_archive) {
    struct archive a = {0};
    check_refused("no.tar", "", 0, "no.tar: the tar archive ends too early, after 0 bytes");
    check_refused("x.tar.gz", "\x1f\x8b\x08", 3,
                  "x.tar.gz: a gzip file; unpack it with tar xzf and give the folder");
    archive_add(&a, '0', "aclImdb/test/pos/0_9.txt", "good", 4);
    check_refused("cut.tar", a.data, a.size,
                  "cut.tar: the tar archive ends too early, after 1024 bytes");
    archive_end(&a);
    check_refused("pos.tar", a.data, a.size, "pos.tar: no text has the label 'neg'");
    free(a.data);

    a = (struct archive){0};
    archive_add(&a, '0', "aclImdb/test/neg/7_1.txt", "\xc3(", 2);
    archive_end(&a);
    check_refused(
        "bytes.tar", a.data, a.size,
        "bytes.tar: aclImdb/test/neg/7_1.txt: not valid UTF-8 at byte 0 (0xC3) of 2 bytes");
    free(a.data);

    a = (struct archive){0};
    archive_add(&a, '0', "aclImdb/test/neg/7_1.txt", "<br />", 6); /* nothing but a line break */
    archive_end(&a);
    check_refused("blank.tar", a.data, a.size,
                  "blank.tar: aclImdb/test/neg/7_1.txt: there is no text");
    memcpy(a.data + 124, "00777777777", 11);
    archive_sign(&a, 0);
    check_refused("huge.tar", a.data, a.size,
                  "huge.tar: aclImdb/test/neg/7_1.txt: a text of 134217727 bytes, at most "
                  "16777216 are allowed");
    free(a.data);
}

C_TEST(imdb, takes_only_names_of_the_split_and_its_labels) {
    static const char *const names[] = {
        "pos/1.txt",       "test/1.txt",      "1.txt",           "xtest/pos/1.txt",
        "test/posx/1.txt", "test/pos/1.text", "test/pos/.txt",   "test/pos/a/1.txt",
        "a/testpos/1.txt", "test//1.txt",     "testx/pos/1.txt",
    };
    struct archive a = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        archive_add(&a, '0', names[i], "text", 4);
    }
    archive_end(&a);
    check_refused("others.tar", a.data, a.size,
                  "others.tar: there are no texts of the split 'test'; --split names another");
    free(a.data);
}

C_TEST(imdb, tells_which_folder_is_missing) {
    char path[1024], root[1024], out[1024];
    write_file("half/test/pos/1_9.txt", "good", 4, path, sizeof path);
    test_temporary_path("half", root, sizeof root);
    describe(TEXT_DATASET_IMDB, root, &ALL, out, sizeof out);
    EXPECT_STR_EQ(
        "half/test/neg: cannot read the reviews labelled 'neg': No such file or directory", out);
    describe(TEXT_DATASET_IMDB, root, &(struct text_dataset_options){.split = "train"}, out,
             sizeof out);
    EXPECT_STR_EQ("half: holds no folder 'train' with reviews", out);
    write_file("half/test/neg/2_1.txt", "\xff", 1, path, sizeof path);
    describe(TEXT_DATASET_IMDB, root, &ALL, out, sizeof out);
    EXPECT_STR_EQ("half/test/neg/2_1.txt: not valid UTF-8 at byte 0 (0xFF) of 1 bytes", out);
    describe(TEXT_DATASET_IMDB, "/proc/nowhere", &ALL, out, sizeof out);
    EXPECT_STR_EQ("/proc/nowhere: cannot open: No such file or directory", out);
}

C_TEST(imdb, reads_the_real_archive) {
    char path[1024];
    if (!test_data_path("aclImdb_labelled.tar.xz", path, sizeof path)) {
        TEST_SKIP("set WARPBOOK_DATA to a folder with aclImdb_labelled.tar.xz");
    }
    struct text_dataset dataset;
    const struct text_dataset_options first = {.split = "train", .limit = 200};
    EXPECT_OK(text_dataset_open(&dataset, TEXT_DATASET_IMDB, path, &first, NULL));
    EXPECT_INT_EQ(200, dataset.count);
    for (size_t i = 0; i < dataset.count; i++) {
        EXPECT_INT_EQ(i % 2, dataset.samples[i].label);
    }
    text_dataset_close(&dataset);
}

C_TEST(imdb, reads_the_real_reviews_without_labels) {
    char path[1024];
    if (!test_data_path("aclImdb_unsup.tar.xz", path, sizeof path)) {
        TEST_SKIP("set WARPBOOK_DATA to a folder with aclImdb_unsup.tar.xz");
    }
    struct text_dataset dataset;
    const struct text_dataset_options first = {.split = "unsup", .limit = 100};
    EXPECT_OK(text_dataset_open(&dataset, TEXT_DATASET_IMDB, path, &first, NULL));
    EXPECT_INT_EQ(100, dataset.count);
    EXPECT_INT_EQ(0, dataset.labels);
    EXPECT_TRUE(dataset.label_names == NULL);
    size_t paragraphs = 0;
    for (size_t i = 0; i < dataset.count; i++) {
        EXPECT_TRUE(strstr(dataset.samples[i].text, "<br") == NULL);
        paragraphs += strstr(dataset.samples[i].text, "\n\n") != NULL;
    }
    EXPECT_TRUE(paragraphs > 10);
    text_dataset_close(&dataset);
}

/* ---- Texts in a file ---- */

static void check_file(enum text_dataset_kind kind, const char *content,
                       const struct text_dataset_options *options, const char *want) {
    char path[1024], out[1024];
    write_file("texts.txt", content, strlen(content), path, sizeof path);
    describe(kind, path, options, out, sizeof out);
    EXPECT_STR_EQ(want, out);
    unlink(path);
}

static void check_text(const char *content, const struct text_dataset_options *options,
                       const char *want) {
    check_file(TEXT_DATASET_TEXT, content, options, want);
}

C_TEST(text, reads_lines_or_paragraphs) {
    check_text("one\ntwo\r\nthree", &ALL, "-1:one|-1:two|-1:three");
    check_text("\n \none\ntwo\n\n\n", &ALL, "-1:one|-1:two");
    check_text("one\nmore\n\t\r\n\ntwo\r\n", &ALL, "-1:one\nmore|-1:two");
    check_text("a\nb\nc\nd",
               &(struct text_dataset_options){.split = "train", .skip = 1, .limit = 2},
               "-1:b|-1:c");
}

C_TEST(text, tells_what_is_wrong_and_where) {
    check_text("", &ALL, "texts.txt: there are no texts in it");
    check_text(" \n\n", &ALL, "texts.txt: there are no texts in it");
    check_text("a\n\nb\nc\xff\n", &ALL,
               "texts.txt: the text in line 3: not valid UTF-8 at byte 3 (0xFF) of 4 bytes");
}

static void check_sample(const char *content, const char *want) {
    check_file(TEXT_DATASET_SAMPLE, content, &ALL, want);
}

C_TEST(sample, reads_labels_and_texts) {
    check_sample("pos\ta b\r\nneg\tc\td\n", "1:a b|0:c\td");
    check_file(TEXT_DATASET_SAMPLE, "pos\ta\nneg\tb\npos\tc\n",
               &(struct text_dataset_options){.split = "train", .skip = 1, .limit = 1}, "0:b");
}

C_TEST(sample, tells_what_is_wrong_and_where) {
    check_sample("", "texts.txt: there are no texts in it");
    check_sample("pos\ta\n", "texts.txt: no text has the label 'neg'");
    check_sample("pos\ta\n\nneg\tb\n", "texts.txt: line 2: no tab between a label and a text");
    check_sample("good\ta\n", "texts.txt: line 1: 'good' is not 'neg' or 'pos'");
    check_sample("pos\ta\nneg\t \n", "texts.txt: line 2: there is no text");
    check_sample("pos\t\xff\n", "texts.txt: line 1: not valid UTF-8 at byte 0 (0xFF) of 1 bytes");
}

C_TEST(sample, that_of_the_project_is_balanced) {
    struct text_dataset dataset;
    size_t counts[2] = {0, 0};
    ASSERT_OK(text_dataset_open(&dataset, TEXT_DATASET_SAMPLE, "datasets/reviews_sample.tsv", &ALL,
                                NULL));
    for (size_t i = 0; i < dataset.count; i++) {
        counts[dataset.samples[i].label]++;
        for (size_t j = 0; j < i; j++) {
            EXPECT_TRUE(strcmp(dataset.samples[i].text, dataset.samples[j].text) != 0);
        }
    }
    EXPECT_TRUE(dataset.count >= 120);
    EXPECT_INT_EQ(counts[0], counts[1]);
    text_dataset_close(&dataset);
}

C_TEST(text_dataset, knows_its_kinds_and_splits) {
    enum text_dataset_kind kind;
    struct text_dataset dataset;
    EXPECT_OK(text_dataset_kind_parse("imdb", &kind, NULL));
    EXPECT_INT_EQ(2, text_dataset_labels(kind));
    EXPECT_OK(text_dataset_kind_parse("agnews", &kind, NULL));
    EXPECT_INT_EQ(4, text_dataset_labels(kind));
    EXPECT_OK(text_dataset_kind_parse("sample", &kind, NULL));
    EXPECT_INT_EQ(2, text_dataset_labels(kind));
    EXPECT_ERROR(
        STATUS_INVALID_ARGUMENT,
        "a data set is 'imdb', 'agnews', 'text', 'sample' (the project's own) or 'file' (yours), "
        "not 'IMDB'",
        text_dataset_kind_parse("IMDB", &kind, &error));
    const struct text_dataset_options dev = {.split = "dev"};
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT,
                 "a split is 'test' or 'train' (of imdb also 'unsup'), not 'dev'",
                 text_dataset_open(&dataset, kind, "x", &dev, &error));
    const struct text_dataset_options unsup = {.split = "unsup"};
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT, "agnews has no split 'unsup'",
                 text_dataset_open(&dataset, TEXT_DATASET_AGNEWS, "x", &unsup, &error));
}
