#include "common/checkpoints/llama2/llama2_checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/checkpoints/llama2/llama2_write.h"
#include "common/checkpoints/testing/tensor_file.h"
#include "common/models/llama2.h"
#include "common/models/llama2_random.h"
#include "common/testing/fixture.h"
#include "common/testing/refusals.h"

/* Heads wider than C / NH, and fewer key heads than query heads. */
static const struct llama2_config small = {
    .C = 8,
    .hidden = 5,
    .L = 2,
    .NH = 4,
    .KVH = 2,
    .HS = 6,
    .V = 7,
    .T = 9,
    .rope_theta = 50000.0f,
    .norm_eps = 1e-6f,
    .rope_layout = NN_ROPE_HALVES,
};

/* The values of an unshared classifier. */
static const float other_table[8 * 7] = {0.125f, -3.0f, 1e-8f};

static bool make_model(struct llama2_random *model, const struct llama2_config *config,
                       bool shared) {
    if (llama2_random_create(model, config, 3) != STATUS_OK) {
        return false;
    }
    if (!shared) {
        model->weights.classifier = other_table;
    }
    return true;
}

/* A folder with a random small model. */
static void make_folder(const char *name, enum nn_dtype dtype, size_t shards, bool shared,
                        char *folder, size_t size) {
    struct llama2_random model;
    ASSERT_TRUE(make_model(&model, &small, shared));
    checkpoint_folder(name, folder, size);
    const struct llama2_write_options options = {dtype, shards};
    EXPECT_OK(llama2_checkpoint_write(folder, &small, &model.weights, &options, NULL));
    llama2_random_free(&model);
}

/* ---- Round trips ---- */

/* The stored values are the model's, rounded to the type; conversion gives exactly these. */
struct comparer {
    enum nn_dtype dtype;
    const struct llama2_stored_weights *stored;
    const struct llama2_weights *plain;
    size_t tensors;
};

static void expect_tensor(struct comparer *comparer, const char *what, const float *want,
                          size_t rows, size_t columns, const struct decoder_stored_tensor *stored,
                          const float *plain) {
    size_t count = rows * columns;
    unsigned char bytes[4 * 256];
    float values[256];
    ASSERT_TRUE(count <= 256);
    nn_dtype_store(bytes, want, count, comparer->dtype);
    nn_dtype_load(values, bytes, count, comparer->dtype);
    if (stored->dtype != comparer->dtype || stored->rows != rows || stored->columns != columns ||
        memcmp(stored->data, bytes, count * nn_dtype_bytes(comparer->dtype)) != 0) {
        TEST_FAIL("%s differs as stored", what);
    }
    if (memcmp(plain, values, sizeof *values * count) != 0) {
        TEST_FAIL("%s differs as fp32", what);
    }
    comparer->tensors++;
}

static void expect_layer(struct comparer *x, const struct llama2_config *c,
                         const struct llama2_layer *want, const struct llama2_stored_layer *s,
                         const struct llama2_layer *p) {
    size_t q = c->NH * c->HS, kv = c->KVH * c->HS;
    expect_tensor(x, "attention_norm", want->attention_norm, 1, c->C, &s->attention_norm,
                  p->attention_norm);
    expect_tensor(x, "wq", want->wq, q, c->C, &s->wq, p->wq);
    expect_tensor(x, "wk", want->wk, kv, c->C, &s->wk, p->wk);
    expect_tensor(x, "wv", want->wv, kv, c->C, &s->wv, p->wv);
    expect_tensor(x, "wo", want->wo, c->C, q, &s->wo, p->wo);
    expect_tensor(x, "ffn_norm", want->ffn_norm, 1, c->C, &s->ffn_norm, p->ffn_norm);
    expect_tensor(x, "w1", want->w1, c->hidden, c->C, &s->w1, p->w1);
    expect_tensor(x, "w2", want->w2, c->C, c->hidden, &s->w2, p->w2);
    expect_tensor(x, "w3", want->w3, c->hidden, c->C, &s->w3, p->w3);
}

static void expect_weights(const struct llama2_checkpoint *checkpoint, enum nn_dtype dtype,
                           const struct llama2_weights *want) {
    const struct llama2_config *c = &checkpoint->config;
    const struct llama2_stored_weights *s = &checkpoint->weights;
    struct llama2_fp32 fp32;
    ASSERT_OK(llama2_checkpoint_convert(checkpoint, 0, &fp32, NULL));
    const struct llama2_weights *p = &fp32.weights;
    struct comparer x = {.dtype = dtype};
    expect_tensor(&x, "embedding", want->embedding, c->V, c->C, &s->embedding, p->embedding);
    expect_tensor(&x, "final_norm", want->final_norm, 1, c->C, &s->final_norm, p->final_norm);
    expect_tensor(&x, "classifier", want->classifier, c->V, c->C, &s->classifier, p->classifier);
    for (size_t l = 0; l < c->L; l++) {
        expect_layer(&x, c, &want->layers[l], &s->layers[l], &p->layers[l]);
    }
    EXPECT_INT_EQ(3 + 9 * c->L, x.tensors);
    bool shared = want->classifier == want->embedding;
    EXPECT_INT_EQ(shared, p->classifier == p->embedding);
    EXPECT_INT_EQ(shared, s->classifier.data == s->embedding.data);
    /* fp32 tensors are used in place: the arena then holds only the list of layers. */
    EXPECT_INT_EQ(dtype == NN_F32, p->embedding == s->embedding.data);
    EXPECT_INT_EQ(dtype == NN_F32, fp32.arena.size == arena_footprint(c->L, sizeof *p->layers));
    llama2_fp32_free(&fp32);
    llama2_fp32_free(&fp32); /* freeing twice is allowed */
}

struct round_trip {
    enum nn_dtype dtype;
    size_t shards;
    bool shared;
};

static void check_round_trip(const struct round_trip *test, const char *name) {
    struct llama2_random model;
    ASSERT_TRUE(make_model(&model, &small, test->shared));
    char folder[4096];
    checkpoint_folder(name, folder, sizeof folder);
    const struct llama2_write_options options = {test->dtype, test->shards};
    struct error error = {0};
    ASSERT_OK(llama2_checkpoint_write(folder, &small, &model.weights, &options, &error));
    struct llama2_checkpoint checkpoint;
    EXPECT_OK(llama2_checkpoint_open(&checkpoint, folder, &error));
    EXPECT_STR_EQ("", error.message);
    ASSERT_TRUE(!test_has_failed());
    checkpoint_expect_same_config(&small, &checkpoint.config);
    EXPECT_INT_EQ(test->shared, checkpoint.shared_classifier);
    EXPECT_INT_EQ(test->shards, checkpoint.shards.count);
    expect_weights(&checkpoint, test->dtype, &model.weights);
    llama2_checkpoint_close(&checkpoint);
    llama2_checkpoint_close(&checkpoint); /* closing twice is allowed */
    llama2_random_free(&model);
}

