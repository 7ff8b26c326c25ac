/**
 * @file board.h
 * @brief What the leaderboard and the tables say of each submission, and how they are written.
 */
#ifndef WARPBOOK_GRADER_CLASS_PAGES_BOARD_H_
#define WARPBOOK_GRADER_CLASS_PAGES_BOARD_H_

#include <stdio.h>

#include "grader/class/collect.h"
#include "grader/class/result.h"
#include "grader/report/score.h"

/** One lab of one submission. */
struct board_lab {
    bool handed_in;
    enum lab_state state;
    int points;
    double speedup; /**< of its kernel over the starter's; 0: none was timed, or it is wrong */
};

/** One submission. */
struct board_entry {
    unsigned number;       /**< of its page: tells nothing of the name where names are hidden */
    char shown[TASK_NAME]; /**< name or alias, for pages */
    bool graded;           /**< the rest is known, and its page is written */
    int points;
    double seconds, overhead_s;
    char gpu[224]; /**< kind, and whether time was modelled */
    struct board_lab labs[LAB_COUNT];
};

struct board {
    const char *output;
    const bool *chosen;          /**< labs, (LAB_COUNT) */
    struct board_entry *entries; /**< beside the collection's tasks */
    size_t count;
    int most; /**< points of all chosen labs */
};

/** How names are shown. */
struct board_names {
    bool hidden;         /**< numbers in their place, in an order of chance */
    const char *aliases; /**< file: a line "NAME,ALIAS" each; or NULL */
    const char *run;     /**< of the output folder: keeps the order the same */
};

/**
 * @brief Finds what is shown of each submission's name.
 * @param board board_free() it, also after a failure
 */
MUST_CHECK enum status board_create(struct board *board, const struct collection *collection,
                                    const bool chosen[LAB_COUNT], const struct board_names *names,
                                    struct error *error);

void board_free(struct board *board);

/** Reads results that have come, writes their pages, then all tables and the leaderboard. */
MUST_CHECK enum status board_show(struct board *board, const struct collection *collection,
                                  struct error *error);

/** "graded", "refused", "not graded" or "waiting". */
const char *board_state(enum task_state state);

void board_write_csv(FILE *out, const struct board *board, const struct collection *collection);
void board_write_json(FILE *out, const struct board *board, const struct collection *collection);
void board_write_html(FILE *out, const struct board *board, const struct collection *collection);

/** The page of one submission. @param result NULL: it has none */
void page_write(FILE *out, const struct board_entry *entry, const struct progress_of *of,
                const struct result *result, const struct run_score *score);

#endif
