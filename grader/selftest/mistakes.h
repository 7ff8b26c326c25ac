/**
 * @file mistakes.h
 * @brief Which of its mistakes a wrong submission makes.
 *
 * Included once, after two definitions: MISTAKES(X), with X(name) for each mistake, and
 * MISTAKE_VARIABLE, the environment variable that names the one to make.
 */
#ifndef WARPBOOK_GRADER_SELFTEST_MISTAKES_H_
#define WARPBOOK_GRADER_SELFTEST_MISTAKES_H_

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum mistake {
#define ENUMERATOR(name) MISTAKE_##name,
    MISTAKES(ENUMERATOR)
#undef ENUMERATOR
};

/* A variable that names none is a fault of the self-test: it aborts. */
static enum mistake chosen_mistake() {
    static const char *const names[] = {
#define NAME(name) #name,
        MISTAKES(NAME)
#undef NAME
    };
    const char *name = getenv(MISTAKE_VARIABLE);
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (enum mistake)i;
        }
    }
    abort();
}

#endif
