#include "common/base/json_lines.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

static enum status append_number(const char *path, const char *name, int value,
                                 struct error *error) {
    cJSON *object = cJSON_CreateObject();
    EXPECT_TRUE(cJSON_AddNumberToObject(object, name, value) != NULL);
    enum status status = json_lines_append(path, object, error);
    cJSON_Delete(object);
    return status;
}

C_TEST(json_lines, appends_one_line_an_object_and_makes_the_folders) {
    char path[512];
    test_temporary_path("new/folders/results.jsonl", path, sizeof path);
    ASSERT_OK(append_number(path, "first", 1, NULL));
    ASSERT_OK(append_number(path, "second", 2, NULL));
    char *text = NULL;
    size_t size = 0;
    ASSERT_OK(file_read(path, 1 << 20, &text, &size, NULL));
    EXPECT_STR_EQ("{\"first\":1}\n{\"second\":2}\n", text);
    free(text);
}

C_TEST(json_lines, a_newline_inside_a_value_does_not_split_the_line) {
    char path[512];
    test_temporary_path("newline.jsonl", path, sizeof path);
    cJSON *object = cJSON_CreateObject();
    EXPECT_TRUE(cJSON_AddStringToObject(object, "text", "a\nb\"") != NULL);
    EXPECT_OK(json_lines_append(path, object, NULL));
    cJSON_Delete(object);
    char *text = NULL;
    size_t size = 0;
    ASSERT_OK(file_read(path, 1 << 20, &text, &size, NULL));
    EXPECT_STR_EQ("{\"text\":\"a\\nb\\\"\"}\n", text);
    free(text);
}

#define WRITERS 4
#define LINES 50

/* One writer: LINES long lines, then exit. */
static void write_lines_and_exit(const char *path, int writer) {
    char filler[3001];
    memset(filler, 'a' + writer, sizeof filler - 1);
    filler[sizeof filler - 1] = '\0';
    struct error error = {0};
    for (int i = 0; i < LINES; i++) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "filler", filler);
        if (json_lines_append(path, object, &error) != STATUS_OK) {
            _exit(1);
        }
        cJSON_Delete(object);
    }
    _exit(0);
}

/* Counts the complete lines of `text`: JSON with a filler of one letter only. */
static int count_whole_lines(char *text) {
    int whole = 0;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); rest != NULL; line = strsep(&rest, "\n")) {
        cJSON *object = cJSON_Parse(line);
        const char *filler = cJSON_GetStringValue(cJSON_GetObjectItem(object, "filler"));
        if (filler != NULL) {
            const char letter[2] = {filler[0], '\0'};
            whole += strlen(filler) == 3000 && strspn(filler, letter) == 3000;
        }
        cJSON_Delete(object);
    }
    return whole;
}

C_TEST(json_lines, programs_that_append_at_once_do_not_mix_their_lines) {
    char path[512];
    test_temporary_path("together.jsonl", path, sizeof path);
    for (int writer = 0; writer < WRITERS; writer++) {
        pid_t child = fork();
        ASSERT_TRUE(child >= 0);
        if (child == 0) {
            write_lines_and_exit(path, writer);
        }
    }
    for (int writer = 0; writer < WRITERS; writer++) {
        int result = -1;
        EXPECT_TRUE(wait(&result) > 0);
        EXPECT_INT_EQ(0, result);
    }
    char *text = NULL;
    size_t size = 0;
    ASSERT_OK(file_read(path, 1 << 20, &text, &size, NULL));
    EXPECT_INT_EQ(WRITERS * LINES, count_whole_lines(text));
    free(text);
}

C_TEST(json_lines, a_path_that_cannot_be_written_is_named) {
    char path[512];
    test_temporary_path("a_folder", path, sizeof path);
    ASSERT_TRUE(mkdir(path, 0777) == 0);
    EXPECT_ERROR_CONTAINS(STATUS_IO, "a_folder: cannot append: Is a directory",
                          append_number(path, "x", 1, &error));

    test_temporary_path("a_file", path, sizeof path);
    ASSERT_OK(file_write(path, "x", 1, NULL));
    test_temporary_path("a_file/results.jsonl", path, sizeof path);
    EXPECT_ERROR_CONTAINS(STATUS_NOT_FOUND, "a_file/results.jsonl: cannot append: Not a directory",
                          append_number(path, "x", 1, &error));
}

C_TEST(json_lines, a_device_is_written_to) {
    struct stat found;
    EXPECT_OK(append_number("/dev/null", "gone", 1, NULL));
    EXPECT_TRUE(stat("/dev/null", &found) == 0 && S_ISCHR(found.st_mode));
    EXPECT_ERROR(STATUS_IO, "/dev/full: cannot append: No space left on device",
                 append_number("/dev/full", "x", 1, &error));
}
