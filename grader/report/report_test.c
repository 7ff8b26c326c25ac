#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/testing/testing.h"
#include "grader/report/format/format.h"
#include "grader/report/hints.h"
#include "grader/report/memory.h"

enum { PATH_SIZE = 1024 };

static const char made_up[] = "grader/report/testdata/made_up.run.json";

static char *read_whole(const char *path) {
    char *text = NULL;
    size_t size;
    struct error error = {0};
    EXPECT_OK(file_read(path, 1 << 24, &text, &size, &error));
    return text;
}

static const struct signature_key made_up_key = {.path = "a made-up key"};

/* ---- Digests ---- */

C_TEST(sha1, digests_of_the_standard) {
    static const struct {
        const char *data, *want;
    } cases[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[SHA1_TEXT];
        struct sha1 sha1 = sha1_begin();
        for (const char *c = cases[i].data; *c != '\0'; c++) { /* a byte at a time */
            sha1_add(&sha1, c, 1);
        }
        sha1_end(&sha1, text);
        EXPECT_STR_EQ(cases[i].want, text);
    }
}

C_TEST(digest, changes_with_each_of_its_files) {
    enum { FILES = 4 };
    char paths[FILES][PATH_SIZE], digest[SHA1_TEXT], before[SHA1_TEXT] = "";
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "digest%d", i);
        test_temporary_path(name, paths[i], sizeof paths[i]);
        ASSERT_OK(file_write(paths[i], "a", 1, NULL));
    }
    const char *files[FILES] = {paths[0], paths[1], paths[2], paths[3]};
    for (int i = -1; i < FILES; i++) {
        if (i >= 0) {
            ASSERT_OK(file_write(paths[i], "b", 1, NULL));
        }
        ASSERT_OK(lab_digest(files, FILES, digest, NULL));
        EXPECT_TRUE(strcmp(before, digest) != 0);
        memcpy(before, digest, sizeof before);
    }
    /* A byte that moves from one file to the next is a change. */
    ASSERT_OK(file_write(paths[0], "", 0, NULL));
    ASSERT_OK(file_write(paths[1], "bb", 2, NULL));
    ASSERT_OK(lab_digest(files, FILES, digest, NULL));
    EXPECT_TRUE(strcmp(before, digest) != 0);
    files[FILES - 1] = "/proc/nowhere/at/all";
    EXPECT_STATUS(STATUS_NOT_FOUND, lab_digest(files, FILES, digest, NULL));
    EXPECT_STR_EQ("", digest);
}

/* ---- Starters ---- */

C_TEST(starter, lies_among_what_is_given) {
    char path[PATH_SIZE];
    const struct lab *lab;
    ASSERT_OK(lab_find("1", &lab, NULL));
    lab_starter_path(lab, "/course", path, sizeof path);
    EXPECT_STR_EQ("/course/labs/01_cpu_matmul/given/starter.c", path);
    ASSERT_OK(lab_find("04", &lab, NULL));
    lab_starter_path(lab, ".", path, sizeof path);
    EXPECT_STR_EQ("./labs/04_sgemm/given/starter.cu", path);
}

