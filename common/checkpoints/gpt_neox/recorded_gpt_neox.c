#include "common/checkpoints/gpt_neox/recorded_gpt_neox.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/models/gpt_neox.h"
#include "common/testing/expectation.h"
#include "common/testing/testing.h"

enum { MOST_TENSORS = 128, NAME_BYTES = 96 };

static const double TOLERANCE = 1e-4; /* of the largest logit */

static const char path_of_all[] = "common/checkpoints/gpt_neox/expectations/gpt_neox.json";

/* ---- Weights that are not recorded but made again ---- */

/* Tensors of a model, in the order of their names. */
struct generator {
    char names[MOST_TENSORS][NAME_BYTES];
    size_t count;
    float *values[MOST_TENSORS];
};

static enum status add_name(void *context, const struct decoder_weight *tensor) {
    struct generator *g = context;
    if (!(g->count < MOST_TENSORS)) {
        return STATUS_TOO_LONG;
    }
    snprintf(g->names[g->count++], NAME_BYTES, "%s", tensor->name);
    return STATUS_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

/* As generated() in make_gpt_neox.py. */
static float number(uint32_t element, uint32_t index) {
    uint32_t u = element + index * 0x9E3779B9u;
    u ^= u >> 16;
    u *= 0x7FEB352Du;
    u ^= u >> 15;
    u *= 0x846CA68Bu;
    u ^= u >> 16;
    return ((float)(u >> 8) * 0x1p-24f - 0.5f) * 0.25f;
}

static enum status make_tensor(void *context, const struct decoder_weight *tensor) {
    struct generator *g = context;
    const char(*name)[NAME_BYTES] =
        bsearch(tensor->name, g->names, g->count, sizeof *g->names, by_name);
    size_t index = (size_t)(name - g->names), count = decoder_weight_count(tensor);
    float *values = malloc(count * sizeof *values), add = 0.0f;
    if (!(values != NULL)) {
        return STATUS_OUT_OF_MEMORY;
    }
    add = strstr(tensor->name, "norm.weight") != NULL ? 1.0f : 0.0f;
    for (size_t i = 0; i < count; i++) {
        values[i] = number((uint32_t)i, (uint32_t)index) + add;
    }
    g->values[index] = values;
    *tensor->stored = (struct decoder_stored_tensor){
        .data = values, .dtype = NN_F32, .rows = 1, .columns = count};
    return STATUS_OK;
}

/* A checkpoint without files. */
static enum status generate(struct generator *g, struct gpt_neox_checkpoint *checkpoint,
                            const cJSON *settings) {
    char *text = cJSON_Print(settings);
    if (!(text != NULL)) {
        return STATUS_OUT_OF_MEMORY;
    }
    enum status status = gpt_neox_config_parse(&checkpoint->config, &checkpoint->shared_classifier,
                                               text, strlen(text), NULL);
    free(text);
    TRY(status);
    const struct gpt_neox_config *c = &checkpoint->config;
    checkpoint->weights.layers = calloc(c->L, sizeof *checkpoint->weights.layers);
    if (!(checkpoint->weights.layers != NULL)) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(gpt_neox_tensors_visit(c, false, NULL, NULL, add_name, g));
    qsort(g->names, g->count, sizeof *g->names, by_name);
    return gpt_neox_tensors_visit(c, false, &checkpoint->weights, NULL, make_tensor, g);
}

/* ---- Cases ---- */

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

static enum status open_files(struct gpt_neox_checkpoint *checkpoint, const struct cJSON *files,
                              int number, struct error *error) {
    char folder[4096], name[64];
    snprintf(name, sizeof name, "gpt_neox_%d", number);
    test_temporary_path(name, folder, sizeof folder);
    EXPECT_TRUE(mkdir(folder, 0755) == 0 || errno == EEXIST); /* of an earlier visit */
    write_files(folder, files);
    EXPECT_TRUE(gpt_neox_checkpoint_is(folder));
    return gpt_neox_checkpoint_open(checkpoint, folder, error);
}

static const cJSON *member(const cJSON *one, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(one, name);
}

static void visit_case(const struct cJSON *one, int number, recorded_gpt_neox_visitor *visit,
                       void *context) {
    struct recorded_gpt_neox recorded = {.name = expectation_string(one, "name"),
                                         .large = member(one, "config") != NULL,
                                         .tokens = member(one, "tokens"),
                                         .logits = member(one, "logits"),
                                         .greedy = member(one, "greedy")};
    struct generator *g = calloc(1, sizeof *g);
    struct error error = {0};
    ASSERT_TRUE(g != NULL);
    enum status status =
        recorded.large ? generate(g, &recorded.checkpoint, member(one, "config"))
                       : open_files(&recorded.checkpoint, member(one, "files"), number, &error);
    status = status == STATUS_OK
                 ? gpt_neox_checkpoint_convert(&recorded.checkpoint, 0, &recorded.fp32, &error)
                 : status;
    if (status == STATUS_OK) {
        visit(context, &recorded);
    } else {
        TEST_FAIL("%s: %s", recorded.name, error.message);
    }
    gpt_neox_fp32_free(&recorded.fp32);
    gpt_neox_checkpoint_close(&recorded.checkpoint);
    for (size_t i = 0; i < g->count; i++) {
        free(g->values[i]);
    }
    free(g);
}

int recorded_gpt_neox_visit(recorded_gpt_neox_visitor *visit, void *context, bool large) {
    struct cJSON *json = expectation_load(path_of_all);
    const struct cJSON *one;
    int count = 0;
    cJSON_ArrayForEach(one, member(json, "cases")) {
        if (large || member(one, "config") == NULL) {
            visit_case(one, count++, visit, context);
        }
    }
    cJSON_Delete(json);
    return count;
}

/* ---- Checks ---- */

static void compare(const struct recorded_gpt_neox *r, const char *stage, int position,
                    const float *got) {
    int recorded = cJSON_GetArraySize(r->logits), count = cJSON_GetArraySize(r->tokens);
    const struct cJSON *row = cJSON_GetArrayItem(r->logits, position - count + recorded), *want;
    size_t i = 0;
    double worst = 0.0, largest = 0.0;
    if (position < count - recorded) {
        return;
    }
    cJSON_ArrayForEach(want, row) {
        double difference = fabs(want->valuedouble - (double)got[i++]);
        worst = difference <= worst ? worst : difference; /* also NaN */
        largest = fmax(largest, fabs(want->valuedouble));
    }
    EXPECT_INT_EQ(r->checkpoint.config.V, i);
    EXPECT_TRUE(largest > 0.5); /* there is something to compare */
    if (!(worst <= TOLERANCE * largest)) {
        TEST_FAIL("%s, %s: a logit at position %d is off by %g of %g", r->name, stage, position,
                  worst, largest);
    }
}

static int32_t largest_of(const float *logits, size_t V) {
    size_t best = 0;
    for (size_t i = 1; i < V; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

static void draw(const struct recorded_gpt_neox *r, const char *stage, struct gpt_neox *model,
                 size_t greedy, float *logits) {
    size_t position = (size_t)cJSON_GetArraySize(r->tokens);
    ASSERT_TRUE(greedy <= (size_t)cJSON_GetArraySize(r->greedy));
    for (size_t i = 0; i < greedy; i++) {
        int32_t token = largest_of(logits, r->checkpoint.config.V);
        int want = cJSON_GetArrayItem(r->greedy, (int)i)->valueint;
        if (token != want) {
            TEST_FAIL("%s, %s: drawn token %zu is %d, transformers' is %d", r->name, stage, i,
                      (int)token, want);
            return;
        }
        EXPECT_OK(gpt_neox_forward(model, &token, 1, position++, logits));
    }
}

static void feed(const struct recorded_gpt_neox *r, const struct engine *engine, size_t batch,
                 size_t greedy, struct gpt_neox *model, float *logits) {
    size_t count = (size_t)cJSON_GetArraySize(r->tokens);
    for (size_t first = 0; first < count; first += batch) {
        int32_t tokens[64];
        size_t some = count - first < batch ? count - first : batch;
        ASSERT_TRUE(some <= 64);
        for (size_t i = 0; i < some; i++) {
            tokens[i] = cJSON_GetArrayItem(r->tokens, (int)(first + i))->valueint;
        }
        EXPECT_OK(gpt_neox_forward(model, tokens, some, first, logits));
        compare(r, engine->name, (int)(first + some - 1), logits);
    }
    draw(r, engine->name, model, greedy, logits);
}

void recorded_gpt_neox_check(const struct recorded_gpt_neox *r, const struct engine *engine,
                             size_t batch, size_t greedy) {
    struct gpt_neox_config config = r->checkpoint.config;
    struct gpt_neox *model;
    struct error error = {0};
    config.T = (size_t)cJSON_GetArraySize(r->tokens) + greedy;
    if (gpt_neox_create(&model, &config, &r->fp32.weights, engine, batch, &error) != STATUS_OK) {
        TEST_FAIL("%s, %s: %s", r->name, engine->name, error.message);
        return;
    }
    float *logits = calloc(config.V, sizeof *logits);
    if (logits != NULL) {
        feed(r, engine, batch, greedy, model, logits);
    }
    EXPECT_TRUE(logits != NULL);
    free(logits);
    gpt_neox_free(model);
}
