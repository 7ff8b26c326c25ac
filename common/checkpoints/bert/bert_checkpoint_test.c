#include "common/checkpoints/bert/bert_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/checkpoints/bert/bert_random.h"
#include "common/checkpoints/bert/bert_tensors.h"
#include "common/checkpoints/testing/tensor_file.h"
#include "common/testing/fixture.h"
#include "common/testing/refusals.h"

static const struct bert_config small = {
    .C = 4,
    .hidden = 3,
    .L = 2,
    .NH = 2,
    .V = 5,
    .T = 3,
    .types = 2,
    .labels = 3,
    .norm_eps = 1e-12f,
    .activation = NN_GELU,
};

struct fixture {
    struct bert_random model;
    struct tensor_file file; /* with the model's tensors */
};

static bool fixture_create(struct fixture *f, const struct bert_config *config) {
    *f = (struct fixture){0};
    return bert_random_create(&f->model, config, 5) == STATUS_OK &&
           bert_checkpoint_serialize(config, &f->model.weights, &f->file.data, &f->file.size,
                                     NULL) == STATUS_OK &&
           tensor_file_parse(&f->file) == STATUS_OK;
}

static void fixture_free(struct fixture *f) {
    tensor_file_free(&f->file);
    bert_random_free(&f->model);
}

/* A test of the small model's file. */
#define SMALL_TEST(suite, name) \
    FIXTURE_TEST(suite, name, struct fixture, f, fixture_create(f, &small), fixture_free(f))

static void expect_same(const float *want, const float *got, size_t count, const char *what) {
    if (got == NULL || memcmp(want, got, count * sizeof *want) != 0) {
        TEST_FAIL("%s differs", what);
    }
}

/* Compares tensors with those of another model, one after the other. */
struct comparer {
    const float *want[64];
    size_t wanted, compared;
};

static enum status want_tensor(void *context, const struct bert_tensor *tensor) {
    struct comparer *x = context;
    x->want[x->wanted++] = *tensor->slot;
    return STATUS_OK;
}

static enum status compare_tensor(void *context, const struct bert_tensor *tensor) {
    struct comparer *x = context;
    size_t columns = tensor->rank == 2 ? tensor->shape[1] : 1;
    expect_same(x->want[x->compared++], *tensor->slot, tensor->shape[0] * columns, tensor->name);
    return STATUS_OK;
}

static void expect_same_weights(const struct bert_config *c, struct bert_heads heads,
                                struct bert_weights want, struct bert_weights got) {
    struct comparer x = {.wanted = 0};
    EXPECT_OK(bert_tensors_visit(c, heads, &want, want_tensor, &x));
    EXPECT_OK(bert_tensors_visit(c, heads, &got, compare_tensor, &x));
    EXPECT_INT_EQ(5 + 16 * c->L + 2 * heads.pooler + 2 * heads.classifier, x.compared);
}

