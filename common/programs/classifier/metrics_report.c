#include "common/programs/classifier/metrics_report.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <string.h>
#include <utf8proc.h>

#include "common/base/utf8.h"

/* Columns of characters on a terminal. */
enum { LEAST_NAME = 12, MOST_NAME = 32, LEAST_CELL = 9, MOST_LINE = 110 };

static uint64_t cell(const struct metrics *m, size_t label, size_t answer) {
    return m->confusion[label * m->labels + answer];
}

/* ---- Names in columns ---- */

/* Bytes of the name's beginning that takes at most `most` columns; *width receives how many. */
static size_t fit(const char *name, size_t most, size_t *width) {
    size_t length = strlen(name), at = 0;
    *width = 0;
    while (at < length) {
        size_t next = at;
        int32_t code_point;
        if (utf8_next(name, length, &next, &code_point, NULL) != STATUS_OK) {
            return at;
        }
        size_t columns = (size_t)utf8proc_charwidth(code_point);
        if (*width + columns > most) {
            return at;
        }
        *width += columns;
        at = next;
    }
    return at;
}

static size_t width_of(const char *name) {
    size_t width;
    (void)fit(name, SIZE_MAX, &width);
    return width;
}

/* The name in `width` columns, cut if it is wider. */
static void print_name(FILE *stream, const char *name, size_t width, bool right) {
    size_t used, length = fit(name, width, &used);
    int before = right ? (int)(width - used) : 0, after = right ? 0 : (int)(width - used);
    fprintf(stream, "%*s%.*s%*s", before, "", (int)length, name, after, "");
}

/* Columns for the widest name, from `least` to `most`. */
static size_t name_width(const struct metrics *m, const char *const *names, size_t least,
                         size_t most) {
    size_t width = least;
    for (size_t i = 0; i < m->labels && width < most; i++) {
        size_t of_name = width_of(names[i]);
        width = of_name > width ? of_name : width;
    }
    return width < most ? width : most;
}

/* ---- Tables ---- */

static void print_labels(const struct metrics *m, const char *const *names, FILE *stream) {
    size_t width = name_width(m, names, LEAST_NAME, MOST_NAME);
    fprintf(stream, "\n  %-*s %9s %9s %9s %9s\n", (int)width, "label", "precision", "recall", "F1",
            "texts");
    for (size_t i = 0; i < m->labels; i++) {
        struct metrics_label of = metrics_of(m, i);
        if (m->labels > METRICS_MOST_COLUMNS && of.count + of.answered == 0) {
            continue;
        }
        fputs("  ", stream);
        print_name(stream, names[i], width, false);
        fprintf(stream, " %9.4f %9.4f %9.4f %9llu\n", of.precision, of.recall, of.f1,
                (unsigned long long)of.count);
    }
    fprintf(stream, "\naccuracy %.4f, macro F1 %.4f\n", metrics_accuracy(m), metrics_macro_f1(m));
}

static void print_matrix(const struct metrics *m, const char *const *names, FILE *stream) {
    size_t width = name_width(m, names, LEAST_NAME, MOST_NAME);
    size_t column = name_width(m, names, LEAST_CELL, SIZE_MAX);
    bool named = 2 + width + m->labels * (column + 1) <= MOST_LINE;
    size_t digits = named ? 0 : 4; /* "%3zu " before the names */
    column = named ? column : LEAST_CELL;
    fprintf(stream, "\n  %-*s", (int)(width + digits), "label\\answer");
    for (size_t i = 0; i < m->labels; i++) {
        fputc(' ', stream);
        if (named) {
            print_name(stream, names[i], column, true);
        } else {
            fprintf(stream, "%*zu", (int)column, i + 1);
        }
    }
    for (size_t label = 0; label < m->labels; label++) {
        fputs("\n  ", stream);
        if (!named) {
            fprintf(stream, "%3zu ", label + 1);
        }
        print_name(stream, names[label], width, false);
        for (size_t answer = 0; answer < m->labels; answer++) {
            fprintf(stream, " %*llu", (int)column, (unsigned long long)cell(m, label, answer));
        }
    }
    fputc('\n', stream);
}

/* ---- The pairs most often confused ---- */

