/**
 * @file tar_reader_test.c
 * @brief Entries of ustar, pax and GNU archives, and archives that are damaged.
 */
#include "common/texts/tar_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "common/texts/archive_testing.h"

/* Reads the archive to its end: "NAME(KIND)=CONTENT;..." in out. */
static enum status list(const struct archive *archive, char *out, size_t room,
                        struct error *error) {
    struct memory_source memory = {.data = archive->data, .size = archive->size};
    struct tar_reader reader;
    static struct tar_entry entry;
    bool found = true;
    out[0] = '\0';
    tar_reader_create(&reader, (struct byte_source){memory_source_read, &memory});
    for (;;) {
        char content[64] = "";
        TRY(tar_reader_next(&reader, &entry, &found, error));
        if (!found) {
            return STATUS_OK;
        }
        if (entry.size < sizeof content) {
            TRY(tar_reader_read(&reader, content, (size_t)entry.size, error));
        }
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%s(%d)=%s;", entry.name, entry.kind, content);
    }
}

static void check(struct archive *archive, const char *want) {
    char out[8192];
    struct error error = {0};
    archive_end(archive);
    EXPECT_OK(list(archive, out, sizeof out, &error));
    EXPECT_STR_EQ("", error.message);
    EXPECT_STR_EQ(want, out);
    free(archive->data);
}

C_TEST(tar_reader, reads_files_folders_and_others) {
    struct archive a = {0};
    archive_add(&a, '5', "d/", "", 0);
    archive_add(&a, '0', "d/a.txt", "hello", 5);
    archive_add(&a, '\0', "old", "x", 1);
    archive_add(&a, '2', "link", "", 0);
    archive_add(&a, '0', "empty", "", 0);
    check(&a, "d/(1)=;d/a.txt(0)=hello;old(0)=x;link(2)=;empty(0)=;");
}

C_TEST(tar_reader, passes_over_content_that_is_not_read) {
    struct archive a = {0};
    char big[3000];
    memset(big, 'b', sizeof big);
    archive_add(&a, '0', "big", big, sizeof big);
    archive_add(&a, '0', "c", "y", 1);
    check(&a, "big(0)=;c(0)=y;");
}

C_TEST(tar_reader, joins_the_prefix_of_ustar) {
    struct archive a = {0};
    archive_add(&a, '0', "name", "x", 1);
    memcpy(a.data + 345, "some/prefix", 11);
    archive_sign(&a, 0);
    check(&a, "some/prefix/name(0)=x;");
}

C_TEST(tar_reader, heeds_pax_paths_and_sizes) {
    struct archive a = {0};
    const char records[] = "20 mtime=1234567.89\n24 path=a/longer/name.x\n9 size=3\n";
    archive_add(&a, 'g', "global", "14 comment=ab\n", 14);
    archive_add(&a, 'x', "pax", records, sizeof records - 1);
    size_t at = a.size;
    archive_add(&a, '0', "short", "abc", 3);
    memcpy(a.data + at + 124, "00000000000", 11); /* the record counts */
    archive_sign(&a, at);
    archive_add(&a, '0', "next", "n", 1);
    check(&a, "a/longer/name.x(0)=abc;next(0)=n;");
}

C_TEST(tar_reader, heeds_long_names_and_large_sizes_of_gnu) {
    struct archive a = {0};
    archive_add(&a, 'L', "././@LongLink", "a/very/long/name", 17);
    archive_add(&a, '0', "a/very", "z", 1);
    size_t at = a.size;
    archive_add(&a, '0', "base256", "wxyz", 4);
    memcpy(a.data + at + 124, "\x80\0\0\0\0\0\0\0\0\0\0\x04", 12);
    archive_sign(&a, at);
    check(&a, "a/very/long/name(0)=z;base256(0)=wxyz;");
}

/* ---- Damage ---- */

static void refuses(struct archive *archive, enum status want, const char *message) {
    char out[8192];
    EXPECT_ERROR(want, message, list(archive, out, sizeof out, &error));
    free(archive->data);
}

static void refuses_extension(char type, const char *content, size_t size, enum status want,
                              const char *message) {
    struct archive a = {0};
    archive_add(&a, type, "extension", content, size);
    archive_add(&a, '0', "file", "x", 1);
    archive_end(&a);
    refuses(&a, want, message);
}

