#include "grader/class/intake/zip_testing.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, DEFLATED = 8, VERSION = 20 };

struct bytes {
    unsigned char *data;
    size_t size;
};

static void need(bool good) {
    if (!good) {
        abort();
    }
}

static void add(struct bytes *b, const void *data, size_t size) {
    b->data = realloc(b->data, b->size + size + 1);
    need(b->data != NULL);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

/* Little-endian, `width` bytes. */
static void add_number(struct bytes *b, uint32_t value, size_t width) {
    for (size_t i = 0; i < width; i++) {
        add(b, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
    }
}

/* Content as it lies in the file. */
static struct bytes pack(const struct zip_entry *e) {
    struct bytes out = {0};
    if (!e->packed) {
        add(&out, e->content, e->size);
        return out;
    }
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)e->content,
                       .avail_in = (unsigned)e->size};
    need(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    out.size = deflateBound(&stream, e->size);
    out.data = malloc(out.size);
    need(out.data != NULL);
    stream.next_out = out.data;
    stream.avail_out = (unsigned)out.size;
    need(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.size = stream.total_out;
    deflateEnd(&stream);
    return out;
}

/* What the local and the central header have in common. */
static void add_fields(struct bytes *b, const struct zip_entry *e, size_t packed) {
    const uint32_t sum = (uint32_t)crc32(0, e->content, (unsigned)e->size);
    add_number(b, VERSION, 2);
    add_number(b, e->flags, 2);
    add_number(b, e->packed ? DEFLATED : 0, 2);
    add_number(b, 0, 4); /* time and day */
    add_number(b, sum, 4);
    add_number(b, (uint32_t)packed, 4);
    add_number(b, e->told > 0 ? e->told : (uint32_t)e->size, 4);
    add_number(b, (uint32_t)strlen(e->name), 2);
    add_number(b, 0, 2); /* extra field */
}

static void add_central(struct bytes *b, const struct zip_entry *e, size_t packed, size_t at) {
    add_number(b, CENTRAL, 4);
    add_number(b, (e->mode != 0 ? 3u << 8 : 0) | VERSION, 2);
    add_fields(b, e, packed);
    add_number(b, 0, 2); /* comment */
    add_number(b, 0, 2); /* disk */
    add_number(b, 0, 2);
    add_number(b, e->mode << 16, 4);
    add_number(b, (uint32_t)at, 4);
    add(b, e->name, strlen(e->name));
}

void zip_make(const struct zip_entry *entries, size_t count, unsigned char **data, size_t *size) {
    struct bytes file = {0}, central = {0};
    for (size_t i = 0; i < count; i++) {
        struct bytes packed = pack(&entries[i]);
        add_central(&central, &entries[i], packed.size, file.size);
        add_number(&file, LOCAL, 4);
        add_fields(&file, &entries[i], packed.size);
        add(&file, entries[i].name, strlen(entries[i].name));
        add(&file, packed.data, packed.size);
        free(packed.data);
    }
    const uint32_t begin = (uint32_t)file.size;
    add(&file, central.data != NULL ? central.data : (void *)"", central.size);
    add_number(&file, END, 4);
    add_number(&file, 0, 4); /* disks */
    add_number(&file, (uint32_t)count, 2);
    add_number(&file, (uint32_t)count, 2);
    add_number(&file, (uint32_t)central.size, 4);
    add_number(&file, begin, 4);
    add_number(&file, 0, 2); /* comment */
    free(central.data);
    *data = file.data;
    *size = file.size;
}
