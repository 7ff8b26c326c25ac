/**
 * @file text_dataset_own_test.c
 * @brief The user's own texts: three formats, columns by name, labels of any names, and what is
 *        wrong in which line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/testing/testing.h"
#include "common/texts/text_dataset.h"

static const struct text_dataset_options ALL = {.split = "train"};

/* "NAME:TEXT|NAME:TEXT" of the file, or the message without the temporary folder's name. */
static void describe(const char *name, const char *content, size_t size,
                     const struct text_dataset_options *options, char *out, size_t room) {
    char path[1024], folder[1024];
    struct text_dataset dataset;
    struct error error = {0};
    ASSERT_OK(file_write(test_temporary_path(name, path, sizeof path), content, size, NULL));
    out[0] = '\0';
    if (text_dataset_open(&dataset, TEXT_DATASET_FILE, path, options, &error) != STATUS_OK) {
        test_temporary_path("", folder, sizeof folder);
        const char *at = strstr(error.message, folder);
        snprintf(out, room, "%s", at != NULL ? at + strlen(folder) : error.message);
    }
    for (size_t i = 0; i < dataset.count; i++) {
        const struct text_sample *s = &dataset.samples[i];
        size_t used = strlen(out);
        EXPECT_INT_EQ(strlen(s->text), s->length);
        snprintf(out + used, room - used, "%s%s:%s", i > 0 ? "|" : "",
                 s->label >= 0 ? dataset.label_names[s->label] : "-", s->text);
    }
    text_dataset_close(&dataset);
}

/* With labels collected, or with those given, separated by blanks. */
static void check_with(const char *name, const char *content, const char *known,
                       struct text_dataset_options options, const char *want) {
    char out[1024], copy[200];
    struct text_labels labels = {0};
    int32_t id;
    snprintf(copy, sizeof copy, "%s", known);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        ASSERT_OK(text_labels_take(&labels, word, strlen(word), &id, NULL));
    }
    labels.closed = labels.count > 0;
    options.labels = &labels;
    describe(name, content, strlen(content), &options, out, sizeof out);
    EXPECT_STR_EQ(want, out);
    text_labels_free(&labels);
}

static void check(const char *name, const char *content, const char *want) {
    check_with(name, content, "", ALL, want);
}

C_TEST(own_texts, are_read_from_three_formats) {
    check("t.csv", "text,label\r\nfine,good\r\n\"a, \"\"b\"\"\nc\",bad\r\n",
          "good:fine|bad:a, \"b\"\nc");
    check("t.CSV", "\xef\xbb\xbflabel,id,text\nx,1,one\n\ny,2,two", "x:one|y:two");
    check("t.tsv", "label\ttext\nx\tone, \"two\ny z\t\"three\"\r\n", "x:one, \"two|y z:\"three\"");
    check("t.jsonl",
          "\xef\xbb\xbf{\"text\": \"caf\\u00e9\\n!\", \"label\": \"\xc3\xa4\"}\r\n\n"
          "{\"label\": 3, \"more\": [{}], \"text\": \"two\"}\n{\"text\": \"a\", \"label\": true}",
          "\xc3\xa4:caf\xc3\xa9\n!|3:two|true:a");
}

C_TEST(own_texts, have_columns_by_name) {
    struct text_dataset_options o = {
        .split = "test", .columns = {.format = "csv", .text = "the body", .label = "k"}};
    check_with("t.dat", "k,text,the body\na,x,y\n", "", o, "a:y");
    o.columns = (struct text_columns){.format = "JSONL", .text = "s", .label = "sentiment"};
    check_with("t.csv", "{\"s\": \"x\", \"sentiment\": -4}\n", "", o, "-4:x");
    o = (struct text_dataset_options){.split = "train", .skip = 1, .limit = 1};
    check_with("t.tsv", "text\tlabel\na\tb\nc\td\ne\tf\n", "", o, "d:c");
}

C_TEST(own_texts, need_no_labels_if_nobody_asks) {
    char out[100];
    describe("t.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\", \"label\": {}}\n", 41, &ALL, out,
             sizeof out);
    EXPECT_STR_EQ("-:a|-:b", out);
    describe("t.csv", "text\na\n", 7, &ALL, out, sizeof out);
    EXPECT_STR_EQ("-:a", out);
}

C_TEST(own_texts, have_the_labels_of_a_model) {
    check_with("t.csv", "text,label\na,x\nb,LABEL_1\nc,1\n", "x LABEL_1", ALL,
               "x:a|LABEL_1:b|LABEL_1:c");
    check_with("t.csv", "text,label\na,x\n\n\"b\nc\",z\n", "x y", ALL,
               "t.csv: line 4: the model does not know the label 'z'; its labels are 'x', 'y'");
}