C_TEST(starter, is_the_file_with_its_content) {
    char path[PATH_SIZE], starter[PATH_SIZE];
    test_temporary_path("topic.cu", path, sizeof path);
    test_temporary_path("starter.cu", starter, sizeof starter);
    ASSERT_OK(file_write(path, "slow", 4, NULL));
    EXPECT_TRUE(!lab_file_is(path, "/proc/nowhere/at/all"));
    EXPECT_TRUE(!lab_file_is("/proc/nowhere/at/all", path));
    static const struct {
        const char *starter;
        bool same;
    } cases[] = {{"slow", true}, {"slov", false}, {"slower", false}, {"slo", false}, {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ASSERT_OK(file_write(starter, cases[i].starter, strlen(cases[i].starter), NULL));
        EXPECT_INT_EQ(cases[i].same, lab_file_is(path, starter));
    }
    ASSERT_OK(file_write(path, "", 0, NULL));
    ASSERT_OK(file_write(starter, "", 0, NULL));
    EXPECT_TRUE(lab_file_is(path, starter));
}

/* ---- The table of thresholds ---- */

C_TEST(thresholds, each_lab_has_all_points) {
    for (size_t l = 0; l < LAB_COUNT; l++) {
        int points = PARITY_POINTS, rows = 0;
        const struct threshold *t;
        for (size_t i = 0; (t = threshold_at(i)) != NULL; i++) {
            if (strcmp(t->lab, lab_at(l)->name) == 0) {
                points += t->points;
                rows++;
            }
        }
        EXPECT_INT_EQ(LAB_POINTS, points);
        EXPECT_TRUE(rows > 0 && rows <= MOST_ROWS);
    }
}

C_TEST(thresholds, steps_rise_and_say_why) {
    const struct threshold *t;
    const struct lab *lab;
    for (size_t i = 0; (t = threshold_at(i)) != NULL; i++) {
        EXPECT_OK(lab_find(t->lab, &lab, NULL));
        EXPECT_TRUE(threshold_find(t->lab, t->measure) == t);
        EXPECT_TRUE(t->what[0] != '\0' && t->why[0] != '\0');
        EXPECT_TRUE((t->limit != NULL) == (t->shares.pass > 0.0));
        for (int modelled = 0; modelled < 2; modelled++) {
            struct steps s = threshold_shares(t, modelled != 0);
            EXPECT_TRUE((s.good > 0.0) == (t->gold != NULL));
            EXPECT_TRUE(s.good == 0.0 || (s.pass < s.good && s.good < s.gold));
            EXPECT_INT_EQ(0, t->points * 60 % 100 + t->points * 80 % 100);
        }
    }
}

C_TEST(thresholds, steps_of_a_speedup) {
    const struct steps steps = {2.0, 3.0, 4.0}, flat = {2.0, 0.0, 0.0};
    EXPECT_INT_EQ(STEP_NONE, threshold_step(&steps, 1.99));
    EXPECT_INT_EQ(STEP_PASS, threshold_step(&steps, 2.0));
    EXPECT_INT_EQ(STEP_GOOD, threshold_step(&steps, 3.0));
    EXPECT_INT_EQ(STEP_GOLD, threshold_step(&steps, 4.0));
    EXPECT_INT_EQ(STEP_GOLD, threshold_step(&flat, 2.0));
    EXPECT_INT_EQ(STEP_NONE, threshold_step(&flat, 0.0 / 0.0));
}

/* ---- Labs ---- */

C_TEST(labs, found_by_name_and_number) {
    const struct lab *lab;
    static const char *const good[] = {"04_sgemm", "04", "4"};
    static const char *const bad[] = {"", "0", "16", "004", "sgemm", "04_sgem", "04_sgemm2", "-4"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        EXPECT_OK(lab_find(good[i], &lab, NULL));
        EXPECT_STR_EQ("04_sgemm", lab->name);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error error = {0};
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT, lab_find(bad[i], &lab, &error));
        EXPECT_TRUE(strstr(error.message, "no lab '") != NULL);
    }
}

C_TEST(labs, chosen_by_a_list) {
    const struct lab *chosen[LAB_COUNT];
    bool warmups = true;
    ASSERT_OK(lab_choose("5,04_sgemm", chosen, &warmups, NULL));
    EXPECT_TRUE(!warmups);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        EXPECT_TRUE((chosen[i] != NULL) == (i == 3 || i == 4));
    }
    ASSERT_OK(lab_choose("00", chosen, &warmups, NULL));
    EXPECT_TRUE(warmups && chosen[0] == NULL && chosen[LAB_COUNT - 1] == NULL);
    ASSERT_OK(lab_choose("00_warmups,1", chosen, &warmups, NULL));
    EXPECT_TRUE(warmups && chosen[0] != NULL);
    ASSERT_OK(lab_choose(NULL, chosen, &warmups, NULL));
    EXPECT_TRUE(warmups && chosen[0] != NULL && chosen[LAB_COUNT - 1] != NULL);
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, lab_choose("4,,5", chosen, &warmups, NULL));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, lab_choose("4,99", chosen, &warmups, NULL));
}

