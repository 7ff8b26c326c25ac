/**
 * @file classifier_programs_test.c
 * @brief Runs classify and evaluate in this process, so that sanitizers check them: good runs, and
 *        bad ones, which must print one clear line. Shell tests of the programs are in lab 08.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/programs/classifier/classify.h"
#include "common/programs/classifier/evaluate.h"
#include "common/programs/program.h"
#include "common/testing/testing.h"

static enum status create(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    (void)error;
    return engine_reference_create(engine);
}

static enum status no_memory(struct engine *engine, int threads, struct error *error) {
    (void)engine;
    (void)threads;
    return error_set(error, STATUS_OUT_OF_MEMORY, "no memory here");
}

static enum status create16(struct engine *engine, enum nn_dtype dtype, struct error *error) {
    return dtype == NN_BF16 ? create(engine, 1, error)
                            : error_set(error, STATUS_UNSUPPORTED, "no fp16 here");
}

static enum status no_device(struct program_device *device, struct error *error) {
    (void)device;
    return error_set(error, STATUS_NO_DEVICE, "no GPU here");
}

static double no_clock(void) {
    return 0.0;
}

static const struct classifier_stage table[] = {
    {"reference", false, create, NULL},
    {"broken", false, no_memory, NULL},
    {"gpu", true, create, NULL},
    {"last", false, create, create16},
};
static const struct classifier_stages stages = {
    .table = table, .count = 4, .open_device = no_device, .device_now = no_clock};
static const struct classifier_stages no_stages = {.table = table, .count = 0};

/* Reads logits, then sends this program Ctrl-C. */
static enum status read_and_interrupt(void *context, void *host, const void *resident,
                                      size_t bytes) {
    (void)context;
    memcpy(host, resident, bytes);
    if (interrupt_seen() == 0) {
        raise(SIGINT);
    }
    return STATUS_OK;
}

static enum status create_interrupted(struct engine *engine, int threads, struct error *error) {
    enum status status = create(engine, threads, error);
    engine->read = read_and_interrupt;
    return status;
}

static const struct classifier_stage interrupted_table[] = {
    {"interrupted", false, create_interrupted, NULL}};
static const struct classifier_stages interrupted = {.table = interrupted_table, .count = 1};

typedef int main_function(int argc, char **argv, const struct classifier_stages *stages);

/* Runs a program with these arguments. @param out, err receive its standard output and error */
static int run(main_function *program, const struct classifier_stages *on, const char *words,
               char *out, char *err, size_t room) {
    char text[512];
    char *arguments[32] = {"program"};
    int count = 1;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        arguments[count++] = strcmp(word, "''") == 0 ? "" : word;
    }
    char *const buffers[2] = {out, err};
    FILE *const streams[2] = {stdout, stderr};
    FILE *files[2];
    int saved[2];
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        files[i] = tmpfile();
        saved[i] = dup(fileno(streams[i]));
        dup2(fileno(files[i]), fileno(streams[i]));
    }
    int code = program(count, arguments, on);
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        dup2(saved[i], fileno(streams[i]));
        close(saved[i]);
        rewind(files[i]);
        buffers[i][fread(buffers[i], 1, room - 1, files[i])] = '\0';
        fclose(files[i]);
    }
    return code;
}

enum { ROOM = 4096 };

static void refuses(main_function *program, const struct classifier_stages *on, const char *words,
                    const char *want) {
    char out[ROOM], err[ROOM];
    EXPECT_INT_EQ(1, run(program, on, words, out, err, ROOM));
    EXPECT_STR_EQ("", out);
    const char *line_end = strchr(err, '\n');
    if (strstr(err, want) == NULL || line_end == NULL || line_end[1] != '\0') {
        TEST_FAIL("%s: want one line with '%s', got '%s'", words, want, err);
    }
}

/* Enters a folder that looks like the course, but has no data sets. */
static void enter_bare_course(void) {
    char root[1024], file[1100];
    unsetenv("RUNFILES_DIR");
    unsetenv("BUILD_WORKSPACE_DIRECTORY");
    mkdir(test_temporary_path("bare", root, sizeof root), 0755);
    snprintf(file, sizeof file, "%s/WORKSPACE", root);
    ASSERT_OK(file_write(file, "", 0, NULL));
    ASSERT_TRUE(chdir(root) == 0);
}

