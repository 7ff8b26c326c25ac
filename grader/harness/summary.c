#include "grader/harness/summary.h"

#include <ctype.h>
#include <string.h>

enum { NAME_BYTES = 200, MESSAGE_BYTES = 600, FAULT_BYTES = 1600, KEY_BYTES = 400 };

/*
 * Neither constant nor handed in: GoogleTest calls the observer without a context of ours, and a
 * case begins deep inside a test.
 */
static struct {
    char running[NAME_BYTES], passed[NAME_BYTES], failed[NAME_BYTES];
    char test[NAME_BYTES], message[MESSAGE_BYTES];
    char fault[FAULT_BYTES];
    char key[KEY_BYTES]; /* kind and place of the first fault */
    int tests, failures;
} summary;

static void copy(char *to, const char *from, size_t size) {
    snprintf(to, size, "%s", from);
}

void grade_summary_case(const char *name, bool failed_so_far) {
    if (name[0] == '\0' || strncmp(name, summary.running, NAME_BYTES - 1) == 0) {
        return; /* another call of the same case does not say that it has passed */
    }
    if (summary.failures == 0 && !failed_so_far && summary.running[0] != '\0') {
        copy(summary.passed, summary.running, sizeof summary.passed);
    }
    copy(summary.running, name, sizeof summary.running);
}

void grade_summary_test(const char *test, const char *message) {
    summary.tests++;
    if (message != NULL && summary.failures++ == 0) {
        copy(summary.failed, summary.running, sizeof summary.failed);
        copy(summary.test, test, sizeof summary.test);
        copy(summary.message, message, sizeof summary.message);
    }
    if (summary.failures == 0 && summary.running[0] != '\0') {
        copy(summary.passed, summary.running, sizeof summary.passed);
    }
    summary.running[0] = '\0';
}

/* The end of the line that begins at `at`, its newline included. */
static const char *end_of_line(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline != NULL ? newline + 1 : end;
}

static bool begins_with(const char *at, const char *end, const char *word) {
    size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

/* Kind and place: "out of bounds:   in kernel f at a.cu:3". Threads and addresses may differ. */
static void make_key(const struct grade_fault *fault, const char *place, char *key, size_t size) {
    const char *colon = memchr(fault->text, ':', fault->size);
    int kind = colon != NULL ? (int)(colon - fault->text) : 0;
    const char *end = end_of_line(place, fault->text + fault->size);
    snprintf(key, size, "%.*s:%.*s", kind, fault->text, (int)(end - place), place);
}

/* All lines of a fault: the one before "  in kernel", and those after it that are indented. */
static void find_lines(const char *line, const char *place, const char *end,
                       struct grade_fault *fault) {
    const char *after = place;
    while (after < end && begins_with(after, end, "  ")) {
        after = end_of_line(after, end);
    }
    *fault = (struct grade_fault){.text = line,
                                  .size = (size_t)(after - line),
                                  .endless = begins_with(line, end, "endless loop:")};
}

static void remember(struct grade_fault *fault, const char *place) {
    char key[KEY_BYTES];
    make_key(fault, place, key, sizeof key);
    if (summary.key[0] == '\0') {
        copy(summary.key, key, sizeof summary.key);
        snprintf(summary.fault, sizeof summary.fault, "%.*s", (int)fault->size, fault->text);
    } else {
        fault->again = strcmp(key, summary.key) == 0;
    }
}

bool grade_summary_fault(const char *output, size_t size, struct grade_fault *fault) {
    const char *end = output + size, *line = output;
    while (line < end) {
        const char *next = end_of_line(line, end);
        if (!begins_with(line, end, "  ") && begins_with(next, end, "  in kernel ")) {
            find_lines(line, next, end, fault);
            remember(fault, next);
            return true;
        }
        line = next;
    }
    return false;
}

/* Nothing that a terminal would obey: a submission may have written it. */
static void print_indented(FILE *out, const char *text) {
    bool begins = true;
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        fputs(begins ? "    " : "", out);
        begins = c == '\n';
        fputc(c == '\n' || c >= 128 || isprint(c) ? c : '?', out);
    }
    fputs(begins ? "" : "\n", out);
}

void grade_summary_print(FILE *out) {
    if (summary.failures == 0) {
        return;
    }
    fprintf(out, "\nsummary: %d of %d tests failed, the first of them is %s\n", summary.failures,
            summary.tests, summary.test);
    if (summary.passed[0] != '\0' && strcmp(summary.passed, summary.failed) != 0) {
        fprintf(out, "  the last case that passed before it:\n");
        print_indented(out, summary.passed);
    }
    if (summary.failed[0] != '\0') {
        fprintf(out, "  the first case that failed:\n");
        print_indented(out, summary.failed);
    }
    fprintf(out, "  the first message:\n");
    print_indented(out, summary.message);
    if (summary.fault[0] != '\0') {
        print_indented(out, summary.fault);
    }
    fflush(out);
}
