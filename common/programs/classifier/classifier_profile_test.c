/**
 * @file classifier_profile_test.c
 * @brief Expects that the three files of the profile program are valid JSON and agree.
 */
#include "common/programs/classifier/classifier_profile.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/programs/classifier/trace.h"
#include "common/testing/testing.h"

static enum status create(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    (void)error;
    return engine_reference_create(engine);
}

static const struct classifier_stage table[] = {{"reference", false, create, NULL}};
static const struct classifier_stages stages = {.table = table, .count = 1};

/* Parses a file of the test's folder; NULL after noting a failure. */
static cJSON *load(const char *name) {
    char path[1024];
    char *text;
    size_t size;
    struct error error = {0};
    test_temporary_path(name, path, sizeof path);
    if (file_read(path, 1 << 24, &text, &size, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return NULL;
    }
    cJSON *root = cJSON_ParseWithLength(text, size);
    free(text);
    if (root == NULL) {
        TEST_FAIL("%s is not JSON", name);
    }
    return root;
}

static double number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsNumber(item)) {
        TEST_FAIL("no number %s", key);
        return -1.0;
    }
    return item->valuedouble;
}

static const char *string(const cJSON *object, const char *key) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return value != NULL ? value : "";
}

/* @return number of complete events of a track. @param ms receives the sum of their durations */
static int check_events(const cJSON *events, const char *track, double *ms) {
    int count = 0;
    const cJSON *event;
    *ms = 0.0;
    cJSON_ArrayForEach(event, events) {
        if (strcmp(string(event, "ph"), "X") != 0 || strcmp(string(event, "cat"), track) != 0) {
            continue;
        }
        EXPECT_TRUE(number(event, "ts") >= 0.0);
        EXPECT_TRUE(number(event, "dur") >= 0.0);
        EXPECT_INT_EQ(1, number(event, "pid"));
        EXPECT_INT_EQ(count, number(cJSON_GetObjectItem(event, "args"), "number"));
        *ms += number(event, "dur") / 1e3;
        count++;
    }
    return count;
}

static void check_trace(const cJSON *statistics) {
    cJSON *root = load("out/deep/trace.json");
    const cJSON *events = cJSON_GetObjectItem(root, "traceEvents");
    double batches_ms, operators_ms, calls = 0.0;
    const cJSON *op;
    cJSON_ArrayForEach(op, cJSON_GetObjectItem(statistics, "operators")) {
        calls += number(op, "calls");
    }
    EXPECT_INT_EQ(2, check_events(events, "batches", &batches_ms));
    EXPECT_INT_EQ(calls, check_events(events, "operators", &operators_ms));
    EXPECT_NEAR(number(statistics, "total_ms"), operators_ms, 1e-6 * operators_ms + 1e-9);
    EXPECT_TRUE(operators_ms <= batches_ms);
    EXPECT_STR_EQ("measured: the host's clock",
                  string(cJSON_GetObjectItem(root, "otherData"), "clock"));
    cJSON_Delete(root);
}

static void check_statistics(const cJSON *root) {
    double share = 0.0;
    bool matmul = false;
    const cJSON *op;
    cJSON_ArrayForEach(op, cJSON_GetObjectItem(root, "operators")) {
        EXPECT_NEAR(number(op, "total_ms"), number(op, "mean_ms") * number(op, "calls"), 1e-9);
        share += number(op, "share");
        if (strcmp(string(op, "name"), "matmul") == 0) {
            matmul = true;
            /* 2 batches: 4 linear layers in each of 2 layers, pooler, classifier. */
            EXPECT_INT_EQ(2 * (2 * 4 + 2), number(op, "calls"));
        }
    }
    EXPECT_TRUE(matmul);
    EXPECT_NEAR(1.0, share, 1e-9);
    EXPECT_INT_EQ(2, number(root, "batches"));
    EXPECT_STR_EQ("reference", string(root, "stage"));
    EXPECT_STR_EQ("CPU", string(root, "device"));
}