C_TEST(llama2_checkpoint, round_trips) {
    static const struct round_trip cases[] = {
        {NN_F32, 1, true},  {NN_F32, 1, false}, {NN_F16, 1, false},  {NN_BF16, 1, true},
        {NN_F32, 2, false}, {NN_F16, 3, true},  {NN_BF16, 5, false}, {NN_BF16, 20, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        snprintf(name, sizeof name, "llama2_round_trip_%zu", i);
        check_round_trip(&cases[i], name);
    }
}

/* The configuration written is Llama2's, which has none. */
C_TEST(llama2_checkpoint, biases_that_the_weights_have_are_used) {
    static const float bias[32] = {0.5f, -1.0f, [7] = 0.25f};
    struct llama2_config config = small;
    struct llama2_random model;
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    char folder[4096];
    checkpoint_folder("llama2_biases", folder, sizeof folder);
    ASSERT_TRUE(make_model(&model, &small, false));
    config.qkv_bias = config.mlp_bias = true;
    for (size_t l = 0; l < small.L; l++) {
        struct llama2_layer *layer = &model.weights.layers[l];
        layer->bq = layer->bk = layer->bv = layer->b1 = layer->b2 = layer->b3 = bias;
    }
    const struct llama2_write_options options = {NN_F32, 1};
    ASSERT_OK(llama2_checkpoint_write(folder, &config, &model.weights, &options, NULL));
    ASSERT_OK(llama2_checkpoint_open(&checkpoint, folder, NULL));
    EXPECT_TRUE(checkpoint.config.qkv_bias && checkpoint.config.mlp_bias);
    EXPECT_TRUE(!checkpoint.config.out_bias && checkpoint.weights.layers[1].bo.data == NULL);
    ASSERT_OK(llama2_checkpoint_convert(&checkpoint, 0, &fp32, NULL));
    EXPECT_NEAR(0.25, fp32.weights.layers[1].bq[7], 0.0);
    EXPECT_NEAR(-1.0, fp32.weights.layers[1].b3[1], 0.0);
    llama2_fp32_free(&fp32);
    llama2_checkpoint_close(&checkpoint);
    llama2_random_free(&model);
}

/* If a folder has both, the single file is used, as in transformers. */
C_TEST(llama2_checkpoint, single_file_goes_before_an_index) {
    char folder[4096];
    make_folder("llama2_both", NN_BF16, 1, true, folder, sizeof folder);
    checkpoint_write(folder, "model.safetensors.index.json", "nonsense", 8);
    struct llama2_checkpoint checkpoint;
    ASSERT_OK(llama2_checkpoint_open(&checkpoint, folder, NULL));
    EXPECT_INT_EQ(1, checkpoint.shards.count);
    llama2_checkpoint_close(&checkpoint);
}

C_TEST(llama2_checkpoint, opens_a_file_of_llama2c) {
    struct llama2_config config = small;
    config.HS = 2;
    config.rope_theta = 10000.0f;
    config.norm_eps = 1e-5f;
    config.rope_layout = NN_ROPE_INTERLEAVED;
    for (int shared = 0; shared < 2; shared++) {
        struct llama2_random model;
        ASSERT_TRUE(make_model(&model, &config, shared));
        unsigned char *data;
        size_t size;
        ASSERT_OK(llama2c_serialize(&config, &model.weights, &data, &size));
        char path[4096];
        test_temporary_path("llama2c.bin", path, sizeof path);
        ASSERT_OK(file_write(path, data, size, NULL));
        free(data);
        struct llama2_checkpoint checkpoint;
        ASSERT_OK(llama2_checkpoint_open(&checkpoint, path, NULL));
        checkpoint_expect_same_config(&config, &checkpoint.config);
        expect_weights(&checkpoint, NN_F32, &model.weights);
        llama2_checkpoint_close(&checkpoint);
        llama2_random_free(&model);
    }
}

/* Checks the tensors' names one by one, because reader and writer share one list of them. */
static void expect_named(const struct llama2_checkpoint *checkpoint, const char *name,
                         const struct decoder_stored_tensor *got) {
    const struct decoder_located *located = decoder_shards_find(&checkpoint->shards, name);
    if (located == NULL || located->tensor->data != got->data) {
        TEST_FAIL("tensor \"%s\" is not where it belongs", name);
    }
}

C_TEST(llama2_checkpoint, names_are_those_of_transformers) {
    char folder[4096];
    make_folder("llama2_names", NN_F16, 2, false, folder, sizeof folder);
    struct llama2_checkpoint checkpoint;
    ASSERT_OK(llama2_checkpoint_open(&checkpoint, folder, NULL));
    const struct llama2_stored_layer *layer = &checkpoint.weights.layers[1];
#define LAYER "model.layers.1."
    expect_named(&checkpoint, LAYER "input_layernorm.weight", &layer->attention_norm);
    expect_named(&checkpoint, LAYER "self_attn.q_proj.weight", &layer->wq);
    expect_named(&checkpoint, LAYER "self_attn.k_proj.weight", &layer->wk);
    expect_named(&checkpoint, LAYER "self_attn.v_proj.weight", &layer->wv);
    expect_named(&checkpoint, LAYER "self_attn.o_proj.weight", &layer->wo);
    expect_named(&checkpoint, LAYER "post_attention_layernorm.weight", &layer->ffn_norm);
    expect_named(&checkpoint, LAYER "mlp.gate_proj.weight", &layer->w1);
    expect_named(&checkpoint, LAYER "mlp.down_proj.weight", &layer->w2);
    expect_named(&checkpoint, LAYER "mlp.up_proj.weight", &layer->w3);
#undef LAYER
    expect_named(&checkpoint, "model.embed_tokens.weight", &checkpoint.weights.embedding);
    expect_named(&checkpoint, "model.norm.weight", &checkpoint.weights.final_norm);
    expect_named(&checkpoint, "lm_head.weight", &checkpoint.weights.classifier);
    EXPECT_INT_EQ(3 + 2 * 9, checkpoint.shards.tensor_count);
    llama2_checkpoint_close(&checkpoint);
}

/* ---- One model, two layouts ---- */

enum { MOST_LOGITS = 512, STEPS = 7 };

static void run_model(const struct llama2_config *config, const struct llama2_weights *weights,
                      float *logits) {
    struct engine engine;
    struct llama2 *model;
    ASSERT_OK(engine_reference_create(&engine));
    ASSERT_OK(llama2_create(&model, config, weights, &engine, 1, NULL));
    for (int32_t i = 0; i < STEPS; i++) {
        EXPECT_OK(llama2_forward(model, &(int32_t){(i * 3 + 1) % 7}, 1, (size_t)i, logits));
    }
    llama2_free(model);
    engine_destroy(&engine);
}

/* Writes llama2.c's layout as a folder and runs both; their sums have different orders and so
 * round differently. */
static void check_layouts(const struct llama2_config *config, const struct llama2_weights *weights,
                          const char *name) {
    char folder[4096];
    checkpoint_folder(name, folder, sizeof folder);
    const struct llama2_write_options options = {NN_F32, 2};
    ASSERT_OK(llama2_checkpoint_write(folder, config, weights, &options, NULL));
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    ASSERT_OK(llama2_checkpoint_open(&checkpoint, folder, NULL));
    ASSERT_OK(llama2_checkpoint_convert(&checkpoint, 0, &fp32, NULL));
    EXPECT_INT_EQ(NN_ROPE_HALVES, checkpoint.config.rope_layout);
    ASSERT_TRUE(config->V <= MOST_LOGITS);
    float want[MOST_LOGITS] = {0}, got[MOST_LOGITS] = {0}, largest = 0.0f;
    run_model(config, weights, want);
    run_model(&checkpoint.config, &fp32.weights, got);
    for (size_t i = 0; i < config->V; i++) {
        largest = want[i] > largest ? want[i] : largest;
        EXPECT_NEAR(want[i], got[i], 1e-5 + 1e-5 * (double)(want[i] < 0 ? -want[i] : want[i]));
    }
    EXPECT_TRUE(largest > 0.1f);
    llama2_fp32_free(&fp32);
    llama2_checkpoint_close(&checkpoint);
}

C_TEST(llama2_checkpoint, layouts_give_the_same_model) {
    struct llama2_config config = small;
    config.rope_layout = NN_ROPE_INTERLEAVED;
    struct llama2_random model;
    ASSERT_TRUE(make_model(&model, &config, true));
    check_layouts(&config, &model.weights, "llama2_layouts");
    /* Without permuting the rows it is another model, which shows that the comparison can fail. */
    struct llama2_config other = config;
    other.rope_layout = NN_ROPE_HALVES;
    float want[MOST_LOGITS] = {0}, got[MOST_LOGITS] = {0}, difference = 0.0f;
    run_model(&config, &model.weights, want);
    run_model(&other, &model.weights, got);
    for (size_t i = 0; i < config.V; i++) {
        float d = want[i] - got[i];
        difference = d > difference ? d : -d > difference ? -d : difference;
    }
    EXPECT_TRUE(difference > 1e-3f);
    llama2_random_free(&model);
}

C_TEST(llama2_checkpoint, trained_model_survives_the_other_layout) {
    char path[1024];
    if (!test_data_path("stories260K.bin", path, sizeof path)) {
        TEST_SKIP("needs stories260K.bin in the folder that $WARPBOOK_DATA names");
    }
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    ASSERT_OK(llama2_checkpoint_open(&checkpoint, path, NULL));
    ASSERT_OK(llama2_checkpoint_convert(&checkpoint, 0, &fp32, NULL));
    check_layouts(&checkpoint.config, &fp32.weights, "llama2_stories");
    llama2_fp32_free(&fp32);
    llama2_checkpoint_close(&checkpoint);
}

/* ---- Memory ---- */

C_TEST(llama2_checkpoint, says_how_much_memory_fp32_would_take) {
    char folder[4096];
    make_folder("llama2_memory", NN_BF16, 1, true, folder, sizeof folder);
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    struct error error = {0};
    ASSERT_OK(llama2_checkpoint_open(&checkpoint, folder, NULL));
    ASSERT_OK(llama2_checkpoint_convert(&checkpoint, 0, &fp32, NULL));
    size_t bytes = fp32.arena.size;
    llama2_fp32_free(&fp32);
    EXPECT_OK(llama2_checkpoint_convert(&checkpoint, bytes, &fp32, NULL));
    llama2_fp32_free(&fp32);
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY,
                  llama2_checkpoint_convert(&checkpoint, bytes - 1, &fp32, &error));
    EXPECT_TRUE(strstr(error.message, "weights as fp32 take 0.0 GB of memory, there are 0.0 GB"));
    EXPECT_TRUE(fp32.arena.base == NULL);
    llama2_checkpoint_close(&checkpoint);
}

