#include "common/simt/fatbin/unpack.h"

#include <dlfcn.h>
#include <stdlib.h>

/* No PTX is longer than this. */
static const size_t MOST_TEXT = (size_t)1 << 30;

typedef size_t decompress(void *to, size_t room, const void *from, size_t size);
typedef unsigned is_error(size_t code);

struct zstd {
    void *library;
    decompress *decompress;
    is_error *is_error;
};

static bool open_zstd(struct zstd *zstd) {
    *zstd = (struct zstd){.library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (zstd->library == NULL) {
        return false;
    }
    *(void **)&zstd->decompress = dlsym(zstd->library, "ZSTD_decompress");
    *(void **)&zstd->is_error = dlsym(zstd->library, "ZSTD_isError");
    if (zstd->decompress == NULL || zstd->is_error == NULL) {
        dlclose(zstd->library);
        return false;
    }
    return true;
}

bool fatbin_can_unpack(void) {
    struct zstd zstd;
    bool found = open_zstd(&zstd);
    if (found) {
        dlclose(zstd.library);
    }
    return found;
}

static enum status unpack(const struct zstd *zstd, const struct fatbin_packed *packed, char *text,
                          size_t *size, struct error *error) {
    size_t got = zstd->decompress(text, packed->text_size, packed->bytes, packed->size);
    if (zstd->is_error(got) != 0 || got != packed->text_size) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "compressed PTX of %zu bytes does not unpack to %zu", packed->size,
                         packed->text_size);
    }
    while (got > 0 && text[got - 1] == '\0') {
        got--;
    }
    *size = got;
    return STATUS_OK;
}

enum status fatbin_unpack(const struct fatbin_packed *packed, char **text, size_t *size,
                          struct error *error) {
    struct zstd zstd;
    *text = NULL;
    *size = 0;
    if (packed->text_size == 0 || packed->text_size > MOST_TEXT) {
        return error_set(error, STATUS_BAD_FORMAT, "compressed PTX claims %zu bytes of text",
                         packed->text_size);
    }
    if (!open_zstd(&zstd)) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "the program's PTX is compressed and libzstd.so.1 is not installed: build "
                         "it with nvcc --compress-mode=none");
    }
    char *memory = malloc(packed->text_size);
    enum status status = memory != NULL
                             ? unpack(&zstd, packed, memory, size, error)
                             : error_set(error, STATUS_OUT_OF_MEMORY, "%zu bytes of PTX: no memory",
                                         packed->text_size);
    dlclose(zstd.library);
    if (status != STATUS_OK) {
        free(memory);
        return status;
    }
    *text = memory;
    return STATUS_OK;
}