static void check_benchmark(void) {
    static const char *const rising[] = {"min_batch_ms", "p50_batch_ms", "p90_batch_ms",
                                         "p95_batch_ms", "p99_batch_ms", "max_batch_ms"};
    cJSON *root = load("out/deep/benchmark_stats.json");
    double before = 0.0;
    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        double value = number(root, rising[i]);
        EXPECT_TRUE(value >= before);
        before = value;
    }
    double mean = number(root, "mean_batch_ms");
    EXPECT_TRUE(mean > 0.0 && mean <= before);
    EXPECT_INT_EQ(4, number(root, "batches"));
    EXPECT_INT_EQ(12, number(root, "samples"));
    EXPECT_INT_EQ(12 * 16, number(root, "tokens"));
    EXPECT_NEAR(3e3 / mean, number(root, "samples_per_second"), 1e-6 * 3e3 / mean);
    cJSON_Delete(root);
}

/* Runs the program with --output-dir and these arguments. */
static int run_on(const struct classifier_stages *on, const char *folder, const char *more) {
    char path[1024], text[256];
    char *arguments[24] = {"profile", "--random", "--output-dir"};
    int count = 3;
    arguments[count++] = (char *)test_temporary_path(folder, path, sizeof path);
    snprintf(text, sizeof text, "%s", more);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        arguments[count++] = word;
    }
    return classifier_profile_main(count, arguments, on);
}

static int run(const char *folder, const char *more) {
    return run_on(&stages, folder, more);
}

C_TEST(classifier_profile, leaves_three_files_that_agree) {
    EXPECT_INT_EQ(0, run("out/deep", "--max-length 16 --batch-size 3 --batches 4 "
                                     "--trace-batches 2"));
    cJSON *statistics = load("out/deep/kernel_statistics.json");
    check_statistics(statistics);
    check_trace(statistics);
    check_benchmark();
    cJSON_Delete(statistics);
}

/* ---- Kernels of a made-up device ---- */

enum { UNDIVIDED = 7 };

/* Every operator launches two kernels; one recording fails. */
struct made_up {
    int ends;
    bool renames; /* the kernel names differ from call to call */
};

static enum status make_up(void **times, const struct engine *engine, struct error *error) {
    (void)engine;
    *times = calloc(1, sizeof(struct made_up));
    return *times != NULL ? STATUS_OK : error_set(error, STATUS_OUT_OF_MEMORY, "no memory");
}

static enum status make_up_names(void **times, const struct engine *engine, struct error *error) {
    TRY(make_up(times, engine, error));
    ((struct made_up *)*times)->renames = true;
    return STATUS_OK;
}

static enum status make_nothing_up(void **times, const struct engine *engine, struct error *error) {
    (void)engine;
    *times = NULL;
    return error_set(error, STATUS_UNSUPPORTED, "nothing is seen");
}

static enum status do_nothing(void *times, struct error *error) {
    (void)times;
    (void)error;
    return STATUS_OK;
}

static enum status report_two(void *times, enum status called,
                              void (*observe)(void *observer, const char *name, double ms),
                              void *observer, struct error *error) {
    struct made_up *m = times;
    char name[32];
    if (++m->ends == UNDIVIDED) {
        return error_set(error, STATUS_UNSUPPORTED, "it waits");
    }
    snprintf(name, sizeof name, "kernel%d", m->renames ? m->ends : 0);
    observe(observer, name, 1.0);
    observe(observer, "other", 3.0);
    return called;
}

static enum status take_half(void *times, double *ms, struct error *error) {
    *ms = 0.5;
    return do_nothing(times, error);
}

static enum status open_model(struct program_device *device, struct error *error) {
    (void)error;
    *device = (struct program_device){"a device", true};
    return STATUS_OK;
}

static enum status open_real(struct program_device *device, struct error *error) {
    (void)error;
    *device = (struct program_device){"a device", false};
    return STATUS_OK;
}

static double tick(void) {
    static double now;
    return now += 0.01;
}

static const struct classifier_stage on_device[] = {{"made_up", true, create, NULL}};
static const struct classifier_kernels pairs = {make_up,    free,       do_nothing,
                                                report_two, do_nothing, take_half};
static const struct classifier_kernels renamed = {make_up_names, free,       do_nothing,
                                                  report_two,    do_nothing, take_half};
