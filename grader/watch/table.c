#include "grader/watch/table.h"

#include <math.h>
#include <stdbool.h>
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

/* Reads the rows below a head. @return the text behind them, or NULL */
static const char *read_rows(const char *text, struct bench_table *table) {
    char line[LINE_BYTES];
    while (text != NULL) {
        const char *next = take_line(text, line, sizeof line);
        if (strncmp(line, "  ", 2) != 0) {
            return text;
        }
        if (!add_why(table, line)) {
            add_row(table, line);
        }
        text = next;
    }
    return NULL;
}

void bench_tables_read(const char *text, struct bench_tables *tables) {
    char line[LINE_BYTES], before[LINE_BYTES] = "";
    tables->count = 0;
    while (text != NULL && tables->count < MOST_TABLES) {
        text = take_line(text, line, sizeof line);
        if (text != NULL && strncmp(line, "  step ", 7) == 0) {
            struct bench_table *table = &tables->list[tables->count++];
            *table = (struct bench_table){.count = 0};
            memcpy(table->head, line, sizeof line);
            memcpy(table->title, before, sizeof before);
            text = read_rows(text, table);
        }
        memcpy(before, line, sizeof line);
    }
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

/* Behind the title's ';' stands a measured time, which differs each time. */
static const struct bench_table *find_table(const struct bench_tables *tables, const char *title) {
    size_t length = strcspn(title, ";");
    for (size_t i = 0; i < tables->count; i++) {
        const char *other = tables->list[i].title;
        if (strcspn(other, ";") == length && strncmp(other, title, length) == 0) {
            return &tables->list[i];
        }
    }
    return NULL;
}

enum change { CHANGE_NONE, CHANGE_NEW, CHANGE_TIME };

/* @param last NULL: there was no run before */
static enum change change_of(const struct bench_row *row, const struct bench_table *last) {
    const struct bench_row *before = last != NULL ? find_row(last, row->name) : NULL;
    return last == NULL               ? CHANGE_NONE
           : before == NULL           ? CHANGE_NEW
           : has_changed(row, before) ? CHANGE_TIME
                                      : CHANGE_NONE;
}

/* @param why whether it says so although it has not changed */
static void show_row(const struct bench_row *row, const struct bench_table *last, bool why,
                     struct lines *shown) {
    enum change change = change_of(row, last);
    if (change == CHANGE_TIME) {
        show_change(row, find_row(last, row->name), shown);
    } else if (change == CHANGE_NEW) {
        lines_add(shown, LINE_STRONG, "%s  new", row->text);
    } else {
        lines_add(shown, LINE_PLAIN, "%s", row->text);
    }
    for (int i = 0; i < 2 && (change != CHANGE_NONE || why); i++) {
        if (row->why[i][0] != '\0') {
            lines_add(shown, LINE_PLAIN, "%s", row->why[i]);
        }
    }
}

static void show_table(const struct bench_table *table, const struct bench_table *last,
                       struct lines *shown) {
    lines_add(shown, LINE_PLAIN, "%s", table->title);
    lines_add(shown, LINE_PLAIN, "%s", table->head);
    for (size_t i = 0; i < table->count; i++) {
        show_row(&table->rows[i], last, i + 1 == table->count, shown);
    }
}

static bool table_has_changed(const struct bench_table *table, const struct bench_table *last) {
    for (size_t i = 0; i < table->count; i++) {
        if (change_of(&table->rows[i], last) != CHANGE_NONE) {
            return true;
        }
    }
    return false;
}

void bench_tables_show(const struct bench_tables *tables, const struct bench_tables *last,
                       struct lines *shown) {
    size_t silent = 0;
    shown->count = 0;
    for (size_t i = 0; i < tables->count; i++) {
        const struct bench_table *table = &tables->list[i];
        const struct bench_table *before = find_table(last, table->title);
        if (table_has_changed(table, before)) {
            show_table(table, before, shown);
        } else {
            silent++;
        }
    }
    if (shown->count == 0 && tables->count > 0) {
        show_table(&tables->list[0], find_table(last, tables->list[0].title), shown);
        silent--;
    }
    if (silent > 0) {
        lines_add(shown, LINE_PLAIN, "%zu other table%s%s", silent, silent == 1 ? "" : "s",
                  last->count > 0 ? ": nothing has changed" : "");
    }
}
