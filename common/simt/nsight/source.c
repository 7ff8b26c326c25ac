/*
 * The source page: for each launch and file a section of "File Path", "Function Name", names of
 * columns, and rows. A row with a number in front is a source line with the sums of its
 * instructions; those without one are the instructions.
 *
 * The text of a line stands there as it is, quotes and all, so a row is taken apart from its end.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/simt/nsight/reader.h"

/* In front of the metrics: number, text, address, instruction. */
enum { FIXED_COLUMNS = 4 };

static const struct {
    const char *name;
    int column;
} COLUMNS[] = {
    {"Instructions Executed", COLUMN_INSTRUCTIONS},
    {"Thread Instructions Executed", COLUMN_LANES},
    {"L2 Theoretical Sectors Global", COLUMN_SECTORS},
    {"L2 Theoretical Sectors Global Ideal", COLUMN_LEAST_SECTORS},
    {"L1 Wavefronts Shared", COLUMN_WAVEFRONTS},
    {"L1 Wavefronts Shared Ideal", COLUMN_LEAST_WAVEFRONTS},
    {"stall_selected", COLUMN_STALLS + NSIGHT_STALL_ISSUE},
    {"stall_not_selected", COLUMN_STALLS + NSIGHT_STALL_ISSUE},
    {"stall_math", COLUMN_STALLS + NSIGHT_STALL_MATH},
    {"stall_gmma", COLUMN_STALLS + NSIGHT_STALL_MATH},
    {"stall_warpgroup_arrive", COLUMN_STALLS + NSIGHT_STALL_MATH},
    {"stall_lg", COLUMN_STALLS + NSIGHT_STALL_L1},
    {"stall_mio", COLUMN_STALLS + NSIGHT_STALL_L1},
    {"stall_tex", COLUMN_STALLS + NSIGHT_STALL_L1},
    {"stall_no_inst", COLUMN_STALLS + NSIGHT_STALL_FETCH},
    {"stall_imc", COLUMN_STALLS + NSIGHT_STALL_FETCH},
    {"stall_drain", COLUMN_STALLS + NSIGHT_STALL_OTHER},
    {"stall_dispatch", COLUMN_STALLS + NSIGHT_STALL_OTHER},
    {"stall_membar", COLUMN_STALLS + NSIGHT_STALL_OTHER},
    {"stall_misc", COLUMN_STALLS + NSIGHT_STALL_OTHER},
    {"stall_sleep", COLUMN_STALLS + NSIGHT_STALL_OTHER},
    {"stall_long_sb", COLUMN_STALLS + NSIGHT_STALL_LOAD},
    {"stall_short_sb", COLUMN_STALLS + NSIGHT_STALL_SHARED},
    {"stall_wait", COLUMN_STALLS + NSIGHT_STALL_FIXED},
    {"stall_branch_resolving", COLUMN_STALLS + NSIGHT_STALL_FIXED},
    {"stall_barrier", COLUMN_STALLS + NSIGHT_STALL_BARRIER},
};

static int column_of(const char *name) {
    for (size_t i = 0; i < sizeof COLUMNS / sizeof *COLUMNS; i++) {
        if (strcmp(COLUMNS[i].name, name) == 0) {
            return COLUMNS[i].column;
        }
    }
    return -1;
}

/* "void tile<4>(float*)" and "tile<(int)4>(float *)" are one kernel: compared to < or (. */
static bool same_kernel(const char *a, const char *b) {
    const char *skip = "void ";
    a += strncmp(a, skip, strlen(skip)) == 0 ? strlen(skip) : 0;
    b += strncmp(b, skip, strlen(skip)) == 0 ? strlen(skip) : 0;
    size_t length = strcspn(a, "<(");
    return length == strcspn(b, "<(") && memcmp(a, b, length) == 0;
}

static bool has_file(const struct nsight_launch *launch, size_t file) {
    for (size_t n = 0; n < launch->line_count; n++) {
        if (launch->lines[n].file == file) {
            return true;
        }
    }
    return false;
}

