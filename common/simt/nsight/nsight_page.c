/* The page of a report: the data that simt's page has, as far as a profiler knows it. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/nsight/nsight.h"
#include "common/simt/page/page.h"

enum { LANES = 32, MOST_RESIDENT = 64, MOST_WAVES = 200 };

/* What JSON cannot say is left out: the page shows nothing there. */
static void print_known(const struct page_field *fields, size_t count, FILE *stream) {
    struct page_field known[40];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(fields[i].value)) {
            known[found++] = fields[i];
        }
    }
    page_print_fields(known, found, stream);
}

#define PRINT_KNOWN(fields, stream) print_known(fields, sizeof(fields) / sizeof *(fields), stream)

static double sum_samples(const struct nsight_line *line) {
    double sum = 0;
    for (size_t s = 0; s < NSIGHT_STALL_COUNT; s++) {
        sum += line->samples[s];
    }
    return sum;
}

static double samples_of(const struct nsight_launch *launch) {
    double sum = 0;
    for (size_t n = 0; n < launch->line_count; n++) {
        sum += sum_samples(&launch->lines[n]);
    }
    return sum;
}

static void print_line(const struct nsight_line *line, double samples, FILE *stream) {
    double stall[NSIGHT_STALL_COUNT];
    const struct page_field fields[] = {
        {"file", (double)line->file},         {"line", line->line},
        {"instructions", line->instructions}, {"lanes", line->lanes},
        {"sectors", line->sectors},           {"least_sectors", line->least_sectors},
        {"wavefronts", line->wavefronts},     {"least_wavefronts", line->least_wavefronts},
    };
    for (size_t s = 0; s < NSIGHT_STALL_COUNT; s++) {
        stall[s] = samples > 0 ? line->samples[s] / samples : 0;
    }
    fputs("{\"of\":", stream);
    PRINT_KNOWN(fields, stream);
    fputs(",\"stall\":", stream);
    page_print_numbers(stall, NSIGHT_STALL_COUNT, stream);
    fputs(",\"accesses\":[]}", stream);
}

/* A kernel without a line table: one line for all of it. */
static void print_no_lines(const struct nsight_launch *launch, FILE *stream) {
    const double none[NSIGHT_STALL_COUNT] = {0};
    const double *m = launch->metrics;
    const struct page_field fields[] = {
        {"file", -1},
        {"line", 0},
        {"instructions", isfinite(m[NSIGHT_INSTRUCTIONS]) ? m[NSIGHT_INSTRUCTIONS] : 1},
        {"lanes", isfinite(m[NSIGHT_LANES]) ? m[NSIGHT_LANES] : 0},
        {"sectors", 0},
        {"wavefronts", 0},
    };
    fputs("{\"of\":", stream);
    PRINT_KNOWN(fields, stream);
    fputs(",\"stall\":", stream);
    page_print_numbers(none, NSIGHT_STALL_COUNT, stream);
    fputs(",\"accesses\":[]}", stream);
}

static void print_lines(const struct nsight_launch *launch, FILE *stream) {
    double samples = samples_of(launch), stall[NSIGHT_STALL_COUNT] = {0};
    for (size_t n = 0; n < launch->line_count; n++) {
        for (size_t s = 0; s < NSIGHT_STALL_COUNT && samples > 0; s++) {
            stall[s] += launch->lines[n].samples[s] / samples;
        }
    }
    fprintf(stream, ",\"tensor\":%s,\"samples\":%.0f,\"stall\":", launch->tensor ? "true" : "false",
            samples);
    page_print_numbers(stall, NSIGHT_STALL_COUNT, stream);
    fputs(",\"lines\":[", stream);
    for (size_t n = 0; n < launch->line_count; n++) {
        fputs(n > 0 ? ",\n" : "\n", stream);
        print_line(&launch->lines[n], samples, stream);
    }
    if (launch->line_count == 0) {
        print_no_lines(launch, stream);
    }
    fputs("]}", stream);
}

