#include "labs/00_warmups/given/exercises.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "labs/00_warmups/given/tries.h"

static const struct exercise table[EXERCISE_COUNT] = {
#define ROW(name, idea, labs, needs, look) {#name, idea, labs, needs, look, try_##name},
    EXERCISES(ROW)
#undef ROW
};

const struct exercise *exercise_at(enum exercise_number number) {
    return &table[number];
}

/* "7", "07", "w7", "f03": a letter, w if there is none, and a number. */
static bool is_number_of(const struct exercise *exercise, const char *text) {
    char letter = isdigit((unsigned char)text[0]) ? 'w' : text[0];
    const char *digits = text + !isdigit((unsigned char)text[0]);
    size_t length = strspn(digits, "0123456789");
    return letter == exercise->name[0] && length > 0 && length <= 2 && digits[length] == '\0' &&
           strtol(digits, NULL, 10) == strtol(exercise->name + 1, NULL, 10);
}

enum status exercise_find(const char *text, enum exercise_number *number, struct error *error) {
    for (int i = 0; i < EXERCISE_COUNT; i++) {
        if (strcmp(table[i].name, text) == 0 || is_number_of(&table[i], text)) {
            *number = (enum exercise_number)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_INVALID_ARGUMENT,
                     "no exercise '%.40s': they are 1 to 28 and f1 to f8; --list shows them", text);
}
