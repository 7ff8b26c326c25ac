/* What is found in logs, what a table shows, where lines are folded. */
#include <stdlib.h>
#include <string.h>

#include "common/testing/testing.h"
#include "grader/watch/events.h"
#include "grader/watch/log.h"
#include "grader/watch/page.h"
#include "grader/watch/steps.h"
#include "grader/watch/table.h"

/* Large: not on the stack. */
static struct lines *lines_create(void) {
    return calloc(1, sizeof(struct lines));
}

static void expect_line(const char *want, const struct lines *lines, size_t i) {
    EXPECT_TRUE(i < lines->count);
    EXPECT_STR_EQ(want, i < lines->count ? lines->list[i].text : "");
}

C_TEST(log, nvcc_errors_have_file_and_line_first) {
    struct lines *found = lines_create();
    log_build_errors("INFO: Analyzed target\n"
                     "labs/04_sgemm/sgemm.cu(12): warning #177-D: unused\n"
                     "labs/04_sgemm/sgemm.cu(42): error: expected a \";\"\n"
                     "      int i\n"
                     "          ^\n"
                     "\n"
                     "labs/04_sgemm/sgemm.cu(50): error: identifier \"j\" is undefined\n"
                     "2 errors detected\n",
                     found);
    expect_line("labs/04_sgemm/sgemm.cu:42: error: expected a \";\"", found, 0);
    expect_line("      int i", found, 1);
    expect_line("          ^", found, 2);
    expect_line("and 1 more error", found, 3);
    EXPECT_INT_EQ(4, found->count);
    free(found);
}

C_TEST(log, other_tools_errors_are_found) {
    struct lines *found = lines_create();
    log_build_errors("labs/01_cpu_matmul/matmul.c:7:5: error: unknown type name 'flaot'\n"
                     "    7 |     flaot x;\n",
                     found);
    expect_line("labs/01_cpu_matmul/matmul.c:7: error: unknown type name 'flaot'", found, 0);
    expect_line("    7 |     flaot x;", found, 1);
    log_build_errors("/usr/bin/ld: a.o: in function `f':\na.c:(.text+0x5): undefined reference to "
                     "`g'\ncollect2: error: ld returned 1 exit status\n",
                     found);
    expect_line("a.c:(.text+0x5): undefined reference to `g'", found, 0);
    log_build_errors("ptxas fatal   : error: too much shared data\n", found);
    expect_line("ptxas fatal   : error: too much shared data", found, 0);
    log_build_errors("Loading:\nERROR: no such target '//grader:99_parity'\n", found);
    expect_line("ERROR: no such target '//grader:99_parity'", found, 0);
    log_build_errors("", found);
    EXPECT_INT_EQ(0, found->count);
    free(found);
}

C_TEST(log, summary_of_the_program_is_taken) {
    struct lines *found = lines_create();
    struct grade grade = {.test = "odd", .verdict = VERDICT_FAIL, .message = "not shown"};
    const struct program program = {
        .ending = ENDING_EXIT, .code = 1, .complete = true, .grades = &grade, .count = 1};
    log_failure("[ RUN      ] x\nsummary: 3 of 18 failed\n  last passed 64x64x64\n  first failed "
                "65x64x64\n\nmore\n",
                &program, found);
    expect_line("summary: 3 of 18 failed", found, 0);
    expect_line("  first failed 65x64x64", found, 2);
    EXPECT_INT_EQ(3, found->count);
    free(found);
}

C_TEST(log, first_red_test_is_told_with_the_one_before) {
    struct lines *found = lines_create();
    struct grade grades[] = {{.test = "small", .verdict = VERDICT_PASS},
                             {.test = "odd", .verdict = VERDICT_FAIL, .message = "one\ntwo"},
                             {.test = "large", .verdict = VERDICT_FAIL, .message = "three"}};
    const struct program program = {
        .ending = ENDING_EXIT, .code = 1, .complete = true, .grades = grades, .count = 3};
    log_failure("[ RUN ]\nyour code wrote to standard error:\n  | out of bounds: thread (1,0,0)\n"
                "  |   in kernel tile at sgemm.cu:12\nnext\n",
                &program, found);
    expect_line("out of bounds: thread (1,0,0)", found, 0);
    expect_line("  in kernel tile at sgemm.cu:12", found, 1);
    expect_line("last passed:  small", found, 2);
    expect_line("first failed: odd", found, 3);
    expect_line("  one", found, 4);
    expect_line("  two", found, 5);
    EXPECT_INT_EQ(6, found->count);
    free(found);
}

