/**
 * @file text_labels_test.c
 * @brief Names of labels: collected and sorted, those of a model, and names that are refused.
 */
#include "common/texts/text_labels.h"

#include <stdio.h>
#include <string.h>

#include "common/testing/testing.h"

static int32_t take(struct text_labels *labels, const char *name) {
    int32_t id = -1;
    EXPECT_OK(text_labels_take(labels, name, strlen(name), &id, NULL));
    return id;
}

/* Takes the words, sorts, and expects the names and the new ids of the words. */
static void check_sorted(const char *words, const char *want_names, const char *want_ids) {
    char copy[200], names[300], ids[300] = "";
    int32_t taken[16], rank[16];
    size_t count = 0;
    struct text_labels labels = {0};
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        taken[count++] = take(&labels, word);
    }
    text_labels_sort(&labels, rank);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(ids);
        snprintf(ids + used, sizeof ids - used, "%d ", (int)rank[taken[i]]);
    }
    EXPECT_STR_EQ(want_names, text_labels_list(&labels, names, sizeof names));
    EXPECT_STR_EQ(want_ids, ids);
    for (size_t i = 0; i < labels.count; i++) {
        EXPECT_INT_EQ(i, text_labels_find(&labels, labels.names[i]));
    }
    text_labels_free(&labels);
    text_labels_free(&labels);
}

C_TEST(text_labels, are_collected_and_sorted) {
    check_sorted("spam ham spam eggs", "'eggs', 'ham', 'spam'", "2 1 2 0 ");
    check_sorted("10 9 -1 9", "'-1', '9', '10'", "2 1 0 1 ");
    check_sorted("10 9 x", "'10', '9', 'x'", "0 1 2 ");
    check_sorted("1 01", "'01', '1'", "1 0 ");
    check_sorted("b B \xc3\xa4 a", "'B', 'a', 'b', '\xc3\xa4'", "2 0 3 1 ");
    check_sorted("one", "'one'", "0 ");
    check_sorted("", "", "");
}

C_TEST(text_labels, of_a_model_are_all_there_are) {
    struct text_labels labels = {0};
    int32_t id;
    EXPECT_INT_EQ(0, take(&labels, "pos"));
    EXPECT_INT_EQ(1, take(&labels, "LABEL_1"));
    EXPECT_INT_EQ(-1, text_labels_find(&labels, "1")); /* not closed yet */
    labels.closed = true;
    EXPECT_INT_EQ(0, take(&labels, "pos"));
    EXPECT_INT_EQ(1, take(&labels, "1"));
    EXPECT_INT_EQ(1, take(&labels, "LABEL_1"));
    EXPECT_ERROR(STATUS_MISMATCH,
                 "the model does not know the label 'neg'; its labels are 'pos', 'LABEL_1'",
                 text_labels_take(&labels, "neg", 3, &id, &error));
    EXPECT_INT_EQ(2, labels.count);
    text_labels_free(&labels);
}

C_TEST(text_labels, refuses_what_is_no_name) {
    static const struct {
        const char *name;
        enum status status;
        const char *want;
    } cases[] = {
        {"", STATUS_BAD_FORMAT, "there is no label"},
        {"  ", STATUS_BAD_FORMAT, "there is no label"},
        {"a\nb", STATUS_BAD_FORMAT, "the label has a control character (0x0A) at byte 1"},
        {"\x7f", STATUS_BAD_FORMAT, "the label has a control character (0x7F) at byte 0"},
        {"a\xff", STATUS_BAD_UTF8, "not valid UTF-8 at byte 1 (0xFF) of 2 bytes"},
        {"0123456789012345678901234567890123456789012345678901234567890123", STATUS_TOO_LONG,
         "a label of 64 bytes, at most 63 are allowed: is this the column of the labels?"},
    };
    struct text_labels labels = {0};
    int32_t id;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EXPECT_ERROR(cases[i].status, cases[i].want,
                     text_labels_take(&labels, cases[i].name, strlen(cases[i].name), &id, &error));
    }
    EXPECT_ERROR(STATUS_BAD_FORMAT, "the label has a control character (0x00) at byte 1",
                 text_labels_take(&labels, "a\0b", 3, &id, &error));
    EXPECT_INT_EQ(0, labels.count);
    EXPECT_INT_EQ(-1, text_labels_find(&labels, cases[5].name));
    EXPECT_INT_EQ(0, take(&labels, cases[5].name + 1)); /* 63 bytes */
    text_labels_free(&labels);
}

C_TEST(text_labels, are_not_without_end) {
    struct text_labels labels = {0};
    char name[16], list[60];
    int32_t id;
    for (int i = 0; i < TEXT_LABELS_MOST; i++) {
        snprintf(name, sizeof name, "%d", i);
        EXPECT_INT_EQ(i, take(&labels, name));
    }
    EXPECT_INT_EQ(77, take(&labels, "77"));
    EXPECT_ERROR(STATUS_TOO_LONG,
                 "more than 4096 different labels: is this the column of the labels?",
                 text_labels_take(&labels, "x", 1, &id, &error));
    EXPECT_STR_EQ("'0', '1', '2', '3', '4', '5', '6' and 4089 more",
                  text_labels_list(&labels, list, sizeof list));
    text_labels_free(&labels);
}
