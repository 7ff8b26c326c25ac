#include "common/train/program/train_checkpoint.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/checkpoints/bert/bert_checkpoint.h"
#include "common/checkpoints/llama2/llama2_checkpoint.h"
#include "common/testing/testing.h"
#include "common/train/data/data_testing.h"
#include "common/train/models/model_testing.h"
#include "common/train/program/train_weights.h"

/* A tiny model on the reference, and the settings stored with it. */
struct fixture {
    struct train_engine engine;
    struct train_config config;
    struct train_vocabulary vocabulary;
    struct train_model *model;
    struct train_store store;
    cJSON *settings;
    struct train_subject subject;
};

static struct train_config tiny(enum train_task task, size_t V) {
    struct train_config c = task == TRAIN_LM ? model_testing_llama2(false, NN_ROPE_HALVES)
                                             : model_testing_bert(task, 0.0f);
    c.bert.V = c.llama2.V = V;
    c.bert.labels = task == TRAIN_CLASSIFY ? 2 : 0;
    return c;
}

static void create(struct fixture *f, enum train_task task, const char *folder, uint64_t seed) {
    static const char *const labels[] = {"neg", "pos"};
    char path[1024];
    struct error error = {0};
    *f = (struct fixture){.store.lock = -1};
    data_testing_vocabulary(&f->vocabulary, task);
    f->config = tiny(task, f->vocabulary.size);
    EXPECT_OK(train_reference_create(&f->engine));
    EXPECT_OK(train_model_create(&f->model, &f->config, &f->engine, &error));
    EXPECT_OK(train_model_draw(f->model, seed, &error));
    f->settings = cJSON_CreateObject();
    cJSON_AddStringToObject(f->settings, "--lr", "0.1");
    f->subject = (struct train_subject){
        f->model, &f->config, task == TRAIN_CLASSIFY ? labels : NULL, &f->vocabulary, TRAIN_F64,
        NN_BF16,  f->settings};
    EXPECT_OK(train_store_open(&f->store, test_temporary_path(folder, path, sizeof path), &error));
    EXPECT_STR_EQ("", error.message);
}

static void destroy(struct fixture *f) {
    train_store_close(&f->store);
    cJSON_Delete(f->settings);
    train_model_free(f->model);
    train_engine_destroy(&f->engine);
    train_vocabulary_close(&f->vocabulary);
}

/* One step, so that the moments are not 0. */
static void take_step(struct fixture *f) {
    static const int32_t ids[] = {2, 5, 6, 3, 2, 7, 3}, starts[] = {0, 4, 7}, classes[] = {1, 0};
    static const int32_t next[] = {5, 6, 3, 2, 7, 3, 2};
    const struct train_batch batch = {ids, starts, 2,
                                      f->config.task == TRAIN_CLASSIFY ? classes : next};
    const struct train_update update = {.rate = 0.01f,
                                        .beta1 = 0.9f,
                                        .beta2 = 0.999f,
                                        .eps = 1e-8f,
                                        .decay = 0.01f,
                                        .most_norm = 1.0f,
                                        .step = 1};
    EXPECT_OK(train_model_backward(f->model, &batch, 0.1f, 1, 0, NULL));
    EXPECT_OK(train_model_update(f->model, &update, NULL));
}

/* Whether two models have the same bits in a state (weights or moments) of all parameters. */
static bool same(const struct fixture *a, const struct fixture *b, enum train_state state) {
    size_t count;
    const struct train_parameter *list = train_model_parameters(a->model, &count);
    bool equal = true;
    for (size_t i = 0; i < count; i++) {
        double *x = malloc(list[i].count * sizeof *x), *y = malloc(list[i].count * sizeof *y);
        EXPECT_OK(train_model_read_f64(a->model, state, &list[i], x, NULL));
        EXPECT_OK(train_model_read_f64(b->model, state, &list[i], y, NULL));
        equal = equal && memcmp(x, y, list[i].count * sizeof *x) == 0;
        free(x);
        free(y);
    }
    return equal;
}

