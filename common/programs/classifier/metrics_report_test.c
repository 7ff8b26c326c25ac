/**
 * @file metrics_report_test.c
 * @brief Tables and JSON of an example calculated by hand, with few labels, wide names, and many.
 */
#include "common/programs/classifier/metrics_report.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

static void add(struct metrics *metrics, size_t label, size_t answer, int times) {
    for (int i = 0; i < times; i++) {
        metrics_add(metrics, label, answer);
    }
}

/* The printed report, which the caller frees. */
static char *print(const struct metrics *metrics, const char *const *names) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    metrics_print(metrics, names, stream);
    fclose(stream);
    return text;
}

/* ham: 5 texts, 4 right, 1 spam. spam: 3 texts, 2 right, 1 ham. \xc3\xa4: 2 texts, 1 right, 1 ham.
   Precision 4/6, 2/3, 1/1; recall 4/5, 2/3, 1/2; F1 8/11, 2/3, 2/3; their mean 68/99; accuracy
   7/10. */
static void example(struct metrics *metrics) {
    ASSERT_OK(metrics_create(metrics, 3));
    add(metrics, 0, 0, 4);
    add(metrics, 0, 1, 1);
    add(metrics, 1, 1, 2);
    add(metrics, 1, 0, 1);
    add(metrics, 2, 2, 1);
    add(metrics, 2, 0, 1);
}

C_TEST(metrics_report, of_a_few_labels_is_a_matrix) {
    static const char *const names[] = {"ham", "spam", "\xc3\xa4"};
    struct metrics m;
    example(&m);
    char *text = print(&m, names);
    EXPECT_STR_EQ("\n"
                  "  label        precision    recall        F1     texts\n"
                  "  ham             0.6667    0.8000    0.7273         5\n"
                  "  spam            0.6667    0.6667    0.6667         3\n"
                  "  \xc3\xa4               1.0000    0.5000    0.6667         2\n"
                  "\n"
                  "accuracy 0.7000, macro F1 0.6869\n"
                  "\n"
                  "  label\\answer       ham      spam         \xc3\xa4\n"
                  "  ham                  4         1         0\n"
                  "  spam                 1         2         0\n"
                  "  \xc3\xa4                    1         0         1\n",
                  text);
    free(text);
    metrics_free(&m);
}

C_TEST(metrics_report, of_wide_names_numbers_the_columns) {
    static const char *const names[] = {"refund of an annual subscription, with a discount", "spam",
                                        "\xe6\x97\xa5\xe6\x9c\xac"};
    struct metrics m;
    example(&m);
    char *text = print(&m, names);
    EXPECT_STR_CONTAINS("  refund of an annual subscription    0.6667", text);
    EXPECT_STR_CONTAINS("  \xe6\x97\xa5\xe6\x9c\xac                                1.0000", text);
    EXPECT_STR_CONTAINS("\n"
                        "  label\\answer                                 1         2         3\n"
                        "    1 refund of an annual subscription         4         1         0\n"
                        "    2 spam                                     1         2         0\n",
                        text);
    free(text);
    metrics_free(&m);
}

C_TEST(metrics_report, of_many_labels_lists_the_pairs_most_often_confused) {
    enum { MANY = 31 /* nothing is said of the last one, which does not occur */ };
    char spelt[MANY][8];
    const char *names[MANY];
    struct metrics m;
    ASSERT_OK(metrics_create(&m, MANY));
    for (size_t i = 0; i < MANY; i++) {
        snprintf(spelt[i], sizeof spelt[i], "c%zu", i);
        names[i] = spelt[i];
        add(&m, i, i, i + 1 < MANY ? 100 : 0);
    }
    char *text = print(&m, names);
    EXPECT_STR_CONTAINS("\n  c29             1.0000    1.0000    1.0000       100\n\naccuracy",
                        text);
    EXPECT_STR_CONTAINS("\nno label is confused with another\n", text);
    free(text);
    for (size_t i = 0; i + 1 < MANY; i++) {
        add(&m, i, (i + 1) % (MANY - 1), 1 + (int)(i % 3)); /* 10 pairs each of 1, 2 and 3 texts */
    }
    add(&m, 4, 29, 7);
    text = print(&m, names);
    EXPECT_STR_CONTAINS("\nmost often confused:\n"
                        "  label         answer           texts\n"
                        "  c4            c29                  7\n"
                        "  c2            c3                   3\n"
                        "  c5            c6                   3\n",
                        text);
    EXPECT_STR_CONTAINS("  c25           c26                  2\n", text);
    EXPECT_TRUE(strstr(text, "  c28           c29 ") == NULL); /* the 21st */
    free(text);
    metrics_free(&m);
}

C_TEST(metrics_report, as_json_has_names) {
    static const char *const names[] = {"ham", "spam", "\xc3\xa4"};
    struct metrics m;
    cJSON *object = cJSON_CreateObject();
    example(&m);
    ASSERT_OK(metrics_add_json(&m, names, object));
    char *json = cJSON_PrintUnformatted(object);
    EXPECT_STR_CONTAINS("{\"accuracy\":0.7,\"macro_f1\":0.68686868686868", json);
    EXPECT_STR_CONTAINS("{\"label\":\"ham\",\"precision\":0.66666666666666", json);
    EXPECT_STR_CONTAINS("{\"label\":\"\xc3\xa4\",\"precision\":1,\"recall\":0.5,\"f1\":0.666666",
                        json);
    EXPECT_STR_CONTAINS("\"confusion\":[{\"label\":\"ham\",\"answer\":\"ham\",\"texts\":4},"
                        "{\"label\":\"ham\",\"answer\":\"spam\",\"texts\":1},"
                        "{\"label\":\"spam\",\"answer\":\"ham\",\"texts\":1},"
                        "{\"label\":\"spam\",\"answer\":\"spam\",\"texts\":2},"
                        "{\"label\":\"\xc3\xa4\",\"answer\":\"ham\",\"texts\":1},"
                        "{\"label\":\"\xc3\xa4\",\"answer\":\"\xc3\xa4\",\"texts\":1}]}",
                        json);
    free(json);
    cJSON_Delete(object);
    metrics_free(&m);
}
