#include "common/simt/kernel_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From the C++ library; NULL in a program that does not link it. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status)
    __attribute__((weak));

void kernel_name_readable(const char *mangled, char *name, size_t room) {
    int failed = -1;
    char *readable = __cxa_demangle != NULL ? __cxa_demangle(mangled, NULL, NULL, &failed) : NULL;
    snprintf(name, room, "%s", readable != NULL && failed == 0 ? readable : mangled);
    free(readable);
}

/* Where the parameters begin: the first '(' outside <> that is not "(anonymous namespace)". */
static size_t end_of_name(const char *text) {
    static const char anonymous[] = "(anonymous namespace)";
    int depth = 0;
    size_t i = 0;
    while (text[i] != '\0') {
        if (strncmp(text + i, anonymous, sizeof anonymous - 1) == 0) {
            i += sizeof anonymous - 1;
            continue;
        }
        depth += (text[i] == '<') - (text[i] == '>');
        if (text[i] == '(' && depth == 0) {
            break;
        }
        i++;
    }
    return i;
}

const char *kernel_name_shorten(const char *readable, char *name, size_t room) {
    static const char *const dropped[] = {"void ", "(anonymous namespace)::", "(int)", "(bool)",
                                          "(unsigned int)"};
    size_t length = end_of_name(readable), used = 0;
    for (size_t i = 0; i < length && used + 1 < room;) {
        size_t skip = 0;
        for (size_t d = 0; d < sizeof dropped / sizeof *dropped && skip == 0; d++) {
            size_t size = strlen(dropped[d]);
            skip = strncmp(readable + i, dropped[d], size) == 0 ? size : 0;
        }
        if (skip == 0) {
            name[used++] = readable[i++];
        }
        i += skip;
    }
    name[used] = '\0';
    return name;
}
