/* The recorded export of kernels whose counts follow from arithmetic; and texts that are wrong. */
#include "common/simt/nsight/nsight.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "common/base/file.h"
#include "common/testing/fixture.h"
#include "common/testing/testing.h"

#define RECORDED "common/simt/nsight/testdata/known_h100.csv"

/* Warps of each kernel: 264 blocks of 128 threads. */
enum { WARPS = 264 * 128 / 32 };

struct sample {
    struct nsight_report report;
    char *json;
    size_t size;
    cJSON *data;
};

static bool sample_open(struct sample *s) {
    struct error error = {0};
    char *text = NULL;
    size_t size;
    *s = (struct sample){.size = 0};
    bool good = file_read(RECORDED, 1 << 20, &text, &size, &error) == STATUS_OK &&
                nsight_read(&s->report, text, size, RECORDED, &error) == STATUS_OK;
    free(text);
    FILE *stream = good ? open_memstream(&s->json, &s->size) : NULL;
    if (stream == NULL) {
        TEST_FAIL("%s", error.message);
        return false;
    }
    nsight_print_json(&s->report, stream);
    fclose(stream);
    s->data = cJSON_Parse(s->json);
    return s->data != NULL;
}

static void sample_close(struct sample *s) {
    cJSON_Delete(s->data);
    free(s->json);
    nsight_free(&s->report);
}

#define RECORD_TEST(name) \
    FIXTURE_TEST(nsight, name, struct sample, s, sample_open(s), sample_close(s))

static const struct nsight_launch *launch_of(const struct sample *s, const char *kernel) {
    for (size_t i = 0; i < s->report.launch_count; i++) {
        if (strncmp(s->report.launches[i].kernel, kernel, strlen(kernel)) == 0) {
            return &s->report.launches[i];
        }
    }
    TEST_FAIL("no launch of %s", kernel);
    return &s->report.launches[0];
}

static struct nsight_line line_of(const struct sample *s, const char *kernel, const char *file,
                                  uint32_t number) {
    const struct nsight_launch *launch = launch_of(s, kernel);
    for (size_t n = 0; n < launch->line_count; n++) {
        const char *name = s->report.files[launch->lines[n].file];
        if (launch->lines[n].line == number && strstr(name, file) != NULL) {
            return launch->lines[n];
        }
    }
    TEST_FAIL("%s has no line %u of %s", kernel, number, file);
    return (struct nsight_line){0};
}

RECORD_TEST(launches_have_shape_and_occupancy) {
    const struct nsight_launch *column = launch_of(s, "column");
    EXPECT_STR_EQ("NVIDIA H100 80GB HBM3", s->report.gpu);
    EXPECT_INT_EQ(264, column->grid[0]);
    EXPECT_INT_EQ(1, column->grid[2]);
    EXPECT_INT_EQ(128, column->block[0]);
    EXPECT_NEAR(132, column->metrics[NSIGHT_MULTIPROCESSORS], 0);
    EXPECT_NEAR(16384, column->metrics[NSIGHT_STATIC_SHARED], 0);
    EXPECT_NEAR(64, column->metrics[NSIGHT_MOST_WARPS], 0);
    EXPECT_TRUE(column->metrics[NSIGHT_TIME] > 1e-6 && column->metrics[NSIGHT_TIME] < 1e-4);
    EXPECT_TRUE(column->metrics[NSIGHT_CLOCK] > 1e9 && column->metrics[NSIGHT_CLOCK] < 3e9);
}

/* in[i * 8]: each lane a sector of its own, where 4 would do. */
RECORD_TEST(a_stride_takes_eight_times_the_sectors) {
    struct nsight_line load = line_of(s, "strided", "known.cu", 6);
    struct nsight_line store = line_of(s, "strided", "known.cu", 7);
    EXPECT_NEAR(32 * WARPS, load.sectors, 0);
    EXPECT_NEAR(4 * WARPS, load.least_sectors, 0);
    EXPECT_NEAR(4 * WARPS, store.sectors, 0);
    EXPECT_NEAR(4 * WARPS, store.least_sectors, 0);
    EXPECT_NEAR(0, load.wavefronts, 0);
    EXPECT_NEAR(32, load.lanes / load.instructions, 0);
    EXPECT_STR_EQ("float value = in[i * 8];", load.text);
}

