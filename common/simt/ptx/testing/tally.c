#include "common/simt/ptx/testing/tally.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { STATEMENT_LIMIT = 256 };

/* The statement so far, of which only the beginning matters, and the source line it is from. */
struct statement {
    char text[STATEMENT_LIMIT];
    size_t length;
    unsigned line;
};

static size_t find(const struct ptx_tally *tally, const char *name) {
    size_t i = 0;
    while (i < tally->used && strcmp(tally->names[i], name) != 0) {
        i++;
    }
    return i;
}

void ptx_tally_add(struct ptx_tally *tally, const char *name, size_t length) {
    char cut[sizeof tally->names[0]];
    snprintf(cut, sizeof cut, "%.*s", (int)length, name);
    size_t i = find(tally, cut);
    if (i == PTX_TALLY_LIMIT) {
        i--; /* the last entry collects the rest */
    }
    if (i == tally->used) {
        memcpy(tally->names[i], cut, sizeof cut);
        tally->used++;
    }
    tally->counts[i]++;
}

size_t ptx_tally_count(const struct ptx_tally *tally, const char *name) {
    size_t i = find(tally, name);
    return i < tally->used ? tally->counts[i] : 0;
}

size_t ptx_tally_total(const struct ptx_tally *tally) {
    size_t total = 0;
    for (size_t i = 0; i < tally->used; i++) {
        total += tally->counts[i];
    }
    return total;
}

static void append(struct statement *statement, char c) {
    if (isspace((unsigned char)c) && statement->length == 0) {
        return;
    }
    if (statement->length < STATEMENT_LIMIT - 1) {
        statement->text[statement->length++] = c;
        statement->text[statement->length] = '\0';
    }
}

static void clear(struct statement *statement) {
    statement->length = 0;
    statement->text[0] = '\0';
}

/* The statement is complete. */
static void count(struct ptx_tally *tally, const struct statement *statement) {
    const char *text = statement->text;
    if (*text == '@') {
        text += strcspn(text, " \t\n");
        text += strspn(text, " \t\n");
    }
    if (*text != '\0' && *text != '.') {
        ptx_tally_add(tally, text, strcspn(text, ". \t\n"));
        tally->without_line += statement->line == 0;
    }
}

/* Is everything so far one name, so that a colon makes it a label? */
static bool is_name(const struct statement *statement) {
    size_t length = strcspn(statement->text, " \t");
    return length > 0 && strchr(statement->text, '.') == NULL &&
           strspn(statement->text + length, " \t") + length == statement->length;
}

static bool is_header(const struct statement *statement) {
    return statement->text[0] == '.' &&
           (strstr(statement->text, ".entry") != NULL || strstr(statement->text, ".func") != NULL);
}

/* Lines that end where they end. */
static bool is_whole_line(const char *line, size_t length) {
    static const char *const words[] = {".loc", ".file", ".version", ".target", ".address_size"};
    size_t space = 0;
    while (space < length && (line[space] == ' ' || line[space] == '\t')) {
        space++;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if (length - space > size && memcmp(line + space, words[i], size) == 0) {
            return true;
        }
    }
    return false;
}

/* .loc FILE LINE COLUMN */
static void read_loc(struct statement *statement, const char *line, size_t length) {
    char copy[64];
    unsigned number;
    snprintf(copy, sizeof copy, "%.*s", (int)length, line);
    if (sscanf(copy, " .loc %*u %u", &number) == 1) {
        statement->line = number;
    }
}

/* next: the character behind c. */
static void take(struct ptx_tally *tally, struct statement *statement, char c, char next) {
    if (c == ';') {
        count(tally, statement);
        clear(statement);
    } else if (c == ':' && next != ':' && is_name(statement)) {
        clear(statement);
    } else if (c == '{' && is_header(statement)) {
        clear(statement);
        statement->line = 0;
    } else if (c == '{' && statement->length == 0) {
        clear(statement);
    } else if (c != '}' || statement->length > 0) {
        append(statement, c);
    }
}

static void take_line(struct ptx_tally *tally, struct statement *statement, const char *line,
                      size_t length) {
    if (is_whole_line(line, length)) {
        read_loc(statement, line, length);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        char next = i + 1 < length ? line[i + 1] : '\n';
        if (line[i] == '/' && next == '/') {
            break;
        }
        take(tally, statement, line[i], next);
    }
    append(statement, '\n');
}

void ptx_tally_text(struct ptx_tally *tally, const char *text, size_t size) {
    struct statement statement = {{0}, 0, 0};
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end != NULL ? (size_t)(end - (text + at)) : size - at;
        take_line(tally, &statement, text + at, length);
        at += length + 1;
    }
}
