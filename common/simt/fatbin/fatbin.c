#include "common/simt/fatbin/fatbin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/fatbin/elf.h"

static const uint32_t MAGIC = 0xba55ed50;

enum {
    HEADER_BYTES = 16,
    ENTRY_BYTES = 64, /* of an entry's header, at least */
    KIND_PTX = 1,
    KIND_MACHINE_CODE = 2,
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    FLAG_SPECIFIC = 1 << 20, /* compute_90a */
    FLAG_FAMILY = 1 << 21    /* compute_100f */
};

struct entry {
    unsigned kind, architecture;
    size_t header_size, payload_size;
    size_t packed_size, text_size; /* of a payload that is compressed with zstd; else 0 */
    bool compressed;
    char suffix; /* 'a', 'f' or 0 */
};

/* What was seen, for the message when nothing fits. */
struct tally {
    bool machine_code, compressed;
    unsigned lowest; /* architecture of PTX that is too new; 0: none */
    unsigned other;  /* of PTX that is for other GPUs alone; 0: none */
    char suffix;     /* of that one */
};

/* Integers of a file: not aligned, little-endian. */
static uint16_t read_u16(const unsigned char *bytes) {
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t read_u32(const unsigned char *bytes) {
    return read_u16(bytes) | (uint32_t)read_u16(bytes + 2) << 16;
}

static uint64_t read_u64(const unsigned char *bytes) {
    return read_u32(bytes) | (uint64_t)read_u32(bytes + 4) << 32;
}

/* Reads the header that starts the data; size: of the entries behind it. */
static enum status read_header(const unsigned char *data, size_t limit, size_t *start, size_t *size,
                               struct error *error) {
    if (limit < HEADER_BYTES) {
        return error_set(error, STATUS_TRUNCATED, "a fat binary of %zu bytes has no header", limit);
    }
    if (read_u32(data) != MAGIC) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "not a fat binary: it begins with 0x%08x, not 0x%08x",
                         (unsigned)read_u32(data), (unsigned)MAGIC);
    }
    *start = read_u16(data + 6);
    uint64_t claimed = read_u64(data + 8);
    if (*start < HEADER_BYTES) {
        return error_set(error, STATUS_BAD_FORMAT, "a fat binary's header of %zu bytes", *start);
    }
    if (*start > limit || claimed > limit - *start) {
        return error_set(error, STATUS_TRUNCATED,
                         "a fat binary claims %zu + %llu bytes and has %zu", *start,
                         (unsigned long long)claimed, limit);
    }
    *size = (size_t)claimed;
    return STATUS_OK;
}

/* Reads the header of an entry and checks that its payload fits into @p left bytes. */
static enum status read_entry(const unsigned char *data, size_t left, struct entry *entry,
                              struct error *error) {
    if (left < ENTRY_BYTES) {
        return error_set(error, STATUS_TRUNCATED, "a fat binary ends inside an entry's header");
    }
    uint32_t header_size = read_u32(data + 4);
    uint64_t payload_size = read_u64(data + 8);
    if (header_size < ENTRY_BYTES) {
        return error_set(error, STATUS_BAD_FORMAT,
                         "an entry of a fat binary has a header of %u bytes",
                         (unsigned)header_size);
    }
    if (header_size > left || payload_size > left - header_size) {
        return error_set(error, STATUS_TRUNCATED,
                         "an entry of a fat binary claims %u + %llu bytes, %zu are left",
                         (unsigned)header_size, (unsigned long long)payload_size, left);
    }
    *entry = (struct entry){
        .kind = read_u16(data),
        .architecture = read_u32(data + 28),
        .header_size = header_size,
        .payload_size = (size_t)payload_size,
        .compressed =
            (read_u64(data + 40) & (FLAG_LZ4 | FLAG_ZSTD)) != 0 || read_u32(data + 16) != 0,
    };
    uint64_t flags = read_u64(data + 40);
    entry->suffix = (flags & FLAG_SPECIFIC) != 0 ? 'a' : (flags & FLAG_FAMILY) != 0 ? 'f' : 0;
    if ((flags & FLAG_ZSTD) != 0 && read_u32(data + 16) <= payload_size) {
        entry->packed_size = read_u32(data + 16);
        entry->text_size = (size_t)read_u64(data + 56);
    }
    return STATUS_OK;
}

/* The payload is padded with zeros. */
static size_t text_length(const char *text, size_t size) {
    while (size > 0 && text[size - 1] == '\0') {
        size--;
    }
    return size;
}