/* ---- Records ---- */

#define HEAD "{\"schema\":1,\"lab\":\"04_sgemm\",\"part\":\"parity\","
#define GOOD HEAD "\"test\":\"a\",\"verdict\":\"pass\",\"device\":{\"name\":\"x\"},\"seconds\":1}\n"
#define SLOW HEAD "\"test\":\"b\",\"verdict\":\"slow\",\"measure\":\"b\",\"speedup\":1.5}\n"
#define END(tests) HEAD "\"test\":null,\"verdict\":\"end\",\"tests\":" tests "}\n"

C_TEST(record, sound_only_when_whole) {
    static const struct {
        const char *text;
        int code;
        bool sound;
        size_t strange;
    } cases[] = {
        {GOOD END("1"), 0, true, 0},
        {GOOD SLOW END("2"), 1, true, 0},
        {GOOD END("1"), 1, false, 0},      /* says it is fine, and leaves with 1 */
        {GOOD SLOW END("2"), 0, false, 0}, /* the other way round */
        {GOOD, 0, false, 0},               /* left in the middle */
        {END("0"), 0, false, 0},
        {GOOD END("2"), 0, false, 0}, /* a test is missing */
        {"", 0, false, 0},
        {GOOD "no JSON\n" END("1"), 0, false, 1},
        {GOOD END("1") GOOD, 0, false, 1}, /* something behind the end */
        {GOOD "{\"schema\":2}\n[]\n" END("1"), 0, false, 2},
        {GOOD HEAD "\"test\":\"c\",\"verdict\":\"great\"}\n" END("1"), 0, false, 1},
        {"{\"schema\":1,\"lab\":\"05\",\"part\":\"parity\",\"verdict\":\"end\"}\n" GOOD END("1"), 0,
         false, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char trouble[512];
        char *text = strdup(cases[i].text);
        struct program p = {.ending = ENDING_EXIT, .code = cases[i].code};
        ASSERT_OK(program_read(&p, lab_at(3), PART_PARITY, text, NULL));
        if (program_is_sound(&p) != cases[i].sound || p.strange != cases[i].strange) {
            TEST_FAIL("case %zu: sound %d, %zu strange", i, program_is_sound(&p), p.strange);
        }
        EXPECT_TRUE((program_trouble(&p, trouble, sizeof trouble) == NULL) == cases[i].sound);
        program_free(&p);
        free(text);
    }
}

C_TEST(text, only_what_json_and_xml_can_hold) {
    char out[32];
    text_clean(out, sizeof out, "a\xc3\xa9\x01\x1b[31m\xff\n\tz", false);
    EXPECT_STR_EQ("a\xc3\xa9??[31m?  z", out);
    text_clean(out, sizeof out, "a\nb\xed\xa0\x80\xef\xbf\xbf", true);
    EXPECT_STR_EQ("a\nb??????", out);
    text_clean(out, 3, "a\xc3\xa9", false); /* no half character */
    EXPECT_STR_EQ("a", out);
}

/* ---- Scores ---- */

static void load_made_up(struct run *run, struct run_score *score) {
    struct error error = {0};
    enum status status = run_load(run, made_up, &error);
    EXPECT_STR_EQ("", error.message);
    EXPECT_OK(status);
    score_run(score, run);
}

C_TEST(score, states_and_points) {
    static const struct {
        enum lab_state state;
        int points;
        const char *next, *why;
    } want[LAB_COUNT] = {
        {STATE_GOLD, 100, "done", ""},
        {STATE_SLOW, 68, "//grader:hint -- 02_gpu_matmul", "allowed 0"},
        {STATE_NOT_BEGUN, 0, "labs/03_resident_weights/README.md", "too slow"},
        {STATE_SLOW, 68, "//grader:hint -- 04_sgemm", "end_to_end is too slow"},
        {STATE_WRONG, 0, "bazel test //grader:05_layernorm_softmax_parity", "shapes: shape"},
        {STATE_BROKEN, 0, "bazel test //grader:06_fused_epilogues_parity", "crashed (signal 11"},
        {STATE_BROKEN, 20, "bazel test //grader:07_attention_speedup", "within 600 s"},
        {STATE_NOT_BUILT, 0, "bazel build //grader:08", "was not built"},
        {STATE_PASSED, 82, "gold from 40x on", ""},
        {STATE_NOT_RUN, 0, "--labs 10_llama2_decoder", ""},
        {STATE_NOT_RUN, 0, "--labs 11_training", ""},
        {STATE_NOT_RUN, 0, "--labs 12_tensor_cores", ""},
        {STATE_NOT_RUN, 0, "--labs 13_low_bit", ""},
        {STATE_NOT_RUN, 0, "--labs 14_endless_text", ""},
        {STATE_NOT_RUN, 0, "--labs 15_many_gpus", ""},
    };
    struct run run;
    struct run_score score;
    load_made_up(&run, &score);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        const struct lab_score *s = &score.labs[i];
        EXPECT_STR_EQ(state_name(want[i].state), state_name(s->state));
        EXPECT_INT_EQ(want[i].points, s->points);
        if (strstr(s->next, want[i].next) == NULL || strstr(s->why, want[i].why) == NULL) {
            TEST_FAIL("%s: next \"%s\", why \"%s\"", lab_at(i)->name, s->next, s->why);
        }
    }
    EXPECT_INT_EQ(338, score.points);
    EXPECT_INT_EQ(1500, score.most);
    EXPECT_INT_EQ(13, score.red);
    run_free(&run);
}

