#include "grader/watch/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Measured times of the same kernel differ by less. */
static const double NOISE = 1.03;

/* Copies the line at text. @return the next one, or NULL */
static const char *take_line(const char *text, char *line, size_t size) {
    size_t length = strcspn(text, "\n");
    snprintf(line, size, "%.*s", (int)(length < size ? length : size - 1), text);
    return text[length] == '\n' ? text + length + 1 : NULL;
}

/* The place of a word among the words of a line; -1: it is not there. */
static int place_of(const char *line, const char *word) {
    size_t length = strlen(word);
    for (int place = 0;; place++) {
        line += strspn(line, " ");
        size_t here = strcspn(line, " ");
        if (here == 0) {
            return -1;
        }
        if (here == length && strncmp(line, word, length) == 0) {
            return place;
        }
        line += here;
    }
}

/* The number in a place of a line; 0: there is none. */
static double number_at(const char *line, int place) {
    for (; place > 0; place--) {
        line += strspn(line, " ");
        line += strcspn(line, " ");
    }
    double value = strtod(line, NULL);
    return isfinite(value) && value > 0.0 ? value : 0.0;
}

static void add_row(struct bench_table *table, const char *line) {
    if (table->count == MOST_ROWS_OF_TABLE) {
        return;
    }
    struct bench_row *row = &table->rows[table->count++];
    int place = place_of(table->head, "ms");
    const char *name = line + strspn(line, " ");
    snprintf(row->name, sizeof row->name, "%.*s", (int)strcspn(name, " "), name);
    snprintf(row->text, sizeof row->text, "%s", line);
    row->ms = place > 0 ? number_at(line, place) : 0.0;
}

/* A line below a row: "    why: ...", and the sentence behind it. */
static bool add_why(struct bench_table *table, const char *line) {
    static const char first[] = "    why: ", second[] = "         ";
    int which = strncmp(line, first, sizeof first - 1) == 0     ? 0
                : strncmp(line, second, sizeof second - 1) == 0 ? 1
                                                                : -1;
    if (which >= 0 && table->count > 0) {
        struct bench_row *row = &table->rows[table->count - 1];
        snprintf(row->why[which], sizeof row->why[which], "%s", line);
    }
    return which >= 0;
}

bool bench_table_read(const char *text, struct bench_table *table) {
    char line[LINE_BYTES], before[LINE_BYTES] = "";
    *table = (struct bench_table){.count = 0};
    while (text != NULL) {
        text = take_line(text, line, sizeof line);
        if (table->head[0] == '\0') {
            if (strncmp(line, "  step ", 7) == 0) {
                memcpy(table->head, line, sizeof line);
                memcpy(table->title, before, sizeof before);
            }
            memcpy(before, line, sizeof line);
        } else if (strncmp(line, "  ", 2) != 0) {
            break; /* the table's end */
        } else if (!add_why(table, line)) {
            add_row(table, line);
        }
    }
    return table->count > 0;
}

static const struct bench_row *find_row(const struct bench_table *table, const char *name) {
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].name, name) == 0) {
            return &table->rows[i];
        }
    }
    return NULL;
}

static bool has_changed(const struct bench_row *row, const struct bench_row *before) {
    if (row->ms > 0.0 && before->ms > 0.0) {
        return row->ms > before->ms * NOISE || before->ms > row->ms * NOISE;
    }
    return strcmp(row->text, before->text) != 0;
}

/* A changed row, what it was, and the factor between them. */
static void show_change(const struct bench_row *row, const struct bench_row *before,
                        struct lines *shown) {
    bool faster = row->ms < before->ms;
    double factor = faster ? before->ms / row->ms : row->ms / before->ms;
    enum line_style style = faster ? LINE_GOOD : LINE_BAD;
    lines_add(shown, LINE_STRONG, "%s", row->text);
    lines_add(shown, LINE_PLAIN, "%s  before", before->text);
    if (row->ms > 0.0 && before->ms > 0.0) {
        lines_add(shown, style, "    %s: %.2fx %s than before", row->name, factor,
                  faster ? "faster" : "slower");
    }
}

static void show_row(const struct bench_row *row, const struct bench_table *last, bool end,
                     struct lines *shown) {
    const struct bench_row *before = find_row(last, row->name);
    bool changed = before != NULL && has_changed(row, before);
    bool added = before == NULL && last->count > 0;
    if (changed) {
        show_change(row, before, shown);
    } else {
        lines_add(shown, added ? LINE_STRONG : LINE_PLAIN, "%s%s", row->text, added ? "  new" : "");
    }
    for (int i = 0; i < 2 && (changed || added || end); i++) {
        if (row->why[i][0] != '\0') {
            lines_add(shown, LINE_PLAIN, "%s", row->why[i]);
        }
    }
}

void bench_table_show(const struct bench_table *table, const struct bench_table *last,
                      struct lines *shown) {
    shown->count = 0;
    lines_add(shown, LINE_PLAIN, "%s", table->title);
    lines_add(shown, LINE_PLAIN, "%s", table->head);
    for (size_t i = 0; i < table->count; i++) {
        show_row(&table->rows[i], last, i + 1 == table->count, shown);
    }
}
