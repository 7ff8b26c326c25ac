#include "grader/cards/card_records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *card_text(const cJSON *line, const char *name) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, name));
    return value != NULL ? value : "";
}

static bool is_same(const cJSON *a, const cJSON *b, const char *name) {
    return strcmp(card_text(a, name), card_text(b, name)) == 0;
}

static void note_card(struct card_records *r, const char *card) {
    for (size_t i = 0; i < r->card_count; i++) {
        if (strcmp(r->cards[i], card) == 0) {
            return;
        }
    }
    if (r->card_count < MOST_CARDS) {
        r->cards[r->card_count++] = card;
    }
}

/* @return whether each line is a record */
static bool read_lines(struct card_records *r, FILE *file) {
    char *line = NULL;
    size_t size = 0;
    bool right = true;
    while (right && r->count < MOST_RECORDS && getline(&line, &size, file) > 0) {
        r->lines[r->count] = cJSON_Parse(line);
        right = card_text(r->lines[r->count], "lab")[0] != '\0';
        if (right) {
            note_card(r, card_text(r->lines[r->count++], "card"));
        }
    }
    right = right && (r->count < MOST_RECORDS || feof(file));
    free(line);
    return right;
}

enum status card_records_read(struct card_records **records, const char *path,
                              struct error *error) {
    struct card_records *r = calloc(1, sizeof *r);
    FILE *file = fopen(path, "r");
    enum status status = STATUS_OK;
    *records = NULL;
    if (r == NULL || file == NULL) {
        status = error_set(error, r == NULL ? STATUS_OUT_OF_MEMORY : STATUS_IO, "%s: %s", path,
                           r == NULL ? "out of memory" : "cannot be opened");
    } else if (!read_lines(r, file)) {
        status =
            error_set(error, STATUS_BAD_FORMAT, "%s: line %zu is no record", path, r->count + 1);
    }
    if (file != NULL) {
        fclose(file);
    }
    if (status != STATUS_OK) {
        card_records_free(r);
        return status;
    }
    *records = r;
    return STATUS_OK;
}

double card_number(const cJSON *line, const char *name) {
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(line, name));
}

bool card_is_timed(const cJSON *line) {
    return threshold_find(card_text(line, "lab"), card_text(line, "measure")) != NULL;
}

bool card_is_modelled(const cJSON *line) {
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(line, "device");
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(device, "modelled"));
}

/* What the table asks of the line's measure. */
static struct steps steps_of(const cJSON *line) {
    return threshold_shares(threshold_find(card_text(line, "lab"), card_text(line, "measure")),
                            card_is_modelled(line));
}

double card_share(const cJSON *line) {
    double share = card_number(line, "share");
    return isnan(share) ? INFINITY : share;
}

enum step card_step(const cJSON *line) {
    const struct steps steps = steps_of(line);
    return card_number(line, "speedup") < 1.0 ? STEP_NONE
                                              : threshold_step(&steps, card_share(line));
}

double card_share_of_pass(const cJSON *line) {
    return card_share(line) / steps_of(line).pass;
}

double card_speedup_of_pass(const cJSON *line) {
    double allowed =
        card_number(line, "fixed_ms") + card_number(line, "ideal_ms") / steps_of(line).pass;
    double needed = fmax(1.0, card_number(line, "baseline_ms") / allowed);
    return card_number(line, "speedup") / needed;
}

static bool is_same_row(const cJSON *a, const cJSON *b) {
    return is_same(a, b, "lab") && is_same(a, b, "test") && is_same(a, b, "subject");
}

const cJSON *card_in_row(const struct card_records *r, const cJSON *first, const char *card) {
    for (size_t i = 0; i < r->count; i++) {
        const cJSON *line = r->lines[i];
        if (strcmp(card_text(line, "card"), card) == 0 && is_same_row(line, first)) {
            return line;
        }
    }
    return NULL;
}

int card_steps_apart(const struct card_records *r, const cJSON *first) {
    enum step least = STEP_GOLD, most = STEP_NONE;
    for (size_t i = 0; i < r->card_count; i++) {
        const cJSON *line = card_in_row(r, first, r->cards[i]);
        if (line != NULL && card_is_timed(line)) {
            enum step step = card_step(line);
            least = step < least ? step : least;
            most = step > most ? step : most;
        }
    }
    return most > least ? (int)most - (int)least : 0;
}

bool card_opens_row(const struct card_records *r, size_t i) {
    for (size_t before = 0; before < i; before++) {
        if (is_same_row(r->lines[before], r->lines[i])) {
            return false;
        }
    }
    return true;
}

void card_records_free(struct card_records *r) {
    if (r == NULL) {
        return;
    }
    for (size_t i = 0; i < r->count; i++) {
        cJSON_Delete(r->lines[i]);
    }
    free(r);
}

const char *card_step_name(enum step step) {
    static const char *const names[] = {
        [STEP_NONE] = "none", [STEP_PASS] = "pass", [STEP_GOOD] = "good", [STEP_GOLD] = "gold"};
    return names[step];
}