C_TEST(score, a_slower_model_loses_its_points_and_is_explained) {
    static const struct {
        double model;
        enum verdict verdict;
        int points;
        bool explained;
    } cases[] = {{3.5, VERDICT_PASS, 20, false},
                 {1.5, VERDICT_SLOW, 10, false},
                 {1.05, VERDICT_SLOW, 0, false},
                 {0.9, VERDICT_SLOW, 0, true},
                 {3.5, VERDICT_FAIL, 0, false}};
    struct run run;
    struct run_score score;
    load_made_up(&run, &score);
    struct lab_run *lab = &run.labs[3];
    struct grade *model = &lab->programs[PART_SPEEDUP].grades[1];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_score s;
        model->speedup = cases[i].model;
        model->verdict = cases[i].verdict;
        lab->programs[PART_SPEEDUP].code = cases[i].verdict != VERDICT_PASS;
        score_lab(&s, lab, "labs");
        EXPECT_INT_EQ(20 + 48 + cases[i].points, s.points);
        EXPECT_TRUE((s.explanation[0] != '\0') == cases[i].explained);
    }
    run_free(&run);
}

/* ---- Formats ---- */

static void check_golden(format_function *format, const char *name) {
    char path[PATH_SIZE], *text = NULL;
    size_t size;
    struct run run;
    struct run_score score;
    load_made_up(&run, &score);
    FILE *out = open_memstream(&text, &size);
    format(out, &run, &score);
    fclose(out);
    snprintf(path, sizeof path, "grader/report/testdata/made_up.%s", name);
    char *want = read_whole(path);
    if (want == NULL || strcmp(want, text) != 0) {
        test_temporary_path(name, path, sizeof path);
        TEST_FAIL("made_up.%s is not what the format gives:\n%s", name, text);
    }
    free(want);
    free(text);
    run_free(&run);
}