/* tile[lane * 32 + row]: all lanes at one bank, 32 times. */
RECORD_TEST(a_column_takes_32_times_the_wavefronts) {
    struct nsight_line load = line_of(s, "column", "known.cu", 20);
    EXPECT_NEAR(32 * 32 * WARPS, load.wavefronts, 0);
    EXPECT_NEAR(32 * WARPS, load.least_wavefronts, 0);
    EXPECT_NEAR(0, load.sectors, 0);
    double samples = 0;
    for (size_t n = 0; n < NSIGHT_STALL_COUNT; n++) {
        samples += load.samples[n];
    }
    EXPECT_TRUE(load.samples[NSIGHT_STALL_SHARED] > 0.5 * samples);
}

RECORD_TEST(an_inlined_function_is_a_second_file) {
    struct nsight_line inlined = line_of(s, "mixed", "known_inline.cuh", 9);
    EXPECT_STR_EQ("float low = four.x + four.y;", inlined.text);
    EXPECT_NEAR(WARPS, inlined.instructions, 0);
    /* A third of the lanes goes on behind the condition. */
    struct nsight_line branch = line_of(s, "mixed", "known.cu", 30);
    EXPECT_TRUE(branch.lanes / branch.instructions < 16);
}

static const cJSON *child(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItem(object, key);
    if (item == NULL) {
        TEST_FAIL("no \"%s\" in the data", key);
    }
    return item;
}

static double number(const cJSON *object, const char *key) {
    const cJSON *item = child(object, key);
    return item != NULL ? item->valuedouble : NAN;
}

RECORD_TEST(data_is_that_of_a_measured_page) {
    EXPECT_STR_EQ("Nsight Compute", cJSON_GetStringValue(child(s->data, "measured")));
    EXPECT_INT_EQ(NSIGHT_STALL_COUNT, cJSON_GetArraySize(child(s->data, "stalls")));
    EXPECT_TRUE(memchr(s->json, '<', s->size) == NULL);
    const cJSON *launch = cJSON_GetArrayItem(child(s->data, "launches"), 1);
    EXPECT_NEAR(2, number(child(launch, "of"), "resident"), 0);
    EXPECT_NEAR(13, number(child(launch, "of"), "fits"), 0);
    EXPECT_NEAR((1024 - 32) * WARPS, number(child(launch, "counters"), "shared_bank_conflicts"), 0);
    /* 32 additions a thread. */
    EXPECT_NEAR(32 * 32 * WARPS, number(child(launch, "counters"), "flops"), 0);
    double share = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, child(launch, "stall")) {
        share += item->valuedouble;
    }
    EXPECT_NEAR(1, share, 1e-3);
    const cJSON *name = child(cJSON_GetArrayItem(child(s->data, "files"), 0), "name");
    EXPECT_STR_EQ("common/simt/nsight/testdata/known.cu", cJSON_GetStringValue(name));
}

/* ---- Texts ---- */

#define COLUMNS                                                                       \
    "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"gpu__time_duration.sum\"," \
    "\"launch__sm_count\"\n"
#define UNITS "\"\",\"\",\"\",\"\",\"us\",\"SM\"\n"
#define LAUNCH(kernel) "\"0\",\"" kernel "\",\"(32, 1, 1)\",\"(8, 2, 1)\",\"1,003.5\",\"132\"\n"
#define FILE_OF(path, function) "\"File Path\",\"" path "\"\n\"Function Name\",\"" function "\"\n"
#define HEADS                                                                  \
    "\"Line No\",\"Source\",\"Address\",\"Source\",\"Instructions Executed\"," \
    "\"Thread Instructions Executed\",\"L2 Theoretical Sectors Global\",\"x\"\n"
#define ROW(line, text) "\"" line "\",\"" text "\",\"-\",\"-\",\"10\",\"320\",\"1,040\",\"-\"\n"

