#include "common/tokenizers/wordpiece/wordpiece_internal.h"

#include <utf8proc.h>

struct class_range {
    int32_t first, last;
    enum character_class kind;
};

struct number_range {
    int32_t first, last;
    int32_t number;
};

#include "common/tokenizers/wordpiece/wordpiece_unicode_table.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { ASCII_END = 0x80 };

enum character_class character_classify(int32_t code_point) {
    size_t low = 0, high = COUNT_OF(CLASSES);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (CLASSES[middle].last < code_point) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < COUNT_OF(CLASSES) && CLASSES[low].first <= code_point;
    return found ? CLASSES[low].kind : CHARACTER_OTHER;
}

/* Searches a short table from front to back. @return the number, or `otherwise`. */
static int32_t find_number(const struct number_range *ranges, size_t count, int32_t code_point,
                           int32_t otherwise) {
    for (size_t i = 0; i < count && ranges[i].first <= code_point; i++) {
        if (code_point <= ranges[i].last) {
            return ranges[i].number;
        }
    }
    return otherwise;
}

int character_combining_class(int32_t code_point) {
    return find_number(COMBINING_CLASSES, COUNT_OF(COMBINING_CLASSES), code_point, 0);
}

int32_t character_lower(int32_t code_point) {
    if (code_point < ASCII_END) {
        return code_point >= 'A' && code_point <= 'Z' ? code_point - 'A' + 'a' : code_point;
    }
    int32_t distance = find_number(NEWER_LOWER_CASE, COUNT_OF(NEWER_LOWER_CASE), code_point, 0);
    return distance != 0 ? code_point + distance : utf8proc_tolower(code_point);
}

size_t character_decompose(int32_t code_point, int32_t parts[CHARACTER_MOST_PARTS]) {
    parts[0] = code_point;
    bool newer = find_number(NEWER_DECOMPOSITIONS, COUNT_OF(NEWER_DECOMPOSITIONS), code_point, 0);
    if (code_point < ASCII_END || newer) {
        return 1;
    }
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(code_point, parts, CHARACTER_MOST_PARTS,
                                                     UTF8PROC_DECOMPOSE, &boundary);
    return count >= 1 && count <= CHARACTER_MOST_PARTS ? (size_t)count : 1;
}