#define GOLDEN_TEST(name, extension)            \
    C_TEST(format, name) {                      \
        check_golden(format_##name, extension); \
    }

GOLDEN_TEST(text, "txt")
GOLDEN_TEST(gradescope, "gradescope.json")
GOLDEN_TEST(junit, "junit.xml")
GOLDEN_TEST(markdown, "md")
GOLDEN_TEST(html, "html")

/* What --format=json writes is a run that reads back as the same. */
C_TEST(format, json_reads_back) {
    char path[PATH_SIZE], *texts[2];
    struct run run;
    struct run_score score;
    test_temporary_path("again.json", path, sizeof path);
    load_made_up(&run, &score);
    for (int i = 0; i < 2; i++) {
        size_t size;
        FILE *out = open_memstream(&texts[i], &size);
        format_json(out, &run, &score);
        fclose(out);
        run_free(&run);
        ASSERT_OK(file_write(path, texts[i], size, NULL));
        ASSERT_OK(run_load(&run, path, NULL));
        score_run(&score, &run);
    }
    EXPECT_STR_EQ(texts[0], texts[1]);
    EXPECT_TRUE(strstr(texts[0], "\"state\":\t\"not begun\"") != NULL);
    EXPECT_INT_EQ(338, score.points);
    free(texts[0]);
    free(texts[1]);
    run_free(&run);
}

/* The warm-ups have a line, no points, and survive a file. */
C_TEST(format, warmups_have_a_line_and_no_points) {
    char path[PATH_SIZE], *text;
    size_t size;
    struct run run;
    struct run_score score;
    test_temporary_path("warmups.json", path, sizeof path);
    load_made_up(&run, &score);
    EXPECT_INT_EQ(0, run.warmups.count);
    run.warmups = (struct warmups_run){.done = 12, .count = 32, .digest = "d"};
    ASSERT_OK(memory_save(&run, path, &made_up_key, NULL));
    run_free(&run);
    ASSERT_OK(run_load(&run, path, NULL));
    EXPECT_STR_EQ("d", run.warmups.digest);
    score_run(&score, &run);
    FILE *out = open_memstream(&text, &size);
    format_text(out, &run, &score);
    format_markdown(out, &run, &score);
    format_html(out, &run, &score);
    fclose(out);
    EXPECT_STR_CONTAINS("\n00_warmups                        12 of 32  ", text);
    EXPECT_STR_CONTAINS("  bazel run //labs/00_warmups:check\n", text);
    EXPECT_STR_CONTAINS("| 00_warmups | 12 of 32 |", text);
    EXPECT_STR_CONTAINS("; 12 of 32 warm-ups done;", text);
    EXPECT_STR_CONTAINS("338 / 1500", text);
    free(text);
    run_free(&run);
}

/* Gradescope: scores within their tests' limits, sum of tests = score, known words only. */
C_TEST(format, gradescope_adds_up) {
    char *text = read_whole("grader/report/testdata/made_up.gradescope.json");
    cJSON *json = cJSON_Parse(text);
    const cJSON *test;
    double sum = 0.0, most = 0.0;
    cJSON_ArrayForEach(test, cJSON_GetObjectItem(json, "tests")) {
        double score = cJSON_GetObjectItem(test, "score")->valuedouble;
        double max = cJSON_GetObjectItem(test, "max_score")->valuedouble;
        const char *status = cJSON_GetStringValue(cJSON_GetObjectItem(test, "status"));
        EXPECT_TRUE(score >= 0.0 && score <= max);
        EXPECT_TRUE(strcmp(status, "passed") == 0 || strcmp(status, "failed") == 0);
        EXPECT_TRUE(cJSON_IsString(cJSON_GetObjectItem(test, "name")));
        EXPECT_TRUE(cJSON_IsString(cJSON_GetObjectItem(test, "output")));
        sum += score;
        most += max;
    }
    EXPECT_NEAR(cJSON_GetObjectItem(json, "score")->valuedouble, sum, 0.0);
    EXPECT_NEAR(1500.0, most, 0.0);
    cJSON_Delete(json);
    free(text);
}

/* The line below the lab's own, for kernels that are right and short of gold. */
C_TEST(format, says_why_a_kernel_is_not_faster) {
    char *text, path[300];
    size_t size;
    struct run run;
    struct run_score score;
    load_made_up(&run, &score);
    for (size_t i = 0; i < LAB_COUNT; i++) {
        struct program *p = &run.labs[i].programs[PART_SPEEDUP];
        for (size_t g = 0; g < p->count; g++) {
            snprintf(p->grades[g].why, sizeof p->grades[g].why, "%zu blocks", i + 1);
        }
    }
    test_temporary_path("why.json", path, sizeof path);
    ASSERT_OK(memory_save(&run, path, &made_up_key, NULL));
    run_free(&run);
    ASSERT_OK(run_load(&run, path, NULL));
    score_run(&score, &run);
    FILE *out = open_memstream(&text, &size);
    format_text(out, &run, &score);
    fclose(out);
    EXPECT_STR_CONTAINS("\n  why: 4 blocks\n", text);
    EXPECT_STR_CONTAINS("\n  why: 9 blocks\n", text);
    EXPECT_TRUE(strstr(text, "why: 1 blocks") == NULL); /* gold */
    EXPECT_TRUE(strstr(text, "why: 3 blocks") == NULL); /* not begun */
    EXPECT_TRUE(strstr(text, "why: 7 blocks") == NULL); /* it crashed */
    free(text);
    run_free(&run);
}

C_TEST(format, unknown_one_is_refused) {
    struct error error = {0};
    EXPECT_TRUE(format_find("xml", &error) == NULL);
    EXPECT_STR_EQ("--format is text, json, gradescope, junit, markdown or html, not 'xml'",
                  error.message);
}

C_TEST(format, comparison_of_a_run_with_a_better_one) {
    char *text;
    size_t size;
    struct run a, b;
    struct run_score score;
    load_made_up(&a, &score);
    load_made_up(&b, &score);
    b.labs[8].programs[PART_SPEEDUP].grades[0].speedup = 52.0;
    b.labs[0].programs[PART_SPEEDUP].grades[0].modelled = true;
    b.labs[9].lab = NULL;
    FILE *out = open_memstream(&text, &size);
    format_comparison(out, &a, &b);
    fclose(out);
    EXPECT_TRUE(strstr(text, "26.00x     52.00x   +100.0%") != NULL);
    EXPECT_TRUE(strstr(text, "not to be compared: AMD EPYC (family 26), AMD EPYC (family 26) "
                             "modelled") != NULL);
    EXPECT_TRUE(strstr(text, "82         88   +6") != NULL);
    EXPECT_TRUE(strstr(text, "10_llama2_decoder    only in the first run") != NULL);
    free(text);
    run_free(&a);
    run_free(&b);
}

/* ---- Memory ---- */

C_TEST(memory, finds_what_has_not_changed) {
    struct run run;
    struct run_score score;
    load_made_up(&run, &score);
    const char *digest = run.labs[0].digest;
    EXPECT_TRUE(memory_find(&run, lab_at(0), digest) == &run.labs[0]);
    EXPECT_TRUE(memory_find(&run, lab_at(0), "another") == NULL);
    EXPECT_TRUE(memory_find(&run, lab_at(0), "") == NULL);
    EXPECT_TRUE(memory_find(&run, lab_at(6), run.labs[6].digest) == NULL); /* it hung */
    EXPECT_TRUE(memory_wants(&run.labs[4]));                               /* red, but whole */
    run_free(&run);
}

C_TEST(memory, a_damaged_file_is_kept_and_named) {
    static const char *const damaged[] = {"",
                                          "{\"schema\":1,\"labs\":[{\"lab\":\"04_sgemm\"}]}",
                                          "{\"schema\":1,\"labs\":[{}]}",
                                          "{\"schema\":7}",
                                          "\xff",
                                          "{\"schema\":1,\"la"};
    char path[PATH_SIZE], aside[PATH_SIZE + 32];
    test_temporary_path("memory.json", path, sizeof path);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct run memory;
        struct error error = {0};
        ASSERT_OK(file_write(path, damaged[i], strlen(damaged[i]), NULL));
        EXPECT_OK(memory_load(&memory, path, &made_up_key, &error));
        snprintf(aside, sizeof aside, i == 0 ? "%s.broken" : "%s.broken.%zu", path, i + 1);
        EXPECT_TRUE(strstr(error.message, "begun anew, the old file is ") != NULL);
        EXPECT_TRUE(strstr(error.message, aside) != NULL);
        EXPECT_TRUE(access(path, F_OK) != 0);
        char *kept = read_whole(aside);
        EXPECT_STR_EQ(damaged[i], kept);
        EXPECT_TRUE(memory.labs[3].lab == NULL);
        free(kept);
    }
    struct run memory;
    struct error error = {0};
    EXPECT_OK(memory_load(&memory, path, &made_up_key, &error)); /* no file: nothing to say */
    EXPECT_STR_EQ("", error.message);
}