static void print_counters(const struct nsight_launch *launch, FILE *stream) {
    const double *m = launch->metrics;
    const struct page_field fields[] = {
        {"warp_instructions", m[NSIGHT_INSTRUCTIONS]},
        {"active_lanes", m[NSIGHT_LANES]},
        {"flops", m[NSIGHT_FADD] + m[NSIGHT_FMUL] + 2 * m[NSIGHT_FFMA]},
        {"global_load_requests", m[NSIGHT_LOAD_REQUESTS]},
        {"global_load_sectors", m[NSIGHT_LOAD_SECTORS]},
        {"global_store_sectors", m[NSIGHT_STORE_SECTORS]},
        {"l1_hit_sectors", m[NSIGHT_LOAD_HITS]},
        {"l2_sectors", m[NSIGHT_L2_SECTORS]},
        {"dram_bytes", m[NSIGHT_DRAM_READ] + m[NSIGHT_DRAM_WRITTEN]},
        {"shared_wavefronts", m[NSIGHT_WAVEFRONTS]},
        {"shared_bank_conflicts", m[NSIGHT_CONFLICTS]},
        {"local_sectors", m[NSIGHT_LOCAL_LOADS] + m[NSIGHT_LOCAL_STORES]},
        {"average_warps", m[NSIGHT_WARPS]},
    };
    fputs(",\"counters\":", stream);
    PRINT_KNOWN(fields, stream);
}

/* A whole number of at least `least`; `otherwise` if it is not known. */
static double count_of(double value, double least, double otherwise) {
    return isfinite(value) && value >= least ? floor(value) : otherwise;
}

static double least_of(const double *values, size_t count) {
    double least = values[0];
    for (size_t i = 1; i < count; i++) {
        least = fmin(least, values[i]);
    }
    return least;
}

/* Multiprocessors with the same number of blocks: when a wave ends, and how many blocks it has; of
 * very many waves the last is drawn with those before it. */
static void print_lane(double count, double blocks, double resident, double wave, FILE *stream) {
    double waves = ceil(blocks / resident), drawn = fmin(waves, MOST_WAVES);
    double last = blocks - (waves - 1) * resident;
    fprintf(stream, "{\"processors\":%.0f,\"blocks\":%.0f,\"ends_ns\":[", count, blocks);
    for (double n = 1; n <= drawn; n++) {
        fprintf(stream, "%s%.6g", n > 1 ? "," : "", (n < drawn ? n : waves) * wave);
    }
    fputs("],\"at_a_time\":[", stream);
    for (double n = 1; n <= drawn; n++) {
        fprintf(stream, "%s%.0f", n > 1 ? "," : "", n < waves ? resident : last);
    }
    fputs("]}", stream);
}

static void print_lanes(double blocks, double processors, double resident, double wave,
                        FILE *stream) {
    double less = floor(blocks / processors), more = fmod(blocks, processors);
    if (more > 0) {
        print_lane(more, less + 1, resident, wave, stream);
    }
    if (less > 0) {
        fputs(more > 0 ? "," : "", stream);
        print_lane(processors - more, less, resident, wave, stream);
    }
}

/* Blocks that are resident, and waves of them, if all blocks take equally long. */
static void print_shape(const struct nsight_launch *launch, double processors, FILE *stream) {
    const double *m = launch->metrics;
    double blocks = (double)launch->grid[0] * launch->grid[1] * launch->grid[2];
    double limits[] = {count_of(m[NSIGHT_BY_BLOCKS], 1, MOST_RESIDENT),
                       count_of(m[NSIGHT_BY_THREADS], 1, INFINITY),
                       count_of(m[NSIGHT_BY_SHARED], 1, INFINITY),
                       count_of(m[NSIGHT_BY_REGISTERS], 1, INFINITY)};
    double fits = fmin(least_of(limits, 4), MOST_RESIDENT), each = ceil(blocks / processors);
    double resident = fmin(fits, each), nanoseconds = 1e9 * m[NSIGHT_TIME];
    const struct page_field fields[] = {
        {"static_shared", count_of(m[NSIGHT_STATIC_SHARED], 0, 0)},
        {"dynamic_shared", count_of(m[NSIGHT_DYNAMIC_SHARED], 0, 0)},
        {"registers", count_of(m[NSIGHT_REGISTERS], 0, 0)},
        {"fits", fits},
        {"by_blocks", limits[0]},
        {"by_threads", isfinite(limits[1]) ? limits[1] : -1},
        {"by_shared", isfinite(limits[2]) ? limits[2] : -1},
        {"by_registers", isfinite(limits[3]) ? limits[3] : -1},
        {"blocks_of_busiest", each},
        {"resident", resident},
        {"ns", nanoseconds},
        {"overhead_ns", 0},
    };
    fprintf(stream, "\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"of\":", launch->grid[0],
            launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2]);
    PRINT_KNOWN(fields, stream);
    fputs(",\"lanes\":[", stream);
    print_lanes(blocks, processors, resident, nanoseconds / ceil(each / resident), stream);
    fputc(']', stream);
}

