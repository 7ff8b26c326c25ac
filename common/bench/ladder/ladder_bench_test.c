/* The driver with a made-up ladder: its tables, what flags choose, and its exit status. */
#include "common/bench/ladder/ladder_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/testing/testing.h"

/* A problem that no step calculates: what check finds. */
struct problem {
    const char *wrong;
};

static const char *step_name(size_t i) {
    static const char *const names[] = {"v1", "v2", "v3"};
    return i < 3 ? names[i] : NULL;
}

static enum status create(void *problem, const struct ladder_setup *setup,
                          const struct ladder_shape *shape, struct error *error) {
    (void)shape, (void)error;
    ((struct problem *)problem)->wrong = setup->options;
    return STATUS_OK;
}

static void free_problem(void *problem) {
    (void)problem;
}

static enum status run(void *problem, size_t step, size_t rows, device_stream stream,
                       struct error *error) {
    (void)problem, (void)step, (void)rows, (void)stream, (void)error;
    return STATUS_OK;
}

/* v3 is the wrong one. */
static enum status check(void *problem, size_t step, char *wrong, size_t size,
                         struct error *error) {
    const struct problem *p = problem;
    (void)error;
    snprintf(wrong, size, "%s", step == 2 && p->wrong != NULL ? p->wrong : "");
    return STATUS_OK;
}

static enum status own(void *problem, size_t step, double *value, struct error *error) {
    (void)problem, (void)error;
    *value = 100.0 + (double)step;
    return STATUS_OK;
}

static enum status parse_shape(const struct ladder_setup *setup, struct ladder_shape *shape,
                               struct error *error) {
    return ladder_parse_sizes(setup->shape_text, "ROWS,C", shape, error);
}

static enum status check_shape(const struct ladder_setup *setup, const struct ladder_shape *shape,
                               struct error *error) {
    return ladder_check_memory(setup, shape, 2, shape->sizes[0] * shape->sizes[1], error);
}

/* The second of two tables has another op; the third is left out. */
static bool choose_table(const struct ladder_setup *setup, struct ladder_shape *shape, size_t i) {
    (void)setup;
    shape->op = (int)i;
    return i < 2;
}

/* v2 is not in the second table. */
static bool has_step(const struct ladder_shape *shape, size_t step) {
    return shape->op == 0 || step != 1;
}

static double elements(const struct ladder_shape *shape) {
    return (double)(shape->sizes[0] * shape->sizes[1]);
}

static void describe(const struct ladder_setup *setup, const struct ladder_shape *shape,
                     struct ladder_text *text) {
    (void)setup;
    snprintf(text->title, sizeof text->title, "op %d, %zu of %zu", shape->op, shape->sizes[0],
             shape->sizes[1]);
    snprintf(text->shape, sizeof text->shape, "%zux%zu", shape->sizes[0], shape->sizes[1]);
    text->op = "nothing";
    text->dtype = "fp32";
}

static enum status print_part(const struct ladder_setup *setup, struct error *error) {
    (void)setup, (void)error;
    printf("the part\n");
    return STATUS_OK;
}

static enum ladder_scope parts_alone(const struct ladder_setup *setup) {
    (void)setup;
    return LADDER_PARTS_ALONE;
}

/* The second needs more memory than any GPU has. */
static const struct ladder_shape list[] = {LADDER_SHAPE(4, 8), LADDER_SHAPE(1 << 30, 1 << 30)};
static const struct ladder_column columns[] = {
    {LADDER_OWN, 6, "own"}, {LADDER_STEP_UP, 8, "up"}, {LADDER_SPEEDUP, 8, "speedup"}};
static ladder_part *const parts[] = {print_part};

static struct ladder_bench make_bench(void) {
    return (struct ladder_bench){
        .lab = "00_nothing",
        .subject = "labs",
        .summary = "does nothing",
        .shapes = {LADDER_SHAPES(list), LADDER_SHAPES(list), LADDER_SHAPES(list),
                   LADDER_SHAPES(list)},
        .parse_shape = parse_shape,
        .check_shape = check_shape,
        .tables = 3,
        .table = choose_table,
        .step = step_name,
        .has_step = has_step,
        .problem = {sizeof(struct problem), create, free_problem, run, check, own},
        .flops = elements,
        .bytes = elements,
        .describe = describe,
        .name_width = 4,
        .columns = columns,
        .columns_count = 3,
        .own_name = "steps",
        .parts = parts,
        .parts_count = 1,
    };
}

