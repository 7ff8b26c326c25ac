/* A page of the kernel "sites": its data, read back, and what a page must not hold. */
#include "common/simt/runtime/xray/xray_page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { BLOCKS = 6, STRIDE = 8, LOAD = 5, STORE_SHARED = 6 };

/** One recorded launch, its page, and the page's data. */
struct sample {
    struct launch_testing t;
    struct xray xray;
    char *page;
    size_t size;
    cJSON *data;
};

static const struct xray_facts FACTS = {
    .kernel = "sites<2>(float*)",
    .grid = {BLOCKS, 1, 1},
    .block = {32, 1, 1},
    .registers = 16,
    .fits = 32,
    .by_blocks = 32,
    .by_threads = 64,
    .by_shared = 50,
    .by_registers = SIZE_MAX,
};

static bool launch(struct launch_testing *t, struct simt_sites *sites, struct simt_xray *raw) {
    struct {
        uint64_t out, in;
        int stride;
    } parameters = {launch_testing_upload(t, NULL, sizeof(float[BLOCKS * 32 + 32])),
                    launch_testing_upload(t, (float[32 * STRIDE]){0}, sizeof(float[32 * STRIDE])),
                    STRIDE};
    return launch_testing_run_clean(t, LAUNCH(.kernel = "sites", .grid = {BLOCKS}, .threads = {32},
                                              .parameters = &parameters, .bounds_only = true,
                                              .sites = sites, .xray = raw));
}

static void add_launch(struct sample *s) {
    struct simt_sites sites = {0};
    struct simt_xray raw = {0};
    struct xray_facts facts = FACTS;
    if (launch(&s->t, &sites, &raw) && xray_wants(&s->xray, &facts)) {
        const struct simt_cost cost = {.kind = SIMT_COST_LAUNCH,
                                       .blocks = BLOCKS,
                                       .threads = 32,
                                       .resident = 32,
                                       .counters = &s->t.counters};
        simt_model_explain(&facts.time, simt_gpu_find("h200"), &cost, &facts.placement);
        xray_add(&s->xray, &facts, &s->t.counters, &sites, &raw);
    }
    simt_sites_free(&sites);
    simt_xray_free(&raw);
}

static bool print_page(struct sample *s) {
    static const char begin[] = "<script type=\"application/json\" id=\"xray-data\">";
    FILE *stream = open_memstream(&s->page, &s->size);
    if (stream == NULL) {
        return false;
    }
    xray_print_page(&s->xray, simt_gpu_find("h200"), stream);
    fclose(stream);
    const char *data = strstr(s->page, begin);
    s->data = data != NULL ? cJSON_Parse(data + sizeof begin - 1) : NULL;
    return s->data != NULL;
}

static bool sample_open(struct sample *s) {
    *s = (struct sample){.size = 0};
    if (!launch_testing_open(&s->t, SITES_PTX)) {
        return false;
    }
    add_launch(s);
    return print_page(s);
}

static void sample_close(struct sample *s) {
    cJSON_Delete(s->data);
    free(s->page);
    xray_free(&s->xray);
    launch_testing_close(&s->t);
}

#define PAGE_TEST(name) \
    FIXTURE_TEST(xray_page, name, struct sample, s, sample_open(s), sample_close(s))

static const cJSON *first_launch(const struct sample *s) {
    return cJSON_GetArrayItem(cJSON_GetObjectItem(s->data, "launches"), 0);
}

static double number_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItem(cJSON_GetObjectItem(object, "of"), key);
    return item != NULL ? item->valuedouble : -1;
}

static const cJSON *line_at(const struct sample *s, int number) {
    const cJSON *line = NULL;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(first_launch(s), "lines")) {
        if (number_of(line, "line") == number) {
            return line;
        }
    }
    TEST_FAIL("line %d is not in the data", number);
    return NULL;
}

static void expect_access(const cJSON *line, const char *space, int cost, int least, int stride) {
    const cJSON *access = cJSON_GetArrayItem(cJSON_GetObjectItem(line, "accesses"), 0);
    EXPECT_STR_EQ(space, cJSON_GetStringValue(cJSON_GetObjectItem(access, "space")));
    EXPECT_NEAR(cost, number_of(access, "cost"), 0);
    EXPECT_NEAR(least, number_of(access, "least"), 0);
    const cJSON *relative = cJSON_GetObjectItem(access, "relative");
    ASSERT_TRUE(cJSON_GetArraySize(relative) == SIMT_LANES);
    EXPECT_NEAR(31 * stride, cJSON_GetArrayItem(relative, 31)->valuedouble, 0);
}

