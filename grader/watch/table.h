/**
 * @file table.h
 * @brief The tables that a bench prints, and what has changed in them since the last run.
 */
#ifndef WARPBOOK_GRADER_WATCH_TABLE_H_
#define WARPBOOK_GRADER_WATCH_TABLE_H_

#include <stddef.h>

#include "grader/watch/lines.h"

enum { MOST_TABLES = 12, MOST_ROWS_OF_TABLE = 16 };

/** One table: all steps on one shape. */
struct bench_table {
    char title[LINE_BYTES], head[LINE_BYTES];
    size_t count;
    struct bench_row {
        char name[64];
        char text[LINE_BYTES]; /**< the row */
        char why[2][LINE_BYTES];
        double ms; /**< 0: it has no time */
    } rows[MOST_ROWS_OF_TABLE];
};

/** All tables of a run. */
struct bench_tables {
    size_t count;
    struct bench_table list[MOST_TABLES];
};

/** Reads the tables that a bench printed; what is no table is passed over. */
void bench_tables_read(const char *text, struct bench_tables *tables);

/**
 * @brief Writes the tables that changed, or the first one: rows that changed since @p last stand
 * out, with the earlier row below them and why they are not faster.
 * @param last the same bench's tables before, or none
 */
void bench_tables_show(const struct bench_tables *tables, const struct bench_tables *last,
                       struct lines *shown);

#endif