/* A sparse file: it has the right length, but its tensors take no space on the disk. */
static bool make_sparse(const char *folder, const char *name, const char *header,
                        size_t data_size) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    uint64_t length = strlen(header);
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    bool made = descriptor >= 0 && write(descriptor, &length, sizeof length) == sizeof length &&
                write(descriptor, header, length) == (ssize_t)length &&
                ftruncate(descriptor, (off_t)(sizeof length + length + data_size)) == 0;
    if (descriptor >= 0) {
        close(descriptor);
    }
    return made;
}

struct sparse {
    FILE *header;
    size_t offset;
};

static enum status add_sparse_tensor(void *context, const struct decoder_weight *tensor) {
    struct sparse *sparse = context;
    size_t count = tensor->shape[0] * (tensor->rank == 2 ? tensor->shape[1] : 1);
    fprintf(sparse->header, "%c\"%s\":{\"dtype\":\"BF16\",\"shape\":[%zu",
            sparse->offset == 0 ? '{' : ',', tensor->name, tensor->shape[0]);
    if (tensor->rank == 2) {
        fprintf(sparse->header, ",%zu", tensor->shape[1]);
    }
    fprintf(sparse->header, "],\"data_offsets\":[%zu,%zu]}", sparse->offset,
            sparse->offset + 2 * count);
    sparse->offset += 2 * count;
    return STATUS_OK;
}

/* Makes a sparse Llama2 7B in bf16, 13.5 GB. @return whether the file system supports it */
static bool make_sparse_model(const struct llama2_config *config, const char *folder) {
    char *json, *header = NULL;
    size_t header_size;
    EXPECT_OK(llama2_config_serialize(config, false, NN_BF16, &json));
    checkpoint_write(folder, "config.json", json, strlen(json));
    free(json);
    struct sparse sparse = {.header = open_memstream(&header, &header_size)};
    EXPECT_TRUE(sparse.header != NULL);
    EXPECT_OK(llama2_tensors_visit(config, false, NULL, NULL, add_sparse_tensor, &sparse));
    fputc('}', sparse.header);
    fclose(sparse.header);
    bool made = make_sparse(folder, "model.safetensors", header, sparse.offset);
    free(header);
    return made;
}