/* The GPU as this launch found it: its clocks differ from launch to launch. */
static void print_figures(const struct nsight_launch *launch, double processors, FILE *stream) {
    const double *m = launch->metrics;
    const struct page_field fields[] = {
        {"multiprocessors", processors},
        {"clock_ghz", 1e-9 * m[NSIGHT_CLOCK]},
        {"warps", count_of(m[NSIGHT_MOST_WARPS], 1, 64)},
        {"flops_per_s", 2 * m[NSIGHT_FFMA_A_CYCLE] * m[NSIGHT_CLOCK]},
        {"memory_bytes_per_s", m[NSIGHT_DRAM_A_CYCLE] * m[NSIGHT_DRAM_CLOCK]},
        {"l2_bytes_per_s", m[NSIGHT_L2_A_CYCLE] * m[NSIGHT_L2_CLOCK]},
    };
    fputs("\"figures\":", stream);
    PRINT_KNOWN(fields, stream);
}

static double processors_of(const struct nsight_launch *launch) {
    return count_of(launch->metrics[NSIGHT_MULTIPROCESSORS], 1, 1);
}

static void print_launch(const struct nsight_launch *launch, FILE *stream) {
    double processors = processors_of(launch);
    fputs("{\"kernel\":", stream);
    page_print_quoted(launch->kernel, stream);
    fputs(",\"launches\":1,", stream);
    print_shape(launch, processors, stream);
    fputc(',', stream);
    print_figures(launch, processors, stream);
    print_counters(launch, stream);
    print_lines(launch, stream);
}

/* ---- Sources ---- */

/** The export's own texts of a file's lines; NULL where it has none. */
struct texts {
    size_t end; /* behind the last line that has counts */
    const char *line[NSIGHT_MOST_LINE];
};

static size_t end_of(const struct nsight_report *report, size_t file) {
    size_t end = 0;
    for (size_t i = 0; i < report->launch_count; i++) {
        const struct nsight_launch *launch = &report->launches[i];
        for (size_t n = 0; n < launch->line_count; n++) {
            const struct nsight_line *line = &launch->lines[n];
            end = line->file == file && line->line >= end ? (size_t)line->line + 1 : end;
        }
    }
    return end;
}

static void collect(const struct nsight_report *report, size_t file, struct texts *texts,
                    struct page_marks *marks) {
    for (size_t i = 0; i < report->launch_count; i++) {
        const struct nsight_launch *launch = &report->launches[i];
        for (size_t n = 0; n < launch->line_count; n++) {
            const struct nsight_line *line = &launch->lines[n];
            if (line->file == file) {
                texts->line[line->line] = line->text;
                marks->line[line->line] = 1;
            }
        }
    }
}

/* Without the white space at both ends, as the export has it. */
static bool is_line(const char *source, const char *text) {
    static const char white[] = " \t\r\n";
    source += strspn(source, white);
    text += strspn(text, white);
    size_t length = strlen(text);
    return strncmp(source, text, length) == 0 &&
           source[length + strspn(source + length, white)] == '\0';
}

/* Whether a source is still what was profiled, as far as the export can tell. */
static bool agrees(FILE *source, const struct texts *texts) {
    char *line = NULL;
    size_t room = 0;
    bool same = true;
    for (size_t n = 1; n < texts->end && same && getline(&line, &room, source) >= 0; n++) {
        same = texts->line[n] == NULL || is_line(line, texts->line[n]);
    }
    rewind(source);
    free(line);
    return same;
}

/*
 * An export names any file it likes, and the page would show it to whom the page is shown: only
 * sources of the workspace are opened.
 */