static void check_round_trip(enum train_task task, const char *folder) {
    struct fixture a, b;
    struct error error = {0};
    const struct train_point point = {7,    2, 3,         true, -1.0 / 3.0, 5,
                                      true, 2, 1.0 / 7.0, 0.1f, 2,          {1.0 / 3.0, 0.2}};
    struct train_point found;
    create(&a, task, folder, 1);
    take_step(&a);
    EXPECT_TRUE(!a.store.has_checkpoint);
    EXPECT_OK(train_checkpoint_write(&a.store, &a.subject, &point, &error));
    train_store_close(&a.store);
    create(&b, task, folder, 2);
    EXPECT_TRUE(b.store.has_checkpoint);
    EXPECT_INT_EQ(7, b.store.step);
    EXPECT_TRUE(!same(&a, &b, TRAIN_WEIGHTS) && !same(&a, &b, TRAIN_M));
    EXPECT_OK(train_checkpoint_read(&b.store, &b.subject, &found, &error));
    EXPECT_STR_EQ("", error.message);
    EXPECT_TRUE(same(&a, &b, TRAIN_WEIGHTS));
    EXPECT_TRUE(same(&a, &b, TRAIN_M));
    EXPECT_TRUE(same(&a, &b, TRAIN_V));
    EXPECT_INT_EQ(2, found.epoch);
    EXPECT_INT_EQ(3, found.batch);
    EXPECT_TRUE(found.has_best && found.best == -1.0 / 3.0 && found.best_step == 5);
    EXPECT_INT_EQ(2, found.loss_steps);
    EXPECT_TRUE(found.loss_sum == 1.0 / 7.0 && found.loss_left == (double)0.1f);
    EXPECT_INT_EQ(2, found.ranks);
    EXPECT_TRUE(found.of_rank[0] == 1.0 / 3.0 && found.of_rank[1] == 0.2);
    destroy(&a);
    destroy(&b);
}

C_TEST(train_checkpoint, round_trip_is_exact) {
    check_round_trip(TRAIN_CLASSIFY, "classify");
    check_round_trip(TRAIN_MLM, "mlm");
    check_round_trip(TRAIN_LM, "lm");
}

#define BEGINNING "{\"schema\":2,\"step\":4,\"epoch\":1,\"batch\":0,"
#define LOSS "\"loss\":{\"steps\":1,\"sum\":1,\"left\":0}"

C_TEST(train_checkpoint, is_refused_where_settings_or_files_are_others) {
    struct fixture f;
    struct error error = {0};
    struct train_point found;
    const struct train_point point = {.step = 4};
    char path[FOLDER_PATH_BYTES], file[FOLDER_PATH_BYTES + 32];
    create(&f, TRAIN_MLM, "refused", 1);
    ASSERT_OK(train_checkpoint_write(&f.store, &f.subject, &point, &error));
    cJSON_ReplaceItemInObject(f.settings, "--lr", cJSON_CreateString("0.2"));
    EXPECT_ERROR_CONTAINS(STATUS_MISMATCH, "training.json: --lr: 0.2 here, 0.1 in the run",
                          train_checkpoint_read(&f.store, &f.subject, &found, &error));
    cJSON_ReplaceItemInObject(f.settings, "--lr", cJSON_CreateString("0.1"));
    f.subject.type = TRAIN_F32; /* an optimiser of another engine */
    EXPECT_STATUS(STATUS_MISMATCH, train_checkpoint_read(&f.store, &f.subject, &found, &error));
    EXPECT_TRUE(strstr(error.message, "its type or shape is not the model's") != NULL);
    f.subject.type = TRAIN_F64;
    snprintf(file, sizeof file, "%s/training.json", train_store_path(&f.store, 4, path));
    static const char *const texts[] = {"",
                                        "[]",
                                        "{",
                                        "{\"schema\":1,\"step\":4,\"epoch\":1,\"batch\":0}",
                                        "{\"schema\":2}",
                                        "{\"schema\":2,\"step\":4,\"epoch\":1.5,\"batch\":0}",
                                        "{\"schema\":2,\"step\":4,\"epoch\":1,\"batch\":0}",
                                        BEGINNING "\"loss\":{\"steps\":1,\"sum\":1}}",
                                        BEGINNING "\"loss\":{\"steps\":-1,\"sum\":1,\"left\":0}}",
                                        BEGINNING LOSS "}",
                                        BEGINNING LOSS ",\"best\":{\"score\":null}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        error = (struct error){0};
        EXPECT_OK(file_write(file, texts[i], strlen(texts[i]), NULL));
        EXPECT_TRUE(train_checkpoint_read(&f.store, &f.subject, &found, &error) != STATUS_OK);
        EXPECT_TRUE(strstr(error.message, "training.json: ") != NULL);
    }
    destroy(&f);
}