/* Code with a suffix uses instructions that newer GPUs need not have. */
static bool runs_on(const struct entry *entry, unsigned gpu) {
    if (gpu == FATBIN_ANY_GPU) {
        return true;
    }
    bool family = entry->architecture / 10 == gpu / 10;
    return entry->architecture <= gpu && (entry->suffix != 'a' || entry->architecture == gpu) &&
           (entry->suffix != 'f' || family);
}

/* What is better than PTX of an architecture with or without a suffix. */
static unsigned rank_of(unsigned architecture, char suffix) {
    return 2 * architecture + (suffix != 0);
}

/* Keeps the entry when it is the best so far. */
static void consider(const struct entry *entry, const char *payload, unsigned highest,
                     struct fatbin_ptx *best, unsigned *rank, struct tally *tally) {
    unsigned own = rank_of(entry->architecture, entry->suffix);
    if (entry->kind != KIND_PTX) {
        tally->machine_code |= entry->kind == KIND_MACHINE_CODE;
    } else if (entry->architecture > highest) {
        if (tally->lowest == 0 || entry->architecture < tally->lowest) {
            tally->lowest = entry->architecture;
        }
    } else if (!runs_on(entry, highest)) {
        tally->other = entry->architecture;
        tally->suffix = entry->suffix;
    } else if (entry->compressed) {
        tally->compressed = true;
    } else if (best->text == NULL || own > *rank) {
        *rank = own;
        *best = (struct fatbin_ptx){payload, entry->payload_size, entry->architecture};
    }
}

static enum status fail_unsupported(const struct tally *tally, unsigned highest,
                                    struct error *error) {
    if (tally->compressed) {
        return error_set(
            error, STATUS_UNSUPPORTED,
            "the program's PTX is compressed: build it with nvcc --compress-mode=none");
    }
    if (tally->other > 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "the program's PTX is for compute_%u%c, which GPUs of compute capability "
                         "%u.%u do not run: build it for compute_75, too (nvcc -gencode "
                         "arch=compute_75,code=compute_75)",
                         tally->other, tally->suffix, highest / 10, highest % 10);
    }
    if (tally->lowest > 0) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "the program's PTX is for compute_%u, at most compute_%u is understood: "
                         "build it with nvcc -arch=compute_%u",
                         tally->lowest, highest, highest);
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "the program has %s and no PTX: build it with nvcc -arch=compute_75 "
                     "--compress-mode=none",
                     tally->machine_code ? "only machine code" : "no GPU code");
}

/* Where the next entry begins, and how much is left. */
struct cursor {
    const unsigned char *bytes;
    size_t left;
};

static enum status open_fatbin(struct cursor *cursor, const void *data, size_t limit,
                               struct error *error) {
    size_t at = 0;
    enum status status = read_header(data, limit, &at, &cursor->left, error);
    cursor->bytes = (const unsigned char *)data + at;
    return status;
}

/* Reads the next entry and steps over it. */
static enum status next_entry(struct cursor *cursor, struct entry *entry, const char **payload,
                              struct error *error) {
    TRY(read_entry(cursor->bytes, cursor->left, entry, error));
    size_t size = entry->header_size + entry->payload_size;
    *payload = (const char *)cursor->bytes + entry->header_size;
    cursor->bytes += size;
    cursor->left -= size;
    return STATUS_OK;
}

enum status fatbin_find_padded_ptx(const void *data, size_t limit, unsigned highest,
                                   struct fatbin_ptx *ptx, struct error *error) {
    struct fatbin_ptx best = {0};
    struct tally tally = {0};
    struct cursor cursor = {0};
    unsigned rank = 0;
    *ptx = best;
    TRY(open_fatbin(&cursor, data, limit, error));
    while (cursor.left > 0) {
        struct entry entry = {0};
        const char *payload = NULL;
        TRY(next_entry(&cursor, &entry, &payload, error));
        consider(&entry, payload, highest, &best, &rank, &tally);
    }
    if (best.text == NULL) {
        return fail_unsupported(&tally, highest, error);
    }
    *ptx = best;
    return STATUS_OK;
}

enum status fatbin_find_ptx(const void *data, size_t limit, unsigned highest,
                            struct fatbin_ptx *ptx, struct error *error) {
    TRY(fatbin_find_padded_ptx(data, limit, highest, ptx, error));
    ptx->size = text_length(ptx->text, ptx->size);
    return STATUS_OK;
}