static bool may_open(const char *name) {
    static const char *const endings[] = {".cu", ".cuh", ".h", ".c", ".cpp", ".hpp"};
    const char *dot = strrchr(name, '.');
    if (name[0] == '/' || strstr(name, "..") != NULL || dot == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (strcmp(dot, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void print_texts(const char *name, const struct texts *texts, size_t *left, FILE *stream) {
    bool first = true;
    fputs("{\"name\":", stream);
    page_print_quoted(name, stream);
    fputs(",\"lines\":[", stream);
    for (size_t n = 1; n < texts->end; n++) {
        size_t length = texts->line[n] != NULL ? strlen(texts->line[n]) : 0;
        if (texts->line[n] != NULL && length <= *left) {
            fprintf(stream, "%s[%zu,", first ? "" : ",", n);
            page_print_quoted(texts->line[n], stream);
            fputc(']', stream);
            *left -= length;
            first = false;
        }
    }
    fputs("]}", stream);
}

static void print_file(const struct nsight_report *report, size_t file, struct texts *texts,
                       struct page_marks *marks, size_t *left, FILE *stream) {
    const char *name = report->files[file];
    texts->end = end_of(report, file);
    memset(texts->line, 0, texts->end * sizeof *texts->line);
    memset(marks, 0, sizeof *marks);
    collect(report, file, texts, marks);
    FILE *source = may_open(name) ? page_open_source(name) : NULL;
    if (source != NULL && agrees(source, texts)) {
        page_print_source(name, source, marks, left, stream);
    } else {
        print_texts(name, texts, left, stream);
    }
    if (source != NULL) {
        fclose(source);
    }
}

static void print_files(const struct nsight_report *report, FILE *stream) {
    struct texts *texts = malloc(sizeof *texts);
    struct page_marks *marks = malloc(sizeof *marks);
    size_t left = PAGE_MOST_BYTES;
    fputc('[', stream);
    for (size_t i = 0; i < report->file_count && texts != NULL && marks != NULL; i++) {
        fputs(i > 0 ? ",\n" : "", stream);
        print_file(report, i, texts, marks, &left, stream);
    }
    fputc(']', stream);
    free(texts);
    free(marks);
}

/* ---- The page ---- */

void nsight_print_json(const struct nsight_report *report, FILE *stream) {
    static const char *const NAMES[NSIGHT_STALL_COUNT][2] = {
        [NSIGHT_STALL_ISSUE] = {"issue", "issuing, or ready while others issue (selected, not "
                                         "selected)"},
        [NSIGHT_STALL_MATH] = {"math", "arithmetic units busy (math pipe throttle)"},
        [NSIGHT_STALL_L1] = {"L1 and shared",
                             "queues of L1 and shared memory full (LG, MIO and TEX "
                             "throttle)"},
        [NSIGHT_STALL_FETCH] = {"code", "waiting for code or constants (no instruction, IMC miss)"},
        [NSIGHT_STALL_OTHER] = {"other", "stores that drain at the end, memory barriers, dispatch, "
                                         "sleep"},
        [NSIGHT_STALL_LOAD] = {"global memory", "waiting for global or local memory (long "
                                                "scoreboard)"},
        [NSIGHT_STALL_SHARED] = {"shared memory", "waiting for shared memory, shuffles or special "
                                                  "functions (short scoreboard)"},
        [NSIGHT_STALL_FIXED] = {"arithmetic latency", "latency of arithmetic and branches (wait, "
                                                      "branch resolving)"},
        [NSIGHT_STALL_BARRIER] = {"barrier", "waiting at a barrier"},
    };
    fputs("{\"xray\":1,\"measured\":\"Nsight Compute\",\"device\":{\"key\":\"\",\"name\":", stream);
    page_print_quoted(report->gpu, stream);
    fputc(',', stream);
    print_figures(&report->launches[0], processors_of(&report->launches[0]), stream);
    fputs("},\"stalls\":", stream);
    page_print_names(NAMES, NSIGHT_STALL_COUNT, stream);
    fprintf(stream, ",\"most_launches\":%d,\"dropped\":%llu,\n\"files\":", NSIGHT_LAUNCHES,
            (unsigned long long)report->dropped);
    print_files(report, stream);
    fputs(",\n\"launches\":[", stream);
    for (size_t i = 0; i < report->launch_count; i++) {
        fputs(i > 0 ? ",\n" : "", stream);
        print_launch(&report->launches[i], stream);
    }
    fputs("]}\n", stream);
}

static void print_data(const void *argument, FILE *stream) {
    nsight_print_json(argument, stream);
}

enum status nsight_write(const struct nsight_report *report, const char *path,
                         struct error *error) {
    return page_write(print_data, report, path, error);
}
