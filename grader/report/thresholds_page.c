/* Prints grader/THRESHOLDS.md from the table of thresholds and the records of several GPUs. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "grader/cards/card_records.h"
#include "grader/thresholds.h"

static const char introduction[] =
    "# What each lab must reach\n"
    "\n"
    "Made from [thresholds.c](thresholds.c) by `bazel run //grader/report:thresholds_page`; a test "
    "compares the two.\n"
    "\n"
    "A lab has %d points. **Parity** brings %d of them, not more, because the starter has parity, "
    "too (a starter that nobody touched gets none). **The subject of the lab** brings 60 or 80, "
    "in steps: 60%% of a row's points for *pass*, 80%% for *good*, all for *gold*. Gold is ahead "
    "of the vendor's library or of 90%% of the roofline where there is such a figure and the "
    "solution reaches it; the table says where it does not. **The model** brings 20: all where it "
    "passes, half from 1.1x on, none below. A faster kernel in a slower model loses these points, "
    "and the report says why.\n"
    "\n"
    "What is required is a **share of what the machine at hand can do**, found in the same run: by "
    "probes where time is measured, from simt's table of GPUs where it is modelled. The *limit* of "
    "a "
    "row says what the least time is made of: bytes at the speed at which memory can be read, "
    "floating-point operations at the rate of the units for their type, launches in a row, bytes "
    "over the bus; where two of them meet, the slower one counts. What a submission cannot change "
    "does not count: one launch and one wait, and in a model all operators but the lab's own, "
    "which "
    "are timed without these. A share of 40%% means: the time beyond that may be two and a half "
    "times "
    "the least one. The speedup over the starter's code, timed in the same run, stands in every "
    "message and in the report beside it; what it has to be differs from GPU to GPU.\n"
    "\n"
    "*Measured* applies on a GPU and to code on the CPU. *Modelled*, where simt stands in for the "
    "GPU, has shares of its own where its smaller cases leave more of a GPU idle. A GPU that "
    "cannot "
    "do a row (no tensor cores for bf16 before compute capability 8.0) is graded on the others, "
    "which "
    "then count for more. Without parity, speed brings no points. Solutions must reach a quarter "
    "more than *pass*; starters reach at most half of it. What solutions, starters and middling "
    "submissions (a step from the middle of the ladder) reach on which GPU stands below, by "
    "[records](cards/README.md) of runs.\n";

static void print_steps(const struct threshold *t, const struct steps *steps) {
    if (steps->pass == 0.0) {
        printf(" %s |", t->shares.pass == 0.0 ? "counted" : "as measured");
    } else if (steps->good == 0.0) {
        printf(" %.4g%% |", 100.0 * steps->pass);
    } else {
        printf(" %.4g%%, %.4g%%, %.4g%% |", 100.0 * steps->pass, 100.0 * steps->good,
               100.0 * steps->gold);
    }
}

static void print_row(const struct threshold *t) {
    printf("| %s | %d |", t->measure, t->points);
    print_steps(t, &t->shares);
    print_steps(t, &t->other);
    printf(" %s | %s | %s%s%s |\n", t->limit != NULL ? t->limit : "", t->what, t->why,
           t->gold != NULL ? ". *Steps:* " : "", t->gold != NULL ? t->gold : "");
}

/* "38% gold" */
static void print_cell(const cJSON *line) {
    if (line == NULL) {
        printf(" |");
    } else if (!card_is_timed(line)) { /* it failed before there was a time */
        printf(" %s |", card_text(line, "verdict"));
    } else if (isinf(card_share(line))) {
        printf(" at the limit, %s |", card_step_name(card_step(line)));
    } else if (strcmp(card_text(line, "verdict"), "fail") == 0) {
        printf(" %.3g%%, but fails by what is counted |", 100.0 * card_share(line));
    } else {
        printf(" %.3g%% %s |", 100.0 * card_share(line), card_step_name(card_step(line)));
    }
}

static bool is_of(const struct card_records *r, size_t i, const char *lab) {
    return strcmp(card_text(r->lines[i], "lab"), lab) == 0 && card_is_timed(r->lines[i]);
}

static void print_reached_head(const struct card_records *r) {
    printf("\nReached, **%s**: share of the limit, and step.\n\n| row | by |",
           card_is_modelled(r->lines[0]) ? "modelled" : "measured");
    for (size_t i = 0; i < r->card_count; i++) {
        printf(" %s |", r->cards[i]);
    }
    printf("\n|---|---|");
    for (size_t i = 0; i < r->card_count; i++) {
        printf("---|");
    }
    printf("\n");
}

/* What solutions, middling submissions and starters of a lab reach, a row each. */
static void print_reached(const struct card_records *r, const char *lab) {
    bool first = true;
    for (size_t i = 0; i < r->count; i++) {
        const cJSON *line = r->lines[i];
        if (!is_of(r, i, lab) || !card_opens_row(r, i)) {
            continue;
        }
        if (first) {
            print_reached_head(r);
        }
        first = false;
        printf("| %s | %s |", card_text(line, "test"), card_text(line, "subject"));
        for (size_t card = 0; card < r->card_count; card++) {
            print_cell(card_in_row(r, line, r->cards[card]));
        }
        printf("\n");
    }
}

enum { MOST_FILES = 4 };

/* One lab: what is required, and what was reached by each file of records. */
static void print_lab(const char *lab, struct card_records *const *files, int count) {
    const struct threshold *t;
    printf("\n## %s\n\n| row | points | measured: pass, good, gold | %s | limit | case | why "
           "|\n|---|---:|---|---|---|---|---|\n",
           lab, strcmp(lab, "01_cpu_matmul") == 0 ? "on one CPU" : "modelled");
    for (size_t i = 0; (t = threshold_at(i)) != NULL; i++) {
        if (strcmp(lab, t->lab) == 0) {
            print_row(t);
        }
    }
    for (int i = 0; i < count; i++) {
        print_reached(files[i], lab);
    }
}

static enum status print_page(int count, char **paths, struct card_records **files,
                              struct error *error) {
    const char *lab = "";
    const struct threshold *t;
    for (int i = 0; i < count; i++) {
        TRY(card_records_read(&files[i], paths[i], error));
    }
    printf(introduction, LAB_POINTS, PARITY_POINTS);
    for (size_t i = 0; (t = threshold_at(i)) != NULL; i++) {
        if (strcmp(lab, t->lab) != 0) {
            print_lab(t->lab, files, count);
        }
        lab = t->lab;
    }
    return STATUS_OK;
}

int main(int argc, char **argv) {
    struct card_records *files[MOST_FILES] = {NULL};
    struct error error = {0};
    if (argc - 1 > MOST_FILES) {
        fprintf(stderr, "usage: thresholds_page [RECORDS.jsonl ...]\n");
        return 2;
    }
    enum status status = print_page(argc - 1, argv + 1, files, &error);
    for (int i = 0; i < MOST_FILES; i++) {
        card_records_free(files[i]);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "thresholds_page: %s\n", error_text(&error, status));
    }
    return status == STATUS_OK ? 0 : 1;
}