/* How far machine code of @p from is from the GPU: older code is nearer than newer. */
static unsigned distance(unsigned from, unsigned architecture) {
    enum { NEWER = 1000 };
    return from <= architecture ? architecture - from : NEWER + from - architecture;
}

/* The next entry of what stands before the end or the damage. */
static bool next_undamaged(struct cursor *cursor, struct entry *entry, const char **payload) {
    struct error unsaid = {0};
    *entry = (struct entry){0};
    return cursor->left > 0 && next_entry(cursor, entry, payload, &unsaid) == STATUS_OK;
}

bool fatbin_next_entry(const void *data, size_t limit, size_t *at, struct fatbin_entry *entry) {
    struct error unsaid = {0};
    struct cursor cursor = {0};
    struct entry header;
    const char *payload;
    if (open_fatbin(&cursor, data, limit, &unsaid) != STATUS_OK || *at > cursor.left) {
        return false;
    }
    cursor.bytes += *at;
    cursor.left -= *at;
    if (!next_undamaged(&cursor, &header, &payload)) {
        return false;
    }
    *at += header.header_size + header.payload_size;
    *entry = (struct fatbin_entry){header.kind == KIND_PTX, header.architecture, header.compressed,
                                   header.suffix};
    return true;
}

bool fatbin_find_code(const void *data, size_t limit, unsigned architecture,
                      struct fatbin_code *code) {
    struct error unsaid = {0};
    struct cursor cursor = {0};
    struct entry entry;
    const char *payload;
    *code = (struct fatbin_code){0};
    if (open_fatbin(&cursor, data, limit, &unsaid) != STATUS_OK) {
        return false;
    }
    while (next_undamaged(&cursor, &entry, &payload)) {
        if (entry.kind == KIND_MACHINE_CODE && !entry.compressed &&
            (code->bytes == NULL || distance(entry.architecture, architecture) <
                                        distance(code->architecture, architecture))) {
            *code = (struct fatbin_code){payload, entry.payload_size, entry.architecture};
        }
    }
    return code->bytes != NULL;
}

bool fatbin_find_packed(const void *data, size_t limit, unsigned highest,
                        struct fatbin_packed *packed) {
    struct error unsaid = {0};
    struct cursor cursor = {0};
    struct entry entry;
    const char *payload;
    unsigned rank = 0;
    *packed = (struct fatbin_packed){0};
    if (open_fatbin(&cursor, data, limit, &unsaid) != STATUS_OK) {
        return false;
    }
    while (next_undamaged(&cursor, &entry, &payload)) {
        unsigned own = rank_of(entry.architecture, entry.suffix);
        if (entry.kind == KIND_PTX && entry.packed_size > 0 && runs_on(&entry, highest) &&
            (packed->bytes == NULL || own > rank)) {
            rank = own;
            *packed = (struct fatbin_packed){payload, entry.packed_size, entry.text_size,
                                             entry.architecture};
        }
    }
    return packed->bytes != NULL;
}

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

/** @return whether compressed machine code has functions, or may have */
static bool packed_has_code(const struct zstd *zstd, const struct entry *entry,
                            const char *payload) {
    char *code = entry->packed_size > 0 && entry->text_size > 0 && entry->text_size <= MOST_TEXT
                     ? malloc(entry->text_size)
                     : NULL;
    if (code == NULL) {
        return true;
    }
    size_t got = zstd->decompress(code, entry->text_size, payload, entry->packed_size);
    bool has = zstd->is_error(got) != 0 || cubin_has_code(code, got);
    free(code);
    return has;
}

bool fatbin_has_code(const void *data, size_t limit) {
    struct error unsaid = {0};
    struct cursor cursor = {0};
    struct zstd zstd;
    struct entry entry;
    const char *payload;
    bool has = false;
    if (open_fatbin(&cursor, data, limit, &unsaid) != STATUS_OK) {
        return true;
    }
    bool can_unpack = open_zstd(&zstd);
    while (!has && next_undamaged(&cursor, &entry, &payload)) {
        if (entry.kind == KIND_MACHINE_CODE) {
            has = !entry.compressed ? cubin_has_code(payload, entry.payload_size)
                                    : !can_unpack || packed_has_code(&zstd, &entry, payload);
        }
    }
    if (can_unpack) {
        dlclose(zstd.library);
    }
    return has;
}
