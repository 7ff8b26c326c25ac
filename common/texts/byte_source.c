#include "common/texts/byte_source.h"

#include <string.h>

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
