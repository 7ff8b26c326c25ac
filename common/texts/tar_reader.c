#include "common/texts/tar_reader.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, MOST_EXTENSION = 1 << 20 };

/* Offsets and sizes of the fields in a ustar header. */
enum {
    NAME_AT = 0,
    NAME_SIZE = 100,
    SIZE_AT = 124,
    SIZE_SIZE = 12,
    CHECKSUM_AT = 148,
    CHECKSUM_SIZE = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_SIZE = 155
};

/* Name and size of the next entry, if extension headers give them. */
struct extension {
    bool has_name, has_size;
    char name[TAR_MAX_NAME];
    uint64_t size;
};

enum status memory_source_read(void *source, void *buffer, size_t size, size_t *got,
                               struct error *error) {
    (void)error;
    struct memory_source *s = source;
    size_t left = s->size - s->offset;
    *got = size < left ? size : left;
    if (*got > 0) {
        memcpy(buffer, s->data + s->offset, *got);
    }
    s->offset += *got;
    return STATUS_OK;
}

void tar_reader_create(struct tar_reader *reader, struct byte_source source) {
    *reader = (struct tar_reader){.source = source};
}

/* Reads exactly size bytes. */
static enum status read_all(struct tar_reader *r, void *buffer, size_t size, struct error *error) {
    size_t got = 0;
    TRY(r->source.read(r->source.context, buffer, size, &got, error));
    r->offset += got;
    return got == size ? STATUS_OK
                       : error_set(error, STATUS_TRUNCATED,
                                   "the tar archive ends too early, after %llu bytes",
                                   (unsigned long long)r->offset);
}

static enum status skip(struct tar_reader *r, uint64_t size, struct error *error) {
    unsigned char waste[8192];
    while (size > 0) {
        size_t part = size < sizeof waste ? (size_t)size : sizeof waste;
        TRY(read_all(r, waste, part, error));
        size -= part;
    }
    return STATUS_OK;
}

/* Reads the rest after the end mark: padding, and the checksums of a compressed source. */
static enum status drain(struct tar_reader *r, struct error *error) {
    unsigned char waste[8192];
    size_t got;
    do {
        TRY(r->source.read(r->source.context, waste, sizeof waste, &got, error));
    } while (got == sizeof waste);
    r->ended = true;
    return STATUS_OK;
}