C_TEST(classify, refuses_bad_command_lines_and_texts) {
    static const struct {
        const char *words, *want;
    } cases[] = {
        {"a",
         "no --checkpoint given, and datasets/reviews_bert is not there: give --checkpoint DIR"},
        {"--random --checkpoint x a", "give --checkpoint or --random, not both"},
        {"--random --batch-size 0 a", "--batch-size 0: must be from 1 to 4096"},
        {"--random --max_length 2 a", "--max-length 2: must be at least 3"},
        {"--random --max-length 129 a", "--max-length 129: the model has 128 positions"},
        {"--random --device tpu a", "--device is 'auto', 'gpu' or 'cpu', not 'tpu'"},
        {"--random --stage x a",
         "--stage 'x': unknown stage; choose one of reference, broken, gpu, last"},
        {"--random --stage broken a", "cannot start the engine broken: no memory here"},
        {"--random --device gpu a", "no GPU here"},
        {"--random --dtype fp8 a", "--dtype is 'fp32', 'fp16' or 'bf16', not 'fp8'"},
        {"--random --dtype fp16 a", "cannot start the engine last: no fp16 here"},
        {"--random --dtype bf16 --stage reference a",
         "cannot start the engine reference: --dtype bf16: it computes in fp32 only; stages with "
         "bf16: last"},
        {"--random --shape x a", "--shape is 'tiny' or 'base', not 'x'"},
        {"--random --vocab /proc/nowhere a", "/proc/nowhere: cannot open"},
        {"--checkpoint /proc/nowhere a", "/proc/nowhere/config.json: cannot open"},
        {"--checkpoint /proc/nowhere/x.safetensors a", "/proc/nowhere/config.json: cannot open"},
        {"--random ''", "argument 1: there is no text"},
        {"--random a ''", "argument 2: there is no text"},
        {"--random a\xff", "argument 1: not valid UTF-8 at byte 1"},
        {"--random --file /proc/nowhere", "/proc/nowhere: cannot open"},
        {"--random --file /dev/null", "/dev/null"},
        {"--random --file /proc/nowhere a", "give texts as arguments or with --file, not both"},
    };
    enter_bare_course();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuses(classify_main, &stages, cases[i].words, cases[i].want);
    }
    refuses(classify_main, &no_stages, "--random a", "this build has no stage for --device cpu");
}