/* Runs the bench; its exit status. What it prints, and its records, go to `out` and `records`. */
static int run_bench(const struct ladder_bench *bench, char *wrong, int argc, char **argv,
                     char *out, char *records, size_t size) {
    char path[2][1024];
    const char *folder = getenv("TEST_TMPDIR");
    struct ladder_setup setup = {.options = wrong};
    const struct flag flags[] = {LADDER_FLAG_SHAPE(&setup, "ROWS,C"), LADDER_FLAG_STEP(&setup)};
    snprintf(path[0], sizeof path[0], "%s/out", folder != NULL ? folder : ".");
    snprintf(path[1], sizeof path[1], "%s/records.jsonl", folder != NULL ? folder : ".");
    remove(path[1]);
    setenv("WARPBOOK_RESULTS", path[1], 1);
    fflush(stdout);
    FILE *console = stdout;
    stdout = fopen(path[0], "w");
    int status = ladder_bench_main(bench, flags, 2, &setup, argc, argv);
    fclose(stdout);
    stdout = console;
    for (int i = 0; i < 2; i++) {
        char *text = i == 0 ? out : records;
        FILE *file = fopen(path[i], "r");
        size_t count = file != NULL ? fread(text, 1, size - 1, file) : 0;
        text[count] = '\0';
        if (file != NULL) {
            fclose(file);
        }
    }
    return status;
}

static int occurrences(const char *text, const char *word) {
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text++) {
        count++;
    }
    return count;
}

C_TEST(ladder_bench, prints_each_table_with_its_steps_and_then_the_parts) {
    char out[4096], records[8192], *argv[] = {"bench"};
    const struct ladder_bench bench = make_bench();
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 1, argv, out, records, sizeof out));
    EXPECT_TRUE(strstr(out, "\nop 0, 4 of 8\n  step    own       up  speedup\n"
                            "  v1      100        –    1.00x\n") != NULL);
    EXPECT_TRUE(strstr(out, "\nop 1, 4 of 8\n") != NULL && strstr(out, "op 2") == NULL);
    EXPECT_INT_EQ(1, occurrences(out, "  v2      101"));
    EXPECT_INT_EQ(2, occurrences(out, "  v3      102"));
    EXPECT_INT_EQ(1, occurrences(out, "the part\n"));
    EXPECT_INT_EQ(5, occurrences(records, "\"shape\":\"4x8\""));
    EXPECT_INT_EQ(2, occurrences(records, "102"));
}

static enum status run_peer(void *problem, device_stream stream, struct error *error) {
    (void)problem, (void)stream, (void)error;
    return STATUS_OK;
}

static bool has_peer(const struct ladder_shape *shape) {
    return shape->op == 0;
}

C_TEST(ladder_bench, names_the_peer_in_the_title_of_the_tables_that_have_it) {
    char out[4096], records[8192], *argv[] = {"bench"};
    struct ladder_bench bench = make_bench();
    bench.peer = (struct ladder_peer){.run = run_peer,
                                      .has = has_peer,
                                      .order = LADDER_PEER_AFTER_STEPS,
                                      .name = "copy",
                                      .in_title = true};
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 1, argv, out, records, sizeof out));
    EXPECT_TRUE(strstr(out, "\nop 0, 4 of 8; the copy: ") != NULL);
    EXPECT_TRUE(strstr(out, "\nop 1, 4 of 8\n") != NULL);
    EXPECT_INT_EQ(3, occurrences(records, "\"copy\""));
}

/* The second table has no speedup, but a rate. */
static const struct ladder_column *columns_of(const struct ladder_shape *shape) {
    static const struct ladder_column other[] = {
        {LADDER_OWN, 6, "own"}, {LADDER_TFLOP_PER_S, 8, "TFLOP/s"}, {LADDER_NONE, 8, "none"}};
    return shape->op == 0 ? columns : other;
}

C_TEST(ladder_bench, has_other_columns_where_the_lab_says_so) {
    char out[4096], records[8192], *argv[] = {"bench"};
    struct ladder_bench bench = make_bench();
    bench.columns_of = columns_of;
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 1, argv, out, records, sizeof out));
    EXPECT_TRUE(strstr(out, "\nop 0, 4 of 8\n  step    own       up  speedup\n") != NULL);
    const char *second = strstr(out, "\nop 1, 4 of 8\n  step    own  TFLOP/s     none\n");
    ASSERT_TRUE(second != NULL);
    EXPECT_INT_EQ(2, occurrences(second, "        –\n"));
}

