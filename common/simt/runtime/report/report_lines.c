#include "common/simt/runtime/report/report.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/page/page.h"
#include "common/simt/ptx/ptx.h"

static struct report_line *line_of(struct report_line **lines, const char *file, uint32_t number) {
    struct report_line **link = lines;
    for (; *link != NULL; link = &(*link)->next) {
        if ((*link)->line == number && strcmp((*link)->file, file) == 0) {
            return *link;
        }
    }
    struct report_line *line = calloc(1, sizeof *line);
    char *name = strdup(file);
    if (line == NULL || name == NULL) {
        free(line);
        free(name);
        return NULL;
    }
    line->file = name;
    line->line = number;
    *link = line;
    return line;
}

void report_lines_add(struct report_line **lines, const struct simt_sites *sites) {
    for (size_t i = 0; i < sites->count; i++) {
        const struct simt_site *site = &sites->sites[i];
        uint32_t number = 0;
        const char *file = site->requests > 0 && site->source != NULL
                               ? ptx_source_line(sites->module, site->source, &number)
                               : NULL;
        struct report_line *line = file != NULL ? line_of(lines, file, number) : NULL;
        if (line != NULL) {
            simt_site_add(&line->sum, site);
        }
    }
}

void report_lines_free(struct report_line *lines) {
    while (lines != NULL) {
        struct report_line *next = lines->next;
        free(lines->file);
        free(lines);
        lines = next;
    }
}

/** What one ranking is about. */
struct ranking {
    const char *title, *unit;
    uint64_t (*took)(const struct simt_site *sum);
    uint64_t (*least)(const struct simt_site *sum);
};

static uint64_t took_sectors(const struct simt_site *sum) {
    return sum->sectors;
}

static uint64_t least_sectors(const struct simt_site *sum) {
    return sum->least_sectors;
}

static uint64_t took_wavefronts(const struct simt_site *sum) {
    return sum->wavefronts;
}

static uint64_t least_wavefronts(const struct simt_site *sum) {
    return sum->least_wavefronts;
}

static const struct ranking RANKINGS[] = {
    {"uncoalesced: lines that move more sectors than their bytes need", "sectors", took_sectors,
     least_sectors},
    {"bank conflicts: lines that keep shared memory busy for longer than their bytes need",
     "wavefronts", took_wavefronts, least_wavefronts},
};

enum { SHOWN = 5 };

static uint64_t excess_of(const struct ranking *ranking, const struct report_line *line) {
    uint64_t took = ranking->took(&line->sum);
    uint64_t least = ranking->least(&line->sum);
    return took > least ? took - least : 0;
}

/** Keeps the SHOWN lines with most excess, most first; equal ones in the order of first sight. */
static size_t rank(const struct ranking *ranking, const struct report_line *lines,
                   const struct report_line *best[SHOWN]) {
    size_t count = 0;
    for (const struct report_line *line = lines; line != NULL; line = line->next) {
        uint64_t excess = excess_of(ranking, line);
        size_t at = count;
        while (at > 0 && excess_of(ranking, best[at - 1]) < excess) {
            at--;
        }
        if (excess == 0 || at == SHOWN) {
            continue;
        }
        count += count < SHOWN;
        memmove(&best[at + 1], &best[at], (count - at - 1) * sizeof best[0]);
        best[at] = line;
    }
    return count;
}

/** Prints the text of a line without its indentation, cut at 90 characters; nothing if there is
 *  none. */
static void print_text(const struct report_line *line, FILE *stream) {
    char text[512];
    FILE *source = page_open_source(line->file);
    bool found = source != NULL;
    for (uint32_t n = 0; n < line->line && found; n++) {
        found = fgets(text, sizeof text, source) != NULL;
    }
    if (source != NULL) {
        fclose(source);
    }
    if (found) {
        const char *start = text + strspn(text, " \t");
        fprintf(stream, "          %.*s\n",
                (int)strcspn(start, "\r\n") < 90 ? (int)strcspn(start, "\r\n") : 90, start);
    }
}

static void print_ranking(const struct ranking *ranking, const struct report_line *lines,
                          FILE *stream) {
    const struct report_line *best[SHOWN];
    size_t count = rank(ranking, lines, best);
    if (count > 0) {
        fprintf(stream, "    %s\n", ranking->title);
    }
    for (size_t i = 0; i < count; i++) {
        const struct simt_site *sum = &best[i]->sum;
        double requests = (double)sum->requests;
        fprintf(stream, "      %s:%u: %llu %s, %llu would do (%.1f and %.1f a request)\n",
                best[i]->file, best[i]->line, (unsigned long long)ranking->took(sum), ranking->unit,
                (unsigned long long)ranking->least(sum), (double)ranking->took(sum) / requests,
                (double)ranking->least(sum) / requests);
        print_text(best[i], stream);
    }
}

void report_lines_print(const struct report_line *lines, FILE *stream) {
    for (size_t i = 0; i < sizeof RANKINGS / sizeof *RANKINGS; i++) {
        print_ranking(&RANKINGS[i], lines, stream);
    }
}

void report_lines_print_json(const struct report_line *lines, FILE *stream) {
    fputc('[', stream);
    for (const struct report_line *line = lines; line != NULL; line = line->next) {
        const struct simt_site *sum = &line->sum;
        fputs("{\"file\":", stream);
        page_print_quoted(line->file, stream);
        fprintf(stream,
                ",\"line\":%u,\"requests\":%llu,\"lanes\":%llu,\"sectors\":%llu,"
                "\"least_sectors\":%llu,\"wavefronts\":%llu,\"least_wavefronts\":%llu}%s",
                line->line, (unsigned long long)sum->requests, (unsigned long long)sum->lanes,
                (unsigned long long)sum->sectors, (unsigned long long)sum->least_sectors,
                (unsigned long long)sum->wavefronts, (unsigned long long)sum->least_wavefronts,
                line->next != NULL ? "," : "");
    }
    fputc(']', stream);
}
