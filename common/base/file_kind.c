#include "common/base/file_kind.h"

#include <stdbool.h>
#include <string.h>

enum { TEXT_BYTES = 64 };

/* Bytes that a format has at an offset. A longer mark comes before its own beginning. */
static const struct {
    const char *mark;
    size_t length, offset;
    const char *kind;
} marks[] = {
    {"GGUF", 4, 0, "a GGUF file"},
    {"PK\3\4", 4, 0, "a zip archive (as PyTorch's .bin and .pt are)"},
    {"\x1f\x8b\x08", 3, 0, "a gzip archive"},
    {"\xfd\x37zXZ", 6, 0, "an xz archive"},
    {"\x28\xb5\x2f\xfd", 4, 0, "a zstd archive"},
    {"BZh", 3, 0, "a bzip2 archive"},
    {"ustar", 5, 257, "a tar archive"},
    {"\x89HDF", 4, 0, "an HDF5 file"},
    {"version https://git-lfs", 23, 0,
     "a pointer of Git LFS ('git lfs pull' fetches the file itself)"},
    {"<!DOCTYPE", 9, 0, "a web page"},
    {"<html", 5, 0, "a web page"},
};

/* Protocols 2 to 5. A size or a length that begins so, as in formats of numbers, has zeros next. */
static bool is_pickle(const unsigned char *data, size_t size) {
    static const unsigned char zeros[4] = {0};
    return size >= 8 && data[0] == 0x80 && data[1] >= 2 && data[1] <= 5 && data[2] != 0 &&
           memcmp(data + 4, zeros, sizeof zeros) != 0;
}

/* Whether the first bytes are printable or of UTF-8, as in no format of binary numbers. */
static bool is_text(const unsigned char *data, size_t size) {
    size_t count = size < TEXT_BYTES ? size : TEXT_BYTES;
    for (size_t i = 0; i < count; i++) {
        bool space = data[i] == '\t' || data[i] == '\n' || data[i] == '\r';
        if ((data[i] < ' ' && !space) || data[i] == 0x7f || data[i] >= 0xf5) {
            return false;
        }
    }
    return count >= 4;
}

const char *file_kind(const void *data, size_t size) {
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        if (size >= marks[i].offset + marks[i].length &&
            memcmp((const char *)data + marks[i].offset, marks[i].mark, marks[i].length) == 0) {
            return marks[i].kind;
        }
    }
    return is_pickle(data, size) ? "a Python pickle (as PyTorch's older .bin and .pt are)"
           : is_text(data, size) ? "a text file"
                                 : NULL;
}

enum status file_kind_explain(struct error *error, enum status status, const char *path,
                              const void *data, size_t size, const char *wanted) {
    const char *kind = file_kind(data, size);
    return kind == NULL ? error_prefix(error, status, path)
                        : error_set(error, status, "%s: this is %s; %s", path, kind, wanted);
}