C_TEST(ladder_bench, leaves_parts_out_with_a_step_or_a_shape) {
    char out[4096], records[8192];
    char *step[] = {"bench", "--step", "v2"}, *shape[] = {"bench", "--shape", "2,3"};
    const struct ladder_bench bench = make_bench();
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 3, step, out, records, sizeof out));
    EXPECT_INT_EQ(2, occurrences(out, "  v2      101"));
    EXPECT_INT_EQ(2, occurrences(records, "\"op\":\"nothing\""));
    EXPECT_TRUE(strstr(out, "  v1") == NULL && strstr(out, "the part") == NULL);
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 3, shape, out, records, sizeof out));
    EXPECT_INT_EQ(2, occurrences(out, ", 2 of 3\n"));
    EXPECT_TRUE(strstr(out, "the part") == NULL);
}

/* v1 takes so long for some of its rows that all of them would take more than 4 s. */
static enum status run_slowly(void *problem, size_t step, size_t rows, device_stream stream,
                              struct error *error) {
    const struct timespec nap = {.tv_nsec = 300000000};
    (void)problem, (void)stream, (void)error;
    if (step == 0 && rows < 16) {
        nanosleep(&nap, NULL);
    }
    return STATUS_OK;
}

C_TEST(ladder_bench, leaves_a_slow_step_out_unless_it_is_named) {
    char out[4096], records[8192];
    char *whole[] = {"bench", "--shape", "16,8"};
    char *step[] = {"bench", "--shape", "16,8", "--step", "v1"};
    struct ladder_bench bench = make_bench();
    bench.problem.run = run_slowly;
    bench.tables = 1;
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 3, whole, out, records, sizeof out));
    /* 5 s, or more on a busy machine. */
    EXPECT_INT_EQ(1, occurrences(out, "  v1   left out: a call would take about "));
    EXPECT_INT_EQ(1, occurrences(out, "  v3      102"));
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 5, step, out, records, sizeof out));
    EXPECT_INT_EQ(1, occurrences(out, "  v1      100"));
    EXPECT_INT_EQ(1, occurrences(records, "\"op\":\"nothing\""));
}

C_TEST(ladder_bench, runs_parts_alone_where_the_lab_says_so) {
    char out[4096], records[8192], *argv[] = {"bench"};
    struct ladder_bench bench = make_bench();
    bench.scope = parts_alone;
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 1, argv, out, records, sizeof out));
    EXPECT_TRUE(strstr(out, "the part\n") != NULL && strstr(out, "op 0") == NULL);
}

static enum status prepare(struct ladder_setup *setup, struct error *error) {
    return setup->gpu.name[0] == '\0' ? error_set(error, STATUS_DEVICE, "no GPU yet")
           : setup->options != NULL ? error_set(error, STATUS_UNSUPPORTED, "too large for the GPU")
                                    : STATUS_OK;
}

C_TEST(ladder_bench, needs_no_ladder_and_prints_nothing_if_it_cannot_be_prepared) {
    char out[4096], records[8192], *argv[] = {"bench"}, refused[] = "refused";
    const struct ladder_bench bench = {.lab = "00_nothing",
                                       .summary = "does nothing",
                                       .prepare = prepare,
                                       .parts = parts,
                                       .parts_count = 1};
    EXPECT_INT_EQ(0, run_bench(&bench, NULL, 1, argv, out, records, sizeof out));
    EXPECT_TRUE(strncmp(out, "m", 1) == 0); /* measured or modelled: no subject before it */
    EXPECT_INT_EQ(1, occurrences(out, "the part\n"));
    EXPECT_INT_EQ(1, run_bench(&bench, refused, 1, argv, out, records, sizeof out));
    EXPECT_STR_EQ("", out);
}

C_TEST(ladder_bench, fails_after_all_tables_when_a_step_is_wrong) {
    char out[4096], records[8192], *argv[] = {"bench"};
    const struct ladder_bench bench = make_bench();
    EXPECT_INT_EQ(1, run_bench(&bench, "row 3", 1, argv, out, records, sizeof out));
    EXPECT_INT_EQ(2, occurrences(out, "WRONG"));
    EXPECT_INT_EQ(3, occurrences(records, "\"op\":\"nothing\""));
    EXPECT_TRUE(strstr(out, "the part") == NULL);
}
