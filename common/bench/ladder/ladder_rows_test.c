/* Steps that are right, wrong and slow, as rows of a table. */
#include "common/bench/ladder/ladder_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/testing/testing.h"

/* A problem of 32 rows; what a step makes of it. */
struct problem {
    bool slow;         /* one row takes 0.15 s */
    bool unsupported;  /* the step refuses the problem */
    const char *wrong; /* what check finds, or NULL */
    int checked, ran;
    size_t rows_ran;
};

static enum status run_rows(void *argument, size_t rows, struct error *error) {
    struct problem *p = argument;
    const struct timespec nap = {.tv_nsec = (long)rows * 150000000};
    p->rows_ran = rows;
    if (p->unsupported) {
        return error_set(error, STATUS_UNSUPPORTED, "too many keys");
    }
    if (p->slow) {
        nanosleep(&nap, NULL);
    }
    return STATUS_OK;
}

static enum status check(void *argument, char *wrong, size_t size, struct error *error) {
    struct problem *p = argument;
    (void)error;
    p->checked++;
    snprintf(wrong, size, "%s", p->wrong != NULL ? p->wrong : "");
    return STATUS_OK;
}

static enum status run(void *argument, device_stream stream, struct error *error) {
    (void)stream, (void)error;
    ((struct problem *)argument)->ran++;
    return STATUS_OK;
}

static void measure_problem(struct problem *p, bool all, struct device_bench_options *options,
                            struct ladder_row *row) {
    const struct ladder_case c = {
        .argument = p, .rows = 32, .run_rows = run_rows, .check = check, .run = run};
    ASSERT_OK(device_open(NULL));
    *options = device_bench_defaults();
    *row = (struct ladder_row){.name = "v1"};
    struct error error = {0};
    ASSERT_OK(ladder_measure_step(&c, all, options, row, &error));
}

C_TEST(ladder_rows, times_what_is_right) {
    struct ladder_row row;
    struct device_bench_options options;
    struct problem p = {0};
    measure_problem(&p, false, &options, &row);
    EXPECT_TRUE(ladder_row_is_measured(&row) && row.timing.runs > 0);
    EXPECT_TRUE(p.rows_ran == 2 && p.checked == 1 && p.ran > 0);
    EXPECT_TRUE(isnan(row.peer_ms));
}

C_TEST(ladder_rows, does_not_time_what_is_wrong) {
    struct ladder_row row;
    struct device_bench_options options;
    struct problem p = {.wrong = "row 3"};
    measure_problem(&p, true, &options, &row);
    EXPECT_TRUE(!ladder_row_is_measured(&row) && p.ran == 0);
    EXPECT_STR_EQ("row 3", row.wrong);
}

C_TEST(ladder_rows, shows_why_a_step_does_not_support_the_problem) {
    struct ladder_row row;
    struct device_bench_options options;
    struct problem p = {.unsupported = true};
    measure_problem(&p, true, &options, &row);
    EXPECT_TRUE(!ladder_row_is_measured(&row) && p.checked == 0 && p.ran == 0);
    EXPECT_STR_EQ("too many keys", row.wrong);
}

C_TEST(ladder_rows, leaves_out_what_is_slow_unless_all_is_wanted) {
    struct ladder_row row;
    struct device_bench_options options;
    struct problem p = {.slow = true};
    measure_problem(&p, false, &options, &row);
    EXPECT_TRUE(!ladder_row_is_measured(&row) && row.expected > 4.0);
    EXPECT_TRUE(p.checked == 0 && p.ran == 0);
    measure_problem(&p, true, &options, &row);
    EXPECT_TRUE(ladder_row_is_measured(&row) && p.ran > 0);
    EXPECT_TRUE(options.min_runs == 3 && options.warmup == 1);
}

static const char *step_name(size_t i) {
    static const char *const names[] = {"v1", "v2", "v3"};
    return i < 3 ? names[i] : NULL;
}

static enum status note_step(void *argument, size_t i, struct ladder_row *row,
                             struct error *error) {
    row->timing.median_ms = (double)(i + 1);
    return *(size_t *)argument == i ? error_set(error, STATUS_DEVICE, "fails") : STATUS_OK;
}

/* v1 and v3. */
static bool has_odd_steps(void *argument, size_t i) {
    (void)argument;
    return i % 2 == 0;
}

C_TEST(ladder_rows, measures_all_steps_or_one) {
    struct ladder_row rows[3];
    size_t count, failing = 3;
    struct error error = {0};
    ASSERT_OK(ladder_measure(step_name, NULL, NULL, note_step, &failing, rows, &count, &error));
    EXPECT_TRUE(count == 3 && rows[2].timing.median_ms == 3.0);
    EXPECT_STR_EQ("v3", rows[2].name);
    ASSERT_OK(
        ladder_measure(step_name, "v2", has_odd_steps, note_step, &failing, rows, &count, &error));
    EXPECT_TRUE(count == 1 && rows[0].timing.median_ms == 2.0);
    ASSERT_OK(
        ladder_measure(step_name, NULL, has_odd_steps, note_step, &failing, rows, &count, &error));
    EXPECT_TRUE(count == 2 && rows[1].timing.median_ms == 3.0);
    failing = 1;
    EXPECT_STATUS(STATUS_DEVICE,
                  ladder_measure(step_name, NULL, NULL, note_step, &failing, rows, &count, &error));
    EXPECT_TRUE(strncmp(error.message, "v2", 2) == 0);
}

/* What the rows of a table were compared with. */
struct shown {
    int count;
    double last[3], first[3];
};

static enum status show(void *argument, const struct ladder_row *row, double last_ms,
                        double first_ms, struct error *error) {
    struct shown *shown = argument;
    (void)row, (void)error;
    shown->last[shown->count] = last_ms;
    shown->first[shown->count++] = first_ms;
    return STATUS_OK;
}

C_TEST(ladder_rows, compares_with_the_row_before_and_the_first) {
    struct shown shown = {0};
    struct ladder_row rows[] = {{.name = "v1", .timing.median_ms = 8.0},
                                {.name = "v2", .expected = 9.0},
                                {.name = "v3", .timing.median_ms = 4.0},
                                {.name = "v4", .timing.median_ms = 2.0}};
    struct error error = {0};
    ASSERT_OK(ladder_report(rows, 4, 8, show, &shown, &error));
    EXPECT_TRUE(shown.count == 3 && isnan(shown.last[0]) && isnan(shown.first[0]));
    EXPECT_TRUE(shown.last[1] == 8.0 && shown.last[2] == 4.0 && shown.first[2] == 8.0);
    strcpy(rows[0].wrong, "row 0");
    shown.count = 0;
    EXPECT_STATUS(STATUS_MISMATCH, ladder_report(rows, 4, 8, show, &shown, &error));
    EXPECT_TRUE(shown.count == 2 && shown.first[1] == 4.0);
}