static enum status read_text(const char *text, struct nsight_report *report, struct error *error) {
    char *copy = strdup(text);
    *report = (struct nsight_report){0};
    enum status status = nsight_read(report, copy, strlen(copy), "t.csv", error);
    free(copy);
    return status;
}

C_TEST(nsight, texts_of_lines_may_hold_quotes_and_commas) {
    struct nsight_report report;
    struct error error = {0};
    ASSERT_OK(read_text("==PROF== Connected\n" COLUMNS UNITS LAUNCH("k(int)") "\n" FILE_OF(
                            "/b/execroot/w/a.cu", "k(int)") HEADS ROW("3", "f(\"a\",\"b\", 'c');")
                            ROW("4", "") ROW("5", "\""),
                        &report, &error));
    EXPECT_INT_EQ(3, report.launches[0].line_count);
    EXPECT_STR_EQ("f(\"a\",\"b\", 'c');", report.launches[0].lines[0].text);
    EXPECT_STR_EQ("", report.launches[0].lines[1].text);
    EXPECT_STR_EQ("\"", report.launches[0].lines[2].text);
    EXPECT_NEAR(1040, report.launches[0].lines[2].sectors, 0);
    EXPECT_NEAR(1.0035e-3, report.launches[0].metrics[NSIGHT_TIME], 1e-12);
    EXPECT_STR_EQ("a.cu", report.files[0]);
    nsight_free(&report);
}

#define INSTRUCTION(text, count) \
    "\"\",\"\",\"0x10\",\"      " text "\",\"" count "\",\"320\",\"0\",\"-\"\n"

