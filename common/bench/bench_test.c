#include "common/bench/bench.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"

C_TEST(bench, median_of_odd_and_even_counts) {
    double odd[] = {0.5, 0.1, 0.3};
    struct bench_timing timing = bench_summarise(odd, 3);
    EXPECT_NEAR(300.0, timing.median_ms, 1e-9);
    EXPECT_NEAR(100.0, timing.min_ms, 1e-9);
    EXPECT_NEAR(500.0, timing.max_ms, 1e-9);
    EXPECT_INT_EQ(3, timing.runs);
    double even[] = {4.0, 1.0, 3.0, 2.0};
    EXPECT_NEAR(2500.0, bench_summarise(even, 4).median_ms, 1e-9);
    EXPECT_INT_EQ(0, bench_summarise(even, 0).runs);
}

/* Sleeps, counts its calls, fails at a chosen one. */
struct sleeper {
    int calls, fail_at;
};

static enum status sleep_a_little(void *argument) {
    struct sleeper *sleeper = argument;
    usleep(2000);
    return ++sleeper->calls == sleeper->fail_at ? STATUS_IO : STATUS_OK;
}

C_TEST(bench, warms_up_and_counts_runs) {
    struct bench_options options = bench_defaults();
    options.warmup = 3;
    options.min_runs = 4;
    options.min_seconds = 0.0;
    struct sleeper sleeper = {0};
    struct bench_timing timing;
    ASSERT_OK(bench_run(&options, sleep_a_little, &sleeper, &timing));
    EXPECT_INT_EQ(7, sleeper.calls);
    EXPECT_INT_EQ(4, timing.runs);
    EXPECT_TRUE(timing.min_ms >= 2.0);
    EXPECT_TRUE(timing.min_ms <= timing.median_ms && timing.median_ms <= timing.max_ms);
}

C_TEST(bench, goes_on_for_the_time_asked_for_up_to_the_limit) {
    struct bench_options options = {.min_runs = 1, .max_runs = 100, .min_seconds = 0.02};
    struct sleeper sleeper = {0};
    struct bench_timing timing;
    ASSERT_OK(bench_run(&options, sleep_a_little, &sleeper, &timing));
    /* On a busy machine the first run alone may have taken so long. */
    EXPECT_TRUE(timing.runs <= 10 && (timing.runs >= 2 || timing.max_ms >= 20.0));
    EXPECT_TRUE(timing.runs * timing.max_ms >= 20.0);
    options.max_runs = 3;
    options.min_seconds = 100.0;
    ASSERT_OK(bench_run(&options, sleep_a_little, &sleeper, &timing));
    EXPECT_INT_EQ(3, timing.runs);
}

C_TEST(bench, passes_failures_on) {
    struct bench_options options = {.warmup = 1, .min_runs = 3, .max_runs = 3};
    struct bench_timing timing;
    struct sleeper in_warmup = {.fail_at = 1};
    EXPECT_STATUS(STATUS_IO, bench_run(&options, sleep_a_little, &in_warmup, &timing));
    EXPECT_INT_EQ(1, in_warmup.calls);
    struct sleeper in_run = {.fail_at = 3};
    EXPECT_STATUS(STATUS_IO, bench_run(&options, sleep_a_little, &in_run, &timing));
    EXPECT_INT_EQ(3, in_run.calls);
    options.min_runs = 0;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, bench_run(&options, sleep_a_little, &in_run, &timing));
}

C_TEST(bench, flushing_leaves_the_runs_alone) {
    struct bench_options options = {.min_runs = 2, .max_runs = 2, .flush_cache = true};
    struct sleeper sleeper = {0};
    struct bench_timing timing;
    ASSERT_OK(bench_run(&options, sleep_a_little, &sleeper, &timing));
    EXPECT_INT_EQ(2, sleeper.calls);
    EXPECT_TRUE(timing.min_ms >= 2.0 && timing.min_ms < 1000.0);
}