/* Opening reads only headers, and conversion to fp32 is refused before memory is allocated. */
C_TEST(llama2_checkpoint, seven_billion_parameters_are_not_converted_to_be_opened) {
    const struct llama2_config config = {.C = 4096,
                                         .hidden = 11008,
                                         .L = 32,
                                         .NH = 32,
                                         .KVH = 32,
                                         .HS = 128,
                                         .V = 32000,
                                         .T = 4096,
                                         .rope_theta = 10000.0f,
                                         .norm_eps = 1e-5f,
                                         .rope_layout = NN_ROPE_HALVES};
    char folder[4096], path[8192];
    checkpoint_folder("llama2_7b", folder, sizeof folder);
    if (!make_sparse_model(&config, folder)) {
        TEST_SKIP("needs a file system that has files of 13.5 GB with holes");
    }
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    ASSERT_OK(llama2_checkpoint_open(&checkpoint, folder, NULL));
    checkpoint_expect_same_config(&config, &checkpoint.config);
    EXPECT_INT_EQ(NN_BF16, checkpoint.weights.layers[31].w3.dtype);
    EXPECT_INT_EQ(11008, checkpoint.weights.layers[31].w3.rows);
    EXPECT_ERROR(STATUS_OUT_OF_MEMORY,
                 "weights as fp32 take 27.0 GB of memory, there are 16.0 GB; stages that read the "
                 "weights as they are stored need no copy",
                 llama2_checkpoint_convert(&checkpoint, 16000000000, &fp32, &error));
    llama2_checkpoint_close(&checkpoint);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    EXPECT_INT_EQ(0, unlink(path));
}

/* ---- Tensors that do not fit the configuration ---- */

struct fixture {
    struct llama2_random model;
    struct tensor_file file; /* with the model's tensors */
};

static bool fixture_create(struct fixture *f, bool shared) {
    const struct llama2_write_options options = {NN_F32, 1};
    *f = (struct fixture){0};
    return make_model(&f->model, &small, shared) &&
           llama2_shard_serialize(&small, &f->model.weights, &options, 0, &f->file.data,
                                  &f->file.size, NULL) == STATUS_OK &&
           tensor_file_parse(&f->file) == STATUS_OK;
}

static void fixture_free(struct fixture *f) {
    tensor_file_free(&f->file);
    llama2_random_free(&f->model);
}

/* A test of the small model's file. */
#define FILE_TEST(name, shared)                                                         \
    FIXTURE_TEST(llama2_checkpoint, name, struct fixture, f, fixture_create(f, shared), \
                 fixture_free(f))

/* Loads files in memory under the path "FILE", as a folder with one file would be. */
static enum status load(struct llama2_checkpoint *checkpoint, const struct llama2_config *config,
                        bool shared, const void *data, size_t size, struct error *error) {
    struct decoder_shards shards = {.path = strdup("FILE"), .count = 1};
    shards.shards = calloc(1, sizeof *shards.shards);
    EXPECT_TRUE(shards.shards != NULL);
    shards.shards[0].path = strdup("FILE");
    EXPECT_OK(safetensors_parse(&shards.shards[0].file, data, size, NULL));
    EXPECT_OK(decoder_shards_join(&shards, NULL, error));
    const struct packed_config plain = {.format = PACKED_NONE};
    enum status status =
        llama2_checkpoint_load(checkpoint, config, shared, &plain, &shards, 0, error);
    EXPECT_TRUE(shards.shards == NULL); /* taken over */
    return status;
}

static const struct tensor_case tensor_cases[] = {
    {"model.embed_tokens.weight", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "FILE: tensor \"model.embed_tokens.weight\" is missing"},
    {"model.layers.1.self_attn.k_proj.weight", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "FILE: tensor \"model.layers.1.self_attn.k_proj.weight\" is missing"},
    {"model.norm.weight", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "FILE: tensor \"model.norm.weight\" is missing"},
    {"lm_head.weight", TENSOR_REMOVE, STATUS_BAD_FORMAT,
     "FILE: tensor \"lm_head.weight\" is missing"},
    {"model.embed_tokens.weight", TENSOR_TRANSPOSE, STATUS_MISMATCH,
     "FILE: tensor \"model.embed_tokens.weight\" has shape (8, 7), the configuration says (7, 8)"},
    {"model.layers.0.self_attn.q_proj.weight", TENSOR_TRANSPOSE, STATUS_MISMATCH,
     "FILE: tensor \"model.layers.0.self_attn.q_proj.weight\" has shape (8, 24), the configuration "
     "says (24, 8)"},
    {"model.layers.0.self_attn.v_proj.weight", TENSOR_FLATTEN, STATUS_MISMATCH,
     "FILE: tensor \"model.layers.0.self_attn.v_proj.weight\" has shape (96), the configuration "
     "says (12, 8)"},
    {"lm_head.weight", TENSOR_FLATTEN, STATUS_MISMATCH,
     "FILE: tensor \"lm_head.weight\" has shape (56), the configuration says (7, 8)"},
};

static void check_tensor_case(const struct tensor_case *test) {
    struct fixture f;
    ASSERT_TRUE(fixture_create(&f, false));
    ASSERT_TRUE(tensor_file_change(&f.file, test));
    struct llama2_checkpoint checkpoint;
    EXPECT_ERROR(test->status, test->message,
                 load(&checkpoint, &small, false, f.file.data, f.file.size, &error));
    EXPECT_TRUE(checkpoint.weights.layers == NULL && checkpoint.shards.shards == NULL);
    fixture_free(&f);
}

C_TEST(llama2_checkpoint, missing_tensors_and_other_shapes_are_refused) {
    for (size_t i = 0; i < sizeof tensor_cases / sizeof *tensor_cases; i++) {
        check_tensor_case(&tensor_cases[i]);
    }
}

FILE_TEST(classifier_is_not_looked_at_when_shared, false) {
    struct llama2_checkpoint checkpoint;
    ASSERT_OK(load(&checkpoint, &small, true, f->file.data, f->file.size, NULL));
    EXPECT_TRUE(checkpoint.weights.classifier.data == checkpoint.weights.embedding.data);
    llama2_checkpoint_close(&checkpoint);
}

FILE_TEST(integer_weights_are_refused_and_unrelated_ones_ignored, false) {
    struct llama2_checkpoint checkpoint;
    tensor_file_retype(&f->file, "lm_head.weight\":{\"dtype\":\"F32", "I32");
    EXPECT_ERROR(STATUS_UNSUPPORTED,
                 "FILE: tensor \"lm_head.weight\": its type is none of F32, F16 and BF16",
                 load(&checkpoint, &small, false, f->file.data, f->file.size, &error));
    EXPECT_OK(
        load(&checkpoint, &small, true, f->file.data, f->file.size, NULL)); /* not needed then */
    llama2_checkpoint_close(&checkpoint);
}

