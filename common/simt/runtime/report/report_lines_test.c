/* The ranking of source lines: sums, order, ties, the text of a line. */
#include "common/simt/runtime/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/simt/ptx/ptx.h"
#include "common/testing/fixture.h"
#include "common/testing/testing.h"

enum { SITES = 9 };

/** A module with two files, and one memory instruction a line. */
struct sample {
    char *files[3];
    struct ptx_module module;
    struct ptx_instruction instructions[SITES];
    struct simt_site list[SITES];
    struct simt_sites sites;
    struct report_line *lines;
    char *text; /* what was printed */
    size_t size;
};

static char absent_file[] = "no/such/file.cu";

static bool sample_init(struct sample *s) {
    *s = (struct sample){.files = {NULL, absent_file, absent_file}};
    s->module = (struct ptx_module){.files = s->files, .file_count = 3};
    for (uint32_t i = 0; i < SITES; i++) {
        s->instructions[i].file = 2;
        s->instructions[i].line = 100 + i;
        s->list[i].source = &s->instructions[i];
    }
    s->sites = (struct simt_sites){.sites = s->list, .count = SITES, .module = &s->module};
    return true;
}

static void sample_print(struct sample *s, bool json) {
    FILE *stream = open_memstream(&s->text, &s->size);
    if (stream == NULL) {
        TEST_FAIL("no memory for the text");
        return;
    }
    if (json) {
        report_lines_print_json(s->lines, stream);
    } else {
        report_lines_print(s->lines, stream);
    }
    fclose(stream);
}

static void sample_free(struct sample *s) {
    report_lines_free(s->lines);
    free(s->text);
}

static void set_sectors(struct sample *s, int site, uint64_t requests, uint64_t sectors,
                        uint64_t least) {
    s->list[site].requests = requests;
    s->list[site].sectors = sectors;
    s->list[site].least_sectors = least;
}

/* Place of `part` in the text; -1: not there. */
static long place(const struct sample *s, const char *part) {
    const char *found = strstr(s->text, part);
    return found != NULL ? found - s->text : -1;
}

/** A test of the sample @p s, which is new. */
#define LINES_TEST(name) \
    FIXTURE_TEST(report_lines, name, struct sample, s, sample_init(s), sample_free(s))

LINES_TEST(rank_by_what_is_too_much) {
    set_sectors(s, 0, 10, 40, 40);
    set_sectors(s, 1, 10, 80, 40);
    set_sectors(s, 2, 10, 320, 40);
    report_lines_add(&s->lines, &s->sites);
    sample_print(s, false);
    EXPECT_STR_EQ("    uncoalesced: lines that move more sectors than their bytes need\n"
                  "      no/such/file.cu:102: 320 sectors, 40 would do (32.0 and 4.0 a request)\n"
                  "      no/such/file.cu:101: 80 sectors, 40 would do (8.0 and 4.0 a request)\n",
                  s->text);
}

LINES_TEST(sum_launches_and_instructions_of_a_line) {
    s->instructions[1].line = s->instructions[0].line;
    set_sectors(s, 0, 1, 32, 4);
    set_sectors(s, 1, 1, 16, 4);
    report_lines_add(&s->lines, &s->sites);
    report_lines_add(&s->lines, &s->sites);
    sample_print(s, true);
    EXPECT_STR_EQ("[{\"file\":\"no/such/file.cu\",\"line\":100,\"requests\":4,\"lanes\":0,"
                  "\"sectors\":96,\"least_sectors\":16,\"wavefronts\":0,\"least_wavefronts\":0}]",
                  s->text);
}

LINES_TEST(show_the_worst_five_and_keep_ties_in_order) {
    for (int i = 0; i < SITES; i++) {
        set_sectors(s, i, 1, i < 3 ? 8 : 32, 4);
    }
    report_lines_add(&s->lines, &s->sites);
    sample_print(s, false);
    EXPECT_INT_EQ(-1, place(s, ":102:"));
    EXPECT_INT_EQ(-1, place(s, ":108:"));
    for (int i = 3; i < 7; i++) {
        char first[16], second[16];
        snprintf(first, sizeof first, ":%d:", 100 + i);
        snprintf(second, sizeof second, ":%d:", 101 + i);
        EXPECT_TRUE(place(s, first) >= 0 && place(s, first) < place(s, second));
    }
}

LINES_TEST(rank_bank_conflicts_apart) {
    s->list[4].requests = 2;
    s->list[4].wavefronts = 64;
    s->list[4].least_wavefronts = 2;
    report_lines_add(&s->lines, &s->sites);
    sample_print(s, false);
    EXPECT_TRUE(place(s, "bank conflicts") == 4);
    EXPECT_TRUE(place(s, "no/such/file.cu:104: 64 wavefronts, 2 would do (32.0 and 1.0") > 0);
}

LINES_TEST(say_nothing_when_all_is_well) {
    set_sectors(s, 0, 10, 40, 40);
    report_lines_add(&s->lines, &s->sites);
    sample_print(s, false);
    EXPECT_STR_EQ("", s->text);
}

LINES_TEST(show_the_text_where_there_is_one) {
    char path[] = "/tmp/report_lines_XXXXXX";
    int file = mkstemp(path);
    FILE *source = file >= 0 ? fdopen(file, "w") : NULL;
    ASSERT_TRUE(source != NULL);
    fputs("first\n\t  out[i] = in[i * 32];\n", source);
    fclose(source);
    s->files[1] = path;
    s->instructions[0].file = 1;
    s->instructions[0].line = 2;
    s->instructions[1].file = 1;
    s->instructions[1].line = 3; /* behind its end */
    set_sectors(s, 0, 1, 32, 4);
    set_sectors(s, 1, 1, 31, 4);
    report_lines_add(&s->lines, &s->sites);
    sample_print(s, false);
    EXPECT_TRUE(place(s, "a request)\n          out[i] = in[i * 32];\n") > 0);
    EXPECT_TRUE(place(s, ":3: 31 sectors, 4 would do (31.0 and 4.0 a request)\n") > 0);
    remove(path);
}

LINES_TEST(pass_over_what_has_no_line) {
    s->instructions[0].line = 0;
    s->list[1].source = NULL;
    s->instructions[2].file = 7;
    for (int i = 0; i < 3; i++) {
        set_sectors(s, i, 1, 32, 4);
    }
    report_lines_add(&s->lines, &s->sites);
    EXPECT_TRUE(s->lines == NULL);
}
