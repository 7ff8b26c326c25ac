#include "common/base/status.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *status_name(enum status status) {
    switch (status) {
#define STATUS_NAME(name, value, message) \
    case name:                            \
        return #name;
        STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "STATUS_UNKNOWN";
}

const char *status_message(enum status status) {
    switch (status) {
#define STATUS_MESSAGE(name, value, message) \
    case name:                               \
        return message;
        STATUS_LIST(STATUS_MESSAGE)
#undef STATUS_MESSAGE
    }
    return "unknown status";
}

static void replace_control_characters(char *text) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) {
            *text = '?';
        }
    }
}

/* Removes an incomplete UTF-8 character from the end of a text that was cut. */
static void drop_partial_character(char *text, size_t length) {
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80) {
        start--;
    }
    unsigned char lead = start > 0 ? (unsigned char)text[start - 1] : 0;
    size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
    if (length - start + 1 < wanted) {
        text[start - 1] = '\0';
    }
}

enum status error_set_va(struct error *error, enum status status, const char *format,
                         va_list args) {
    if (error != NULL) {
        error->status = status;
        int length = vsnprintf(error->message, sizeof error->message, format, args);
        if (length >= (int)sizeof error->message) {
            drop_partial_character(error->message, sizeof error->message - 1);
        }
        replace_control_characters(error->message);
    }
    return status;
}

enum status error_set(struct error *error, enum status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    error_set_va(error, status, format, args);
    va_end(args);
    return status;
}

enum status error_prefix(struct error *error, enum status status, const char *prefix) {
    if (error != NULL) {
        char old[sizeof error->message];
        memcpy(old, error->message, sizeof old);
        error_set(error, status, "%s: %s", prefix, old[0] != '\0' ? old : status_message(status));
    }
    return status;
}

const char *error_text(const struct error *error, enum status status) {
    return error != NULL && error->message[0] != '\0' ? error->message : status_message(status);
}