struct pair {
    size_t label, answer;
    uint64_t count;
};

/* Puts a pair in its place among the most frequent ones; of equals the first stays before. */
static void keep(struct pair *pairs, size_t *count, struct pair pair) {
    size_t at = *count < METRICS_MOST_COLUMNS ? (*count)++ : METRICS_MOST_COLUMNS - 1;
    if (at == METRICS_MOST_COLUMNS - 1 && pairs[at].count >= pair.count) {
        return;
    }
    for (; at > 0 && pairs[at - 1].count < pair.count; at--) {
        pairs[at] = pairs[at - 1];
    }
    pairs[at] = pair;
}

static void print_pairs(const struct metrics *m, const char *const *names, FILE *stream) {
    struct pair pairs[METRICS_MOST_COLUMNS] = {{0}};
    size_t count = 0, width = name_width(m, names, LEAST_NAME, MOST_NAME);
    for (size_t label = 0; label < m->labels; label++) {
        for (size_t answer = 0; answer < m->labels; answer++) {
            if (answer != label && cell(m, label, answer) > 0) {
                keep(pairs, &count, (struct pair){label, answer, cell(m, label, answer)});
            }
        }
    }
    if (count == 0) {
        fputs("\nno label is confused with another\n", stream);
        return;
    }
    fputs("\nmost often confused:\n", stream);
    fprintf(stream, "  %-*s  %-*s %9s\n", (int)width, "label", (int)width, "answer", "texts");
    for (size_t i = 0; i < count; i++) {
        fputs("  ", stream);
        print_name(stream, names[pairs[i].label], width, false);
        fputs("  ", stream);
        print_name(stream, names[pairs[i].answer], width, false);
        fprintf(stream, " %9llu\n", (unsigned long long)pairs[i].count);
    }
}

void metrics_print(const struct metrics *metrics, const char *const *names, FILE *stream) {
    print_labels(metrics, names, stream);
    if (metrics->labels <= METRICS_MOST_COLUMNS) {
        print_matrix(metrics, names, stream);
    } else {
        print_pairs(metrics, names, stream);
    }
}

/* ---- JSON ---- */

static bool add_label(cJSON *array, const struct metrics *m, const char *const *names,
                      size_t label) {
    cJSON *object = cJSON_CreateObject();
    struct metrics_label of = metrics_of(m, label);
    return cJSON_AddItemToArray(array, object) &&
           cJSON_AddStringToObject(object, "label", names[label]) != NULL &&
           cJSON_AddNumberToObject(object, "precision", of.precision) != NULL &&
           cJSON_AddNumberToObject(object, "recall", of.recall) != NULL &&
           cJSON_AddNumberToObject(object, "f1", of.f1) != NULL &&
           cJSON_AddNumberToObject(object, "texts", (double)of.count) != NULL;
}

static bool add_pair(cJSON *array, const struct metrics *m, const char *const *names, size_t label,
                     size_t answer) {
    if (cell(m, label, answer) == 0) {
        return true;
    }
    cJSON *object = cJSON_CreateObject();
    return cJSON_AddItemToArray(array, object) &&
           cJSON_AddStringToObject(object, "label", names[label]) != NULL &&
           cJSON_AddStringToObject(object, "answer", names[answer]) != NULL &&
           cJSON_AddNumberToObject(object, "texts", (double)cell(m, label, answer)) != NULL;
}

enum status metrics_add_json(const struct metrics *m, const char *const *names,
                             struct cJSON *object) {
    bool added = cJSON_AddNumberToObject(object, "accuracy", metrics_accuracy(m)) != NULL &&
                 cJSON_AddNumberToObject(object, "macro_f1", metrics_macro_f1(m)) != NULL;
    cJSON *labels = cJSON_AddArrayToObject(object, "labels");
    cJSON *confusion = cJSON_AddArrayToObject(object, "confusion");
    added = added && labels != NULL && confusion != NULL;
    for (size_t label = 0; label < m->labels && added; label++) {
        added = add_label(labels, m, names, label);
        for (size_t answer = 0; answer < m->labels && added; answer++) {
            added = add_pair(confusion, m, names, label, answer);
        }
    }
    return added ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}