/* Loads the fixture's file and compares every weight with the model it was made from. */
static void expect_loads(struct fixture *f, bool pooler, bool classifier) {
    struct bert_config config = f->model.config;
    config.labels = small.labels; /* as the configuration says, whatever the file has */
    struct bert_checkpoint checkpoint;
    struct error error = {0};
    if (bert_checkpoint_load(&checkpoint, &config, &f->file.file, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return;
    }
    const struct bert_weights *got = &checkpoint.weights;
    EXPECT_INT_EQ(pooler, got->pooler.weight != NULL);
    EXPECT_INT_EQ(classifier, got->classifier.weight != NULL);
    EXPECT_INT_EQ(classifier ? config.labels : 0, checkpoint.config.labels);
    expect_same_weights(&config, (struct bert_heads){pooler, classifier}, f->model.weights, *got);
    bert_checkpoint_close(&checkpoint);
    bert_checkpoint_close(&checkpoint); /* closing twice is allowed */
}

SMALL_TEST(bert_checkpoint, round_trip_of_a_classifier) {
    /* 5 of the embeddings, 16 a layer, 2 of the pooler, 2 of the classifier */
    EXPECT_INT_EQ(5 + 2 * 16 + 2 + 2, f->file.file.count);
    EXPECT_TRUE(tensor_file_find(&f->file,
                                 "bert.encoder.layer.1.attention.output.LayerNorm.weight") != NULL);
    EXPECT_TRUE(tensor_file_find(&f->file, "classifier.bias") != NULL);
    expect_loads(f, true, true);
}

C_TEST(bert_checkpoint, round_trip_of_a_bare_encoder) {
    struct bert_config config = small;
    config.labels = 0;
    struct fixture f;
    ASSERT_TRUE(fixture_create(&f, &config));
    EXPECT_TRUE(tensor_file_find(&f.file, "encoder.layer.1.attention.output.LayerNorm.weight") !=
                NULL);
    expect_loads(&f, true, false);
    fixture_free(&f);
}

/* Checks the tensors' names one by one, because loader and writer share one list of them. */
static void expect_named(const struct fixture *f, const char *name, const float *got) {
    const struct safetensors_tensor *tensor = safetensors_find(&f->file.file, name);
    if (tensor == NULL || memcmp(tensor->data, got, tensor->bytes) != 0) {
        TEST_FAIL("tensor \"%s\" is not where it belongs", name);
    }
}

SMALL_TEST(bert_checkpoint, names_are_those_of_transformers) {
    struct bert_checkpoint checkpoint;
    ASSERT_OK(bert_checkpoint_load(&checkpoint, &small, &f->file.file, NULL));
    const struct bert_weights *w = &checkpoint.weights;
    expect_named(f, "bert.embeddings.word_embeddings.weight", w->word_embedding);
    expect_named(f, "bert.embeddings.position_embeddings.weight", w->position_embedding);
    expect_named(f, "bert.embeddings.token_type_embeddings.weight", w->type_embedding);
    expect_named(f, "bert.embeddings.LayerNorm.weight", w->embedding_norm_weight);
    expect_named(f, "bert.embeddings.LayerNorm.bias", w->embedding_norm_bias);
    expect_named(f, "bert.pooler.dense.weight", w->pooler.weight);
    expect_named(f, "bert.pooler.dense.bias", w->pooler.bias);
    expect_named(f, "classifier.weight", w->classifier.weight);
    expect_named(f, "classifier.bias", w->classifier.bias);
    const struct bert_layer *layer = &w->layers[1];
#define LAYER "bert.encoder.layer.1."
    expect_named(f, LAYER "attention.self.query.weight", layer->q.weight);
    expect_named(f, LAYER "attention.self.query.bias", layer->q.bias);
    expect_named(f, LAYER "attention.self.key.weight", layer->k.weight);
    expect_named(f, LAYER "attention.self.key.bias", layer->k.bias);
    expect_named(f, LAYER "attention.self.value.weight", layer->v.weight);
    expect_named(f, LAYER "attention.self.value.bias", layer->v.bias);
    expect_named(f, LAYER "attention.output.dense.weight", layer->attention_out.weight);
    expect_named(f, LAYER "attention.output.dense.bias", layer->attention_out.bias);
    expect_named(f, LAYER "attention.output.LayerNorm.weight", layer->attention_norm_weight);
    expect_named(f, LAYER "attention.output.LayerNorm.bias", layer->attention_norm_bias);
    expect_named(f, LAYER "intermediate.dense.weight", layer->up.weight);
    expect_named(f, LAYER "intermediate.dense.bias", layer->up.bias);
    expect_named(f, LAYER "output.dense.weight", layer->down.weight);
    expect_named(f, LAYER "output.dense.bias", layer->down.bias);
    expect_named(f, LAYER "output.LayerNorm.weight", layer->output_norm_weight);
    expect_named(f, LAYER "output.LayerNorm.bias", layer->output_norm_bias);
#undef LAYER
    bert_checkpoint_close(&checkpoint);
}

/* Some exports have a classifier but no prefix. */
SMALL_TEST(bert_checkpoint, prefix_is_optional) {
    for (size_t i = 0; i < f->file.file.count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s", f->file.file.tensors[i].name);
        if (strncmp(name, "bert.", 5) == 0) {
            tensor_file_rename(&f->file.file.tensors[i], name + 5);
        }
    }
    ASSERT_TRUE(tensor_file_write_again(&f->file));
    expect_loads(f, true, true);
}

SMALL_TEST(bert_checkpoint, old_norm_names) {
    int renamed = 0;
    for (size_t i = 0; i < f->file.file.count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s", f->file.file.tensors[i].name);
        char *norm = strstr(name, "LayerNorm.");
        if (norm != NULL) {
            strcpy(norm, strstr(norm, ".weight") != NULL ? "LayerNorm.gamma" : "LayerNorm.beta");
            tensor_file_rename(&f->file.file.tensors[i], name);
            renamed++;
        }
    }
    EXPECT_INT_EQ(2 + 2 * 4, renamed);
    ASSERT_TRUE(tensor_file_write_again(&f->file));
    expect_loads(f, true, true);
}

SMALL_TEST(bert_checkpoint, pooler_and_classifier_may_be_missing) {
    tensor_file_remove(&f->file, tensor_file_find(&f->file, "bert.pooler.dense.weight"));
    tensor_file_remove(&f->file, tensor_file_find(&f->file, "bert.pooler.dense.bias"));
    ASSERT_TRUE(tensor_file_write_again(&f->file));
    expect_loads(f, false, true);
    tensor_file_remove(&f->file, tensor_file_find(&f->file, "classifier.weight"));
    tensor_file_remove(&f->file, tensor_file_find(&f->file, "classifier.bias"));
    ASSERT_TRUE(tensor_file_write_again(&f->file));
    expect_loads(f, false, false);
}

/* A masked language model: cls.*, position_ids as integers, no pooler, no classifier. */
SMALL_TEST(bert_checkpoint, unrelated_tensors_are_ignored) {
    tensor_file_rename(tensor_file_find(&f->file, "bert.pooler.dense.weight"),
                       "cls.predictions.transform.dense.weight");
    tensor_file_rename(tensor_file_find(&f->file, "bert.pooler.dense.bias"),
                       "cls.predictions.bias");
    struct safetensors_tensor *ids = tensor_file_find(&f->file, "classifier.weight");
    tensor_file_rename(ids, "bert.embeddings.position_ids");
    tensor_file_rename(tensor_file_find(&f->file, "classifier.bias"), "cls.seq_relationship.bias");
    ASSERT_TRUE(tensor_file_write_again(&f->file));
    /* (3, 4) of F32 take as many bytes as (3, 2) of I64. */
    static const char old_entry[] = "position_ids\":{\"dtype\":\"F32\",\"shape\":[3,4]";
    unsigned char *entry = memmem(f->file.data, f->file.size, old_entry, sizeof old_entry - 1);
    ASSERT_TRUE(entry != NULL);
    memcpy(entry, "position_ids\":{\"dtype\":\"I64\",\"shape\":[3,2]", sizeof old_entry - 1);
    ASSERT_OK(tensor_file_parse(&f->file));
    EXPECT_INT_EQ(SAFETENSORS_I64,
                  tensor_file_find(&f->file, "bert.embeddings.position_ids")->dtype);
    expect_loads(f, false, false);
}

SMALL_TEST(bert_checkpoint, half_precision_becomes_fp32) {
    static const uint16_t f16[4] = {0x3c00, 0x8001, 0x7bff, 0xb800};
    static const uint16_t bf16[4] = {0x3f80, 0x8001, 0x7f7f, 0xbf00};
    struct safetensors_tensor *bias = tensor_file_find(&f->file, "bert.pooler.dense.bias");
    bias->dtype = SAFETENSORS_F16;
    bias->data = f16;
    bias->bytes = sizeof f16;
    struct safetensors_tensor *norm = tensor_file_find(&f->file, "bert.embeddings.LayerNorm.bias");
    norm->dtype = SAFETENSORS_BF16;
    norm->data = bf16;
    norm->bytes = sizeof bf16;
    ASSERT_TRUE(tensor_file_write_again(&f->file));
    struct bert_checkpoint checkpoint;
    ASSERT_OK(bert_checkpoint_load(&checkpoint, &small, &f->file.file, NULL));
    expect_same((const float[]){1.0f, -0x1p-24f, 65504.0f, -0.5f}, checkpoint.weights.pooler.bias,
                4, "F16");
    expect_same((const float[]){1.0f, -0x1p-133f, 0x1.fep127f, -0.5f},
                checkpoint.weights.embedding_norm_bias, 4, "BF16");
    bert_checkpoint_close(&checkpoint);
}

static const struct tensor_case tensor_cases[] = {
    {"bert.embeddings.position_embeddings.weight", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "tensor \"bert.embeddings.position_embeddings.weight\" is missing"},
    {"bert.embeddings.word_embeddings.weight", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "tensor \"embeddings.word_embeddings.weight\" is missing"},
    {"bert.embeddings.LayerNorm.weight", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "tensor \"bert.embeddings.LayerNorm.weight\" is missing"},
    {"bert.encoder.layer.1.attention.self.key.bias", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "tensor \"bert.encoder.layer.1.attention.self.key.bias\" is missing"},
    {"bert.pooler.dense.bias", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "tensor \"bert.pooler.dense.bias\" is missing"},
    {"classifier.bias", TENSOR_REMOVE, STATUS_BAD_FORMAT, "tensor \"classifier.bias\" is missing"},
    {"bert.embeddings.word_embeddings.weight", TENSOR_TRANSPOSE, STATUS_MISMATCH,
     "tensor \"bert.embeddings.word_embeddings.weight\" has shape (4, 5), the configuration says "
     "(5, 4)"},
    {"bert.encoder.layer.0.output.dense.weight", TENSOR_TRANSPOSE, STATUS_MISMATCH,
     "has shape (3, 4), the configuration says (4, 3)"},
    {"classifier.weight", TENSOR_FLATTEN, STATUS_MISMATCH,
     "tensor \"classifier.weight\" has shape (12), the configuration says (3, 4)"},
};

static void check_tensor_case(const struct tensor_case *test) {
    struct fixture f;
    ASSERT_TRUE(fixture_create(&f, &small));
    ASSERT_TRUE(tensor_file_change(&f.file, test));
    struct bert_checkpoint checkpoint;
    struct error error = {0};
    EXPECT_STATUS(test->status, bert_checkpoint_load(&checkpoint, &small, &f.file.file, &error));
    if (strstr(error.message, test->message) == NULL || checkpoint.arena.base != NULL) {
        TEST_FAIL("want \"...%s...\", got \"%s\"", test->message, error.message);
    }
    fixture_free(&f);
}

C_TEST(bert_checkpoint, missing_tensors_and_other_shapes_are_refused) {
    for (size_t i = 0; i < sizeof tensor_cases / sizeof *tensor_cases; i++) {
        check_tensor_case(&tensor_cases[i]);
    }
}

SMALL_TEST(bert_checkpoint, integer_weights_are_refused) {
    tensor_file_retype(&f->file, "classifier.bias\":{\"dtype\":\"F32", "I32");
    ASSERT_OK(tensor_file_parse(&f->file));
    struct bert_checkpoint checkpoint;
    EXPECT_ERROR(STATUS_UNSUPPORTED,
                 "tensor \"classifier.bias\": its type is none of F32, F16 and BF16",
                 bert_checkpoint_load(&checkpoint, &small, &f->file.file, &error));
}

/* Sizes near the limits: refused because the file's tensors differ, before memory is allocated. */
SMALL_TEST(bert_checkpoint, huge_configurations_are_refused_by_a_small_file) {
    static const size_t places[] = {
        offsetof(struct bert_config, C),     offsetof(struct bert_config, hidden),
        offsetof(struct bert_config, L),     offsetof(struct bert_config, V),
        offsetof(struct bert_config, T),     offsetof(struct bert_config, types),
        offsetof(struct bert_config, labels)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct bert_config config = small;
        *(size_t *)(void *)((char *)&config + places[i]) = INT32_MAX;
        struct bert_checkpoint checkpoint;
        struct error error = {0};
        enum status status = bert_checkpoint_load(&checkpoint, &config, &f->file.file, &error);
        bool layers = places[i] == offsetof(struct bert_config, L);
        EXPECT_STATUS(layers ? STATUS_BAD_FORMAT : STATUS_MISMATCH, status);
        const char *want =
            layers ? "encoder.layer.2.attention.self.query.weight\" is missing" : "2147483647";
        EXPECT_TRUE(strstr(error.message, want) != NULL);
        EXPECT_TRUE(checkpoint.arena.base == NULL);
    }
}

#define SIZES                                                            \
    "\"hidden_size\":4,\"intermediate_size\":3,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":2,\"vocab_size\":5,\"max_position_embeddings\":3"

C_TEST(bert_config, absent_keys_have_their_defaults) {
    static const char json[] = "{" SIZES "}";
    struct bert_config config;
    ASSERT_OK(bert_config_parse(&config, json, sizeof json - 1, NULL));
    EXPECT_INT_EQ(4, config.C);
    EXPECT_INT_EQ(3, config.hidden);
    EXPECT_INT_EQ(2, config.L);
    EXPECT_INT_EQ(2, config.NH);
    EXPECT_INT_EQ(5, config.V);
    EXPECT_INT_EQ(3, config.T);
    EXPECT_INT_EQ(2, config.types);
    EXPECT_INT_EQ(2, config.labels);
    EXPECT_INT_EQ(NN_GELU, config.activation);
    EXPECT_NEAR(1e-12f, config.norm_eps, 0.0);
}

struct activation_case {
    const char *name;
    enum nn_activation activation;
};

C_TEST(bert_config, knows_activations_by_name) {
    static const struct activation_case cases[] = {
        {"gelu", NN_GELU}, {"gelu_new", NN_GELU_TANH}, {"gelu_pytorch_tanh", NN_GELU_TANH},
        {"relu", NN_RELU}, {"silu", NN_SILU},          {"swish", NN_SILU}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[512];
        snprintf(json, sizeof json, "{" SIZES ",\"hidden_act\":\"%s\"}", cases[i].name);
        struct bert_config config;
        EXPECT_OK(bert_config_parse(&config, json, strlen(json), NULL));
        EXPECT_INT_EQ(cases[i].activation, config.activation);
    }
}

/* Keys after the sizes, and the resulting number of labels. */
struct labels_case {
    const char *keys;
    size_t labels;
};

C_TEST(bert_config, counts_labels) {
    static const struct labels_case cases[] = {
        {"\"num_labels\":4", 4},
        {"\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}", 3},
        {"\"id2label\":{\"0\":\"a\"},\"num_labels\":4", 1},
        {"\"id2label\":null,\"num_labels\":4", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[512];
        snprintf(json, sizeof json, "{" SIZES ",%s}", cases[i].keys);
        struct bert_config config;
        EXPECT_OK(bert_config_parse(&config, json, strlen(json), NULL));
        EXPECT_INT_EQ(cases[i].labels, config.labels);
    }
}

C_TEST(bert_config, round_trip) {
    static const enum nn_activation activations[] = {NN_GELU, NN_GELU_TANH, NN_SILU, NN_RELU};
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        struct bert_config want = small;
        want.activation = activations[i];
        want.norm_eps = 1e-5f;
        char *json;
        ASSERT_OK(bert_config_serialize(&want, &json));
        struct bert_config got;
        EXPECT_OK(bert_config_parse(&got, json, strlen(json), NULL));
        EXPECT_INT_EQ(0, memcmp(&want, &got, offsetof(struct bert_config, norm_eps)));
        EXPECT_INT_EQ(want.activation, got.activation);
        EXPECT_NEAR(want.norm_eps, got.norm_eps, 0.0);
        free(json);
    }
    struct bert_config config = small;
    config.activation = NN_TANH;
    char *json;
    EXPECT_STATUS(STATUS_UNSUPPORTED, bert_config_serialize(&config, &json));
    EXPECT_TRUE(json == NULL);
}

/* SIZES with the first two changed. */
#define WITH(hidden_size, num_attention_heads)                                      \
    "{\"hidden_size\":" hidden_size ",\"num_attention_heads\":" num_attention_heads \
    ",\"intermediate_size\":3,\"num_hidden_layers\":2,\"vocab_size\":5,"            \
    "\"max_position_embeddings\":3}"

static const struct refusal config_cases[] = {
    {"", STATUS_BAD_FORMAT, "not valid JSON at byte 0"},
    {"hello", STATUS_BAD_FORMAT, "not valid JSON at byte 0"},
    {"[1]", STATUS_BAD_FORMAT, "JSON is not an object"},
    {"{\"hidden_size\":4", STATUS_BAD_FORMAT, "not valid JSON at byte"},
    {"{" SIZES "} x", STATUS_BAD_FORMAT, "JSON has text after its end"},
    {"{\"x\":\"\xff\"}", STATUS_BAD_UTF8, "not valid UTF-8 at byte 6"},
    {"{" SIZES ",\"vocab_size\":6}", STATUS_BAD_FORMAT, "has the key \"vocab_size\" twice"},
    {"{}", STATUS_BAD_FORMAT, "\"hidden_size\" is missing"},
    {WITH("null", "2"), STATUS_BAD_FORMAT, "\"hidden_size\" is missing"},
    {WITH("\"4\"", "2"), STATUS_BAD_FORMAT, "\"hidden_size\" is not a number"},
    {WITH("0", "2"), STATUS_BAD_FORMAT, "\"hidden_size\" is 0, must be a whole number from 1"},
    {WITH("-4", "2"), STATUS_BAD_FORMAT, "\"hidden_size\" is -4, must be"},
    {WITH("4.5", "2"), STATUS_BAD_FORMAT, "\"hidden_size\" is 4.5, must be"},
    {WITH("2147483648", "2"), STATUS_BAD_FORMAT, "\"hidden_size\" is 2147483648, must be"},
    {WITH("1e300", "2"), STATUS_BAD_FORMAT, "must be a whole number from 1 to 2147483647"},
    {WITH("1e999", "2"), STATUS_BAD_FORMAT, "\"hidden_size\" is inf, must be"},
    {WITH("4", "0"), STATUS_BAD_FORMAT, "\"num_attention_heads\" is 0, must be"},
    {WITH("4", "3"), STATUS_BAD_FORMAT,
     "\"hidden_size\" is 4, must be a multiple of \"num_attention_heads\", 3"},
    {"{" SIZES ",\"type_vocab_size\":0}", STATUS_BAD_FORMAT, "\"type_vocab_size\" is 0"},
    {"{" SIZES ",\"hidden_act\":\"mish\"}", STATUS_UNSUPPORTED,
     "\"hidden_act\" is \"mish\", supported are gelu"},
    {"{" SIZES ",\"hidden_act\":3}", STATUS_BAD_FORMAT, "\"hidden_act\" is not a string"},
    {"{" SIZES ",\"position_embedding_type\":\"relative_key\"}", STATUS_UNSUPPORTED,
     "\"position_embedding_type\" is \"relative_key\", supported is \"absolute\""},
    {"{" SIZES ",\"model_type\":\"roberta\"}", STATUS_UNSUPPORTED,
     "\"model_type\" is \"roberta\", supported is \"bert\""},
    {"{" SIZES ",\"model_type\":1}", STATUS_BAD_FORMAT, "\"model_type\" is not a string"},
    {"{" SIZES ",\"is_decoder\":true}", STATUS_UNSUPPORTED, "\"is_decoder\" is not false"},
    {"{" SIZES ",\"layer_norm_eps\":\"1e-12\"}", STATUS_BAD_FORMAT,
     "\"layer_norm_eps\" is not a number"},
    {"{" SIZES ",\"layer_norm_eps\":0}", STATUS_BAD_FORMAT, "\"layer_norm_eps\" is 0, must be"},
    {"{" SIZES ",\"layer_norm_eps\":-1e-12}", STATUS_BAD_FORMAT, "is -1e-12, must be"},
    {"{" SIZES ",\"layer_norm_eps\":1e-60}", STATUS_BAD_FORMAT, "is 1e-60, must be"},
    {"{" SIZES ",\"layer_norm_eps\":1e999}", STATUS_BAD_FORMAT, "is inf, must be"},
    {"{" SIZES ",\"num_labels\":0}", STATUS_BAD_FORMAT, "\"num_labels\" is 0, must be"},
    {"{" SIZES ",\"id2label\":{}}", STATUS_BAD_FORMAT, "\"id2label\" is empty"},
    {"{" SIZES ",\"id2label\":[]}", STATUS_BAD_FORMAT, "\"id2label\" is not an object"},
};

static enum status parse_config(const void *json, size_t size, struct error *error) {
    struct bert_config config;
    return bert_config_parse(&config, json, size, error);
}

C_TEST(bert_config, bad_configurations_are_refused) {
    expect_refusals(parse_config, config_cases, sizeof config_cases / sizeof *config_cases);
}

C_TEST(bert_config, every_truncation_is_refused) {
    char *json;
    ASSERT_OK(bert_config_serialize(&small, &json));
    expect_prefixes_refused(parse_config, json, strlen(json), STATUS_BAD_FORMAT,
                            "not valid JSON at byte");
    free(json);
}

/* A folder of the test, with config.json and model.safetensors unless NULL. */
static const char *make_folder(const char *name, const char *config, const void *model,
                               size_t model_size, char *folder, size_t size) {
    checkpoint_folder(name, folder, size);
    if (config != NULL) {
        checkpoint_write(folder, "config.json", config, strlen(config));
    }
    if (model != NULL) {
        checkpoint_write(folder, "model.safetensors", model, model_size);
    }
    return folder;
}

static enum status open_folder(const char *folder, struct error *error) {
    struct bert_checkpoint checkpoint;
    enum status status = bert_checkpoint_open(&checkpoint, folder, error);
    bert_checkpoint_close(&checkpoint);
    return status;
}

SMALL_TEST(bert_checkpoint, opens_a_folder) {
    char *config;
    ASSERT_OK(bert_config_serialize(&small, &config));
    char folder[4096];
    make_folder("bert_good", config, f->file.data, f->file.size, folder, sizeof folder);
    struct bert_checkpoint checkpoint;
    ASSERT_OK(bert_checkpoint_open(&checkpoint, folder, NULL));
    expect_same_weights(&small, (struct bert_heads){true, true}, f->model.weights,
                        checkpoint.weights);
    EXPECT_INT_EQ(3, checkpoint.config.labels);
    bert_checkpoint_close(&checkpoint);
    free(config);
}

SMALL_TEST(bert_checkpoint, bad_folders_are_named) {
    char *config;
    ASSERT_OK(bert_config_serialize(&small, &config));
    char folder[4096];
    test_temporary_path("bert_none", folder, sizeof folder);
    expect_open_fails(open_folder, folder, "config.json", STATUS_NOT_FOUND,
                      "cannot open: No such file");
    make_folder("bert_no_model", config, NULL, 0, folder, sizeof folder);
    expect_open_fails(open_folder, folder, "model.safetensors", STATUS_NOT_FOUND,
                      "cannot open: No such file");
    make_folder("bert_empty_config", "", f->file.data, f->file.size, folder, sizeof folder);
    expect_open_fails(open_folder, folder, "config.json", STATUS_BAD_FORMAT,
                      "not valid JSON at byte 0");
    make_folder("bert_empty_model", config, "", 0, folder, sizeof folder);
    expect_open_fails(open_folder, folder, "model.safetensors", STATUS_TRUNCATED, "file has 0");
    make_folder("bert_cut_model", config, f->file.data, f->file.size - 4, folder, sizeof folder);
    expect_open_fails(open_folder, folder, "model.safetensors", STATUS_TRUNCATED,
                      "end behind the file's");
    make_folder("bert_other_config", "{" SIZES "}", f->file.data, f->file.size, folder,
                sizeof folder);
    expect_open_fails(
        open_folder, folder, "model.safetensors", STATUS_MISMATCH,
        "tensor \"classifier.weight\" has shape (3, 4), the configuration says (2, 4)");
    free(config);
}

C_TEST(bert_checkpoint, folders_and_files_in_the_wrong_place_are_named) {
    char folder[4096];
    char path[8192];
    make_folder("bert_folders", NULL, NULL, 0, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/config.json", folder);
    EXPECT_INT_EQ(0, mkdir(path, 0755));
    expect_open_fails(open_folder, folder, "config.json", STATUS_IO, "cannot read: Is a directory");
    make_folder("bert_model_folder", "{" SIZES "}", NULL, 0, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    EXPECT_INT_EQ(0, mkdir(path, 0755));
    expect_open_fails(open_folder, folder, "model.safetensors", STATUS_IO, "not a regular file");
    snprintf(path, sizeof path, "%s/config.json", folder); /* a file where a folder should be */
    expect_open_fails(open_folder, path, "config.json", STATUS_NOT_FOUND,
                      "cannot open: Not a directory");
    char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct bert_checkpoint checkpoint;
    EXPECT_ERROR(STATUS_TOO_LONG, "path of the checkpoint is longer than 4095 bytes",
                 bert_checkpoint_open(&checkpoint, longest, &error));
}

/* Every prefix of the file is refused by the container, and names the file. */
C_TEST(bert_checkpoint, every_truncation_and_trailing_bytes_are_refused) {
    struct bert_config config = small;
    config.L = 1;
    struct fixture f;
    ASSERT_TRUE(fixture_create(&f, &config));
    char *json;
    ASSERT_OK(bert_config_serialize(&config, &json));
    char folder[4096];
    char path[8192];
    make_folder("bert_prefixes", json, "", 0, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    FILE *file = fopen(path, "wb");
    ASSERT_TRUE(file != NULL);
    for (size_t length = 0; length < f.file.size && !test_has_failed(); length++) {
        expect_open_fails(open_folder, folder, "model.safetensors", STATUS_TRUNCATED, "file");
        EXPECT_INT_EQ(f.file.data[length], fputc(f.file.data[length], file));
        EXPECT_INT_EQ(0, fflush(file));
    }
    struct bert_checkpoint checkpoint;
    EXPECT_OK(bert_checkpoint_open(&checkpoint, folder, NULL));
    bert_checkpoint_close(&checkpoint);
    EXPECT_INT_EQ(0, fputc(0, file));
    EXPECT_INT_EQ(0, fclose(file));
    expect_open_fails(open_folder, folder, "model.safetensors", STATUS_MISMATCH,
                      "tensors end at byte");
    free(json);
    fixture_free(&f);
}