FILE_TEST(a_layer_more_than_configured, false) {
    struct llama2_config config = small;
    config.L = 1;
    struct llama2_checkpoint checkpoint;
    EXPECT_ERROR(STATUS_MISMATCH,
                 "FILE: there is a tensor \"model.layers.1.self_attn.q_proj.weight\", but "
                 "\"num_hidden_layers\" in config.json is 1",
                 load(&checkpoint, &config, false, f->file.data, f->file.size, &error));
}

/* Values that old exports have, which tell how wide the heads are. */
FILE_TEST(tables_of_rope, false) {
    struct llama2_config config = small;
    struct safetensors_tensor *unneeded = tensor_file_find(&f->file, "lm_head.weight");
    ASSERT_TRUE(unneeded != NULL);
    tensor_file_rename(unneeded, "model.layers.0.self_attn.rotary_emb.inv_freq");
    unneeded->rank = 1;
    unneeded->shape[0] = unneeded->count = config.HS / 2;
    unneeded->bytes = unneeded->count * sizeof(float);
    ASSERT_TRUE(tensor_file_write_again(&f->file));
    struct llama2_checkpoint checkpoint;
    ASSERT_OK(load(&checkpoint, &config, true, f->file.data, f->file.size, NULL));
    llama2_checkpoint_close(&checkpoint);
    config.HS *= 2;
    EXPECT_ERROR(STATUS_MISMATCH,
                 "FILE: tensor \"model.layers.0.self_attn.rotary_emb.inv_freq\" is for heads of 6, "
                 "\"num_attention_heads\" in config.json gives heads of 12",
                 load(&checkpoint, &config, true, f->file.data, f->file.size, &error));
}

/* Sizes near the limits: refused because the file's tensors differ, before memory is allocated. */
FILE_TEST(huge_configurations_are_refused_by_a_small_file, true) {
    static const size_t places[] = {
        offsetof(struct llama2_config, C),   offsetof(struct llama2_config, hidden),
        offsetof(struct llama2_config, L),   offsetof(struct llama2_config, NH),
        offsetof(struct llama2_config, KVH), offsetof(struct llama2_config, HS),
        offsetof(struct llama2_config, V)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct llama2_config config = small;
        *(size_t *)(void *)((char *)&config + places[i]) = INT32_MAX;
        struct llama2_checkpoint checkpoint;
        struct error error = {0};
        enum status status = load(&checkpoint, &config, true, f->file.data, f->file.size, &error);
        bool layers = places[i] == offsetof(struct llama2_config, L);
        EXPECT_STATUS(layers ? STATUS_BAD_FORMAT : STATUS_MISMATCH, status);
        const char *want = layers ? "model.layers.2.input_layernorm.weight\" is missing"
                                  : "the configuration says";
        EXPECT_TRUE(strstr(error.message, want) != NULL);
        EXPECT_TRUE(checkpoint.weights.layers == NULL);
    }
}

/* A header of odd length: every tensor lies at an odd address. */
FILE_TEST(unaligned_tensors_are_copied, true) {
    unsigned char *odd = malloc(f->file.size + 1);
    ASSERT_TRUE(odd != NULL);
    memcpy(odd + 1, f->file.data, f->file.size);
    struct llama2_checkpoint checkpoint;
    struct llama2_fp32 fp32;
    ASSERT_OK(load(&checkpoint, &small, true, odd + 1, f->file.size, NULL));
    EXPECT_INT_EQ(1, (uintptr_t)checkpoint.weights.embedding.data % 2);
    ASSERT_OK(llama2_checkpoint_convert(&checkpoint, 0, &fp32, NULL));
    EXPECT_TRUE(memcmp(fp32.weights.layers[1].wo, f->model.weights.layers[1].wo,
                       small.C * small.NH * small.HS * sizeof(float)) == 0);
    EXPECT_INT_EQ(0, (uintptr_t)fp32.weights.layers[1].wo % ARENA_ALIGNMENT);
    llama2_fp32_free(&fp32);
    llama2_checkpoint_close(&checkpoint);
    free(odd);
}

/* ---- Configurations ---- */

#define SIZES                                                            \
    "\"hidden_size\":8,\"intermediate_size\":5,\"num_hidden_layers\":2," \
    "\"num_attention_heads\":4,\"vocab_size\":7,\"max_position_embeddings\":9"

C_TEST(llama2_config, absent_keys_have_their_defaults) {
    struct llama2_config want = small, got;
    want.KVH = 4;
    want.HS = 2;
    want.rope_theta = 10000.0f;
    bool shared = true;
    ASSERT_OK(llama2_config_parse(&got, &shared, "{" SIZES "}", strlen("{" SIZES "}"), NULL));
    checkpoint_expect_same_config(&want, &got);
    EXPECT_TRUE(!shared);
}

struct value_case {
    const char *keys;
    size_t KVH, HS;
    float rope_theta, norm_eps;
    bool shared;
};