C_TEST(bench, knows_the_machine) {
    char name[128] = "";
    EXPECT_TRUE(strlen(bench_cpu_name(name, sizeof name)) > 0);
    EXPECT_TRUE(strchr(name, '\n') == NULL);
    EXPECT_TRUE(bench_cpu_count() >= 1);
}

C_TEST(bench, results_path_prefers_the_environment) {
    char path[256];
    setenv("WARPBOOK_RESULTS", "elsewhere/r.jsonl", 1);
    EXPECT_STR_EQ("elsewhere/r.jsonl", bench_results_path("bench.jsonl", path, sizeof path));
    unsetenv("WARPBOOK_RESULTS");
    setenv("BUILD_WORKSPACE_DIRECTORY", "/workspace", 1);
    EXPECT_STR_EQ("/workspace/results/bench.jsonl",
                  bench_results_path("bench.jsonl", path, sizeof path));
    unsetenv("BUILD_WORKSPACE_DIRECTORY");
    EXPECT_STR_EQ("results/bench.jsonl", bench_results_path("bench.jsonl", path, sizeof path));
}

/* Appends the record to a file of its own and returns its one line, parsed; NULL on failure. */
static cJSON *append_and_parse(const struct bench_record *record, const char *name) {
    char path[512];
    test_temporary_path(name, path, sizeof path);
    remove(path);
    setenv("WARPBOOK_RESULTS", path, 1);
    struct error error = {0};
    EXPECT_OK(bench_append(record, &error));
    unsetenv("WARPBOOK_RESULTS");
    char *text = NULL;
    size_t size = 0;
    EXPECT_OK(file_read(path, 1 << 20, &text, &size, &error));
    cJSON *object = NULL;
    if (text != NULL && size > 0) {
        EXPECT_TRUE(strchr(text, '\n') == text + size - 1);
        object = cJSON_Parse(text);
    }
    free(text);
    return object;
}

static double number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static const char *string(const cJSON *object, const char *name) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return value != NULL ? value : "(none)";
}

static const struct bench_record full = {
    .lab = "01_cpu_matmul",
    .subject = "labs",
    .stage = "v9",
    .op = "matmul",
    .shape = "2x3x4",
    .dtype = "fp32",
    .threads = 2,
    .timing = {.median_ms = 2.0, .min_ms = 1.0, .max_ms = 4.0, .runs = 7},
    .bytes = 4e6,
    .flops = 8e6,
    .peer = "a library",
    .peer_ratio = 0.75,
    .figure = "tokens_per_second",
    .figure_value = 12.5,
};

C_TEST(record, has_all_fields) {
    setenv("WARPBOOK_COMMIT", "0123abc", 1);
    cJSON *object = append_and_parse(&full, "full.jsonl");
    unsetenv("WARPBOOK_COMMIT");
    ASSERT_TRUE(object != NULL);
    const cJSON *ms = cJSON_GetObjectItemCaseSensitive(object, "ms");
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(object, "device");
    EXPECT_INT_EQ(BENCH_SCHEMA, number(object, "schema"));
    EXPECT_INT_EQ(20, strlen(string(object, "time")));
    EXPECT_INT_EQ('Z', string(object, "time")[19]);
    EXPECT_STR_EQ("0123abc", string(object, "commit"));
    EXPECT_STR_EQ("labs", string(object, "subject"));
    EXPECT_STR_EQ("2x3x4", string(object, "shape"));
    EXPECT_STR_EQ("cpu", string(device, "kind"));
    EXPECT_TRUE(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(device, "modelled")));
    EXPECT_INT_EQ(2, number(device, "threads"));
    EXPECT_NEAR(2.0, number(ms, "median"), 0.0);
    EXPECT_NEAR(7.0, number(ms, "runs"), 0.0);
    EXPECT_NEAR(2.0, number(object, "gb_per_s"), 1e-12);
    EXPECT_NEAR(4.0, number(object, "gflop_per_s"), 1e-12);
    EXPECT_NEAR(0.75, number(object, "peer_ratio"), 0.0);
    EXPECT_NEAR(12.5, number(object, "figure_value"), 0.0);
    cJSON_Delete(object);
}

