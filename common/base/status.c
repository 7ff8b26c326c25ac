#include "common/base/status.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *status_name(enum status status) {
    switch (status) {
#define STATUS_NAME(name, value, message)                                                          \
    case name:                                                                                     \
        return #name;
        STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
    }
    return "STATUS_UNKNOWN";
}

const char *status_message(enum status status) {
    switch (status) {
#define STATUS_MESSAGE(name, value, message)                                                       \
    case name:                                                                                     \
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

enum status error_set_va(struct error *error, enum status status, const char *format,
                         va_list args) {
    if (error != NULL) {
        error->status = status;
        vsnprintf(error->message, sizeof error->message, format, args);
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