C_TEST(llama2_config, reads_what_is_there) {
    static const struct value_case cases[] = {
        {"\"num_key_value_heads\":2", 2, 2, 10000.0f, 1e-6f, false},
        {"\"num_key_value_heads\":null,\"head_dim\":null", 4, 2, 10000.0f, 1e-6f, false},
        {"\"head_dim\":10", 4, 10, 10000.0f, 1e-6f, false},
        {"\"rms_norm_eps\":1e-05", 4, 2, 10000.0f, 1e-5f, false},
        {"\"rope_theta\":1e6,\"tie_word_embeddings\":true", 4, 2, 1e6f, 1e-6f, true},
        {"\"rope_parameters\":{\"rope_theta\":5e5,\"rope_type\":\"default\"}", 4, 2, 5e5f, 1e-6f,
         false},
        {"\"rope_scaling\":{\"type\":\"default\"},\"partial_rotary_factor\":1.0", 4, 2, 10000.0f,
         1e-6f, false},
        {"\"model_type\":\"mistral\",\"sliding_window\":null", 4, 2, 10000.0f, 1e-6f, false},
        {"\"model_type\":\"llama\",\"hidden_act\":\"silu\",\"attention_bias\":false,"
         "\"mlp_bias\":false,\"rope_scaling\":null,\"pretraining_tp\":1",
         4, 2, 10000.0f, 1e-6f, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[1024];
        snprintf(json, sizeof json, "{" SIZES ",%s}", cases[i].keys);
        struct llama2_config want = small, got;
        want.KVH = cases[i].KVH;
        want.HS = cases[i].HS;
        want.rope_theta = cases[i].rope_theta;
        want.norm_eps = cases[i].norm_eps;
        bool shared;
        struct error error = {0};
        EXPECT_OK(llama2_config_parse(&got, &shared, json, strlen(json), &error));
        EXPECT_STR_EQ("", error.message);
        checkpoint_expect_same_config(&want, &got);
        EXPECT_INT_EQ(cases[i].shared, shared);
    }
}

struct window_case {
    const char *keys;
    size_t window, full_layers;
    bool qkv_bias, out_bias, mlp_bias;
};

C_TEST(llama2_config, relatives_have_windows_and_biases) {
    static const struct window_case cases[] = {
        {"\"model_type\":\"mistral\",\"sliding_window\":5", 5, 0, false, false, false},
        {"\"model_type\":\"mistral\"", 0, 0, false, false, false},
        {"\"model_type\":\"qwen2\",\"sliding_window\":5", 0, 0, true, false, false},
        {"\"model_type\":\"qwen2\",\"sliding_window\":5,\"use_sliding_window\":true", 5, 28, true,
         false, false},
        {"\"model_type\":\"qwen2\",\"sliding_window\":5,\"use_sliding_window\":true,"
         "\"max_window_layers\":1",
         5, 1, true, false, false},
        {"\"model_type\":\"qwen2\",\"sliding_window\":5,\"use_sliding_window\":true,"
         "\"max_window_layers\":2,\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
         5, 1, true, false, false},
        {"\"attention_bias\":true", 0, 0, true, true, false},
        {"\"attention_bias\":false,\"mlp_bias\":true", 0, 0, false, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char json[1024];
        snprintf(json, sizeof json, "{" SIZES ",%s}", cases[i].keys);
        struct llama2_config got;
        bool shared;
        ASSERT_OK(llama2_config_parse(&got, &shared, json, strlen(json), NULL));
        EXPECT_INT_EQ(cases[i].window, got.window);
        EXPECT_INT_EQ(cases[i].full_layers, got.full_layers);
        EXPECT_INT_EQ(cases[i].qkv_bias, got.qkv_bias);
        EXPECT_INT_EQ(cases[i].out_bias, got.out_bias);
        EXPECT_INT_EQ(cases[i].mlp_bias, got.mlp_bias);
    }
}

/* SIZES with the first two changed. */
#define WITH(hidden_size, num_attention_heads)                                      \
    "{\"hidden_size\":" hidden_size ",\"num_attention_heads\":" num_attention_heads \
    ",\"intermediate_size\":5,\"num_hidden_layers\":2,\"vocab_size\":7,"            \
    "\"max_position_embeddings\":9}"

#define QWEN2 ",\"model_type\":\"qwen2\""
#define QWEN2_WINDOW QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":3"

static const struct refusal config_cases[] = {
    {"", STATUS_BAD_FORMAT, "not valid JSON at byte 0"},
    {"[1]", STATUS_BAD_FORMAT, "JSON is not an object"},
    {"{" SIZES "} x", STATUS_BAD_FORMAT, "JSON has text after its end"},
    {"{" SIZES ",\"vocab_size\":6}", STATUS_BAD_FORMAT, "has the key \"vocab_size\" twice"},
    {"{}", STATUS_BAD_FORMAT, "\"hidden_size\" is missing"},
    {WITH("null", "4"), STATUS_BAD_FORMAT, "\"hidden_size\" is missing"},
    {WITH("\"8\"", "4"), STATUS_BAD_FORMAT, "\"hidden_size\" is not a number"},
    {WITH("0", "4"), STATUS_BAD_FORMAT, "\"hidden_size\" is 0, must be a whole number from 1"},
    {WITH("2147483648", "4"), STATUS_BAD_FORMAT, "\"hidden_size\" is 2147483648, must be"},
    {WITH("8", "3"), STATUS_BAD_FORMAT,
     "\"hidden_size\" is 8, must be a multiple of \"num_attention_heads\", 3"},
    {WITH("8", "16"), STATUS_BAD_FORMAT, "\"hidden_size\" is 8, must be a multiple"},
    {WITH("8", "8"), STATUS_BAD_FORMAT, "head size is 1, must be even"},
    {"{" SIZES ",\"head_dim\":3}", STATUS_BAD_FORMAT, "head size is 3, must be even"},
    {"{" SIZES ",\"head_dim\":0}", STATUS_BAD_FORMAT, "\"head_dim\" is 0, must be"},
    {"{" SIZES ",\"num_key_value_heads\":3}", STATUS_BAD_FORMAT,
     "\"num_attention_heads\" is 4, must be a multiple of \"num_key_value_heads\", 3"},
    {"{" SIZES ",\"num_key_value_heads\":8}", STATUS_BAD_FORMAT, "must be a multiple of"},
    {"{" SIZES ",\"model_type\":\"gpt_neox\"}", STATUS_UNSUPPORTED,
     "\"model_type\" is \"gpt_neox\", which needs LayerNorm, parallel sublayers; supported are"},
    {"{" SIZES ",\"model_type\":\"mixtral\"}", STATUS_UNSUPPORTED,
     "\"model_type\" is \"mixtral\", which needs mixture of experts; supported are"},
    {"{" SIZES ",\"model_type\":\"gemma\"}", STATUS_UNSUPPORTED, "which needs Gemma's norms"},
    {"{" SIZES ",\"model_type\":\"qwen3\"}", STATUS_UNSUPPORTED, "norms of queries and keys"},
    {"{" SIZES ",\"model_type\":\"other\"}", STATUS_UNSUPPORTED,
     "\"model_type\" is \"other\"; supported are \"llama\", \"mistral\" and \"qwen2\""},
    {"{" SIZES ",\"num_local_experts\":8}", STATUS_UNSUPPORTED, "mixture of experts is not"},
    {"{" SIZES ",\"model_type\":1}", STATUS_BAD_FORMAT, "\"model_type\" is not a string"},
    {"{" SIZES ",\"hidden_act\":\"gelu\"}", STATUS_UNSUPPORTED,
     "\"hidden_act\" is \"gelu\", supported are \"silu\" and \"swish\""},
    {"{" SIZES ",\"sliding_window\":4096}", STATUS_UNSUPPORTED,
     "\"sliding_window\" is set: a \"llama\" has none"},
    {"{" SIZES ",\"model_type\":\"mistral\",\"sliding_window\":0}", STATUS_BAD_FORMAT,
     "\"sliding_window\" is 0, must be a whole number from 1"},
    {"{" SIZES QWEN2 ",\"use_sliding_window\":1}", STATUS_BAD_FORMAT,
     "\"use_sliding_window\" is neither true nor false"},
    {"{" SIZES QWEN2_WINDOW ",\"max_window_layers\":-1}", STATUS_BAD_FORMAT,
     "\"max_window_layers\" is not a whole number"},
    {"{" SIZES QWEN2_WINDOW ",\"layer_types\":[\"full_attention\"]}", STATUS_BAD_FORMAT,
     "\"layer_types\" is not an array with one entry for each of 2 layers"},
    {"{" SIZES QWEN2_WINDOW ",\"layer_types\":[\"full_attention\",\"chunked_attention\"]}",
     STATUS_UNSUPPORTED, "\"layer_types\" has \"chunked_attention\"; supported are"},
    {"{" SIZES QWEN2_WINDOW ",\"layer_types\":[\"sliding_attention\",\"full_attention\"]}",
     STATUS_UNSUPPORTED, "layer 1 has full attention behind layers with a sliding window"},
    {"{" SIZES ",\"attention_bias\":1}", STATUS_BAD_FORMAT,
     "\"attention_bias\" is neither true nor false"},
    {"{" SIZES ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}", STATUS_UNSUPPORTED,
     "\"rope_scaling\" is of type \"dynamic\"; supported are \"default\", \"linear\", \"llama3\" "
     "and"},
    {"{" SIZES ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}", STATUS_BAD_FORMAT,
     "\"rope_scaling\": \"factor\" is not a number from 1 to"},
    {"{" SIZES ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8}}", STATUS_BAD_FORMAT,
     "\"rope_scaling\": \"low_freq_factor\" is missing; it must be a number from"},
    {"{" SIZES ",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
     "\"high_freq_factor\":4}}",
     STATUS_BAD_FORMAT, "\"high_freq_factor\" is 4, must be above \"low_freq_factor\", 4"},
    {"{" SIZES ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"truncate\":1}}",
     STATUS_BAD_FORMAT, "\"truncate\" is neither true nor false"},
    {"{" SIZES ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"attention_factor\":1e25}}",
     STATUS_BAD_FORMAT, "\"attention_factor\" is 1e+25, too much"},
    {"{" SIZES ",\"rope_scaling\":2}", STATUS_UNSUPPORTED, "\"rope_scaling\" is of type \"\""},
    {"{" SIZES ",\"rope_parameters\":{\"rope_type\":\"yarn\"}}", STATUS_BAD_FORMAT,
     "\"rope_parameters\": \"factor\" is missing"},
    {"{" SIZES ",\"partial_rotary_factor\":0.5}", STATUS_UNSUPPORTED,
     "\"partial_rotary_factor\" is not 1"},
    {"{" SIZES ",\"rope_theta\":0}", STATUS_BAD_FORMAT, "\"rope_theta\" is not a number above 1"},
    {"{" SIZES ",\"rope_theta\":1e999}", STATUS_BAD_FORMAT, "\"rope_theta\" is not a number"},
    {"{" SIZES ",\"rope_theta\":\"1e4\"}", STATUS_BAD_FORMAT, "\"rope_theta\" is not a number"},
    {"{" SIZES ",\"rms_norm_eps\":0}", STATUS_BAD_FORMAT, "\"rms_norm_eps\" is 0, must be between"},
    {"{" SIZES ",\"rms_norm_eps\":1e-60}", STATUS_BAD_FORMAT, "is 1e-60, must be"},
    {"{" SIZES ",\"tie_word_embeddings\":1}", STATUS_BAD_FORMAT,
     "\"tie_word_embeddings\" is neither true nor false"},
};