C_TEST(log, crash_without_any_test_is_told) {
    struct lines *found = lines_create();
    const struct program program = {.ending = ENDING_SIGNAL, .code = 11};
    log_failure("", &program, found);
    EXPECT_STR_CONTAINS("signal 11", found->count > 0 ? found->list[0].text : "");
    free(found);
}

static const char TABLE[] = "labs: modelled\n"
                            "\n"
                            "M 256, modelled\n"
                            "  step            ms   GFLOP/s\n"
                            "  v1_naive    0.1000     335.5\n"
                            "  v2_tile     0.0500     671.0\n"
                            "    why: 64 blocks\n"
                            "         more blocks\n"
                            "  v3_lost     left out: a call would take about 9 s\n"
                            "\n"
                            "M 512; the peer: 1 ms\n"
                            "  step            ms\n"
                            "  v1_naive    9.0000\n";

C_TEST(table, all_are_read) {
    static struct bench_tables tables;
    bench_tables_read(TABLE, &tables);
    ASSERT_TRUE(tables.count == 2);
    const struct bench_table *table = &tables.list[0];
    EXPECT_STR_EQ("M 256, modelled", table->title);
    EXPECT_INT_EQ(3, table->count);
    EXPECT_STR_EQ("v2_tile", table->rows[1].name);
    EXPECT_NEAR(0.05, table->rows[1].ms, 1e-9);
    EXPECT_STR_EQ("    why: 64 blocks", table->rows[1].why[0]);
    EXPECT_STR_EQ("         more blocks", table->rows[1].why[1]);
    EXPECT_NEAR(0.0, table->rows[2].ms, 0.0);
    EXPECT_STR_EQ("M 512; the peer: 1 ms", tables.list[1].title);
    EXPECT_NEAR(9.0, tables.list[1].rows[0].ms, 1e-9);
    bench_tables_read("bench: no GPU\n", &tables);
    EXPECT_INT_EQ(0, tables.count);
    bench_tables_read("  step ms", &tables);
    EXPECT_INT_EQ(0, tables.count);
}

C_TEST(table, changed_rows_stand_beside_the_old_ones) {
    static struct bench_tables tables, last;
    struct lines *shown = lines_create();
    struct bench_row *row = &tables.list[0].rows[1];
    bench_tables_read(TABLE, &last);
    bench_tables_read(TABLE, &tables);
    bench_tables_show(&tables, &last, shown);
    EXPECT_INT_EQ(2 + 3 + 1, shown->count); /* nothing changed: the last row has no why */
    expect_line("1 other table: nothing has changed", shown, 5);
    row->ms = 0.025;
    strcpy(row->text, "  v2_tile     0.0250    1342.0");
    bench_tables_show(&tables, &last, shown);
    expect_line("  v2_tile     0.0250    1342.0", shown, 3);
    expect_line("  v2_tile     0.0500     671.0  before", shown, 4);
    expect_line("    v2_tile: 2.00x faster than before", shown, 5);
    expect_line("    why: 64 blocks", shown, 6);
    last.list[0].rows[1].ms = 0.0245; /* measured times vary by that */
    bench_tables_show(&tables, &last, shown);
    EXPECT_INT_EQ(2 + 3 + 1, shown->count);
    last.list[0].count = 1; /* v2 is new */
    bench_tables_show(&tables, &last, shown);
    expect_line("  v2_tile     0.0250    1342.0  new", shown, 3);
    free(shown);
}

/* Only the second one changed: its title has another time of the peer. */
C_TEST(table, unchanged_tables_are_left_out) {
    static struct bench_tables tables, last;
    struct lines *shown = lines_create();
    bench_tables_read(TABLE, &last);
    bench_tables_read(TABLE, &tables);
    strcpy(tables.list[1].title, "M 512; the peer: 2 ms");
    tables.list[1].rows[0].ms = 18.0;
    bench_tables_show(&tables, &last, shown);
    expect_line("M 512; the peer: 2 ms", shown, 0);
    expect_line("    v1_naive: 2.00x slower than before", shown, 4);
    expect_line("1 other table: nothing has changed", shown, 5);
    last.count = 0;
    bench_tables_show(&tables, &last, shown);
    expect_line("M 256, modelled", shown, 0);
    expect_line("1 other table", shown, 5);
    free(shown);
}