/* As RFC 2202 has them. */
C_TEST(signature, is_hmac_sha1) {
    char text[SHA1_TEXT];
    unsigned char key[80];
    memset(key, 0x0b, 20);
    signature_hmac(key, 20, "Hi There", 8, text);
    EXPECT_STR_EQ("b617318655057264e28bc0b6fb378c8ef146be00", text);
    signature_hmac("Jefe", 4, "what do ya want for nothing?", 28, text);
    EXPECT_STR_EQ("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79", text);
    EXPECT_TRUE(signature_equal(text, text));
    EXPECT_TRUE(!signature_equal(text, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c78"));
    EXPECT_TRUE(!signature_equal(text, ""));
}

/* Loads what is at `path`, which nobody with the key has written so. */
static void expect_not_signed(const char *path, const struct signature_key *key) {
    struct run memory;
    struct error error = {0};
    EXPECT_OK(memory_load(&memory, path, key, &error));
    EXPECT_STR_CONTAINS(" was not signed with ", error.message);
    EXPECT_TRUE(memory.labs[0].lab == NULL);
    EXPECT_TRUE(access(path, F_OK) == 0);
    run_free(&memory);
}

C_TEST(memory, is_believed_where_it_is_signed) {
    char path[PATH_SIZE];
    struct run run, memory;
    struct run_score score;
    struct error error = {0};
    const struct signature_key other = {.bytes = {1}, .path = "another key"};
    load_made_up(&run, &score);
    test_temporary_path("signed.json", path, sizeof path);
    ASSERT_OK(memory_save(&run, path, &made_up_key, NULL));
    EXPECT_OK(memory_load(&memory, path, &made_up_key, &error));
    EXPECT_STR_EQ("", error.message);
    EXPECT_STR_EQ(run.labs[0].digest, memory.labs[0].digest);
    run_free(&memory);
    expect_not_signed(path, &other);
    char *text = read_whole(path);
    char *slow = strstr(text, "\"slow\"");
    ASSERT_TRUE(slow != NULL);
    memcpy(slow, "\"pass\"", 6);
    ASSERT_OK(file_write(path, text, strlen(text), NULL));
    expect_not_signed(path, &made_up_key);
    free(text);
    ASSERT_OK(file_write(path, "{\"schema\":1,\"labs\":[]}", 23, NULL));
    expect_not_signed(path, &made_up_key);
    run_free(&run);
}

/* ---- Hints ---- */

C_TEST(hints, found_in_a_handout) {
    static const char handout[] = "# Lab\n<details><summary>Not a hint</summary>\nno\n</details>\n"
                                  "<details><summary>Hint 1: first</summary>\n\nOne.\n\nMore.\n"
                                  "</details>\ntext\n"
                                  "<details><summary>Hint 2: second</summary>\nTwo.\n</details>\n"
                                  "<details><summary>Hint 3: has no end</summary>\n";
    struct hint hints[MOST_HINTS];
    ASSERT_TRUE(hints_find(handout, hints) == 2);
    EXPECT_INT_EQ(0, strncmp(hints[0].title, "Hint 1: first", hints[0].title_length));
    EXPECT_INT_EQ(strlen("One.\n\nMore."), hints[0].body_length);
    EXPECT_INT_EQ(0, strncmp(hints[1].body, "Two.", hints[1].body_length));
    EXPECT_INT_EQ(0, hints_find("", hints));
}
