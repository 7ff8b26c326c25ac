/* Checkpoints that transformers has saved, against the logits that it computes of them. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/models/llama2.h"
#include "common/testing/expectation.h"
#include "common/testing/testing.h"

enum { MOST_LOGITS = 16 };

static void write_files(const char *folder, const struct cJSON *files) {
    const struct cJSON *file;
    cJSON_ArrayForEach(file, files) {
        char path[8192];
        size_t size;
        char *data = expectation_text(file, "data", &size);
        ASSERT_TRUE(data != NULL);
        snprintf(path, sizeof path, "%s/%s", folder, expectation_string(file, "name"));
        EXPECT_OK(file_write(path, data, size, NULL));
        free(data);
    }
}

static void run(const struct llama2_checkpoint *checkpoint, const struct cJSON *tokens,
                float *logits) {
    struct llama2_fp32 fp32;
    struct engine engine;
    struct llama2 *model;
    ASSERT_OK(llama2_checkpoint_convert(checkpoint, 0, &fp32, NULL));
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(llama2_create(&model, &checkpoint->config, &fp32.weights, &engine, 1, NULL));
    const struct cJSON *token;
    size_t position = 0;
    cJSON_ArrayForEach(token, tokens) {
        EXPECT_OK(llama2_forward(model, &(int32_t){token->valueint}, 1, position++, logits));
    }
    EXPECT_INT_EQ(10, position);
    llama2_free(model);
    engine_destroy(&engine);
    llama2_fp32_free(&fp32);
}

/* Both compute in fp32, with sums in different orders. */
static void expect_logits(const struct cJSON *recorded, const float *got, size_t count) {
    EXPECT_INT_EQ(count, (size_t)cJSON_GetArraySize(recorded));
    const struct cJSON *want;
    size_t i = 0;
    double largest = 0.0;
    cJSON_ArrayForEach(want, recorded) {
        EXPECT_NEAR(want->valuedouble, got[i++], 2e-5);
        largest = fmax(largest, fabs(want->valuedouble));
    }
    EXPECT_TRUE(largest > 0.5); /* there is something to compare */
}

static void check_case(const struct cJSON *recorded, const struct cJSON *tokens, int number) {
    char folder[4096], name[64];
    snprintf(name, sizeof name, "transformers_%d", number);
    test_temporary_path(name, folder, sizeof folder);
    EXPECT_INT_EQ(0, mkdir(folder, 0755));
    write_files(folder, cJSON_GetObjectItemCaseSensitive(recorded, "files"));
    struct llama2_checkpoint checkpoint;
    struct error error = {0};
    if (llama2_checkpoint_open(&checkpoint, folder, &error) != STATUS_OK) {
        TEST_FAIL("%s: %s", expectation_string(recorded, "name"), error.message);
        return;
    }
    float logits[MOST_LOGITS] = {0};
    ASSERT_TRUE(checkpoint.config.V <= MOST_LOGITS);
    run(&checkpoint, tokens, logits);
    expect_logits(cJSON_GetObjectItemCaseSensitive(recorded, "logits"), logits,
                  checkpoint.config.V);
    llama2_checkpoint_close(&checkpoint);
}

C_TEST(llama2_data, checkpoints_of_transformers) {
    struct cJSON *json = expectation_load("common/checkpoints/llama2/expectations/llama2.json");
    ASSERT_TRUE(json != NULL);
    const struct cJSON *cases = cJSON_GetObjectItemCaseSensitive(json, "cases"), *one;
    int count = 0;
    cJSON_ArrayForEach(one, cases) {
        check_case(one, cJSON_GetObjectItemCaseSensitive(json, "tokens"), count++);
    }
    EXPECT_INT_EQ(3, count);
    cJSON_Delete(json);
}