PAGE_TEST(holds_what_lines_did) {
    const cJSON *load = line_at(s, LOAD), *store = line_at(s, STORE_SHARED);
    EXPECT_NEAR(32 * BLOCKS, number_of(load, "sectors"), 0);
    EXPECT_NEAR(4 * BLOCKS, number_of(load, "least_sectors"), 0);
    expect_access(load, "global", 32, 4, 4 * STRIDE);
    EXPECT_NEAR(32 * BLOCKS, number_of(store, "wavefronts"), 0);
    EXPECT_NEAR(BLOCKS, number_of(store, "least_wavefronts"), 0);
    expect_access(store, "shared", 32, 1, 128);
    EXPECT_STR_EQ(FACTS.kernel,
                  cJSON_GetStringValue(cJSON_GetObjectItem(first_launch(s), "kernel")));
    EXPECT_NEAR(-1, number_of(first_launch(s), "by_registers"), 0);
}

static double sum_of(const cJSON *numbers) {
    const cJSON *number = NULL;
    double sum = 0;
    cJSON_ArrayForEach(number, numbers) {
        EXPECT_TRUE(number->valuedouble >= 0);
        sum += number->valuedouble;
    }
    return sum;
}

/* The printed shares have five digits. */
PAGE_TEST(divides_the_time_among_lines) {
    const cJSON *line = NULL, *launch = first_launch(s);
    double lines = 0;
    cJSON_ArrayForEach(line, cJSON_GetObjectItem(launch, "lines")) {
        lines += sum_of(cJSON_GetObjectItem(line, "stall"));
    }
    EXPECT_NEAR(1, lines + number_of(launch, "block_share"), 1e-3);
    EXPECT_NEAR(lines, sum_of(cJSON_GetObjectItem(launch, "stall")), 1e-3);
}

/* What a page could load is forbidden by its own policy; the one address is a name of SVG. */
PAGE_TEST(needs_no_network) {
    static const char *const loads[] = {
        "<link rel=\"stylesheet", " src=",  "@import", "url(", "fetch(",
        "XMLHttpRequest",         "import("};
    static const char svg[] = "http://www.w3.org/2000/svg";
    for (size_t n = 0; n < sizeof loads / sizeof *loads; n++) {
        EXPECT_TRUE(strstr(s->page, loads[n]) == NULL);
    }
    const char *address = strstr(s->page, "http");
    EXPECT_TRUE(strstr(s->page, "default-src 'none'") != NULL);
    while (address != NULL && strncmp(address, "http-equiv", 10) == 0) {
        address = strstr(address + 1, "http");
    }
    ASSERT_TRUE(address != NULL);
    EXPECT_TRUE(strncmp(address, svg, sizeof svg - 1) == 0);
    EXPECT_TRUE(strstr(address + 1, "http") == NULL);
}

/* Sources may hold the end of a script. */
C_TEST(xray_page, shows_sources_that_look_like_html) {
    static char path[512];
    char *text = NULL, *files[] = {path};
    size_t size = 0;
    test_temporary_path("evil.cu", path, sizeof path);
    FILE *source = fopen(path, "w");
    FILE *stream = open_memstream(&text, &size);
    ASSERT_TRUE(source != NULL && stream != NULL);
    fputs("// </script><b>\n\ta[\"\\\"] = 1; // \x01\n", source);
    fclose(source);
    struct xray xray = {.files = files, .file_count = 1};
    xray_print_sources(&xray, stream);
    fclose(stream);
    EXPECT_TRUE(strchr(text, '<') == NULL);
    cJSON *data = cJSON_Parse(text);
    const cJSON *lines = cJSON_GetObjectItem(cJSON_GetArrayItem(data, 0), "lines");
    ASSERT_TRUE(cJSON_GetArraySize(lines) == 2);
    EXPECT_STR_EQ("// </script><b>",
                  cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetArrayItem(lines, 0), 1)));
    EXPECT_STR_EQ("\ta[\"\\\"] = 1; // \x01",
                  cJSON_GetStringValue(cJSON_GetArrayItem(cJSON_GetArrayItem(lines, 1), 1)));
    cJSON_Delete(data);
    free(text);
    remove(path);
}

PAGE_TEST(records_a_shape_once) {
    struct xray_facts facts = FACTS;
    EXPECT_TRUE(!xray_wants(&s->xray, &facts));
    EXPECT_INT_EQ(2, s->xray.launches->launches);
    facts.grid[1] = 2;
    EXPECT_TRUE(xray_wants(&s->xray, &facts));
    s->xray.launch_count = XRAY_LAUNCHES;
    EXPECT_TRUE(!xray_wants(&s->xray, &facts));
    EXPECT_INT_EQ(1, s->xray.dropped);
    s->xray.launch_count = 1;
}