C_TEST(own_texts, tell_what_is_wrong_in_a_table) {
    check("t.csv", "", "t.csv: there are no texts in it");
    check("t.csv", "text,label\n", "t.csv: there are no texts in it");
    check("t.csv", "id,body\n1,a\n",
          "t.csv: line 1: the header has no column 'text', only 'id', 'body': name the right one "
          "with --text-column");
    check("t.tsv", "text\tkind\na\tb\n",
          "t.tsv: line 1: the header has no column 'label', only 'text', 'kind': name the right "
          "one with --label-column");
    check("t.csv", "text,label,text\na,b,c\n",
          "t.csv: line 1: the header has the column 'text' 2 times");
    check("t.csv", "\xff\xfet\n", "t.csv: line 1: not valid UTF-8 at byte 0 (0xFF) of 3 bytes");
    check("t.csv", "text;label\na;b\n",
          "t.csv: line 1: the header has no column 'text', only 'text;label': name the right one "
          "with --text-column");
    check("t.csv", "text,label\na,b\nc\n", "t.csv: line 3: the row has 1 fields, the header 2");
    check("t.tsv", "text\tlabel\na\tb\tc\n", "t.tsv: line 2: the row has 3 fields, the header 2");
    check("t.csv", "text,label\n\"a,b\n",
          "t.csv: line 2: the quote that opens here is never closed");
    check("t.csv", "text,label\na,\n", "t.csv: line 2: there is no label");
    check("t.csv", "text,label\n ,b\n", "t.csv: line 2: there is no text");
    check("t.csv", "text,label\na\xff,b\n",
          "t.csv: line 2: not valid UTF-8 at byte 1 (0xFF) of 2 bytes");
    check("t.csv", "text,label\nx,a\n\nb,\"c\nd\"\n",
          "t.csv: line 4: the label has a control character (0x0A) at byte 1");
}

C_TEST(own_texts, tell_what_is_wrong_in_json_lines) {
    check("t.jsonl", "\n \n", "t.jsonl: there are no texts in it");
    check("t.jsonl", "{\"text\": \"a\", \"label\": \"b\"}\n{\"text\": \"a\"\n",
          "t.jsonl: line 2: not valid JSON at byte 11");
    check("t.jsonl", "[1]\n", "t.jsonl: line 1: JSON is not an object");
    check("t.jsonl", "{\"label\": \"b\"}\n",
          "t.jsonl: line 1: \"text\" is missing: name the right key with --text-column");
    check("t.jsonl", "{\"text\": 7}\n", "t.jsonl: line 1: \"text\" is no string");
    check("t.jsonl", "{\"text\": \"a\", \"label\": null}\n",
          "t.jsonl: line 1: \"label\" is missing: name the right key with --label-column");
    check("t.jsonl", "{\"text\": \"a\", \"label\": 0.5}\n",
          "t.jsonl: line 1: the label is no string, whole number, true or false");
    check("t.jsonl", "{\"text\": \"a\", \"label\": [1]}\n",
          "t.jsonl: line 1: the label is no string, whole number, true or false");
    check("t.jsonl", "{\"text\": \"a\", \"text\": \"b\"}\n",
          "t.jsonl: line 1: JSON has the key \"text\" twice");
    check("t.jsonl", "{\"text\": \"\xff\"}\n",
          "t.jsonl: line 1: JSON is not valid UTF-8 at byte 10");
}

C_TEST(own_texts, columns_and_labels_have_limits) {
    char out[300], *wide = malloc(4000);
    struct text_labels labels = {0};
    struct text_dataset_options options = {.split = "train", .labels = &labels};
    memset(wide, ',', 1100);
    describe("t.csv", wide, 1100, &options, out, sizeof out);
    EXPECT_STR_EQ("t.csv: line 1: more than 1024 fields", out);
    free(wide);
    text_labels_free(&labels);
}

C_TEST(own_texts, kind_follows_from_the_command_line) {
    static const struct {
        const char *name, *path;
        struct text_columns columns;
        enum text_dataset_kind want;
    } good[] = {
        {NULL, "a/b.csv", {.text = NULL}, TEXT_DATASET_FILE},
        {NULL, "b.TSV", {.text = NULL}, TEXT_DATASET_FILE},
        {NULL, "b.jsonl", {.label = "x"}, TEXT_DATASET_FILE},
        {NULL, "b.dat", {.format = "csv"}, TEXT_DATASET_FILE},
        {NULL, "b.txt", {.text = NULL}, TEXT_DATASET_TEXT},
        {"agnews", "b.csv", {.text = NULL}, TEXT_DATASET_AGNEWS},
        {"file", "b.csv", {.text = NULL}, TEXT_DATASET_FILE},
    };
    static const struct {
        const char *name, *path;
        struct text_columns columns;
        const char *want;
    } bad[] = {
        {NULL, "folder", {.text = NULL}, "--data folder: give --dataset imdb, agnews, text or"},
        {NULL, "a.b/c", {.text = NULL}, "--data a.b/c: give --dataset imdb"},
        {NULL, "b.csv", {.format = "xml"}, "--format is 'tsv', 'csv' or 'jsonl', not 'xml'"},
        {NULL, "b.txt", {.text = "x"}, "b.txt: its name does not end in .tsv, .csv or .jsonl"},
        {"file", "b", {.text = NULL}, "b: its name does not end in .tsv, .csv or .jsonl"},
        {"imdb", "b", {.label = "x"}, "are for files of your own, not for --dataset imdb"},
    };
    enum text_dataset_kind kind;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        EXPECT_OK(text_dataset_choose(&kind, good[i].name, good[i].path, &good[i].columns, NULL));
        EXPECT_INT_EQ(good[i].want, kind);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EXPECT_ERROR_CONTAINS(
            STATUS_INVALID_ARGUMENT, bad[i].want,
            text_dataset_choose(&kind, bad[i].name, bad[i].path, &bad[i].columns, &error));
    }
}