C_TEST(train_checkpoint, the_last_of_several_counts) {
    struct fixture f;
    struct train_store second;
    char path[FOLDER_PATH_BYTES], from[FOLDER_PATH_BYTES];
    create(&f, TRAIN_LM, "several", 1);
    for (uint64_t step = 1; step < 4; step++) {
        const struct train_point point = {.step = step};
        EXPECT_OK(train_checkpoint_write(&f.store, &f.subject, &point, NULL));
        EXPECT_TRUE(!path_exists(train_store_path(&f.store, step - 1, path)));
    }
    EXPECT_ERROR_CONTAINS(STATUS_IO, "another program is training into this folder",
                          train_store_open(&second, f.store.folder, &error));
    train_store_close(&f.store);
    const struct train_point point = {.step = 12}; /* a kill before the older one is removed */
    EXPECT_OK(train_checkpoint_write(&f.store, &f.subject, &point, NULL));
    train_store_path(&f.store, 12, from);
    EXPECT_INT_EQ(0, rename(from, train_store_path(&f.store, 3, path)));
    EXPECT_OK(train_checkpoint_write(&f.store, &f.subject, &point, NULL));
    EXPECT_OK(train_store_open(&second, f.store.folder, NULL));
    EXPECT_INT_EQ(12, second.step);
    EXPECT_TRUE(!path_exists(path) && path_exists(from));
    train_store_close(&second);
    destroy(&f);
}

/* The project's own loaders read the saved models. */
C_TEST(train_checkpoint, models_are_read_by_the_loaders) {
    struct fixture f;
    char path[FOLDER_PATH_BYTES];
    create(&f, TRAIN_CLASSIFY, "bert", 3);
    ASSERT_OK(train_model_save(&f.store, &f.subject, "best", NULL));
    ASSERT_OK(train_model_save(&f.store, &f.subject, "best", NULL)); /* replaced */
    ASSERT_OK(folder_join(path, f.store.folder, "best", "model", NULL));
    struct bert_checkpoint bert;
    ASSERT_OK(bert_checkpoint_open(&bert, path, NULL));
    EXPECT_INT_EQ(2, bert.config.labels);
    EXPECT_TRUE(bert.weights.pooler.weight != NULL && bert.weights.classifier.weight != NULL);
    const struct train_parameter *query =
        train_model_find(f.model, "bert.encoder.layer.0.attention.self.query.weight");
    ASSERT_TRUE(query != NULL && query->count == 256);
    float values[256];
    EXPECT_OK(train_model_read(f.model, TRAIN_WEIGHTS, query, values, NULL));
    EXPECT_NEAR((double)values[9], (double)bert.weights.layers[0].q.weight[9], 1e-3);
    bert_checkpoint_close(&bert);
    destroy(&f);

    create(&f, TRAIN_LM, "llama2", 3);
    ASSERT_OK(train_model_save(&f.store, &f.subject, "final", NULL));
    ASSERT_OK(folder_join(path, f.store.folder, "final", "model", NULL));
    struct llama2_checkpoint llama2;
    ASSERT_OK(llama2_checkpoint_open(&llama2, path, NULL));
    EXPECT_INT_EQ(2, llama2.config.KVH);
    EXPECT_INT_EQ(NN_BF16, llama2.weights.embedding.dtype);
    llama2_checkpoint_close(&llama2);
    destroy(&f);
}

C_TEST(train_weights, heads_that_are_missing_stay_as_they_are) {
    struct fixture language, news;
    struct train_missing missing;
    char path[FOLDER_PATH_BYTES];
    create(&language, TRAIN_MLM, "language", 1);
    ASSERT_OK(train_model_save(&language.store, &language.subject, "final", NULL));
    ASSERT_OK(folder_join(path, language.store.folder, "final", "model", NULL));
    create(&news, TRAIN_CLASSIFY, "news", 2);
    EXPECT_OK(train_weights_load(news.model, path, &missing, NULL));
    EXPECT_INT_EQ(4, missing.count);
    EXPECT_TRUE(strncmp(missing.first, "bert.pooler", 11) == 0 ||
                strncmp(missing.first, "classifier", 10) == 0);
    destroy(&news);
    struct fixture stream;
    create(&stream, TRAIN_LM, "stream", 2);
    EXPECT_ERROR_CONTAINS(STATUS_BAD_FORMAT,
                          "model.safetensors: tensor \"model.embed_tokens.weight\" is missing",
                          train_weights_load(stream.model, path, &missing, &error));
    destroy(&stream);
    destroy(&language);
}
