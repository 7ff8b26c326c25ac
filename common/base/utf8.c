#include "common/base/utf8.h"

#include <utf8proc.h>

enum { LONGEST_SEQUENCE = 4 };

enum status utf8_next(const char *text, size_t length, size_t *offset, int32_t *code_point,
                      struct error *error) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text + *offset;
    size_t left = length - *offset;
    utf8proc_ssize_t size = left < LONGEST_SEQUENCE ? (utf8proc_ssize_t)left : LONGEST_SEQUENCE;
    utf8proc_ssize_t read = utf8proc_iterate(bytes, size, code_point);
    if (read <= 0) {
        return error_set(error, STATUS_BAD_UTF8,
                         "not valid UTF-8 at byte %zu (0x%02X) of %zu bytes", *offset, bytes[0],
                         length);
    }
    *offset += (size_t)read;
    return STATUS_OK;
}

enum status utf8_check(const char *text, size_t length, struct error *error) {
    int32_t code_point;
    for (size_t offset = 0; offset < length;) {
        enum status status = utf8_next(text, length, &offset, &code_point, error);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}
