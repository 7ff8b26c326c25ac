#include "common/texts/xz_reader.h"

#include <stdlib.h>
#include <string.h>

bool xz_recognise(const unsigned char *data, size_t size) {
    static const unsigned char magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};
    return size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

#ifdef WARPBOOK_NO_LZMA

enum status xz_reader_create(struct xz_reader **reader, const unsigned char *data, size_t size,
                             struct error *error) {
    (void)data;
    (void)size;
    *reader = NULL;
    return error_set(error, STATUS_UNSUPPORTED,
                     "built without liblzma: unpack the file with tar xf, or run ./setup.sh");
}

enum status xz_reader_read(void *reader, void *buffer, size_t size, size_t *got,
                           struct error *error) {
    (void)reader;
    (void)buffer;
    (void)size;
    *got = 0;
    return error_set(error, STATUS_UNSUPPORTED, "built without liblzma");
}

size_t xz_reader_offset(const struct xz_reader *reader) {
    (void)reader;
    return 0;
}

void xz_reader_free(struct xz_reader *reader) {
    (void)reader;
}

#else

#include <lzma.h>

static const uint64_t MOST_MEMORY = (uint64_t)256 << 20;

struct xz_reader {
    lzma_stream stream;
    lzma_ret state; /* LZMA_OK until the end or an error */
};

enum status xz_reader_create(struct xz_reader **reader, const unsigned char *data, size_t size,
                             struct error *error) {
    struct xz_reader *r = calloc(1, sizeof *r);
    *reader = r;
    if (r == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    r->stream = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&r->stream, MOST_MEMORY, LZMA_CONCATENATED) != LZMA_OK) {
        xz_reader_free(r);
        *reader = NULL;
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory to decompress");
    }
    r->stream.next_in = data;
    r->stream.avail_in = size;
    return STATUS_OK;
}

/* Turns liblzma's result into a message for the user of the file. */
static enum status explain(const struct xz_reader *r, struct error *error) {
    unsigned long long offset = r->stream.total_in;
    switch (r->state) {
    case LZMA_OK:
    case LZMA_STREAM_END:
        return STATUS_OK;
    case LZMA_BUF_ERROR:
        return error_set(error, STATUS_TRUNCATED, "the xz data ends too early, after %llu bytes",
                         offset);
    case LZMA_FORMAT_ERROR:
        return error_set(error, STATUS_BAD_FORMAT, "not xz data at offset %llu", offset);
    case LZMA_MEMLIMIT_ERROR:
        return error_set(error, STATUS_UNSUPPORTED,
                         "the xz data needs %llu MiB of memory, at most %llu are allowed",
                         (unsigned long long)lzma_memusage(&r->stream) >> 20,
                         (unsigned long long)MOST_MEMORY >> 20);
    case LZMA_OPTIONS_ERROR:
        return error_set(error, STATUS_UNSUPPORTED,
                         "the xz data has options that liblzma does not know, at offset %llu",
                         offset);
    case LZMA_MEM_ERROR:
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory to decompress");
    default:
        return error_set(error, STATUS_BAD_FORMAT, "damaged xz data at offset %llu", offset);
    }
}

enum status xz_reader_read(void *reader, void *buffer, size_t size, size_t *got,
                           struct error *error) {
    struct xz_reader *r = reader;
    r->stream.next_out = buffer;
    r->stream.avail_out = size;
    while (r->state == LZMA_OK && r->stream.avail_out > 0) {
        /* LZMA_FINISH from the start, because all input is in memory. */
        r->state = lzma_code(&r->stream, LZMA_FINISH);
    }
    *got = size - r->stream.avail_out;
    return explain(r, error);
}

size_t xz_reader_offset(const struct xz_reader *r) {
    return (size_t)r->stream.total_in;
}

void xz_reader_free(struct xz_reader *reader) {
    if (reader != NULL) {
        lzma_end(&reader->stream);
        free(reader);
    }
}

#endif