/* Sections come in the order of launches; one without source lines has none. */
static void find_launch(struct reader *r, const char *function) {
    const struct nsight_report *report = r->report;
    bool goes_on = r->begun && r->launch < report->launch_count &&
                   same_kernel(report->launches[r->launch].kernel, function) &&
                   !has_file(&report->launches[r->launch], r->file);
    if (goes_on) {
        return;
    }
    size_t next = r->launch + (r->begun && r->launch < report->launch_count);
    while (next < report->launch_count && !same_kernel(report->launches[next].kernel, function)) {
        next++;
    }
    /* A function that is no kernel: the last launch called it. */
    bool called = next == report->launch_count && r->begun && report->dropped == 0;
    r->launch = called ? r->launch : next;
    r->begun = true;
}

/* The name behind the folder that Bazel compiled in: a path of the workspace. */
static const char *in_workspace(const char *path) {
    const char *root = strstr(path, "/execroot/");
    const char *name = root != NULL ? strchr(root + strlen("/execroot/"), '/') : NULL;
    return name != NULL ? name + 1 : path;
}

static enum status find_file(struct reader *r, struct error *error) {
    struct nsight_report *report = r->report;
    const char *name = in_workspace(r->path);
    for (r->file = 0; r->file < report->file_count; r->file++) {
        if (strcmp(report->files[r->file], name) == 0) {
            return STATUS_OK;
        }
    }
    if (report->file_count == NSIGHT_FILES) {
        return error_set(error, STATUS_TOO_LONG, "%s:%zu: more than %d source files", r->name,
                         r->line, NSIGHT_FILES);
    }
    if (!array_grow(&report->files, &report->file_capacity, report->file_count + 1,
                    sizeof *report->files) ||
        (report->files[report->file_count] = strdup(name)) == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", r->name);
    }
    report->file_count++;
    return STATUS_OK;
}

static enum status read_names(struct reader *r, char *line, struct error *error) {
    size_t found = 0;
    r->source_columns = reader_split(r, line);
    for (size_t i = 0; i < r->source_columns; i++) {
        r->column[i] = i < FIXED_COLUMNS ? -1 : column_of(r->fields[i]);
        found += r->column[i] == COLUMN_INSTRUCTIONS || r->column[i] == COLUMN_LANES;
    }
    if (r->source_columns <= FIXED_COLUMNS || found != 2) {
        return reader_wrong(r, error,
                            "no columns of source lines: export with --print-source cuda,sass, and "
                            "profile with --section SourceCounters");
    }
    return STATUS_OK;
}

/* Puts the last `count` fields of a row into r->fields; what is in front of them is cut off there.
 */
static bool split_from_end(struct reader *r, char *row, size_t count) {
    char *end = row + strlen(row);
    if (end - row < 2 || end[-1] != '"') {
        return false;
    }
    *--end = '\0';
    while (count > 0) {
        char *at = end - 1;
        while (at - 2 >= row && !(at[0] == '"' && at[-1] == ',' && at[-2] == '"')) {
            at--;
        }
        if (at - 2 < row) {
            return false;
        }
        r->fields[--count] = at + 1;
        at[-2] = '\0';
        end = at - 2;
    }
    return true;
}

static void add_value(struct nsight_line *line, int column, double value) {
    double *const to[] = {[COLUMN_INSTRUCTIONS] = &line->instructions,
                          [COLUMN_LANES] = &line->lanes,
                          [COLUMN_SECTORS] = &line->sectors,
                          [COLUMN_LEAST_SECTORS] = &line->least_sectors,
                          [COLUMN_WAVEFRONTS] = &line->wavefronts,
                          [COLUMN_LEAST_WAVEFRONTS] = &line->least_wavefronts};
    if (column >= COLUMN_STALLS) {
        line->samples[column - COLUMN_STALLS] += value;
    } else {
        *to[column] += value;
    }
}

