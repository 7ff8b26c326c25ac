#include "common/base/status.h"

#include <string.h>

#include "common/testing/testing.h"

C_TEST(status, every_code_is_negative_and_has_its_own_name_and_message) {
    static const enum status all[] = {
#define LIST_STATUS(name, value, message) name,
        STATUS_LIST(LIST_STATUS)
#undef LIST_STATUS
    };
    size_t count = sizeof all / sizeof all[0];
    for (size_t i = 0; i < count; i++) {
        EXPECT_TRUE(i == 0 ? all[i] == STATUS_OK : all[i] < 0);
        EXPECT_TRUE(strcmp(status_name(all[i]), "STATUS_UNKNOWN") != 0);
        EXPECT_TRUE(status_message(all[i])[0] != '\0');
        for (size_t j = 0; j < i; j++) {
            EXPECT_TRUE(strcmp(status_name(all[i]), status_name(all[j])) != 0);
            EXPECT_TRUE(strcmp(status_message(all[i]), status_message(all[j])) != 0);
        }
    }
}

C_TEST(status, a_foreign_value_has_a_name_and_a_message) {
    EXPECT_STR_EQ("STATUS_UNKNOWN", status_name((enum status) - 99));
    EXPECT_STR_EQ("unknown status", status_message((enum status) - 99));
    EXPECT_STR_EQ("STATUS_TRUNCATED", status_name(STATUS_TRUNCATED));
}

C_TEST(status, error_set_records_the_line_and_returns_the_code) {
    struct error error = {0};
    EXPECT_STATUS(STATUS_MISMATCH, error_set(&error, STATUS_MISMATCH, "%s: %d", "rows", 7));
    EXPECT_STATUS(STATUS_MISMATCH, error.status);
    EXPECT_STR_EQ("rows: 7", error.message);
    EXPECT_STR_EQ("rows: 7", error_text(&error, STATUS_MISMATCH));
}

C_TEST(status, a_null_error_is_allowed) {
    EXPECT_STATUS(STATUS_IO, error_set(NULL, STATUS_IO, "not kept"));
    EXPECT_STATUS(STATUS_IO, error_prefix(NULL, STATUS_IO, "not kept"));
    EXPECT_STR_EQ(status_message(STATUS_IO), error_text(NULL, STATUS_IO));
}

C_TEST(status, without_a_line_the_general_message_is_shown) {
    struct error error = {0};
    EXPECT_STR_EQ("file ends too early", error_text(&error, STATUS_TRUNCATED));
    EXPECT_STATUS(STATUS_TRUNCATED, error_prefix(&error, STATUS_TRUNCATED, "a.bin"));
    EXPECT_STR_EQ("a.bin: file ends too early", error.message);
}

C_TEST(status, prefixes_stack_up) {
    struct error error = {0};
    (void)error_set(&error, STATUS_OVERFLOW, "layer 3");
    EXPECT_STATUS(STATUS_OVERFLOW, error_prefix(&error, STATUS_OVERFLOW, "weights"));
    EXPECT_STATUS(STATUS_OVERFLOW, error_prefix(&error, STATUS_OVERFLOW, "a.bin"));
    EXPECT_STR_EQ("a.bin: weights: layer 3", error.message);
    EXPECT_STATUS(STATUS_OVERFLOW, error.status);
}

C_TEST(status, hostile_text_stays_one_line) {
    struct error error = {0};
    (void)error_set(&error, STATUS_NOT_FOUND, "%s: missing", "a\nfake: ok\033[2J\r\x7f");
    EXPECT_STR_EQ("a?fake: ok?[2J??: missing", error.message);
    (void)error_set(&error, STATUS_NOT_FOUND, "%s", "caf\xc3\xa9");
    EXPECT_STR_EQ("caf\xc3\xa9", error.message);
}

C_TEST(status, long_text_is_cut_and_still_terminated) {
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct error error = {0};
    (void)error_set(&error, STATUS_IO, "%s", text);
    EXPECT_INT_EQ(sizeof error.message - 1, strlen(error.message));
    (void)error_prefix(&error, STATUS_IO, "b");
    EXPECT_INT_EQ(sizeof error.message - 1, strlen(error.message));
    EXPECT_TRUE(strncmp(error.message, "b: aaaa", 7) == 0);
}

C_TEST(status, a_cut_does_not_split_a_character) {
    char text[600];
    memset(text, 'a', sizeof text);
    memcpy(text + 510, "\xc3\xa9", 3); /* only its first byte would fit */
    struct error error = {0};
    (void)error_set(&error, STATUS_IO, "%s", text);
    EXPECT_INT_EQ(510, strlen(error.message));
    memcpy(text + 509, "\xc3\xa9", 3); /* fits exactly */
    (void)error_set(&error, STATUS_IO, "%s", text);
    EXPECT_INT_EQ(511, strlen(error.message));
}
