/* The log of findings has the structure that SARIF 2.1.0 asks for. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_object.h"
#include "common/simt/runtime/report/sarif.h"
#include "common/testing/testing.h"

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *value = object != NULL ? json_member(object, key) : NULL;
    return cJSON_IsString(value) ? value->valuestring : "";
}

static const cJSON *first(const cJSON *object, const char *key) {
    const cJSON *list = object != NULL ? json_member(object, key) : NULL;
    return cJSON_IsArray(list) ? cJSON_GetArrayItem(list, 0) : NULL;
}

/* Prints and parses; the caller deletes the tree. */
static cJSON *log_of(const struct sarif *sarif) {
    char *text = NULL;
    size_t size = 0;
    cJSON *log = NULL;
    struct error error = {0};
    FILE *stream = open_memstream(&text, &size);
    if (stream != NULL) {
        sarif_print(sarif, stream);
        fclose(stream);
        EXPECT_OK(json_object_parse(&log, text, size, &error));
        EXPECT_TRUE(size > 0 && strchr(text, '\n') == text + size - 1);
    }
    free(text);
    return log;
}

/* @return the only run, of a log of the right version */
static const cJSON *run_of(const cJSON *log) {
    EXPECT_STR_EQ("2.1.0", text_of(log, "version"));
    EXPECT_STR_EQ("https://json.schemastore.org/sarif-2.1.0.json", text_of(log, "$schema"));
    const cJSON *run = first(log, "runs");
    EXPECT_TRUE(run != NULL);
    return run;
}

static const cJSON *rules_of(const cJSON *run) {
    const cJSON *driver = json_member(json_member(run, "tool"), "driver");
    EXPECT_STR_EQ("simt", text_of(driver, "name"));
    return json_member(driver, "rules");
}

C_TEST(sarif, has_a_rule_for_each_kind_of_fault) {
    const struct sarif none = {0};
    cJSON *log = log_of(&none);
    ASSERT_TRUE(log != NULL);
    const cJSON *run = run_of(log);
    const cJSON *rules = rules_of(run), *rule = NULL;
    EXPECT_INT_EQ(SIMT_FAULT_ASSERT, cJSON_GetArraySize(rules));
    cJSON_ArrayForEach(rule, rules) {
        EXPECT_TRUE(text_of(rule, "id")[0] != '\0' && strchr(text_of(rule, "id"), ' ') == NULL);
        EXPECT_TRUE(text_of(json_member(rule, "shortDescription"), "text")[0] != '\0');
    }
    EXPECT_TRUE(cJSON_IsArray(json_member(run, "results")));
    EXPECT_INT_EQ(0, cJSON_GetArraySize(json_member(run, "results")));
    cJSON_Delete(log);
}

static void expect_place(const cJSON *location, const char *uri, int line) {
    const cJSON *place = json_member(location, "physicalLocation");
    EXPECT_STR_EQ(uri, text_of(json_member(place, "artifactLocation"), "uri"));
    const cJSON *at = json_member(json_member(place, "region"), "startLine");
    EXPECT_INT_EQ(line, cJSON_IsNumber(at) ? at->valueint : -1);
}

/* A race in an inlined function: three places. */
C_TEST(sarif, results_name_rule_and_places) {
    struct simt_fault fault = {.kind = SIMT_FAULT_SHARED_RACE,
                               .kernel = "sum<float>(float*)",
                               .file = "src/sum it.cu",
                               .line = 12,
                               .callers = {{.file = "/home/me/main.cu", .line = 3}},
                               .other = {.file = "src/sum it.cu", .line = 9},
                               .thread = {5, 0, 0},
                               .text = "reads \"tile\"\tthat"};
    struct sarif sarif = {0};
    sarif_add(&sarif, &fault);
    fault.kind = SIMT_FAULT_TRAP;
    fault.file[0] = '\0';
    sarif_add(&sarif, &fault);
    cJSON *log = log_of(&sarif);
    sarif_free(&sarif);
    ASSERT_TRUE(log != NULL);
    const cJSON *run = run_of(log), *result = first(run, "results");
    ASSERT_TRUE(result != NULL);
    EXPECT_INT_EQ(2, cJSON_GetArraySize(json_member(run, "results")));
    const cJSON *index = json_member(result, "ruleIndex");
    EXPECT_STR_EQ("race-in-shared-memory", text_of(result, "ruleId"));
    EXPECT_STR_EQ("race-in-shared-memory",
                  text_of(cJSON_GetArrayItem(rules_of(run), index->valueint), "id"));
    EXPECT_STR_EQ("error", text_of(result, "level"));
    const char *message = text_of(json_member(result, "message"), "text");
    EXPECT_TRUE(strstr(message, "thread (5,0,0) of block (0,0,0) reads \"tile\"\tthat\nhint: "));
    expect_place(first(result, "locations"), "src/sum%20it.cu", 12);
    const cJSON *function = first(first(result, "locations"), "logicalLocations");
    EXPECT_STR_EQ("sum<float>(float*)", text_of(function, "fullyQualifiedName"));
    const cJSON *related = json_member(result, "relatedLocations");
    EXPECT_INT_EQ(2, cJSON_GetArraySize(related));
    expect_place(cJSON_GetArrayItem(related, 0), "src/sum%20it.cu", 9);
    expect_place(cJSON_GetArrayItem(related, 1), "file:///home/me/main.cu", 3);
    const cJSON *second = cJSON_GetArrayItem(json_member(run, "results"), 1);
    EXPECT_TRUE(json_member(first(second, "locations"), "physicalLocation") == NULL);
    cJSON_Delete(log);
}