static enum status parse_config(const void *json, size_t size, struct error *error) {
    struct llama2_config config;
    bool shared;
    return llama2_config_parse(&config, &shared, json, size, error);
}

C_TEST(llama2_config, bad_configurations_are_refused) {
    expect_refusals(parse_config, config_cases, sizeof config_cases / sizeof *config_cases);
}

/* ---- Folders ---- */

static enum status open_folder(const char *folder, struct error *error) {
    struct llama2_checkpoint checkpoint;
    enum status status = llama2_checkpoint_open(&checkpoint, folder, error);
    EXPECT_TRUE(status == STATUS_OK ||
                (checkpoint.weights.layers == NULL && checkpoint.shards.count == 0));
    llama2_checkpoint_close(&checkpoint);
    return status;
}

C_TEST(llama2_checkpoint, bad_folders_are_named) {
    char folder[4096], path[8192];
    test_temporary_path("llama2_none", folder, sizeof folder);
    expect_open_fails(open_folder, folder, "", STATUS_NOT_FOUND, "cannot open: No such file");
    checkpoint_folder("llama2_empty", folder, sizeof folder);
    expect_open_fails(open_folder, folder, "config.json", STATUS_NOT_FOUND,
                      "cannot open: No such file");
    checkpoint_write(folder, "config.json", "{}", 2);
    expect_open_fails(open_folder, folder, "config.json", STATUS_BAD_FORMAT,
                      "\"hidden_size\" is missing");
    checkpoint_write(folder, "config.json", "{" SIZES "}", strlen("{" SIZES "}"));
    expect_open_fails(open_folder, folder, "", STATUS_NOT_FOUND,
                      "neither model.safetensors nor model.safetensors.index.json is in this");
    checkpoint_write(folder, "model.safetensors", "", 0);
    expect_open_fails(open_folder, folder, "model.safetensors", STATUS_TRUNCATED, "file has 0");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    expect_open_fails(open_folder, path, "", STATUS_INVALID_ARGUMENT, "give the folder");
    char longest[4096]; /* the root folder; config.json makes it too long */
    memset(longest, '/', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct llama2_checkpoint checkpoint;
    EXPECT_ERROR(STATUS_TOO_LONG, "path of the checkpoint is longer than 4095 bytes",
                 llama2_checkpoint_open(&checkpoint, longest, &error));
}

#define SHARD(n) "model-0000" n "-of-00003.safetensors"
static const char INDEX[] = "model.safetensors.index.json";

C_TEST(llama2_checkpoint, missing_and_damaged_shards_are_named) {
    char folder[4096], path[8192];
    make_folder("llama2_missing_shard", NN_BF16, 3, false, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/" SHARD("2"), folder);
    EXPECT_INT_EQ(0, truncate(path, 100));
    expect_open_fails(open_folder, folder, SHARD("2"), STATUS_TRUNCATED, "file has 100 bytes");
    EXPECT_INT_EQ(0, unlink(path));
    expect_open_fails(open_folder, folder, SHARD("2"), STATUS_NOT_FOUND,
                      "cannot open: No such file");
    EXPECT_INT_EQ(0, mkdir(path, 0755));
    expect_open_fails(open_folder, folder, SHARD("2"), STATUS_IO, "not a regular file");
}

static void copy_shard(const char *folder, const char *from, const char *to) {
    char path[8192], *data;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, from);
    ASSERT_OK(file_read(path, 1 << 20, &data, &size, NULL));
    checkpoint_write(folder, to, data, size);
    free(data);
}

/* Each of the later shards then has tensors of the first; the index is only asked after that. */
C_TEST(llama2_checkpoint, tensors_in_two_shards_are_refused) {
    char folder[4096], want[8192];
    make_folder("llama2_twice", NN_BF16, 3, false, folder, sizeof folder);
    copy_shard(folder, SHARD("1"), SHARD("2"));
    snprintf(want, sizeof want, "\" is also in %s/" SHARD("1"), folder);
    expect_open_fails(open_folder, folder, SHARD("2"), STATUS_BAD_FORMAT, want);
}

C_TEST(llama2_checkpoint, shards_in_each_others_place_are_refused) {
    char folder[4096];
    make_folder("llama2_swapped", NN_BF16, 3, false, folder, sizeof folder);
    copy_shard(folder, SHARD("1"), "first");
    copy_shard(folder, SHARD("2"), SHARD("1"));
    copy_shard(folder, "first", SHARD("2"));
    expect_open_fails(open_folder, folder, SHARD("1"), STATUS_BAD_FORMAT,
                      "is missing; the index says that it is here");
}

struct index_case {
    const char *json;
    const char *file; /* at fault */
    enum status status;
    const char *message;
};

static const struct index_case index_cases[] = {
    {"", "model.safetensors.index.json", STATUS_BAD_FORMAT, "not valid JSON at byte 0"},
    {"{}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"weight_map\" is missing or not an object"},
    {"{\"weight_map\":[]}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"weight_map\" is missing or not an object"},
    {"{\"weight_map\":{}}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"weight_map\" is empty"},
    {"{\"weight_map\":{\"a\":1}}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"weight_map\": the file of \"a\" is not a string"},
    {"{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}", "model.safetensors.index.json",
     STATUS_BAD_FORMAT, "has the key \"a\" twice"},
    {"{\"weight_map\":{\"a\":\"../" SHARD("1") "\"}}", "model.safetensors.index.json",
     STATUS_BAD_FORMAT,
     "\"weight_map\": \"a\" is in \"../" SHARD("1") "\", which is not inside the folder"},
    {"{\"weight_map\":{\"a\":\"x/../../y\"}}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"a\" is in \"x/../../y\", which is not inside"},
    {"{\"weight_map\":{\"a\":\"x/..\"}}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"a\" is in \"x/..\", which is not inside"},
    {"{\"weight_map\":{\"a\":\"..\"}}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"a\" is in \"..\", which is not inside"},
    {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"a\" is in \"/etc/passwd\", which is not inside"},
    {"{\"weight_map\":{\"a\":\"\"}}", "model.safetensors.index.json", STATUS_BAD_FORMAT,
     "\"a\" is in \"\", which is not inside"},
    {"{\"weight_map\":{\"a\":\"..x\"}}", "..x", STATUS_NOT_FOUND, "cannot open: No such file"},
    {"{\"weight_map\":{\"a\":\"sub/x\"}}", "sub/x", STATUS_NOT_FOUND, "cannot open: No such file"},
    {"{\"weight_map\":{\"model.norm.weight\":\"" SHARD("1") "\"}}", SHARD("1"), STATUS_BAD_FORMAT,
     "tensor \"model.norm.weight\" is missing; the index says that it is here"},
    {"{\"weight_map\":{\"model.embed_tokens.weight\":\"" SHARD("1") "\"}}",
     "model.safetensors.index.json", STATUS_BAD_FORMAT, "\" is missing"},
    {"{\"weight_map\":{\"a\":\"config.json\"}}", "config.json", STATUS_BAD_FORMAT,
     "this is a text file; a safetensors file belongs here"},
};

C_TEST(llama2_checkpoint, bad_indexes_are_refused) {
    char folder[4096];
    make_folder("llama2_indexes", NN_BF16, 3, false, folder, sizeof folder);
    for (size_t i = 0; i < sizeof index_cases / sizeof *index_cases; i++) {
        checkpoint_write(folder, INDEX, index_cases[i].json, strlen(index_cases[i].json));
        expect_open_fails(open_folder, folder, index_cases[i].file, index_cases[i].status,
                          index_cases[i].message);
    }
}

static enum status parse_index(const void *json, size_t size, struct error *error) {
    struct decoder_index index;
    return decoder_index_parse(&index, json, size, error);
}

C_TEST(llama2_write, every_truncation_of_what_is_written_is_refused) {
    const struct llama2_write_options options = {NN_BF16, 3};
    char *json;
    ASSERT_OK(llama2_config_serialize(&small, true, NN_BF16, &json));
    expect_prefixes_refused(parse_config, json, strlen(json), STATUS_BAD_FORMAT,
                            "not valid JSON at byte");
    free(json);
    ASSERT_OK(llama2_index_serialize(&small, true, &options, &json, NULL));
    expect_prefixes_refused(parse_index, json, strlen(json), STATUS_BAD_FORMAT,
                            "not valid JSON at byte");
    struct decoder_index index;
    ASSERT_OK(decoder_index_parse(&index, json, strlen(json), NULL));
    EXPECT_INT_EQ(2 + 2 * 9, index.count);
    EXPECT_INT_EQ(3, index.file_count);
    EXPECT_STR_EQ("model-00003-of-00003.safetensors", index.files[2]);
    EXPECT_STR_EQ("model.embed_tokens.weight", index.entries[0].tensor);
    EXPECT_INT_EQ(0, index.entries[0].file);
    decoder_index_free(&index);
    free(json);
}

C_TEST(llama2_write, shards_are_counted) {
    struct llama2_random model;
    ASSERT_TRUE(make_model(&model, &small, true));
    char folder[4096];
    checkpoint_folder("llama2_counts", folder, sizeof folder);
    struct error error = {0};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  llama2_checkpoint_write(folder, &small, &model.weights,
                                          &(struct llama2_write_options){NN_F32, 0}, &error));
    EXPECT_ERROR(STATUS_INVALID_ARGUMENT,
                 "shard 0 of 21: there can be 1 to 20 shards of 20 tensors",
                 llama2_checkpoint_write(folder, &small, &model.weights,
                                         &(struct llama2_write_options){NN_F32, 21}, &error));
    char name[LLAMA2_SHARD_NAME_BYTES];
    EXPECT_STR_EQ("model.safetensors", llama2_shard_name(0, 1, name));
    EXPECT_STR_EQ("model-00002-of-00012.safetensors", llama2_shard_name(1, 12, name));
    llama2_random_free(&model);
}