C_TEST(nsight, tensor_cores_are_seen_by_their_instructions) {
    static const struct {
        const char *text;
        bool tensor;
    } cases[] = {
        {INSTRUCTION("HMMA.16816.F32 R4, R8, R2, R4", "10"), true},
        {INSTRUCTION("@!P0 HGMMA.64x64x16.F32 R24, gdesc[UR4]", "10"), true},
        {INSTRUCTION("HMMA.16816.F32 R4, R8, R2, R4", "0"), false},
        {INSTRUCTION("HFMA2.MMA R0, -RZ, RZ, 0, 0", "10"), false},
        {INSTRUCTION("FFMA R0, R1, R2, R3", "10"), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nsight_report report;
        struct error error = {0};
        char text[2000];
        snprintf(text, sizeof text, "%s%s",
                 COLUMNS UNITS LAUNCH("k") FILE_OF("a.cu", "k") HEADS ROW("3", "x"), cases[i].text);
        EXPECT_OK(read_text(text, &report, &error));
        EXPECT_TRUE(report.launches[0].tensor == cases[i].tensor);
        nsight_free(&report);
    }
}

/* Each section goes to the next launch of its kernel; one without lines is passed over, and a
 * function that is no kernel belongs to the launch in front of it. */
C_TEST(nsight, sections_find_their_launches) {
    struct nsight_report report;
    struct error error = {0};
    ASSERT_OK(read_text(COLUMNS UNITS LAUNCH("a(int)") LAUNCH("void b<2>(int)") LAUNCH("a(int)")
                            FILE_OF("a.cu", "a(int)") HEADS ROW("1", "x") FILE_OF("h.cuh", "a(int)")
                                HEADS ROW("2", "y") FILE_OF("a.cu", "a(int)") HEADS ROW("1", "x")
                                    FILE_OF("h.cuh", "helper(int)") HEADS ROW("9", "z"),
                        &report, &error));
    EXPECT_INT_EQ(2, report.launches[0].line_count);
    EXPECT_INT_EQ(0, report.launches[1].line_count);
    EXPECT_INT_EQ(2, report.launches[2].line_count);
    EXPECT_INT_EQ(9, report.launches[2].lines[1].line);
    nsight_free(&report);
}

static void expect_wrong(const char *text, const char *words) {
    struct nsight_report report;
    struct error error = {0};
    EXPECT_INT_EQ(STATUS_BAD_FORMAT, read_text(text, &report, &error));
    if (strstr(error.message, words) == NULL) {
        TEST_FAIL("'%s' says not '%s'", error.message, words);
    }
    nsight_free(&report);
}

C_TEST(nsight, what_is_unexpected_is_one_line) {
    expect_wrong("", "t.csv: no launch");
    expect_wrong("hello\n", "t.csv:1: Nsight Compute's raw page must come first");
    expect_wrong(FILE_OF("a.cu", "a(int)"), "t.csv:1: Nsight Compute's raw page must come first");
    expect_wrong(COLUMNS, "t.csv:1: the raw page's second line");
    expect_wrong(COLUMNS "\"\",\"\"\n", "t.csv:2: the raw page's second line");
    expect_wrong(COLUMNS "\"\",\"\",\"\",\"\",\"byte\",\"SM\"\n",
                 "t.csv:2: gpu__time_duration.sum has the unknown unit 'byte'");
    expect_wrong("\"ID\",\"Kernel Name\"\n", "no column \"Kernel Name\", \"Block Size\"");
    expect_wrong("\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\"\n\"\",\"\",\"\",\"\"\n",
                 "t.csv:1: no column gpu__time_duration.sum");
    expect_wrong(COLUMNS UNITS "\"0\",\"k\"\n", "t.csv:3: the row has not as many columns");
    expect_wrong(COLUMNS UNITS "\"0\",\"k\",\"(0, 1, 1)\",\"(1, 1, 1)\",\"1\",\"132\"\n",
                 "t.csv:3: block and grid must be three sizes");
    expect_wrong(COLUMNS UNITS "\"0\",\"k\",\"(1, 1, 1)\",\"(1, 1, 1)\",\"n/a\",\"132\"\n",
                 "t.csv:3: gpu__time_duration.sum is no time");
    expect_wrong(COLUMNS UNITS LAUNCH("k") FILE_OF("a.cu", "k") "\"Line No\",\"Source\"\n",
                 "t.csv:6: no columns of source lines");
    expect_wrong(COLUMNS UNITS LAUNCH("k") FILE_OF("a.cu", "k") HEADS "\"0\",\"x\"\n",
                 "t.csv:7: no number of a source line");
    expect_wrong(COLUMNS UNITS LAUNCH("k") FILE_OF("a.cu", "k") HEADS "\"7\",\"x\",\"-\"\n",
                 "t.csv:7: the row has not as many columns as its section");
    expect_wrong(COLUMNS UNITS LAUNCH("k") "\"Kernel Name\",\"k\",\n",
                 "t.csv:4: not a line of Nsight Compute's source page");
}

/* ---- A script in the place of ncu ---- */

static void expect_profile(const char *script, enum status wanted, const char *words) {
    char path[512], *arguments[] = {(char *)"/bin/true", NULL};
    struct error error = {0};
    test_temporary_path("ncu", path, sizeof path);
    ASSERT_OK(file_write(path, script, strlen(script), &error));
    EXPECT_INT_EQ(0, chmod(path, 0700));
    *strrchr(path, '/') = '\0';
    setenv("PATH", path, 1);
    EXPECT_STATUS(wanted, nsight_profile(arguments, "/dev/null", &error));
    if (strstr(error.message, words) == NULL) {
        TEST_FAIL("'%s' says not '%s'", error.message, words);
    }
}

C_TEST(nsight, a_profile_that_fails_is_one_line) {
    expect_profile("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - no permission' >&2\nexit 1\n",
                   STATUS_UNSUPPORTED, "the driver lets only root read the GPU's counters");
    expect_profile("#!/bin/sh\necho '==WARNING== No kernels were profiled.'\n", STATUS_DEVICE,
                   "ncu profiled no kernel");
    expect_profile(
        "#!/bin/sh\necho '==ERROR== The application returned an error code (3).'\nexit 3\n",
        STATUS_DEVICE, "ncu ended with 3: The application returned an error code (3).");
    setenv("PATH", "/no/such/folder", 1);
    setenv("CUDA_HOME", "/no/such/folder", 1);
    struct error error = {0};
    char path[64];
    EXPECT_STATUS(STATUS_NOT_FOUND, nsight_find(path, sizeof path, &error));
}
