#include "common/checkpoints/llama2/recorded_llama2.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/models/llama2.h"
#include "common/testing/expectation.h"
#include "common/testing/testing.h"

enum { MOST_LOGITS = 16, MOST_TOKENS = 64 };

static const char path_of_all[] = "common/checkpoints/llama2/expectations/llama2.json";

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

static void visit_case(const struct cJSON *one, int number, recorded_llama2_visitor *visit,
                       void *context) {
    char folder[4096], name[64];
    snprintf(name, sizeof name, "transformers_%d", number);
    test_temporary_path(name, folder, sizeof folder);
    EXPECT_TRUE(mkdir(folder, 0755) == 0 || errno == EEXIST); /* of an earlier visit */
    write_files(folder, cJSON_GetObjectItemCaseSensitive(one, "files"));
    struct recorded_llama2 recorded = {
        .name = expectation_string(one, "name"),
        .tokens = cJSON_GetObjectItemCaseSensitive(one, "tokens"),
        .logits = cJSON_GetObjectItemCaseSensitive(one, "logits"),
        .tolerance = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(one, "tolerance")),
    };
    struct error error = {0};
    if (llama2_checkpoint_open(&recorded.checkpoint, folder, &error) != STATUS_OK ||
        llama2_checkpoint_convert(&recorded.checkpoint, 0, &recorded.fp32, &error) != STATUS_OK) {
        TEST_FAIL("%s: %s", recorded.name, error.message);
        return;
    }
    visit(context, &recorded);
    llama2_fp32_free(&recorded.fp32);
    llama2_checkpoint_close(&recorded.checkpoint);
}

int recorded_llama2_visit(recorded_llama2_visitor *visit, void *context) {
    struct cJSON *json = expectation_load(path_of_all);
    const struct cJSON *one;
    int count = 0;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(json, "cases")) {
        visit_case(one, count++, visit, context);
    }
    cJSON_Delete(json);
    return count;
}

/* Both compute in fp32, with sums in different orders. */
static void compare(const struct recorded_llama2 *r, const char *stage, int position,
                    const float *got) {
    const struct cJSON *want;
    size_t i = 0;
    double worst = 0.0, largest = 0.0;
    cJSON_ArrayForEach(want, cJSON_GetArrayItem(r->logits, position)) {
        double difference = fabs(want->valuedouble - (double)got[i++]);
        worst = difference <= worst ? worst : difference; /* also NaN */
        largest = fmax(largest, fabs(want->valuedouble));
    }
    EXPECT_INT_EQ(r->checkpoint.config.V, i);
    EXPECT_TRUE(largest > 0.5); /* there is something to compare */
    if (!(worst <= r->tolerance)) {
        TEST_FAIL("%s, %s: a logit at position %d is off by %g", r->name, stage, position, worst);
    }
}

static void feed(const struct recorded_llama2 *r, const struct engine *engine, size_t batch,
                 struct llama2 *model) {
    size_t count = (size_t)cJSON_GetArraySize(r->tokens);
    int32_t tokens[MOST_TOKENS];
    float logits[MOST_LOGITS] = {0};
    ASSERT_TRUE(r->checkpoint.config.V <= MOST_LOGITS && count <= MOST_TOKENS);
    for (size_t i = 0; i < count; i++) {
        tokens[i] = cJSON_GetArrayItem(r->tokens, (int)i)->valueint;
    }
    for (size_t first = 0; first < count; first += batch) {
        size_t some = count - first < batch ? count - first : batch;
        EXPECT_OK(llama2_forward(model, tokens + first, some, first, logits));
        compare(r, engine->name, (int)(first + some - 1), logits);
    }
}

static void check_model(const struct recorded_llama2 *r, const struct engine *engine, size_t batch,
                        enum status status, struct llama2 *model, const struct error *error) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s, %s: %s", r->name, engine->name, error->message);
        return;
    }
    feed(r, engine, batch, model);
    llama2_free(model);
}

void recorded_llama2_check(const struct recorded_llama2 *r, const struct engine *engine,
                           size_t batch) {
    struct llama2 *model;
    struct error error = {0};
    enum status status =
        llama2_create(&model, &r->checkpoint.config, &r->fp32.weights, engine, batch, &error);
    check_model(r, engine, batch, status, model, &error);
}

void recorded_llama2_check_stored(const struct recorded_llama2 *r, const struct engine *engine,
                                  size_t batch) {
    const struct llama2_checkpoint *c = &r->checkpoint;
    struct llama2 *model;
    struct error error = {0};
    enum status status = llama2_create_stored(&model, &c->config, &c->weights,
                                              c->weights.layers[0].wq.dtype, engine, batch, &error);
    check_model(r, engine, batch, status, model, &error);
}
