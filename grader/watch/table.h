/**
 * @file table.h
 * @brief The first table that a bench prints, and what has changed in it since the last one.
 */
#ifndef WARPBOOK_GRADER_WATCH_TABLE_H_
#define WARPBOOK_GRADER_WATCH_TABLE_H_

#include <stdbool.h>
#include <stddef.h>

#include "grader/watch/lines.h"

enum { MOST_ROWS_OF_TABLE = 24 };

/** A bench's table. */
struct bench_table {
    char title[LINE_BYTES], head[LINE_BYTES]; /**< "" when there is none */
    size_t count;
    struct bench_row {
        char name[64];
        char text[LINE_BYTES]; /**< the row */
        char why[2][LINE_BYTES];
        double ms; /**< 0: it has no time */
    } rows[MOST_ROWS_OF_TABLE];
};

/** Reads the first table that a bench printed. @return false when there is none */
bool bench_table_read(const char *text, struct bench_table *table);

/**
 * @brief Writes the table: rows that changed since @p last stand out, with the earlier row below
 *        them and why they are not faster.
 * @param last the same bench's table before, or one without rows
 */
void bench_table_show(const struct bench_table *table, const struct bench_table *last,
                      struct lines *shown);

#endif
