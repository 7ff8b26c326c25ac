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
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "grader/cards/card_records.h"

/* Time, speedup, share of the limit, step; share and speedup over the ones that pass. */
static void print_cell(const cJSON *line) {
    if (!card_is_timed(line)) {
        printf(" %s", card_text(line, "verdict"));
        return;
    }
    printf(" %.4g ms, %.2fx, ", card_number(line, "subject_ms"), card_number(line, "speedup"));
    if (isinf(card_share(line))) {
        printf("at the limit, %s", card_step_name(card_step(line)));
    } else {
        printf("%.3g%%, %s; %.2f of pass, %.2f as a speedup", 100.0 * card_share(line),
               card_step_name(card_step(line)), card_share_of_pass(line),
               card_speedup_of_pass(line));
    }
}

static void print_row(const struct card_records *r, const cJSON *first) {
    printf("| %s | %s |", card_text(first, "test"), card_text(first, "subject"));
    for (size_t i = 0; i < r->card_count; i++) {
        const cJSON *line = card_in_row(r, first, r->cards[i]);
        if (line != NULL) {
            print_cell(line);
        }
        printf(" |");
    }
    printf(" %d |\n", card_steps_apart(r, first));
}

static void print_head(const struct card_records *r, const char *lab) {
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

static void print_table(const struct card_records *r) {
    const char *lab = "";
    for (size_t i = 0; i < r->count; i++) {
        if (card_opens_row(r, i)) {
            if (strcmp(lab, card_text(r->lines[i], "lab")) != 0) {
                lab = card_text(r->lines[i], "lab");
                print_head(r, lab);
            }
            print_row(r, r->lines[i]);
        }
    }
}

static void print_introduction(const struct card_records *r) {
    const bool modelled = r->count > 0 && card_is_modelled(r->lines[0]);
    printf(
        "# What solutions, middling submissions and starters reach on %s GPUs\n\n"
        "%s by the programs of [//grader/cards](README.md), which made this page, too. A cell has "
        "the time, the speedup over the baseline, the share of the GPU's limit and the step; then "
        "how much that is of the share that passes, and of the speedup that passes. Steps are "
        "those of [thresholds.c](../thresholds.c). The last column: how many steps lie between "
        "the best GPU and the worst.\n",
        modelled ? "modelled" : "measured", modelled ? "Modelled by simt," : "Measured");
}

/* Whether the test counted twice what is allowed, or more: it is missed by half whatever the time.
   Measured records of 2026-11-25 have no counts; AdamW's starter has five launches, allowed is one.
 */
static bool counts_too_much(const cJSON *line) {
    const bool known = cJSON_HasObjectItem(line, "count");
    return known ? card_number(line, "count") >= 2.0 * card_number(line, "most")
                 : strcmp(card_text(line, "test"), "adamw") == 0 && !card_is_modelled(line);
}

/* Says what does not hold of one line; @return whether all does. */
static bool check_line(const cJSON *line) {
    const char *subject = card_text(line, "subject");
    const bool counted = counts_too_much(line);
    const bool solution = strcmp(subject, "solutions") == 0;
    const bool starter = strcmp(subject, "starter") == 0;
    if (!card_is_timed(line) || (solution && card_share_of_pass(line) >= 1.25) ||
        (starter && (card_share_of_pass(line) <= 0.5 || counted)) || (!solution && !starter)) {
        return true;
    }
    printf("%s %s, %s on %s: %.2f of the share that passes\n", card_text(line, "lab"),
           card_text(line, "test"), subject, card_text(line, "card"), card_share_of_pass(line));
    return false;
}

static bool check_all(const struct card_records *r) {
    bool holds = true;
    for (size_t i = 0; i < r->count; i++) {
        const cJSON *line = r->lines[i];
        holds = check_line(line) && holds;
        if (card_opens_row(r, i) && strcmp(card_text(line, "subject"), "middle") == 0 &&
            card_steps_apart(r, line) > 1) {
            printf("%s %s: middling submissions are %d steps apart\n", card_text(line, "lab"),
                   card_text(line, "test"), card_steps_apart(r, line));
            holds = false;
        }
    }
    return holds;
}

int main(int argc, char **argv) {
    const bool check = argc == 3 && strcmp(argv[1], "--check") == 0;
    struct card_records *r = NULL;
    struct error error = {0};
    bool holds = true;
    if (argc != 2 && !check) {
        fprintf(stderr, "usage: cards_table [--check] RECORDS.jsonl\n");
        return 2;
    }
    enum status status = card_records_read(&r, argv[argc - 1], &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "cards_table: %s\n", error_text(&error, status));
        return 1;
    }
    if (check) {
        holds = check_all(r);
    } else {
        print_introduction(r);
        print_table(r);
    }
    card_records_free(r);
    return holds ? 0 : 1;
}
