#include "common/testing/refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

void *exact_copy(const void *data, size_t size) {
    void *copy = malloc(size > 0 ? size : 1);
    EXPECT_TRUE(copy != NULL);
    memcpy(copy, data, size);
    return copy;
}

void expect_refusal(refusing_parser *parse, const void *data, size_t size, enum status status,
                    const char *message) {
    struct error error = {0};
    void *copy = exact_copy(data, size);
    enum status got = parse(copy, size, &error);
    if (got != status || error.status != status || strstr(error.message, message) == NULL ||
        strchr(error.message, '\n') != NULL) {
        TEST_FAIL("%zu bytes, \"%.*s\": want %s \"...%s...\", got %s \"%s\"", size, (int)size,
                  (const char *)data, status_name(status), message, status_name(got),
                  error.message);
    }
    free(copy);
}

void expect_refusals(refusing_parser *parse, const struct refusal *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        expect_refusal(parse, cases[i].text, strlen(cases[i].text), cases[i].status,
                       cases[i].message);
    }
}

void expect_prefixes_refused(refusing_parser *parse, const void *data, size_t size,
                             enum status status, const char *message) {
    for (size_t length = 0; length < size && !test_has_failed(); length++) {
        expect_refusal(parse, data, length, status, message);
    }
}

void expect_open_fails(refusing_opener *open, const char *path, const char *file,
                       enum status status, const char *message) {
    struct error error = {0};
    char prefix[8192];
    EXPECT_STATUS(status, open(path, &error));
    snprintf(prefix, sizeof prefix, "%s%s%s: ", path, file[0] != '\0' ? "/" : "", file);
    if (strstr(error.message, prefix) != error.message || strstr(error.message, message) == NULL) {
        TEST_FAIL("want \"%s...%s...\", got \"%s\"", prefix, message, error.message);
    }
}

void expect_bad_files_named(refusing_opener *open, enum status status, const char *message) {
    char path[4096];
    test_temporary_path("missing_file", path, sizeof path);
    expect_open_fails(open, path, "", STATUS_NOT_FOUND, "cannot open: No such file");
    test_temporary_path("a_folder_for_a_file", path, sizeof path);
    EXPECT_INT_EQ(0, mkdir(path, 0755));
    expect_open_fails(open, path, "", STATUS_IO, "not a regular file");
    test_temporary_path("empty_file", path, sizeof path);
    EXPECT_OK(file_write(path, "", 0, NULL));
    expect_open_fails(open, path, "", status, message);
}