C_TEST(tar_reader, refuses_what_is_no_archive) {
    struct archive a = {0};
    refuses(&a, STATUS_TRUNCATED, "the tar archive ends too early, after 0 bytes");
    a = (struct archive){0};
    archive_append(&a, "text", 4);
    refuses(&a, STATUS_TRUNCATED, "the tar archive ends too early, after 4 bytes");
    char text[512];
    memset(text, 't', sizeof text);
    a = (struct archive){0};
    archive_append(&a, text, sizeof text);
    refuses(&a, STATUS_BAD_FORMAT, "not a tar archive: no header at offset 0");
}

C_TEST(tar_reader, refuses_archives_that_end_too_early) {
    static const size_t sizes[] = {513, 600, 1023, 1024, 1500};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct archive a = {0};
        char want[80];
        archive_add(&a, '0', "file", "content", 7);
        archive_end(&a);
        a.data = realloc(a.data, sizes[i]);
        a.size = sizes[i];
        snprintf(want, sizeof want, "the tar archive ends too early, after %zu bytes", sizes[i]);
        refuses(&a, STATUS_TRUNCATED, want);
    }
}

C_TEST(tar_reader, refuses_headers_that_are_damaged) {
    struct archive a = {0};
    archive_add(&a, '0', "file", "x", 1);
    archive_add(&a, '0', "next", "x", 1);
    archive_end(&a);
    a.data[1024] ^= 1;
    refuses(&a, STATUS_BAD_FORMAT, "not a tar archive: no header at offset 1024");

    static const char *const sizes[] = {"0000000000x", "9", "-1", "\xff\xff\xff\xff\xff\xff\xff"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        a = (struct archive){0};
        archive_add(&a, '0', "file", "x", 1);
        memcpy(a.data + 124, sizes[i], strlen(sizes[i]));
        archive_sign(&a, 0);
        refuses(&a, STATUS_BAD_FORMAT, "not a tar archive: no header at offset 0");
    }
}

C_TEST(tar_reader, refuses_extensions_that_are_damaged) {
    static const char *const records[] = {"x",           "5",
                                          "99 path=a\n", "0 path=a\n",
                                          "3 \n",        "10 path=ab",
                                          "9 noequal\n", "10 size=1x\n",
                                          "8 size=\n",   "99999999999999999999 path=a\n",
                                          " path=a\n",   "9 path=a\nrest"};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        refuses_extension('x', records[i], strlen(records[i]), STATUS_BAD_FORMAT,
                          "a damaged pax record in the tar archive");
    }
    refuses_extension('x', "11 path=a\0b\n", 12, STATUS_BAD_FORMAT,
                      "a damaged pax record in the tar archive");
    refuses_extension('x', "12 path=a\0b\n", 12, STATUS_BAD_FORMAT,
                      "a name with a NUL in the tar archive");
    char name[4097];
    memset(name, 'n', sizeof name);
    refuses_extension('L', name, 4096, STATUS_TOO_LONG,
                      "a name of 4096 bytes in the tar archive, at most 4095 are allowed");
}

C_TEST(tar_reader, refuses_an_extension_larger_than_any) {
    struct archive a = {0};
    archive_add(&a, 'x', "pax", "", 0);
    memcpy(a.data + 124, "77777777777", 11);
    archive_sign(&a, 0);
    refuses(&a, STATUS_TOO_LONG,
            "an extension header of 8589934591 bytes in the tar archive, at offset 512");
}

C_TEST(tar_reader, gives_no_more_than_an_entry_has) {
    struct archive a = {0};
    archive_add(&a, '0', "file", "abc", 3);
    struct memory_source memory = {.data = a.data, .size = a.size};
    struct tar_reader reader;
    static struct tar_entry entry;
    char content[4];
    bool found;
    tar_reader_create(&reader, (struct byte_source){memory_source_read, &memory});
    ASSERT_OK(tar_reader_next(&reader, &entry, &found, NULL));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, tar_reader_read(&reader, content, 4, NULL));
    EXPECT_OK(tar_reader_read(&reader, content, 1, NULL));
    EXPECT_OK(tar_reader_read(&reader, content + 1, 2, NULL));
    EXPECT_TRUE(memcmp(content, "abc", 3) == 0);
    free(a.data);
}