static bool all_zero(const unsigned char *block) {
    for (size_t i = 0; i < BLOCK; i++) {
        if (block[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Parses a number in octal digits with blanks around, or in base 256 if the first bit is set. */
static bool parse_number(const unsigned char *field, size_t size, uint64_t *out) {
    uint64_t value = 0;
    size_t i = 0;
    if (field[0] & 0x80) {
        value = field[0] & 0x7f;
        for (i = 1; i < size; i++) {
            if (value >> 55 != 0) {
                return false;
            }
            value = value << 8 | field[i];
        }
        *out = value;
        return true;
    }
    while (i < size && field[i] == ' ') {
        i++;
    }
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    *out = value;
    return i == size || field[i] == ' ' || field[i] == '\0';
}

static bool checksum_agrees(const unsigned char *block) {
    uint64_t want, sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        bool inside = i >= CHECKSUM_AT && i < CHECKSUM_AT + CHECKSUM_SIZE;
        sum += inside ? ' ' : block[i];
    }
    return parse_number(block + CHECKSUM_AT, CHECKSUM_SIZE, &want) && sum == want;
}

/* The name of a header: PREFIX/NAME in ustar. 100 + 1 + 155 bytes always fit. */
static void read_name(const unsigned char *block, char *name) {
    size_t length = 0;
    size_t prefix = strnlen((const char *)block + PREFIX_AT, PREFIX_SIZE);
    if (memcmp(block + MAGIC_AT, "ustar\0", 6) == 0 && prefix > 0) {
        memcpy(name, block + PREFIX_AT, prefix);
        name[prefix] = '/';
        length = prefix + 1;
    }
    size_t rest = strnlen((const char *)block + NAME_AT, NAME_SIZE);
    memcpy(name + length, block + NAME_AT, rest);
    name[length + rest] = '\0';
}

static enum status set_name(struct extension *e, const char *name, size_t length,
                            struct error *error) {
    if (length >= TAR_MAX_NAME) {
        return error_set(error, STATUS_TOO_LONG,
                         "a name of %zu bytes in the tar archive, at most %d are allowed", length,
                         TAR_MAX_NAME - 1);
    }
    if (memchr(name, '\0', length) != NULL) {
        return error_set(error, STATUS_BAD_FORMAT, "a name with a NUL in the tar archive");
    }
    memcpy(e->name, name, length);
    e->name[length] = '\0';
    e->has_name = true;
    return STATUS_OK;
}

/* Decimal digits and nothing else. */
static bool parse_decimal(const char *text, size_t length, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || value > (UINT64_MAX - 9) / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *out = value;
    return length > 0;
}

static enum status bad_record(struct error *error) {
    return error_set(error, STATUS_BAD_FORMAT, "a damaged pax record in the tar archive");
}

/* Reads one pax record, "KEYWORD=VALUE". */
static enum status read_record(struct extension *e, const char *text, size_t length,
                               struct error *error) {
    const char *equals = memchr(text, '=', length);
    if (equals == NULL) {
        return bad_record(error);
    }
    size_t key = (size_t)(equals - text);
    const char *value = equals + 1;
    size_t rest = length - key - 1;
    if (key == 4 && memcmp(text, "path", 4) == 0) {
        return set_name(e, value, rest, error);
    }
    if (key == 4 && memcmp(text, "size", 4) == 0) {
        e->has_size = true;
        return parse_decimal(value, rest, &e->size) ? STATUS_OK : bad_record(error);
    }
    return STATUS_OK;
}

/* Reads pax records, each "LENGTH KEYWORD=VALUE\n"; LENGTH counts the whole record. */
static enum status read_records(struct extension *e, const char *text, size_t size,
                                struct error *error) {
    size_t at = 0;
    while (at < size) {
        const char *record = text + at;
        const char *blank = memchr(record, ' ', size - at);
        uint64_t length;
        size_t digits = blank != NULL ? (size_t)(blank - record) : 0;
        if (!parse_decimal(record, digits, &length) || length < digits + 2 || length > size - at ||
            record[length - 1] != '\n') {
            return bad_record(error);
        }
        TRY(read_record(e, blank + 1, (size_t)length - digits - 2, error));
        at += (size_t)length;
    }
    return STATUS_OK;
}

/* `text` has room for `size` bytes and a NUL. */
static enum status parse_extension(struct tar_reader *r, char type, struct extension *e, char *text,
                                   size_t size, struct error *error) {
    TRY(tar_reader_read(r, text, size, error));
    if (type == 'x') {
        return read_records(e, text, size, error);
    }
    text[size] = '\0';
    return set_name(e, text, strlen(text), error);
}

/* Reads the content of an extension header into *e. */
static enum status read_extension(struct tar_reader *r, char type, struct extension *e,
                                  struct error *error) {
    if (r->content > MOST_EXTENSION) {
        return error_set(error, STATUS_TOO_LONG,
                         "an extension header of %llu bytes in the tar archive, at offset %llu",
                         (unsigned long long)r->content, (unsigned long long)r->offset);
    }
    size_t size = (size_t)r->content;
    char *text = malloc(size + 1);
    if (text == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    enum status status = parse_extension(r, type, e, text, size, error);
    free(text);
    return status;
}

/* Reads one header; *type is 0 at the end mark. */
static enum status read_header(struct tar_reader *r, unsigned char *block, char *type,
                               struct error *error) {
    TRY(skip(r, r->content, error));
    TRY(skip(r, r->padding, error));
    r->content = 0;
    r->padding = 0;
    unsigned long long at = r->offset;
    TRY(read_all(r, block, BLOCK, error));
    *type = 0;
    if (all_zero(block)) {
        return STATUS_OK;
    }
    if (!checksum_agrees(block) || !parse_number(block + SIZE_AT, SIZE_SIZE, &r->content)) {
        return error_set(error, STATUS_BAD_FORMAT, "not a tar archive: no header at offset %llu",
                         at);
    }
    r->padding = (BLOCK - r->content % BLOCK) % BLOCK;
    *type = block[TYPE_AT] == '\0' ? '0' : (char)block[TYPE_AT];
    return STATUS_OK;
}

static void fill_entry(struct tar_reader *r, struct tar_entry *entry, const unsigned char *block,
                       char type, const struct extension *e) {
    if (e->has_name) {
        memcpy(entry->name, e->name, sizeof entry->name);
    } else {
        read_name(block, entry->name);
    }
    if (e->has_size) {
        r->content = e->size;
        r->padding = (BLOCK - r->content % BLOCK) % BLOCK;
    }
    entry->kind = type == '0' || type == '7' ? TAR_FILE : type == '5' ? TAR_FOLDER : TAR_OTHER;
    entry->size = r->content;
}

enum status tar_reader_next(struct tar_reader *r, struct tar_entry *entry, bool *found,
                            struct error *error) {
    struct extension e = {.has_name = false};
    unsigned char block[BLOCK];
    *found = false;
    while (!r->ended) {
        char type;
        TRY(read_header(r, block, &type, error));
        if (type == 0) {
            return drain(r, error);
        }
        if (type == 'x' || type == 'L') {
            TRY(read_extension(r, type, &e, error));
        } else if (type != 'g' && type != 'K') {
            fill_entry(r, entry, block, type, &e);
            *found = true;
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

enum status tar_reader_read(struct tar_reader *r, void *buffer, size_t size, struct error *error) {
    if (size > r->content) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "cannot read %zu bytes of an entry that has %llu left", size,
                         (unsigned long long)r->content);
    }
    TRY(read_all(r, buffer, size, error));
    r->content -= size;
    return STATUS_OK;
}
