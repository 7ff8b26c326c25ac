/* Fuzzes the recognition of formats: it reads no byte behind the first ones that a file has. */
#include "common/base/file_kind.h"

#include <stdlib.h>
#include <string.h>

#include "common/testing/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *kind = file_kind(data, size);
    struct error error = {0};
    fuzz_require(error_set(&error, STATUS_BAD_FORMAT, "reason") == STATUS_BAD_FORMAT);
    fuzz_require(file_kind_explain(&error, STATUS_BAD_FORMAT, "p", data, size, "w") ==
                 STATUS_BAD_FORMAT);
    fuzz_require(strncmp(error.message, kind != NULL ? "p: this is " : "p: reason", 9) == 0);
    return 0;
}

bool fuzz_seed(size_t index, unsigned char **seed, size_t *size) {
    static const char *const beginnings[] = {"GGUF",         "PK\3\4", "\x80\2}q(X\1\1",
                                             "\x1f\x8b\x08", "BZh9",   "version https://git-lfs",
                                             "<html>",       "a text"};
    enum { BYTES = 300, USTAR = 257 };
    if (index > sizeof beginnings / sizeof *beginnings) {
        return false;
    }
    *size = BYTES;
    *seed = calloc(BYTES, 1);
    fuzz_require(*seed != NULL);
    if (index == sizeof beginnings / sizeof *beginnings) {
        memcpy(*seed + USTAR, "ustar", 5);
    } else {
        memcpy(*seed, beginnings[index], strlen(beginnings[index]));
    }
    return true;
}