C_TEST(classify, answers_a_line_a_text) {
    char out[ROOM], err[ROOM];
    EXPECT_INT_EQ(
        0, run(classify_main, &stages, "--random --batch-size 2 one two three", out, err, ROOM));
    EXPECT_STR_EQ("classify: random weights: the answers mean nothing\n", err);
    int lines = 0;
    for (const char *c = out; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    EXPECT_INT_EQ(3, lines);
    EXPECT_TRUE(strncmp(out, "LABEL_", 6) == 0);
    EXPECT_INT_EQ(0, run(classify_main, &stages, "--random --dtype bf16 one", out, err, ROOM));
    EXPECT_TRUE(strncmp(out, "LABEL_", 6) == 0);
    EXPECT_INT_EQ(0, run(classify_main, &stages, "--help", out, err, ROOM));
    EXPECT_TRUE(strstr(out, "--max-length") != NULL);
}

C_TEST(classify, answers_stay_after_a_signal) {
    char path[1024], words[1200], out[ROOM], err[ROOM];
    test_temporary_path("logits", path, sizeof path);
    snprintf(words, sizeof words, "--random --batch-size 2 --logits %.900s a b c d e", path);
    EXPECT_INT_EQ(130, run(classify_main, &interrupted, words, out, err, ROOM));
    int lines = 0;
    for (const char *c = out; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    EXPECT_INT_EQ(2, lines);
    EXPECT_TRUE(strstr(err, "classify: interrupted after 2 texts; the file of --logits is not "
                            "written\n") != NULL);
    EXPECT_TRUE(access(path, F_OK) != 0);
}

C_TEST(classify, prints_an_object_a_text) {
    char out[ROOM], err[ROOM];
    EXPECT_INT_EQ(0, run(classify_main, &stages, "--random --json \"one\"", out, err, ROOM));
    EXPECT_TRUE(strstr(out, "{\"text\":\"\\\"one\\\"\",\"label\":\"LABEL_") == out);
    EXPECT_TRUE(strstr(out, "\",\"probabilities\":{\"LABEL_0\":0.") != NULL);
    EXPECT_TRUE(strstr(out, "},\"cut\":false}\n") != NULL);
}

C_TEST(evaluate, refuses_bad_command_lines_and_data) {
    char path[1024], words[1400];
    test_temporary_path("broken.csv", path, sizeof path);
    ASSERT_OK(file_write(path, "1,a,b\n\"2\",\"open\n", 16, NULL));
    snprintf(words, sizeof words, "--random --dataset agnews --data %.400s", path);
    refuses(evaluate_main, &stages, words, "line 2: the quote that opens here is never closed");
    refuses(evaluate_main, &stages, "--random", "give --data FILE with labelled texts of your own");
    refuses(evaluate_main, &stages, "--random --dataset x --data y", "a data set is 'imdb'");
    refuses(evaluate_main, &stages, "--random --dataset imdb --data /proc/nowhere",
            "/proc/nowhere: cannot open");
    refuses(evaluate_main, &stages, "--random --dataset imdb --data x --limit -1", "--limit -1");
    refuses(evaluate_main, &stages, "--random --dataset imdb --data x more",
            "unexpected argument 'more'");
}

/* Random weights have no names of labels, so they get those of the texts. */
C_TEST(evaluate, reads_own_labels_and_writes_json) {
    char path[1024], answers[1024], words[2048], out[ROOM], err[ROOM];
    static const char csv[] = "text,label\r\nfine,good\r\n\"so, \"\"so\"\"\",not bad\r\nx,bad\r\n";
    char *written;
    size_t size;
    ASSERT_OK(
        file_write(test_temporary_path("own.csv", path, sizeof path), csv, sizeof csv - 1, NULL));
    test_temporary_path("own.jsonl", answers, sizeof answers);
    snprintf(words, sizeof words, "--random --data %.200s --json --predictions %.200s", path,
             answers);
    EXPECT_INT_EQ(0, run(evaluate_main, &stages, words, out, err, ROOM));
    EXPECT_STR_EQ("", err);
    EXPECT_TRUE(strstr(out, "own.csv\",\"texts\":3,\"cut\":0,") != NULL);
    EXPECT_TRUE(strstr(out, "\"random_weights\":true,") != NULL);
    EXPECT_TRUE(strstr(out, "{\"label\":\"not bad\",\"precision\":") != NULL);
    EXPECT_TRUE(strchr(out, '\n') == out + strlen(out) - 1);
    ASSERT_OK(file_read(answers, 4096, &written, &size, NULL));
    EXPECT_TRUE(strstr(written, "{\"text\":\"fine\",\"label\":\"good\",\"answer\":\"") == written);
    EXPECT_TRUE(strstr(written, "\n{\"text\":\"so, \\\"so\\\"\",\"label\":\"not bad\"") != NULL);
    free(written);
}

C_TEST(evaluate, finds_the_projects_own_sentences) {
    char root[1024], path[1200], out[ROOM], err[ROOM];
    static const char texts[] = "pos\tgood\nneg\tbad\npos\tfine\n";
    enter_bare_course();
    refuses(evaluate_main, &stages, "--random --dataset sample",
            "no --data given, and datasets/reviews_sample.tsv is not there");
    mkdir(test_temporary_path("course", root, sizeof root), 0755);
    snprintf(path, sizeof path, "%s/datasets", root);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/datasets/reviews_sample.tsv", root);
    ASSERT_OK(file_write(path, texts, sizeof texts - 1, NULL));
    setenv("BUILD_WORKSPACE_DIRECTORY", root, 1);
    EXPECT_INT_EQ(0, run(evaluate_main, &stages, "--random --dataset sample", out, err, ROOM));
    EXPECT_TRUE(strstr(out, "sample, test: 3 texts") != NULL);
    unsetenv("BUILD_WORKSPACE_DIRECTORY");
}

C_TEST(evaluate, prints_figures_and_writes_answers) {
    char path[1024], answers[1024], words[2048], out[ROOM], err[ROOM];
    static const char csv[] = "1,a,b\n2,c,d\n3,e,f\n4,g,h\n1,i,j\n";
    char *written;
    size_t size;
    ASSERT_OK(
        file_write(test_temporary_path("news.csv", path, sizeof path), csv, sizeof csv - 1, NULL));
    test_temporary_path("answers", answers, sizeof answers);
    snprintf(words, sizeof words,
             "--random --dataset agnews --data %.200s --batch-size 2 --predictions %.200s", path,
             answers);
    EXPECT_INT_EQ(0, run(evaluate_main, &stages, words, out, err, ROOM));
    EXPECT_STR_EQ("", err);
    EXPECT_TRUE(strstr(out, "agnews, test: 5 texts") != NULL);
    EXPECT_TRUE(strstr(out, "stage last on the CPU, batches of 2, packed") != NULL);
    EXPECT_TRUE(strstr(out, "macro F1") != NULL);
    ASSERT_OK(file_read(answers, 4096, &written, &size, NULL));
    EXPECT_TRUE(strncmp(written, "World\t", 6) == 0);
    free(written);
}

C_TEST(evaluate, figures_stay_after_a_signal) {
    char path[1024], answers[1024], words[2048], out[ROOM], err[ROOM];
    static const char csv[] = "1,a,b\n2,c,d\n3,e,f\n4,g,h\n1,i,j\n";
    ASSERT_OK(file_write(test_temporary_path("some_news.csv", path, sizeof path), csv,
                         sizeof csv - 1, NULL));
    test_temporary_path("no_answers", answers, sizeof answers);
    snprintf(words, sizeof words,
             "--random --dataset agnews --data %.200s --batch-size 2 --predictions %.200s", path,
             answers);
    EXPECT_INT_EQ(130, run(evaluate_main, &interrupted, words, out, err, ROOM));
    EXPECT_STR_EQ("evaluate: interrupted after 2 of 5 texts, long ones first: no figures of the "
                  "others\n",
                  err);
    EXPECT_TRUE(strstr(out, "agnews, test: 2 texts") != NULL);
    EXPECT_TRUE(strstr(out, "macro F1") != NULL);
    EXPECT_TRUE(access(answers, F_OK) != 0);
}