C_TEST(record, names_the_gpu_and_whether_its_times_are_modelled) {
    const struct bench_gpu h200 = {.name = "NVIDIA H200",
                                   .mhz = 1980.0,
                                   .memory_mhz = 3201.0,
                                   .driver = 13010,
                                   .runtime = 13000};
    const struct bench_gpu simt = {
        .name = "simt:h200", .modelled = true, .mhz = 1980.0, .runtime = 13000};
    struct bench_record record = full;
    record.gpu = &h200;
    record.timing.clock_mhz = 1755.0;
    cJSON *object = append_and_parse(&record, "gpu.jsonl");
    const cJSON *device = cJSON_GetObjectItemCaseSensitive(object, "device");
    ASSERT_TRUE(device != NULL);
    EXPECT_STR_EQ("gpu", string(device, "kind"));
    EXPECT_STR_EQ("NVIDIA H200", string(device, "name"));
    EXPECT_STR_EQ("13.1", string(device, "driver"));
    EXPECT_STR_EQ("13.0", string(device, "runtime"));
    EXPECT_NEAR(1755.0, number(device, "measured_mhz"), 0.0);
    EXPECT_TRUE(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(device, "modelled")));
    cJSON_Delete(object);
    record.gpu = &simt;
    record.timing.clock_mhz = 0.0;
    object = append_and_parse(&record, "simt.jsonl");
    device = cJSON_GetObjectItemCaseSensitive(object, "device");
    ASSERT_TRUE(device != NULL);
    EXPECT_STR_EQ("simt:h200", string(device, "name"));
    EXPECT_TRUE(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(device, "modelled")));
    static const char *const unknown[] = {"driver", "measured_mhz", "memory_mhz"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        EXPECT_TRUE(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(device, unknown[i])));
    }
    cJSON_Delete(object);
}

C_TEST(record, writes_null_for_what_is_not_known) {
    struct bench_record record = full;
    record.bytes = NAN;
    record.flops = NAN;
    record.peer = NULL;
    record.figure = NULL;
    cJSON *object = append_and_parse(&record, "nulls.jsonl");
    ASSERT_TRUE(object != NULL);
    static const char *const names[] = {"bytes", "flops",      "gb_per_s", "gflop_per_s",
                                        "peer",  "peer_ratio", "figure",   "figure_value"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, names[i]))) {
            TEST_FAIL("%s is not null", names[i]);
        }
    }
    cJSON_Delete(object);
}

/* Makes FOLDER/.git/NAME with one line of text. */
static void write_git(const char *folder, const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "mkdir -p '%s/.git/refs/heads'", folder);
    EXPECT_INT_EQ(0, system(path));
    snprintf(path, sizeof path, "%s/.git/%s", folder, name);
    EXPECT_OK(file_write(path, text, strlen(text), NULL));
}

static void expect_commit(const char *folder, const char *commit) {
    setenv("BUILD_WORKSPACE_DIRECTORY", folder, 1);
    cJSON *object = append_and_parse(&full, "commit.jsonl");
    unsetenv("BUILD_WORKSPACE_DIRECTORY");
    ASSERT_TRUE(object != NULL);
    EXPECT_STR_EQ(commit, string(object, "commit"));
    cJSON_Delete(object);
}

C_TEST(record, finds_the_commit) {
    char folder[512];
    test_temporary_path("repository", folder, sizeof folder);
    expect_commit(folder, "(none)");
    write_git(folder, "HEAD", "ref: refs/heads/main\n");
    expect_commit(folder, "(none)");
    write_git(folder, "packed-refs",
              "# pack-refs with: peeled\n77aa refs/heads/maintenance\n"
              "88bb refs/heads/main\n");
    expect_commit(folder, "88bb");
    write_git(folder, "refs/heads/main", "99cc\n");
    expect_commit(folder, "99cc");
    write_git(folder, "HEAD", "11dd\n");
    expect_commit(folder, "11dd");
}
