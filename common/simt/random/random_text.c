#include "common/simt/random/random_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and a NUL. */
static bool reserve(struct random_text *text, size_t more) {
    if (text->failed || text->size + more < text->capacity) {
        return !text->failed;
    }
    size_t capacity = 2 * (text->size + more) + 256;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void random_text_add(struct random_text *text, const char *bytes, size_t size) {
    if (reserve(text, size)) {
        memcpy(text->data + text->size, bytes, size);
        text->size += size;
        text->data[text->size] = '\0';
    }
}

void random_text_print(struct random_text *text, const char *format, ...) {
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line) {
        text->failed = true;
        return;
    }
    random_text_add(text, line, (size_t)length);
}