static enum status add_line(struct reader *r, struct nsight_line line, const char *text,
                            struct error *error) {
    struct nsight_launch *launch = &r->report->launches[r->launch];
    if (r->report->line_count == NSIGHT_LINES) {
        return error_set(error, STATUS_TOO_LONG, "%s:%zu: more than %d lines with counts", r->name,
                         r->line, NSIGHT_LINES);
    }
    if (strncmp(text, "<Unable to open", strlen("<Unable to open")) != 0) {
        line.text = strdup(text);
    }
    if (!array_grow(&launch->lines, &launch->line_capacity, launch->line_count + 1, sizeof line)) {
        free(line.text);
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: out of memory", r->name);
    }
    launch->lines[launch->line_count++] = line;
    r->report->line_count++;
    return STATUS_OK;
}

/* HMMA, HGMMA, IMMA, DMMA ...; HFMA2.MMA is an fp16 multiply-add. */
static bool is_tensor(const char *instruction) {
    const char *opcode = instruction + strspn(instruction, " ");
    if (opcode[0] == '@') { /* its predicate */
        opcode += strcspn(opcode, " ");
        opcode += strspn(opcode, " ");
    }
    size_t length = strcspn(opcode, ". ");
    return length >= 4 && strncmp(opcode + length - 3, "MMA", 3) == 0;
}

/* "","","0x7f10","      HMMA.16816.F32 R4, ...","1056",...; of all rows only these are looked at.
 */
static enum status read_instruction(struct reader *r, char *row, struct error *error) {
    if (strstr(row, "MMA") == NULL || r->launch == r->report->launch_count) {
        return STATUS_OK;
    }
    if (reader_split(r, row) != r->source_columns) {
        return reader_wrong(r, error, "the row has not as many columns as its section");
    }
    for (size_t i = FIXED_COLUMNS; i < r->source_columns; i++) {
        if (r->column[i] == COLUMN_INSTRUCTIONS && is_tensor(r->fields[FIXED_COLUMNS - 1]) &&
            reader_number(r->fields[i]) > 0) {
            r->report->launches[r->launch].tensor = true;
        }
    }
    return STATUS_OK;
}

/* "41","sum += a[i];","-","-","18",... */
static enum status read_row(struct reader *r, char *row, struct error *error) {
    char *after, *text;
    unsigned long number = strtoul(row + 1, &after, 10);
    if (number == 0 || number >= NSIGHT_MOST_LINE || strncmp(after, "\",\"", 3) != 0) {
        return reader_wrong(r, error, "no number of a source line");
    }
    text = after + 3;
    /* The address and the instruction of such a row are "-". */
    if (!split_from_end(r, text, r->source_columns - 2)) {
        return reader_wrong(r, error, "the row has not as many columns as its section");
    }
    struct nsight_line line = {.file = r->file, .line = (uint32_t)number};
    for (size_t i = FIXED_COLUMNS; i < r->source_columns; i++) {
        double value = r->column[i] >= 0 ? reader_number(r->fields[i - 2]) : NAN;
        if (value >= 0) {
            add_value(&line, r->column[i], value);
        }
    }
    return r->launch < r->report->launch_count ? add_line(r, line, text, error) : STATUS_OK;
}

enum status reader_source(struct reader *r, char *line, struct error *error) {
    static const char path[] = "\"File Path\",\"", function[] = "\"Function Name\",\"";
    if (strncmp(line, path, sizeof path - 1) == 0 && reader_split(r, line) == 2) {
        r->path = r->fields[1];
        r->source_columns = 0;
        return STATUS_OK;
    }
    if (strncmp(line, function, sizeof function - 1) == 0 && r->path != NULL &&
        reader_split(r, line) == 2) {
        TRY(find_file(r, error));
        find_launch(r, r->fields[1]);
        return STATUS_OK;
    }
    if (strncmp(line, "\"Line No\",\"", strlen("\"Line No\",\"")) == 0 && r->path != NULL) {
        return read_names(r, line, error);
    }
    if (r->source_columns > 0 && line[0] == '"' && isdigit((unsigned char)line[1])) {
        return read_row(r, line, error);
    }
    if (r->source_columns > 0 && strncmp(line, "\"\",\"", strlen("\"\",\"")) == 0) {
        return read_instruction(r, line, error);
    }
    return reader_wrong(r, error,
                        "not a line of Nsight Compute's source page as --print-source cuda,sass "
                        "prints it");
}
