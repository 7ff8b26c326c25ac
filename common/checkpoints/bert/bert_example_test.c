/**
 * @file bert_example_test.c
 * @brief The stand-ins are whole: shapes by name, a vocabulary that pieces any ASCII text, labels.
 */
#include "common/checkpoints/bert/bert_example.h"

#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/testing/testing.h"
#include "common/tokenizers/wordpiece/wordpiece.h"

C_TEST(bert_example, names_shapes) {
    struct bert_config config;
    EXPECT_OK(bert_shape_parse("base", &config, NULL));
    EXPECT_INT_EQ(768, config.C);
    EXPECT_INT_EQ(12, config.L);
    EXPECT_OK(bert_shape_parse("tiny", &config, NULL));
    EXPECT_INT_EQ(0, config.C % config.NH);
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT, "--shape is 'tiny' or 'base', not 'large'",
                 bert_shape_parse("large", &config, &error));
}

C_TEST(bert_example, vocabulary_pieces_any_text) {
    char *text;
    size_t size, count;
    int32_t *ids;
    struct wordpiece *wordpiece;
    const char sentence[] = "A dull, LIFELESS film; 0 of 10 ~ {[<\"'`|\\^>]} #@!";
    ASSERT_OK(bert_letters_vocabulary(200, &text, &size));
    EXPECT_INT_EQ(size, strlen(text));
    ASSERT_OK(wordpiece_parse(&wordpiece, text, size, NULL));
    EXPECT_INT_EQ(200, wordpiece_size(wordpiece));
    ASSERT_OK(wordpiece_encode(wordpiece, sentence, strlen(sentence), 0, &ids, &count, NULL));
    for (size_t i = 0; i < count; i++) {
        EXPECT_TRUE(ids[i] != wordpiece_special(wordpiece).unk);
    }
    EXPECT_TRUE(count > 30);
    free(ids);
    wordpiece_free(wordpiece);
    free(text);
    ASSERT_OK(bert_letters_vocabulary(0, &text, &size));
    EXPECT_TRUE(strstr(text, "unused") == NULL);
    free(text);
}

C_TEST(bert_labels, come_from_the_configuration) {
    static const struct {
        const char *json, *first, *second;
    } cases[] = {
        {"{\"id2label\":{\"0\":\"neg\",\"1\":\"pos\"}}", "neg", "pos"},
        {"{\"id2label\":{\"1\":\"pos\"}}", "LABEL_0", "pos"},
        {"{\"id2label\":{\"0\":3,\"1\":\"\"}}", "LABEL_0", "LABEL_1"},
        {"{\"id2label\":[\"a\",\"b\"]}", "LABEL_0", "LABEL_1"},
        {"{}", "LABEL_0", "LABEL_1"},
        {"{\"id2label\":{\"0\":\"a\\nb\",\"1\":\"\\u001b[1m\"}}", "a?b", "?[1m"},
        {NULL, "LABEL_0", "LABEL_1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bert_label *names;
        const char *json = cases[i].json;
        ASSERT_OK(bert_labels_parse(json, json != NULL ? strlen(json) : 0, 2, &names, NULL));
        EXPECT_STR_EQ(cases[i].first, names[0].name);
        EXPECT_STR_EQ(cases[i].second, names[1].name);
        free(names);
    }
}

C_TEST(bert_labels, long_names_are_cut_between_characters) {
    char json[400] = "{\"id2label\":{\"0\":\"a";
    for (int i = 0; i < 40; i++) {
        strcat(json, "\xc3\xa9");
    }
    strcat(json, "\"}}");
    struct bert_label *names;
    ASSERT_OK(bert_labels_parse(json, strlen(json), 1, &names, NULL));
    EXPECT_INT_EQ(63, strlen(names[0].name));
    EXPECT_TRUE((unsigned char)names[0].name[62] == 0xa9);
    free(names);
    EXPECT_STATUS(STATUS_BAD_FORMAT, bert_labels_parse("[]", 2, 1, &names, NULL));
    EXPECT_TRUE(names == NULL);
}