C_TEST(page, folds_at_blanks_and_never_in_a_character) {
    EXPECT_INT_EQ(5, page_fold("short", 20));
    EXPECT_INT_EQ(9, page_fold("one word and", 11));   /* "one word " */
    EXPECT_INT_EQ(10, page_fold("0123456789abc", 10)); /* no blank */
    EXPECT_INT_EQ(4, page_fold("\xc3\xa4\xc3\xb6\xc3\xbc", 2));
    EXPECT_INT_EQ(0, page_fold("", 10));
}

C_TEST(page, scrolls_within_the_lines) {
    struct lines *lines = lines_create();
    struct page page = {.rows = 12, .columns = 40};
    for (int i = 0; i < 30; i++) {
        lines_add(lines, LINE_PLAIN, "line %d", i);
    }
    page_scroll(&page, lines, -1);
    EXPECT_INT_EQ(0, page.top);
    page_scroll(&page, lines, 5);
    EXPECT_INT_EQ(5, page.top);
    page_scroll(&page, lines, 100);
    EXPECT_INT_EQ(20, page.top); /* 30 lines, room for 10 */
    page.rows = 42;
    page_scroll(&page, lines, 0);
    EXPECT_INT_EQ(0, page.top);
    free(lines);
}

C_TEST(lines, are_cleaned_and_limited) {
    struct lines *lines = lines_create();
    for (int i = 0; i < MOST_LINES + 5; i++) {
        lines_add(lines, LINE_BAD, "a\033[31mb\n%d", i);
    }
    EXPECT_INT_EQ(MOST_LINES, lines->count);
    expect_line("a?[31mb 0", lines, 0);
    lines_append(lines, lines);
    EXPECT_INT_EQ(MOST_LINES, lines->count);
    free(lines);
}

C_TEST(events, editors_files_are_no_sources) {
    static const char *const sources[] = {"sgemm.cu", "matmul.c", "tile.cuh", "x.h"};
    static const char *const others[] = {"README.md",  ".sgemm.cu.swp", "sgemm.cu~", "4913",
                                         ".#sgemm.cu", "sgemm.cu.bak",  "cu"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        EXPECT_TRUE(events_is_source(sources[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        EXPECT_TRUE(!events_is_source(others[i]));
    }
}

C_TEST(steps, command_lines) {
    static struct watch_command command;
    struct watch_setup setup = {.workspace = "/w",
                                .folder = "/w/results/watch",
                                .subject = "solutions",
                                .bazel = "bazel  --output_base=/b ",
                                .config = "simt"};
    const struct lab *lab = lab_at(3);
    ASSERT_TRUE(watch_command(&command, &setup, lab, WATCH_BUILD));
    EXPECT_STR_EQ("bazel", command.arguments[0]);
    EXPECT_STR_EQ("--output_base=/b", command.arguments[1]);
    EXPECT_STR_EQ("build", command.arguments[2]);
    EXPECT_STR_EQ("--config=solutions", command.arguments[7]);
    EXPECT_STR_EQ("--config=simt", command.arguments[8]);
    EXPECT_STR_EQ("//grader:04_sgemm_speedup", command.arguments[10]);
    EXPECT_TRUE(command.arguments[11] == NULL && command.grades[0] == '\0');
    ASSERT_TRUE(watch_command(&command, &setup, lab, WATCH_PARITY));
    EXPECT_STR_EQ("/w/bazel-bin/grader/04_sgemm_parity", command.arguments[0]);
    EXPECT_STR_EQ("/w/results/watch/parity.jsonl", command.grades);
    EXPECT_STR_EQ("/w/results/watch/parity.log", command.log);
    ASSERT_TRUE(watch_command(&command, &setup, lab, WATCH_BENCH));
    EXPECT_STR_EQ("/w/bazel-bin/solutions/04_sgemm/bench", command.arguments[0]);
    setup.bazel = "b b b b b b b b b b b b b b b b b b b b b b b b b b b b";
    EXPECT_TRUE(!watch_command(&command, &setup, lab, WATCH_BUILD));
}
