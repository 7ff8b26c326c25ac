#include "grader/watch/log.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 20, MOST_CONTEXT = 3, MOST_OF_MESSAGE = 8 };

char *log_read(const char *path) {
    char *text = malloc(MOST_BYTES + 1);
    FILE *file = fopen(path, "re");
    size_t got = text != NULL && file != NULL ? fread(text, 1, MOST_BYTES, file) : 0;
    for (size_t i = 0; i < got; i++) {
        text[i] = text[i] == '\0' ? '?' : text[i];
    }
    if (text != NULL) {
        text[got] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

static size_t length_of_line(const char *line) {
    return strcspn(line, "\n");
}

/* @return the line behind this one, or NULL */
static const char *next_line(const char *line) {
    line += length_of_line(line);
    return *line == '\n' && line[1] != '\0' ? line + 1 : NULL;
}

static void add_line(struct lines *lines, enum line_style style, const char *line) {
    lines_add(lines, style, "%.*s", (int)length_of_line(line), line);
}

static bool begins(const char *line, const char *text) {
    return strncmp(line, text, strlen(text)) == 0;
}

/* ---- Builds ---- */

/* Whether `text` stands in this line. */
static const char *find_in_line(const char *line, const char *text) {
    size_t room = length_of_line(line);
    return memmem(line, room, text, strlen(text));
}

/* "FILE(12): error: TEXT" of nvcc and "FILE:12:5: error: TEXT" of gcc; the parts of the line. */
struct error_line {
    int file;           /* bytes */
    unsigned long line; /* 0: the tool names none */
    const char *text;
};

static bool is_error_word(const char *text) {
    static const char *const words[] = {"error", "fatal error", "catastrophic error", "Error"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (begins(text, words[i])) {
            return true;
        }
    }
    return false;
}

static bool read_error(const char *line, struct error_line *error) {
    size_t file = strcspn(line, "(: \n");
    char *end;
    if (file == 0 || (line[file] != '(' && line[file] != ':') ||
        !isdigit((unsigned char)line[file + 1])) {
        return false;
    }
    error->file = (int)file;
    error->line = strtoul(line + file + 1, &end, 10);
    end += strspn(end, "):0123456789");
    error->text = end + strspn(end, " ");
    return end > line + file + 1 && is_error_word(error->text);
}

/* Errors without a place: of the assembler and of the linker. */
static bool is_bare_error(const char *line) {
    return (begins(line, "ptxas") && find_in_line(line, "error") != NULL) ||
           (begins(line, "nvlink") && find_in_line(line, "error") != NULL) ||
           find_in_line(line, "undefined reference to") != NULL ||
           find_in_line(line, "multiple definition of") != NULL;
}

/* The lines of source that the compiler shows below an error. */
static void add_context(struct lines *found, const char *line) {
    struct error_line error;
    for (int i = 0; i < MOST_CONTEXT && (line = next_line(line)) != NULL; i++) {
        bool over = length_of_line(line) == 0 || read_error(line, &error) || is_bare_error(line) ||
                    !isspace((unsigned char)line[0]);
        if (over) {
            return;
        }
        add_line(found, LINE_PLAIN, line);
    }
}

/* Bazel's own message, for a BUILD file or a missing tool. */
static void add_bazel_errors(const char *text, struct lines *found) {
    for (const char *line = text; line != NULL && found->count < MOST_CONTEXT;
         line = next_line(line)) {
        if (begins(line, "ERROR: ") || begins(line, "FATAL: ")) {
            add_line(found, LINE_BAD, line);
        }
    }
}

void log_build_errors(const char *text, struct lines *found) {
    size_t errors = 0;
    found->count = 0;
    for (const char *line = text; line != NULL; line = next_line(line)) {
        struct error_line error;
        bool placed = read_error(line, &error);
        if (!placed && !is_bare_error(line)) {
            continue;
        }
        if (errors++ > 0) {
            continue;
        }
        if (placed) {
            lines_add(found, LINE_BAD, "%.*s:%lu: %.*s", error.file, line, error.line,
                      (int)length_of_line(error.text), error.text);
        } else {
            add_line(found, LINE_BAD, line);
        }
        add_context(found, line);
    }
    if (errors > 1) {
        lines_add(found, LINE_PLAIN, "and %zu more error%s", errors - 1, errors == 2 ? "" : "s");
    } else if (errors == 0) {
        add_bazel_errors(text, found);
    }
}

/* ---- Graded programs ---- */

/* What the learner's code wrote to standard error, with the grader's marks: simt's first message.
 */
static void add_fault(const char *text, struct lines *found) {
    static const char mark[] = "  | ";
    const char *line = text;
    while (line != NULL && find_in_line(line, " wrote to standard error:") == NULL) {
        line = next_line(line);
    }
    for (int i = 0; i < MOST_OF_MESSAGE && line != NULL; i++) {
        line = next_line(line);
        if (line == NULL || !begins(line, mark)) {
            return;
        }
        add_line(found, i == 0 ? LINE_BAD : LINE_PLAIN, line + sizeof mark - 1);
    }
}

/* Its own summary, up to an empty line or one of GoogleTest's. */
static bool add_summary(const char *text, struct lines *found) {
    const char *line = text;
    while (line != NULL && !begins(line, "summary:")) {
        line = next_line(line);
    }
    if (line == NULL) {
        return false;
    }
    add_line(found, LINE_BAD, line);
    for (int i = 0; i < MOST_OF_MESSAGE && (line = next_line(line)) != NULL; i++) {
        if (length_of_line(line) == 0 || line[0] == '[') {
            break;
        }
        add_line(found, LINE_PLAIN, line);
    }
    return true;
}

static bool is_red(const struct grade *grade) {
    return grade->verdict == VERDICT_FAIL || grade->verdict == VERDICT_SLOW;
}

/* The tests around the first red one. */
static void add_first_red(const struct program *program, struct lines *found) {
    const struct grade *passed = NULL, *red = NULL;
    for (size_t i = 0; i < program->count && red == NULL; i++) {
        const struct grade *grade = &program->grades[i];
        red = is_red(grade) ? grade : NULL;
        passed = grade->verdict == VERDICT_PASS ? grade : passed;
    }
    if (red == NULL) {
        return;
    }
    if (passed != NULL) {
        lines_add(found, LINE_PLAIN, "last passed:  %s", passed->test);
    }
    lines_add(found, LINE_BAD, "first failed: %s", red->test);
    const char *line = red->message;
    for (int i = 0; i < MOST_OF_MESSAGE && line != NULL && *line != '\0'; i++) {
        lines_add(found, LINE_PLAIN, "  %.*s", (int)length_of_line(line), line);
        line = next_line(line);
    }
}

void log_failure(const char *text, const struct program *program, struct lines *found) {
    char trouble[560];
    found->count = 0;
    add_fault(text, found);
    if (!add_summary(text, found)) {
        add_first_red(program, found);
    }
    if (program_trouble(program, trouble, sizeof trouble) != NULL) {
        lines_add(found, LINE_BAD, "%s", trouble);
    }
}
