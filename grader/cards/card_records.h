/**
 * @file card_records.h
 * @brief What graded speedup tests recorded on several GPUs, and what that is worth.
 *
 * A line is one of grade.jsonl (grader/harness/record.h) with the key of the GPU, "card". What a
 * share is worth comes from the table of thresholds as it is now, not as it was when the record was
 * made.
 */
#ifndef WARPBOOK_GRADER_CARDS_CARD_RECORDS_H_
#define WARPBOOK_GRADER_CARDS_CARD_RECORDS_H_

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "grader/thresholds.h"

enum { MOST_RECORDS = 4096, MOST_CARDS = 16 };

/** Lines of a file, in its order. */
struct card_records {
    cJSON *lines[MOST_RECORDS];
    size_t count;
    const char *cards[MOST_CARDS]; /**< each once, in the order of their first lines */
    size_t card_count;
};

/**
 * @param records receives what card_records_free() frees; NULL on failure
 * @return STATUS_OK; STATUS_BAD_FORMAT with the number of a line that is no record; STATUS_IO,
 *         STATUS_OUT_OF_MEMORY
 */
MUST_CHECK enum status card_records_read(struct card_records **records, const char *path,
                                         struct error *error);

void card_records_free(struct card_records *records);

/** @return a text of the line; "" where there is none. */
const char *card_text(const cJSON *line, const char *name);

/** @return a number of the line; NaN where there is none. */
double card_number(const cJSON *line, const char *name);

/** @return whether the line compares times; a test that counts has no measure. */
bool card_is_timed(const cJSON *line);

/** @return whether simt modelled the line's times. */
bool card_is_modelled(const cJSON *line);

/** @return the share of the limit; infinite where the work took no longer than what the submission
 *          cannot change. */
double card_share(const cJSON *line);

/** @return the step that the line reaches; whoever is slower than the starter reaches none. */
enum step card_step(const cJSON *line);

/** @return "none", "pass", "good", "gold" */
const char *card_step_name(enum step step);

/** @return the share over the one that passes. */
double card_share_of_pass(const cJSON *line);

/** @return the speedup over the one that passes: of the whole time, with what is not the
 *          submission's. */
double card_speedup_of_pass(const cJSON *line);

/** @return whether line @p i is the first of its lab, test and subject. */
bool card_opens_row(const struct card_records *records, size_t i);

/** @return the line of a card with the lab, test and subject of @p first, or NULL. */
const cJSON *card_in_row(const struct card_records *records, const cJSON *first, const char *card);

/** @return how many steps lie between the best card of a row and the worst. */
int card_steps_apart(const struct card_records *records, const cJSON *first);

#endif
