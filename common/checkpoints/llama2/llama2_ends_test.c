#include "common/checkpoints/llama2/llama2_ends.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/testing/refusals.h"
#include "common/testing/testing.h"

static struct llama2_ends ends;

static enum status parse(const void *json, size_t size, struct error *error) {
    return llama2_ends_parse(&ends, json, size, error);
}

static void expect_ids(const char *json, const int32_t *ids, size_t count) {
    ASSERT_OK(parse(json, strlen(json), NULL));
    EXPECT_INT_EQ(count, ends.count);
    EXPECT_TRUE(count == 0 || memcmp(ids, ends.ids, count * sizeof *ids) == 0);
}

C_TEST(llama2_ends, a_number_or_a_list) {
    expect_ids("{}", NULL, 0);
    expect_ids("{\"eos_token_id\":null}", NULL, 0);
    expect_ids("{\"eos_token_id\":2}", (const int32_t[]){2}, 1);
    expect_ids("{\"eos_token_id\":[128001,128008,128009,128008]}",
               (const int32_t[]){128001, 128008, 128009}, 3);
    EXPECT_TRUE(llama2_ends_has(&ends, 128009) && !llama2_ends_has(&ends, 2));
    llama2_ends_add(&ends, -1);
    llama2_ends_add(&ends, 128001);
    EXPECT_INT_EQ(3, ends.count);
    llama2_ends_add(&ends, 2);
    EXPECT_TRUE(llama2_ends_has(&ends, 2));
}

C_TEST(llama2_ends, other_values_are_refused) {
    static const struct refusal cases[] = {
        {"", STATUS_BAD_FORMAT, "not valid JSON"},
        {"{\"eos_token_id\":\"</s>\"}", STATUS_BAD_FORMAT, "neither a token nor a list of tokens"},
        {"{\"eos_token_id\":-1}", STATUS_BAD_FORMAT, "neither a token nor a list"},
        {"{\"eos_token_id\":[1,2.5]}", STATUS_BAD_FORMAT, "neither a token nor a list"},
        {"{\"eos_token_id\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,"
         "27,28,29,30,31,32,33]}",
         STATUS_TOO_LONG, "\"eos_token_id\" has 33 tokens, at most 32 are read"},
    };
    expect_refusals(parse, cases, sizeof cases / sizeof *cases);
}

static void write_text(const char *folder, const char *name, const char *text) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_OK(file_write(path, text, strlen(text), NULL));
}

C_TEST(llama2_ends, generation_config_comes_first) {
    char folder[4096];
    test_temporary_path("ends", folder, sizeof folder);
    EXPECT_INT_EQ(0, mkdir(folder, 0755));
    ASSERT_OK(llama2_ends_open(&ends, folder, NULL));
    EXPECT_INT_EQ(0, ends.count);
    write_text(folder, "config.json", "{\"eos_token_id\":5}");
    ASSERT_OK(llama2_ends_open(&ends, folder, NULL));
    EXPECT_TRUE(ends.count == 1 && ends.ids[0] == 5);
    write_text(folder, "generation_config.json", "{\"temperature\":0.6}");
    ASSERT_OK(llama2_ends_open(&ends, folder, NULL));
    EXPECT_TRUE(ends.count == 1 && ends.ids[0] == 5);
    write_text(folder, "generation_config.json", "{\"eos_token_id\":[7,8]}");
    ASSERT_OK(llama2_ends_open(&ends, folder, NULL));
    EXPECT_TRUE(ends.count == 2 && ends.ids[0] == 7);
    write_text(folder, "generation_config.json", "{\"eos_token_id\":true}");
    EXPECT_ERROR_CONTAINS(STATUS_BAD_FORMAT, "generation_config.json: \"eos_token_id\" is neither",
                          llama2_ends_open(&ends, folder, &error));
}
