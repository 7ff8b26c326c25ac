#include "common/texts/archive_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef WARPBOOK_NO_LZMA
#include <lzma.h>
#endif

enum { BLOCK = 512, CHECKSUM_AT = 148 };

void archive_append(struct archive *archive, const void *data, size_t size) {
    unsigned char *grown = realloc(archive->data, archive->size + size + 1);
    if (grown == NULL) {
        abort();
    }
    archive->data = grown;
    if (size > 0) {
        memcpy(grown + archive->size, data, size);
    }
    archive->size += size;
}

void archive_sign(struct archive *archive, size_t offset) {
    unsigned char *header = archive->data + offset;
    unsigned sum = 0;
    memset(header + CHECKSUM_AT, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += header[i];
    }
    snprintf((char *)header + CHECKSUM_AT, 7, "%06o", sum);
}

void archive_add(struct archive *archive, char type, const char *name, const void *content,
                 size_t size) {
    static const unsigned char zeros[BLOCK];
    unsigned char header[BLOCK] = {0};
    size_t at = archive->size;
    memcpy(header, name, strlen(name));
    memcpy(header + 100, "0000644", 8);
    snprintf((char *)header + 124, 12, "%011o", (unsigned)size);
    header[156] = (unsigned char)type;
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    archive_append(archive, header, BLOCK);
    archive_sign(archive, at);
    archive_append(archive, content, size);
    archive_append(archive, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

void archive_end(struct archive *archive) {
    static const unsigned char zeros[2 * BLOCK];
    archive_append(archive, zeros, sizeof zeros);
}

struct archive archive_xz(const struct archive *archive, bool *made) {
    struct archive packed = {0};
    *made = false;
#ifndef WARPBOOK_NO_LZMA
    size_t bound = lzma_stream_buffer_bound(archive->size);
    packed.data = malloc(bound);
    *made = packed.data != NULL &&
            lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, archive->data, archive->size,
                                    packed.data, &packed.size, bound) == LZMA_OK;
#else
    (void)archive;
#endif
    return packed;
}
