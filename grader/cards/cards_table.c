/*
 * Makes a Markdown table of what graded speedup tests recorded on several GPUs.
 * usage: cards_table RECORDS.jsonl
 *        cards_table --check RECORDS.jsonl
 *
 * A line of RECORDS is one of grade.jsonl (grader/harness/record.h) with the key of the GPU,
 * "card". Each lab has a table: a row a test and a subject, a column a card. What a share is worth
 * comes from the table of thresholds as it is now, not as it was when the record was made.
 *
 * --check says what does not hold, a line each, and exits with 1 then: solutions reach 1.25 times
 * the share that passes, starters half of it at most or a count that is too large, and middling
 * submissions are at most one step apart.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grader/thresholds.h"

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

/* Whether times were compared; a test that counts has no measure. */
static bool is_timed(const cJSON *line) {
    return threshold_find(text(line, "lab"), text(line, "measure")) != NULL;
}

/* What the table asks of the line's measure. */
static struct steps steps_of(const cJSON *line) {
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(line, "device");
    const cJSON *modelled = cJSON_GetObjectItemCaseSensitive(device, "modelled");
    return threshold_shares(threshold_find(text(line, "lab"), text(line, "measure")),
                            cJSON_IsTrue(modelled));
}

/* Infinite where the work took no longer than what the submission cannot change. */
static double share_of(const cJSON *line) {
    double share = number(line, "share");
    return isnan(share) ? INFINITY : share;
}

static const char *const step_names[] = {"none", "pass", "good", "gold"};

/* The step that the line reaches; whoever is slower than the starter reaches none. */
static enum step step_of(const cJSON *line) {
    const struct steps steps = steps_of(line);
    return number(line, "speedup") < 1.0 ? STEP_NONE : threshold_step(&steps, share_of(line));
}

static double share_of_pass(const cJSON *line) {
    return share_of(line) / steps_of(line).pass;
}

/* The speedup over the one that passes: of the whole time, with what is not the submission's. */
static double speedup_of_pass(const cJSON *line) {
    double allowed = number(line, "fixed_ms") + number(line, "ideal_ms") / steps_of(line).pass;
    double needed = fmax(1.0, number(line, "baseline_ms") / allowed);
    return number(line, "speedup") / needed;
}

/* Time, speedup, share of the limit, step; share and speedup over the ones that pass. */
static void print_cell(const cJSON *line) {
    if (!is_timed(line)) {
        printf(" %s", text(line, "verdict"));
        return;
    }
    printf(" %.4g ms, %.2fx, %.3g%%, %s; %.2f of pass, %.2f as a speedup",
           number(line, "subject_ms"), number(line, "speedup"), 100.0 * share_of(line),
           step_names[step_of(line)], share_of_pass(line), speedup_of_pass(line));
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

/* How many steps lie between the best card of a row and the worst. */
static int steps_apart(const struct records *r, const cJSON *first) {
    enum step least = STEP_GOLD, most = STEP_NONE;
    for (size_t i = 0; i < r->card_count; i++) {
        const cJSON *line = in_row(r, first, r->cards[i]);
        if (line != NULL && is_timed(line)) {
            enum step step = step_of(line);
            least = step < least ? step : least;
            most = step > most ? step : most;
        }
    }
    return most > least ? (int)most - (int)least : 0;
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
    printf(" %d |\n", steps_apart(r, first));
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

/* Says what does not hold of one line; @return whether all does. */
static bool check_line(const cJSON *line) {
    const char *subject = text(line, "subject");
    const bool counted = strcmp(text(line, "verdict"), "fail") == 0;
    const bool solution = strcmp(subject, "solutions") == 0;
    const bool starter = strcmp(subject, "starter") == 0;
    if (!is_timed(line) || (solution && share_of_pass(line) >= 1.25) ||
        (starter && (share_of_pass(line) <= 0.5 || counted)) || (!solution && !starter)) {
        return true;
    }
    printf("%s %s, %s on %s: %.2f of the share that passes\n", text(line, "lab"),
           text(line, "test"), subject, text(line, "card"), share_of_pass(line));
    return false;
}

static bool check_all(const struct records *r) {
    bool holds = true;
    for (size_t i = 0; i < r->count; i++) {
        const cJSON *line = r->lines[i];
        holds = check_line(line) && holds;
        if (opens_row(r, i) && strcmp(text(line, "subject"), "middle") == 0 &&
            steps_apart(r, line) > 1) {
            printf("%s %s: middling submissions are %d steps apart\n", text(line, "lab"),
                   text(line, "test"), steps_apart(r, line));
            holds = false;
        }
    }
    return holds;
}

static void records_free(struct records *r) {
    for (size_t i = 0; i < r->count; i++) {
        cJSON_Delete(r->lines[i]);
    }
    free(r);
}

int main(int argc, char **argv) {
    const bool check = argc == 3 && strcmp(argv[1], "--check") == 0;
    struct records *r = calloc(1, sizeof *r);
    FILE *file = argc == 2 || check ? fopen(argv[argc - 1], "r") : NULL;
    if (r == NULL || file == NULL) {
        fprintf(stderr, "usage: cards_table [--check] RECORDS.jsonl\n");
        free(r);
        return 2;
    }
    bool right = read_records(r, file);
    fclose(file);
    if (!right) {
        fprintf(stderr, "cards_table: line %zu of %s is no record\n", r->count + 1, argv[argc - 1]);
    } else if (check) {
        right = check_all(r);
    } else {
        printf("# Speedup tests on several GPUs\n");
        print_table(r);
    }
    records_free(r);
    return right ? 0 : 1;
}
