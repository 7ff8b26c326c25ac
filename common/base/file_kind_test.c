#include "common/base/file_kind.h"

#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"

/* The kind of bytes that end where their memory ends. */
static const char *kind_of(const char *bytes, size_t size) {
    char *copy = malloc(size + (size == 0));
    EXPECT_TRUE(copy != NULL);
    memcpy(copy, bytes, size);
    const char *kind = file_kind(copy, size);
    free(copy);
    return kind != NULL ? kind : "";
}

C_TEST(file_kind, names_formats_by_their_first_bytes) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *want;
    } cases[] = {
        {"GGUF\3\0\0\0", 8, "a GGUF file"},
        {"PK\3\4\24\0", 6, "a zip archive"},
        {"\x80\2}q\0(X\1", 8, "a Python pickle"},
        {"\x80\4\x95\5\0\0\0\1", 8, "a Python pickle"},
        {"\x1f\x8b\x08", 3, "a gzip archive"},
        {"\xfd\x37zXZ\0", 6, "an xz archive"},
        {"version https://git-lfs.github.com/spec/v1\n", 43, "a pointer of Git LFS"},
        {"<!DOCTYPE html>", 15, "a web page"},
        {"[PAD]\n[UNK]\n", 12, "a text file"},
        {"Caf\xc3\xa9\n", 6, "a text file"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EXPECT_STR_CONTAINS(cases[i].want, kind_of(cases[i].bytes, cases[i].size));
    }
    char tar[512] = "name";
    memcpy(tar + 257, "ustar", 5);
    EXPECT_STR_EQ("a tar archive", kind_of(tar, sizeof tar));
}

C_TEST(file_kind, is_silent_about_other_bytes) {
    static const char llama2c[] = "\100\0\0\0\254\0\0\0\5\0\0\0";
    static const char safetensors[] = "\20\0\0\0\0\0\0\0{}";
    EXPECT_STR_EQ("", kind_of("", 0));
    EXPECT_STR_EQ("", kind_of("\xff\xff\xff\xff", 4));
    EXPECT_STR_EQ("", kind_of(llama2c, sizeof llama2c));
    EXPECT_STR_EQ("", kind_of(safetensors, sizeof safetensors));
    EXPECT_STR_EQ("", kind_of("\x80\2\1\0\0\0\0\0{}", 10)); /* a header of 66,176 bytes */
    EXPECT_STR_EQ("", kind_of("\x80\2\0\0\0\5\0\0", 8));    /* a dim of 640 */
    for (size_t size = 0; size < 4; size++) {
        EXPECT_STR_EQ("", kind_of("GGUF", size));
    }
}

C_TEST(file_kind, explains_or_keeps_the_readers_reason) {
    struct error error = {0};
    EXPECT_STATUS(STATUS_BAD_FORMAT, error_set(&error, STATUS_BAD_FORMAT, "n_layers is 0"));
    EXPECT_STATUS(STATUS_BAD_FORMAT,
                  file_kind_explain(&error, STATUS_BAD_FORMAT, "a.bin", "\1\0\0\0", 4, "give b"));
    EXPECT_STR_EQ("a.bin: n_layers is 0", error.message);
    EXPECT_STATUS(STATUS_BAD_FORMAT,
                  file_kind_explain(&error, STATUS_BAD_FORMAT, "a.bin", "GGUF", 4, "give b"));
    EXPECT_STR_EQ("a.bin: this is a GGUF file; give b", error.message);
}