static const struct classifier_kernels none = {make_nothing_up, free,       do_nothing,
                                               report_two,      do_nothing, take_half};

static double kernel_number(const cJSON *statistics, const char *name, const char *key) {
    const cJSON *kernel;
    cJSON_ArrayForEach(kernel, cJSON_GetObjectItem(statistics, "kernels")) {
        if (strcmp(string(kernel, "name"), name) == 0) {
            return number(kernel, key);
        }
    }
    TEST_FAIL("no kernel %s", name);
    return -1.0;
}

C_TEST(classifier_profile, times_the_kernels_of_operators) {
    const struct classifier_stages there = {on_device, 1, &pairs, open_model, tick};
    double kernels_ms;
    EXPECT_INT_EQ(0, run_on(&there, "apart",
                            "--device gpu --max-length 16 --batch-size 2 "
                            "--batches 1 --trace-batches 1"));
    cJSON *statistics = load("apart/kernel_statistics.json");
    cJSON *trace = load("apart/trace.json");
    double copies = 0.0, calls = 0.0;
    const cJSON *op;
    cJSON_ArrayForEach(op, cJSON_GetObjectItem(statistics, "operators")) {
        bool copy = strcmp(string(op, "name"), "copy") == 0;
        *(copy ? &copies : &calls) += number(op, "calls");
    }
    /* The batch runs twice and is recorded once. The seventh recording fails, so its operator is
       timed as a whole. */
    EXPECT_INT_EQ(1, number(statistics, "operators_undivided"));
    EXPECT_INT_EQ(calls - 1, kernel_number(statistics, "kernel0", "calls"));
    EXPECT_NEAR(3.0 * (calls - 1), kernel_number(statistics, "other", "total_ms"), 1e-9);
    EXPECT_NEAR(3.0, kernel_number(statistics, "other", "mean_ms"), 1e-9);
    EXPECT_NEAR(0.5, kernel_number(statistics, "copy to the host", "mean_ms"), 1e-9);
    double total = 4.0 * (calls - 1) + 0.5 + 0.5 * copies;
    EXPECT_NEAR(total, number(statistics, "kernels_total_ms"), 1e-9);
    EXPECT_NEAR(3.0 * (calls - 1) / total, kernel_number(statistics, "other", "share"), 1e-9);
    EXPECT_STR_EQ(
        "other", string(cJSON_GetArrayItem(cJSON_GetObjectItem(statistics, "kernels"), 0), "name"));
    EXPECT_INT_EQ(2 * (calls - 1) + 1 + copies,
                  check_events(cJSON_GetObjectItem(trace, "traceEvents"), "kernels", &kernels_ms));
    EXPECT_NEAR(total, kernels_ms, 1e-6 * total);
    cJSON_Delete(statistics);
    cJSON_Delete(trace);
}

C_TEST(classifier_profile, runs_kernels_that_are_measured_three_times) {
    const struct classifier_stages there = {on_device, 1, &renamed, open_real, tick};
    const struct classifier_stages unseen = {on_device, 1, &none, open_real, tick};
    EXPECT_INT_EQ(1, run_on(&there, "renamed",
                            "--device gpu --max-length 16 --batch-size 2 "
                            "--batches 1 --trace-batches 1"));
    EXPECT_INT_EQ(0, run_on(&unseen, "unseen",
                            "--device gpu --max-length 16 --batch-size 2 "
                            "--batches 1 --trace-batches 1"));
    cJSON *statistics = load("unseen/kernel_statistics.json");
    EXPECT_STR_EQ("stage made_up: nothing is seen", string(statistics, "no_kernels"));
    EXPECT_INT_EQ(0, cJSON_GetArraySize(cJSON_GetObjectItem(statistics, "kernels")));
    EXPECT_INT_EQ(3, number(statistics, "kernel_runs"));
    cJSON_Delete(statistics);
}

enum { READS_BEFORE_SIGNAL = 4 };

/* Reads logits; after the warm-up and three batches this program gets Ctrl-C. */
static enum status read_and_interrupt(void *context, void *host, const void *resident,
                                      size_t bytes) {
    static int reads;
    (void)context;
    memcpy(host, resident, bytes);
    if (++reads == READS_BEFORE_SIGNAL) {
        raise(SIGINT);
    }
    return STATUS_OK;
}

