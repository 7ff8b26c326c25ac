/*
 * Makes a Markdown table of what graded speedup tests recorded on several GPUs.
 * usage: cards_table RECORDS.jsonl
 *
 * A line of RECORDS is one of grade.jsonl (grader/harness/record.h) with the key of the GPU,
 * "card". Each lab has a table: a row a test and a subject, a column a card.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RECORDS = 4096, MOST_CARDS = 16 };

/* Lines of the file, in its order. */
struct records {
    cJSON *lines[MOST_RECORDS];
    size_t count;
    const char *cards[MOST_CARDS]; /* each once, in the order of their first lines */
    size_t card_count;
};

static const char *text(const cJSON *line, const char *name) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, name));
    return value != NULL ? value : "";
}

static bool is_same(const cJSON *a, const cJSON *b, const char *name) {
    return strcmp(text(a, name), text(b, name)) == 0;
}

static void note_card(struct records *r, const char *card) {
    for (size_t i = 0; i < r->card_count; i++) {
        if (strcmp(r->cards[i], card) == 0) {
            return;
        }
    }
    if (r->card_count < MOST_CARDS) {
        r->cards[r->card_count++] = card;
    }
}

static bool read_records(struct records *r, FILE *file) {
    char *line = NULL;
    size_t size = 0;
    bool right = true;
    while (right && r->count < MOST_RECORDS && getline(&line, &size, file) > 0) {
        r->lines[r->count] = cJSON_Parse(line);
        right = text(r->lines[r->count], "lab")[0] != '\0';
        if (right) {
            note_card(r, text(r->lines[r->count++], "card"));
        }
    }
    right = right && (r->count < MOST_RECORDS || feof(file));
    free(line);
    return right;
}

/* " 0.62" and its like; nothing where the number is missing. */
static void print_number(const cJSON *line, const char *name, const char *format, double factor) {
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(line, name);
    if (cJSON_IsNumber(number)) {
        printf(format, factor * number->valuedouble);
    }
}

/* By how much the time is below the required one: 1.25 is a quarter to spare. */
static void print_reserve(const cJSON *line) {
    double taken = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(line, "subject_ms"));
    double allowed = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(line, "required_ms"));
    if (allowed > 0.0 && taken > 0.0) {
        printf(", %.2f of required", allowed / taken);
    }
}

static void print_cell(const cJSON *line) {
    const char *step = text(line, "step");
    const char *verdict = text(line, "verdict");
    bool timed = text(line, "measure")[0] != '\0';
    if (timed) {
        print_number(line, "subject_ms", " %.4g ms", 1.0);
        print_number(line, "speedup", ", %.2fx", 1.0);
        print_number(line, "share", ", share %.0f%%", 100.0);
        print_reserve(line);
        printf(", %s", step[0] != '\0' ? step : verdict);
    } else {
        printf(" %s", verdict);
    }
}

static bool is_same_row(const cJSON *a, const cJSON *b) {
    return is_same(a, b, "lab") && is_same(a, b, "test") && is_same(a, b, "subject");
}

/* The line of a card in the same row as `first`, or NULL. */
static const cJSON *in_row(const struct records *r, const cJSON *first, const char *card) {
    for (size_t i = 0; i < r->count; i++) {
        const cJSON *line = r->lines[i];
        if (strcmp(text(line, "card"), card) == 0 && is_same_row(line, first)) {
            return line;
        }
    }
    return NULL;
}

static void print_row(const struct records *r, const cJSON *first) {
    printf("| %s | %s |", text(first, "test"), text(first, "subject"));
    for (size_t i = 0; i < r->card_count; i++) {
        const cJSON *line = in_row(r, first, r->cards[i]);
        if (line != NULL) {
            print_cell(line);
        }
        printf(" |");
    }
    printf("\n");
}

static void print_head(const struct records *r, const char *lab) {
    printf("\n## %s\n\n| test | subject |", lab);
    for (size_t i = 0; i < r->card_count; i++) {
        printf(" %s |", r->cards[i]);
    }
    printf("\n|---|---|");
    for (size_t i = 0; i < r->card_count; i++) {
        printf("---|");
    }
    printf("\n");
}

static bool opens_row(const struct records *r, size_t i) {
    for (size_t before = 0; before < i; before++) {
        if (is_same_row(r->lines[before], r->lines[i])) {
            return false;
        }
    }
    return true;
}

static void print_table(const struct records *r) {
    const char *lab = "";
    for (size_t i = 0; i < r->count; i++) {
        if (opens_row(r, i)) {
            if (strcmp(lab, text(r->lines[i], "lab")) != 0) {
                lab = text(r->lines[i], "lab");
                print_head(r, lab);
            }
            print_row(r, r->lines[i]);
        }
    }
}

static void records_free(struct records *r) {
    for (size_t i = 0; i < r->count; i++) {
        cJSON_Delete(r->lines[i]);
    }
    free(r);
}

int main(int argc, char **argv) {
    struct records *r = calloc(1, sizeof *r);
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (r == NULL || file == NULL) {
        fprintf(stderr, "usage: cards_table RECORDS.jsonl\n");
        return 2;
    }
    bool right = read_records(r, file);
    fclose(file);
    if (right) {
        printf("# Speedup tests on modelled GPUs\n");
        print_table(r);
    } else {
        fprintf(stderr, "cards_table: line %zu of %s is no record\n", r->count + 1, argv[1]);
    }
    records_free(r);
    return right ? 0 : 1;
}
