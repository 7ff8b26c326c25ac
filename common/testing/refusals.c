#include "common/testing/refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

const struct refusal not_utf8[NOT_UTF8_COUNT] = {
    {"\x80", STATUS_BAD_UTF8, "byte 0 (0x80)"},                     /* continuation first */
    {"ab\xc0\xaf", STATUS_BAD_UTF8, "byte 2 (0xC0)"},               /* overlong, 2 bytes */
    {"\xe0\x80\xaf", STATUS_BAD_UTF8, "byte 0 (0xE0)"},             /* overlong, 3 bytes */
    {"\xf0\x80\x80\xaf", STATUS_BAD_UTF8, "byte 0 (0xF0)"},         /* overlong, 4 bytes */
    {"a\xed\xa0\x80", STATUS_BAD_UTF8, "byte 1 (0xED)"},            /* U+D800 */
    {"\xed\xbf\xbf", STATUS_BAD_UTF8, "byte 0 (0xED)"},             /* U+DFFF */
    {"\xc3\xa9\xf4\x90\x80\x80", STATUS_BAD_UTF8, "byte 2 (0xF4)"}, /* U+110000 */
    {"\xf8\x88\x80\x80\x80", STATUS_BAD_UTF8, "byte 0 (0xF8)"},     /* five bytes */
    {"abc\xff", STATUS_BAD_UTF8, "byte 3 (0xFF)"},
    {"\xe4\xb8", STATUS_BAD_UTF8, "byte 0 (0xE4)"}, /* ends early */
    {"a\xf0\x9f\x98", STATUS_BAD_UTF8, "byte 1 (0xF0)"},
    {"\xc3", STATUS_BAD_UTF8, "byte 0 (0xC3)"},
    {"\xe4\xb8 x", STATUS_BAD_UTF8, "byte 0 (0xE4)"}, /* continuation missing */
};

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