static enum status create_interrupted(struct engine *engine, int threads, struct error *error) {
    enum status status = create(engine, threads, error);
    engine->read = read_and_interrupt;
    return status;
}

C_TEST(classifier_profile, times_stay_after_a_signal) {
    static const struct classifier_stage table[] = {{"stops", false, create_interrupted, NULL}};
    const struct classifier_stages there = {.table = table, .count = 1};
    char path[1024], *text = NULL;
    size_t size;
    int saved = dup(STDOUT_FILENO);
    fflush(stdout);
    ASSERT_TRUE(freopen(test_temporary_path("said", path, sizeof path), "w", stdout) != NULL);
    int code = run_on(&there, "interrupted", "--max-length 16 --batch-size 2 --batches 50");
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    EXPECT_INT_EQ(130, code);
    ASSERT_OK(file_read(path, 1 << 16, &text, &size, NULL));
    EXPECT_TRUE(strstr(text, "\n3 batches: ") != NULL);
    EXPECT_TRUE(strstr(text, "operator") == NULL);
    free(text);
    test_temporary_path("interrupted/trace.json", path, sizeof path);
    EXPECT_TRUE(access(path, F_OK) != 0);
}

C_TEST(classifier_profile, refuses_what_it_cannot_write) {
    char path[1024];
    EXPECT_OK(file_write(test_temporary_path("file", path, sizeof path), "x", 1, NULL));
    EXPECT_INT_EQ(1, run("file", ""));
    EXPECT_INT_EQ(1, run("file/inside", ""));
    EXPECT_INT_EQ(1, run("unused", "--batches 0"));
    EXPECT_TRUE(access(test_temporary_path("unused", path, sizeof path), F_OK) != 0);
}

C_TEST(percentile, is_the_nearest_rank) {
    static const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    EXPECT_NEAR(5.0, percentile(values, 10, 50), 0.0);
    EXPECT_NEAR(9.0, percentile(values, 10, 90), 0.0);
    EXPECT_NEAR(10.0, percentile(values, 10, 95), 0.0);
    EXPECT_NEAR(10.0, percentile(values, 10, 100), 0.0);
    EXPECT_NEAR(1.0, percentile(values, 10, 1), 0.0);
    EXPECT_NEAR(7.0, percentile(values + 6, 1, 99), 0.0);
}

C_TEST(trace, keeps_a_limited_number_of_spans_and_counts_the_rest) {
    struct trace trace = {0};
    struct error error = {0};
    char path[1024];
    for (int i = 0; i < TRACE_MOST_SPANS + 7; i++) {
        trace_observe(&trace, PROFILE_MATMUL, 5.0 + i, 5.5 + i);
    }
    EXPECT_INT_EQ(TRACE_MOST_SPANS, trace.count);
    EXPECT_INT_EQ(7, trace.lost);
    trace.count = 2; /* a file of all spans takes long under sanitizers */
    const struct trace_origin origin = {"a \"process\"", "modelled"};
    test_temporary_path("trace.json", path, sizeof path);
    EXPECT_OK(trace_write(&trace, &origin, path, &error));
    cJSON *root = load("trace.json");
    EXPECT_INT_EQ(7, number(cJSON_GetObjectItem(root, "otherData"), "spans_lost"));
    const cJSON *events = cJSON_GetObjectItem(root, "traceEvents");
    EXPECT_STR_EQ("a \"process\"",
                  string(cJSON_GetObjectItem(cJSON_GetArrayItem(events, 0), "args"), "name"));
    EXPECT_NEAR(0.0, number(cJSON_GetArrayItem(events, 4), "ts"), 0.0);
    EXPECT_NEAR(1e6, number(cJSON_GetArrayItem(events, 5), "ts"), 1e-3);
    EXPECT_NEAR(5e5, number(cJSON_GetArrayItem(events, 5), "dur"), 1e-3);
    cJSON_Delete(root);
    trace_free(&trace);
    EXPECT_STATUS(STATUS_NOT_FOUND,
                  trace_write(&trace, &origin, "/proc/nowhere/trace.json", &error));
}
