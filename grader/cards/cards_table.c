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

/* NaN where there is none. */
static double number(const cJSON *line, const char *name) {
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(line, name));
}

/* The steps' speedups; 0: there is no such step. */
static double step_speedup(const cJSON *line, int step) {
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(line, "steps");
    const cJSON *speedup = cJSON_GetArrayItem(steps, step);
    return cJSON_IsNumber(speedup) ? speedup->valuedouble : 0.0;
}

static const char *const step_names[] = {"none", "pass", "good", "gold"};
enum { GOLD = 3 };

/* How many steps the speedup reaches; a row with one step is gold at once. */
static int steps_reached(const cJSON *line) {
    double speedup = number(line, "speedup");
    int reached = 0;
    while (reached < GOLD && speedup >= step_speedup(line, reached)) {
        reached++;
    }
    return reached > 0 && step_speedup(line, GOLD - 1) == 0.0 ? GOLD : reached;
}

/* Time, speedup, share of the limit, step, and speedup over the one that passes. */
static void print_cell(const cJSON *line) {
    double speedup = number(line, "speedup"), passes = step_speedup(line, 0);
    if (text(line, "measure")[0] == '\0') {
        printf(" %s", text(line, "verdict"));
        return;
    }
    printf(" %.4g ms, %.2fx, %.0f%%, %s", number(line, "subject_ms"), speedup,
           100.0 * number(line, "share"), step_names[steps_reached(line)]);
    if (passes > 0.0) {
        printf(", %.2f of pass", speedup / passes);
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

/* Its last column: how many steps lie between the best card and the worst. */
static void print_row(const struct records *r, const cJSON *first) {
    int least = GOLD, most = 0;
    printf("| %s | %s |", text(first, "test"), text(first, "subject"));
    for (size_t i = 0; i < r->card_count; i++) {
        const cJSON *line = in_row(r, first, r->cards[i]);
        if (line != NULL) {
            print_cell(line);
        }
        if (line != NULL && text(line, "measure")[0] != '\0') {
            int steps = steps_reached(line);
            least = steps < least ? steps : least;
            most = steps > most ? steps : most;
        }
        printf(" |");
    }
    printf(" %d |\n", most > least ? most - least : 0);
}

static void print_head(const struct records *r, const char *lab) {
    printf("\n## %s\n\n| test | subject |", lab);
    for (size_t i = 0; i < r->card_count; i++) {
        printf(" %s |", r->cards[i]);
    }
    printf(" steps apart |\n|---|---|");
    for (size_t i = 0; i <= r->card_count; i++) {
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
