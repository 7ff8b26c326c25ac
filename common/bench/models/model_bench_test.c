/* Rows of a model's table; a row whose logits differ is not recorded. */
#include "common/bench/models/model_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bench/models/compare_logits.h"
#include "common/testing/testing.h"

static const struct device_properties simt = {.name = "simt:none", .modelled = true};
static const struct device_properties gpu = {.name = "none"};

static enum status count_runs(void *argument, float *logits) {
    logits[0] = (float)++*(int *)argument;
    return STATUS_OK;
}

C_TEST(model_bench, runs_once_where_time_is_modelled) {
    struct model_bench_run run;
    int runs = 0;
    ASSERT_OK(model_bench_time(&simt, false, count_runs, &runs, &run));
    EXPECT_TRUE(runs == 1 && run.timing.runs == 1 && run.logits[0] == 1.0f);
    runs = 0;
    ASSERT_OK(model_bench_time(&gpu, true, count_runs, &runs, &run));
    EXPECT_TRUE(runs == 5 && run.timing.runs == 3);
    runs = 0;
    ASSERT_OK(model_bench_time(&gpu, false, count_runs, &runs, &run));
    EXPECT_TRUE(runs == 11 && run.timing.runs == 9);
}

static enum status fails(void *argument, float *logits) {
    (void)argument, (void)logits;
    return STATUS_DEVICE;
}

C_TEST(model_bench, passes_failures_on) {
    struct model_bench_run run;
    EXPECT_STATUS(STATUS_DEVICE, model_bench_time(&simt, false, fails, NULL, &run));
    EXPECT_STATUS(STATUS_DEVICE, model_bench_time(&gpu, false, fails, NULL, &run));
}

/* @return number of records in the results file, which lies in the test's folder */
static int count_records(void) {
    char path[1024], line[4096];
    int count = 0;
    FILE *file = fopen(bench_results_path("bench.jsonl", path, sizeof path), "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, "\"op\":\"bert_batch\"") != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

C_TEST(model_bench, records_only_rows_with_equal_logits) {
    char path[1024];
    const char *folder = getenv("TEST_TMPDIR");
    struct error error = {0};
    struct model_bench_run first = {.name = "v1", .timing = {.median_ms = 2.0, .runs = 1}};
    struct model_bench_run run = {.name = "v2", .timing = {.median_ms = 1.0, .runs = 1}};
    const struct model_bench_table table = {.lab = "none",
                                            .subject = "labs",
                                            .op = "bert_batch",
                                            .shape = "BERT",
                                            .figure = "sentences_per_second",
                                            .units = 2,
                                            .logits = 2,
                                            .width = 8,
                                            .digits = 2};
    snprintf(path, sizeof path, "%s/model_bench.jsonl", folder != NULL ? folder : ".");
    remove(path);
    setenv("WARPBOOK_RESULTS", path, 1);
    first.logits[0] = run.logits[0] = 4.0f;
    run.logits[1] = 0.0039f; /* a little less than 1e-3 of the largest */
    run.logits[2] = NAN;     /* beyond the model's 2 logits */
    ASSERT_OK(model_bench_report(&table, &simt, "v2", &run, &first, &error));
    EXPECT_TRUE(count_records() == 1);
    run.logits[1] = 0.0041f;
    EXPECT_STATUS(STATUS_MISMATCH, model_bench_report(&table, &simt, "v2", &run, &first, &error));
    EXPECT_TRUE(strstr(error.message, "v2 gives other logits than v1") != NULL);
    run.logits[1] = NAN;
    EXPECT_STATUS(STATUS_MISMATCH, model_bench_report(&table, &simt, "v2", &run, &first, &error));
    EXPECT_TRUE(count_records() == 1);
}

/* Whether the last record in the results file holds a text. */
static bool last_record_holds(const char *text) {
    char path[1024], line[4096] = "";
    FILE *file = fopen(bench_results_path("bench.jsonl", path, sizeof path), "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    }
    if (file != NULL) {
        fclose(file);
    }
    return strstr(line, text) != NULL;
}

C_TEST(model_bench, records_a_type_and_flops_where_they_are_given) {
    char path[1024];
    const char *folder = getenv("TEST_TMPDIR");
    const struct model_bench_run run = {
        .name = "v1", .timing = {.median_ms = 2.0, .runs = 1}, .logits = {1.0f}};
    struct model_bench_table table = {.lab = "none",
                                      .subject = "labs",
                                      .op = "step",
                                      .shape = "BERT",
                                      .figure = "tokens_per_second",
                                      .units = 3,
                                      .logits = 1};
    snprintf(path, sizeof path, "%s/model_bench_types.jsonl", folder != NULL ? folder : ".");
    remove(path);
    setenv("WARPBOOK_RESULTS", path, 1);
    ASSERT_OK(model_bench_record(&table, &simt, "v1", &run, &run, NULL));
    EXPECT_TRUE(last_record_holds("\"dtype\":\"fp32\"") && last_record_holds("\"flops\":null"));
    EXPECT_TRUE(last_record_holds("\"figure_value\":1500"));
    table.dtype = "bf16";
    table.flops = 4e6;
    ASSERT_OK(model_bench_record(&table, &simt, "v1", &run, &run, NULL));
    EXPECT_TRUE(last_record_holds("\"dtype\":\"bf16\"") && last_record_holds("\"flops\":4000000"));
    EXPECT_TRUE(last_record_holds("\"gflop_per_s\":2,"));
}

C_TEST(compare_logits, allows_a_stage_more_in_16_bits) {
    const float want[] = {4.0f, -2.0f};
    const float near[] = {4.0f, -2.0003f}, far[] = {4.0f, -2.4f}, none[] = {4.0f, NAN};
    struct error error = {0};
    double difference;
    EXPECT_OK(compare_stage_logits(near, "04", NN_F32, "dense", want, "03", 2, &difference, NULL));
    EXPECT_TRUE(difference > 7e-5 && difference < 8e-5);
    EXPECT_OK(compare_stage_logits(far, "08", NN_BF16, "dense", want, "03", 2, &difference, NULL));
    EXPECT_STATUS(STATUS_MISMATCH, compare_stage_logits(none, "08", NN_BF16, "dense", want, "03", 2,
                                                        &difference, NULL));
    EXPECT_STATUS(STATUS_MISMATCH, compare_stage_logits(want, "08", NN_BF16, "dense", none, "03", 2,
                                                        &difference, NULL));
    EXPECT_STATUS(STATUS_MISMATCH, compare_stage_logits(far, "04", NN_F32, "dense", want, "03", 2,
                                                        &difference, &error));
    EXPECT_STR_EQ("04 in fp32, dense: logits differ by 0.1 of the largest from 03's, more than "
                  "0.0001",
                  error.message);
}

C_TEST(model_bench, draws_the_same_sentences_every_time) {
    struct model_bench_bert a, b;
    const struct bert_config config = model_bench_bert_config(true);
    ASSERT_OK(model_bench_bert_create(&a, &config, NULL));
    ASSERT_OK(model_bench_bert_create(&b, &config, NULL));
    EXPECT_TRUE(memcmp(a.ids, b.ids, a.input.B * a.input.T * sizeof *a.ids) == 0);
    for (size_t i = 0; i < a.input.B * a.input.T; i++) {
        EXPECT_TRUE(a.ids[i] >= 0 && (size_t)a.ids[i] < config.V);
    }
    EXPECT_STR_EQ("BERT C256 L1, 16x32 tokens", a.shape);
    model_bench_bert_free(&a);
    model_bench_bert_free(&b);
}
