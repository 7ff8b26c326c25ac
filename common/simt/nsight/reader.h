/**
 * @file reader.h
 * @brief Lines and fields of an export; the two pages' readers.
 */
#ifndef WARPBOOK_COMMON_SIMT_NSIGHT_READER_H_
#define WARPBOOK_COMMON_SIMT_NSIGHT_READER_H_

#include <stdbool.h>

#include "common/simt/nsight/nsight.h"

enum { READER_COLUMNS = 8192 };

/** Where a reader is; one for each export. */
struct reader {
    struct nsight_report *report;
    const char *name;
    char *at, *end; /**< what is still to be read */
    size_t line;    /**< number of the last line that was read */
    char *fields[READER_COLUMNS];
    /* raw page */
    int metric[READER_COLUMNS]; /**< enum nsight_metric of a column; -1: another */
    double scale[READER_COLUMNS];
    size_t raw_columns, kernel, block, grid, gpu;
    size_t first; /**< launch of this export */
    /* source page */
    size_t source_columns;
    int column[READER_COLUMNS]; /**< enum reader_column of a column; -1: another */
    size_t launch;              /**< that the section belongs to; SIZE_MAX: to none */
    size_t file;                /**< the section's */
    char *path;
    bool begun; /**< a section has been found for the launch */
};

/** What is read of a row of the source page, apart from the samples, which follow. */
enum reader_column {
    COLUMN_INSTRUCTIONS,
    COLUMN_LANES,
    COLUMN_SECTORS,
    COLUMN_LEAST_SECTORS,
    COLUMN_WAVEFRONTS,
    COLUMN_LEAST_WAVEFRONTS,
    COLUMN_STALLS /**< + enum nsight_stall */
};

/** @return the next line, without its end; NULL: there is none. */
char *reader_line(struct reader *reader);

/** Records what is wrong with the line that was read last. */
enum status reader_wrong(const struct reader *reader, struct error *error, const char *what)
    __attribute__((cold));

/**
 * @brief Splits `"a","b","c"` in place; a field may hold a comma, and a quote that no comma
 * follows.
 * @return how many fields; 0: the line is not of this form, or has more than READER_COLUMNS
 */
size_t reader_split(struct reader *reader, char *line);

/** @return the number with its thousands separators; NAN: it is none, or above 1e18. */
double reader_number(char *text);

/** Column names, units and rows of the raw page, from its first line on. */
MUST_CHECK enum status reader_raw(struct reader *reader, char *header, struct error *error);

/** "File Path", "Function Name", column names or a row of the source page. */
MUST_CHECK enum status reader_source(struct reader *reader, char *line, struct error *error);

#endif
