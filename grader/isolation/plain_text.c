#include "grader/isolation/plain_text.h"

#include <string.h>
#include <utf8proc.h>

static bool is_plain(utf8proc_int32_t code_point) {
    if (code_point == '\n' || code_point == '\t') {
        return true;
    }
    switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    default:
        return true;
    }
}

size_t plain_text_first(const char *text, size_t size, bool *plain) {
    utf8proc_int32_t code_point;
    utf8proc_ssize_t length =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &code_point);
    *plain = length > 0 && is_plain(code_point);
    return length > 0 ? (size_t)length : 1;
}

void plain_text(char *text) {
    size_t size = strlen(text), written = 0;
    for (size_t i = 0; i < size;) {
        bool plain;
        size_t length = plain_text_first(text + i, size - i, &plain);
        if (plain) {
            memmove(text + written, text + i, length);
        } else {
            text[written] = '?';
        }
        written += plain ? length : 1;
        i += length;
    }
    text[written] = '\0';
}
