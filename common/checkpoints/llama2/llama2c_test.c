#include "common/checkpoints/llama2/llama2c.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/checkpoints/testing/tensor_file.h"
#include "common/models/llama2_random.h"
#include "common/testing/fixture.h"
#include "common/testing/refusals.h"

/* Grouped queries: 4 heads share 2 key/value heads. */
static const struct llama2_config grouped = {
    .C = 8,
    .hidden = 3,
    .L = 2,
    .NH = 4,
    .KVH = 2,
    .HS = 2,
    .V = 5,
    .T = 3,
    .rope_theta = 10000.0f,
    .norm_eps = 1e-5f,
    .rope_layout = NN_ROPE_INTERLEAVED,
};

/* 28 + 4 * (embedding 40 + layers 2 * (8 + 64 + 32 + 32 + 64 + 8 + 3 * 24) + norm 8 + tables 6) */
enum { GROUPED_BYTES = 28 + 4 * (40 + 2 * 280 + 8 + 6), CLASSIFIER_BYTES = 4 * 40 };

static const float other_table[8 * 5] = {3.0f, 1.0f, 4.0f};

/* A small checkpoint in memory. */
struct file {
    unsigned char *data;
    size_t size;
};

static bool file_create(struct file *file, const struct llama2_config *config, bool shared) {
    struct llama2_random model;
    if (llama2_random_create(&model, config, 7) != STATUS_OK) {
        return false;
    }
    if (!shared) {
        model.weights.classifier = other_table;
    }
    enum status status = llama2c_serialize(&model.config, &model.weights, &file->data, &file->size);
    llama2_random_free(&model);
    return status == STATUS_OK;
}

/* A test of a file of `grouped`. */
#define FILE_TEST(name, shared)                                                         \
    FIXTURE_TEST(llama2c, name, struct file, file, file_create(file, &grouped, shared), \
                 free(file->data))

static void expect_same(const float *want, const float *got, size_t count, const char *what) {
    if (memcmp(want, got, count * sizeof *want) != 0) {
        TEST_FAIL("%s differs after the round trip", what);
    }
}

static void expect_same_layer(const struct llama2_config *c, const struct llama2_layer *want,
                              const struct llama2_layer *got) {
    size_t q = c->NH * c->HS;
    size_t kv = c->KVH * c->HS;
    expect_same(want->attention_norm, got->attention_norm, c->C, "attention_norm");
    expect_same(want->wq, got->wq, q * c->C, "wq");
    expect_same(want->wk, got->wk, kv * c->C, "wk");
    expect_same(want->wv, got->wv, kv * c->C, "wv");
    expect_same(want->wo, got->wo, c->C * q, "wo");
    expect_same(want->ffn_norm, got->ffn_norm, c->C, "ffn_norm");
    expect_same(want->w1, got->w1, c->hidden * c->C, "w1");
    expect_same(want->w2, got->w2, c->C * c->hidden, "w2");
    expect_same(want->w3, got->w3, c->hidden * c->C, "w3");
}

static void round_trip(const struct llama2_config *config, bool shared) {
    struct llama2_random model;
    ASSERT_OK(llama2_random_create(&model, config, 11));
    if (!shared) {
        model.weights.classifier = other_table;
    }
    unsigned char *data;
    size_t size;
    ASSERT_OK(llama2c_serialize(config, &model.weights, &data, &size));
    struct llama2c_checkpoint back;
    ASSERT_OK(llama2c_parse(&back, data, size, NULL));
    checkpoint_expect_same_config(config, &back.config);
    EXPECT_INT_EQ(shared, back.shared_classifier);
    EXPECT_INT_EQ(shared, back.weights.classifier == back.weights.embedding);
    size_t table = config->V * config->C;
    expect_same(model.weights.embedding, back.weights.embedding, table, "embedding");
    expect_same(model.weights.classifier, back.weights.classifier, table, "classifier");
    expect_same(model.weights.final_norm, back.weights.final_norm, config->C, "final_norm");
    for (size_t l = 0; l < config->L; l++) {
        expect_same_layer(config, &model.weights.layers[l], &back.weights.layers[l]);
    }
    llama2c_close(&back);
    llama2c_close(&back); /* closing twice is allowed */
    free(data);
    llama2_random_free(&model);
}

C_TEST(llama2c, round_trip_grouped_queries) {
    round_trip(&grouped, true);
    round_trip(&grouped, false);
}

C_TEST(llama2c, round_trip_one_key_head_per_query_head) {
    struct llama2_config config = grouped;
    config.KVH = config.NH;
    round_trip(&config, true);
    round_trip(&config, false);
}

FILE_TEST(file_size_is_what_the_format_says, true) {
    EXPECT_INT_EQ(GROUPED_BYTES, file->size);
    const int32_t want[7] = {8, 3, 2, 4, 2, 5, 3};
    EXPECT_TRUE(memcmp(file->data, want, sizeof want) == 0);
    struct file longer;
    ASSERT_TRUE(file_create(&longer, &grouped, false));
    EXPECT_INT_EQ(GROUPED_BYTES + CLASSIFIER_BYTES, longer.size);
    int32_t vocab_size;
    memcpy(&vocab_size, longer.data + 20, sizeof vocab_size);
    EXPECT_INT_EQ(-5, vocab_size);
    free(longer.data);
}

/* Reader and writer share the layout code, so this test counts offsets by hand. */
FILE_TEST(tensors_lie_where_the_format_says, false) {
    struct llama2c_checkpoint checkpoint;
    ASSERT_OK(llama2c_parse(&checkpoint, file->data, file->size, NULL));
    const float *floats = (const float *)(const void *)(file->data + 28);
    const struct llama2_weights *w = &checkpoint.weights;
    const struct llama2_layer *layer = &w->layers[1];
    EXPECT_INT_EQ(0, w->embedding - floats);
    EXPECT_INT_EQ(40 + 8, layer->attention_norm - floats);
    EXPECT_INT_EQ(56 + 64, layer->wq - floats);
    EXPECT_INT_EQ(184 + 32, layer->wk - floats);
    EXPECT_INT_EQ(248 + 32, layer->wv - floats);
    EXPECT_INT_EQ(312 + 64, layer->wo - floats);
    EXPECT_INT_EQ(440 + 8, layer->ffn_norm - floats);
    EXPECT_INT_EQ(456 + 24, layer->w1 - floats);
    EXPECT_INT_EQ(504 + 24, layer->w2 - floats);
    EXPECT_INT_EQ(552 + 24, layer->w3 - floats);
    EXPECT_INT_EQ(600, w->final_norm - floats);
    EXPECT_INT_EQ(608 + 2 * 3 * 1, w->classifier - floats);
    llama2c_close(&checkpoint);
}

C_TEST(llama2c, writes_rope_tables) {
    struct llama2_config config = grouped;
    config.NH = config.KVH = 2;
    config.HS = 4;
    struct file file;
    ASSERT_TRUE(file_create(&file, &config, true));
    float tables[12]; /* cosines (3, 2), sines (3, 2): the last thing in the file */
    memcpy(tables, file.data + file.size - sizeof tables, sizeof tables);
    for (int t = 0; t < 3; t++) {
        EXPECT_NEAR(cos(t), tables[2 * t], 1e-7);
        EXPECT_NEAR(cos(t * 0.01), tables[2 * t + 1], 1e-7);
        EXPECT_NEAR(sin(t), tables[6 + 2 * t], 1e-7);
        EXPECT_NEAR(sin(t * 0.01), tables[6 + 2 * t + 1], 1e-7);
    }
    free(file.data);
}

static enum status parse(const void *data, size_t size, struct error *error) {
    struct llama2c_checkpoint checkpoint;
    enum status status = llama2c_parse(&checkpoint, data, size, error);
    EXPECT_TRUE(status == STATUS_OK || checkpoint.weights.layers == NULL);
    llama2c_close(&checkpoint);
    return status;
}

FILE_TEST(every_truncation_is_refused, false) {
    for (size_t length = 0; length < file->size && !test_has_failed(); length++) {
        char numbers[64];
        snprintf(numbers, sizeof numbers, "file has %zu", length);
        expect_refusal(parse, file->data, length, STATUS_TRUNCATED, numbers);
    }
}

/* A change of one number in the header, and the result that it must have. */
struct bad_header {
    int field; /* 0 dim, 1 hidden_dim, 2 n_layers, 3 n_heads, 4 n_kv_heads, 5 vocab_size, 6 seq_len
                */
    int32_t value;
    enum status status;
    const char *message; /* part of the line */
};

static const struct bad_header bad_headers[] = {
    {0, 0, STATUS_BAD_FORMAT, "dim is 0, must be at least 1"},
    {0, -8, STATUS_BAD_FORMAT, "dim is -8, must be at least 1"},
    {0, INT32_MIN, STATUS_BAD_FORMAT, "dim is -2147483648, must be at least 1"},
    {0, 10, STATUS_BAD_FORMAT, "dim is 10, must be a multiple of n_heads, 4"},
    {0, 2, STATUS_BAD_FORMAT, "dim is 2, must be a multiple of n_heads, 4"},
    {0, 12, STATUS_BAD_FORMAT, "head size dim / n_heads is 12 / 4 = 3, must be even"},
    {1, 0, STATUS_BAD_FORMAT, "hidden_dim is 0"},
    {1, -1, STATUS_BAD_FORMAT, "hidden_dim is -1"},
    {2, 0, STATUS_BAD_FORMAT, "n_layers is 0"},
    {2, -2, STATUS_BAD_FORMAT, "n_layers is -2"},
    {3, 0, STATUS_BAD_FORMAT, "n_heads is 0, must be at least 1"},
    {3, -4, STATUS_BAD_FORMAT, "n_heads is -4"},
    {4, 0, STATUS_BAD_FORMAT, "n_kv_heads is 0"},
    {4, -2, STATUS_BAD_FORMAT, "n_kv_heads is -2"},
    {4, 3, STATUS_BAD_FORMAT, "n_heads is 4, must be a multiple of n_kv_heads, 3"},
    {4, 8, STATUS_BAD_FORMAT, "n_heads is 4, must be a multiple of n_kv_heads, 8"},
    {5, 0, STATUS_BAD_FORMAT, "vocab_size is 0"},
    {5, INT32_MIN, STATUS_TRUNCATED, "header says 137438955796 bytes, file has 2484"},
    {5, INT32_MAX, STATUS_TRUNCATED, "file has 2484"},
    {5, 6, STATUS_TRUNCATED, "header says 2516 bytes, file has 2484"},
    {5, 4, STATUS_MISMATCH, "header says 2452 bytes, file has 2484"},
    {6, 0, STATUS_BAD_FORMAT, "seq_len is 0"},
    {6, -3, STATUS_BAD_FORMAT, "seq_len is -3"},
    {6, INT32_MAX, STATUS_TRUNCATED, "file has 2484"},
    {2, INT32_MAX, STATUS_TRUNCATED, "file has 2484"},
    {1, INT32_MAX, STATUS_TRUNCATED, "file has 2484"},
    {0, INT32_MAX - 7, STATUS_OVERFLOW, "sizes overflow: dim 2147483640, hidden_dim 3, n_layers 2"},
    {0, 0x616b3432, STATUS_UNSUPPORTED, "version 1 or later (magic \"ak42\") is not supported"},
    {0, 0x46554747, STATUS_BAD_FORMAT, "this is a GGUF file; give llama2.c's .bin"},
};

FILE_TEST(bad_headers_are_refused, true) {
    ASSERT_TRUE(file->size == 2484);
    for (size_t i = 0; i < sizeof bad_headers / sizeof *bad_headers; i++) {
        const struct bad_header *bad = &bad_headers[i];
        unsigned char *copy = malloc(file->size);
        ASSERT_TRUE(copy != NULL);
        memcpy(copy, file->data, file->size);
        memcpy(copy + 4 * bad->field, &bad->value, sizeof bad->value);
        char path[4096];
        test_temporary_path("bad.bin", path, sizeof path);
        ASSERT_OK(file_write(path, copy, file->size, NULL));
        struct llama2c_checkpoint checkpoint;
        struct error error = {0};
        enum status status = llama2c_open(&checkpoint, path, &error);
        if (status != bad->status || strstr(error.message, bad->message) == NULL ||
            strstr(error.message, "bad.bin: ") == NULL || strchr(error.message, '\n') != NULL) {
            TEST_FAIL("field %d = %d: want %s \"...%s...\", got %s \"%s\"", bad->field, bad->value,
                      status_name(bad->status), bad->message, status_name(status), error.message);
        }
        free(copy);
    }
}

C_TEST(llama2c, sizes_near_the_limits_do_not_wrap) {
    /* Each number is legal alone; products of three pass 2^64. */
    const int32_t header[7] = {0x7ffffffe, 0x7fffffff, 0x7fffffff, 1, 1, INT32_MIN, 0x7fffffff};
    struct llama2c_checkpoint checkpoint;
    EXPECT_ERROR_CONTAINS(STATUS_OVERFLOW, "vocab_size 2147483648",
                          llama2c_parse(&checkpoint, header, sizeof header, &error));
}

FILE_TEST(bytes_behind_the_end_are_refused, true) {
    size_t size = file->size;
    unsigned char *longer = calloc(size + 4, 1);
    ASSERT_TRUE(longer != NULL);
    memcpy(longer, file->data, size);
    for (size_t extra = 1; extra <= 4; extra++) {
        char want[64];
        struct llama2c_checkpoint checkpoint;
        snprintf(want, sizeof want, "header says %zu bytes, file has %zu", size, size + extra);
        EXPECT_ERROR(STATUS_MISMATCH, want,
                     llama2c_parse(&checkpoint, longer, size + extra, &error));
    }
    free(longer);
}

FILE_TEST(memory_must_be_aligned, true) {
    struct llama2c_checkpoint checkpoint;
    EXPECT_ERROR_CONTAINS(STATUS_INVALID_ARGUMENT, "aligned",
                          llama2c_parse(&checkpoint, file->data + 1, file->size - 1, &error));
}

C_TEST(llama2c, serialize_refuses_what_cannot_be_read_back) {
    struct llama2_random model;
    ASSERT_OK(llama2_random_create(&model, &grouped, 1));
    unsigned char *data;
    size_t size;
    struct llama2_config config = grouped;
    config.KVH = 3;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  llama2c_serialize(&config, &model.weights, &data, &size));
    config = grouped;
    config.V = (size_t)INT32_MAX + 1;
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  llama2c_serialize(&config, &model.weights, &data, &size));
    config = grouped;
    config.rope_theta = 500000.0f;
    EXPECT_STATUS(STATUS_UNSUPPORTED, llama2c_serialize(&config, &model.weights, &data, &size));
    config = grouped;
    config.rope_layout = NN_ROPE_HALVES;
    EXPECT_STATUS(STATUS_UNSUPPORTED, llama2c_serialize(&config, &model.weights, &data, &size));
    EXPECT_TRUE(data == NULL);
    llama2_random_free(&model);
}

static enum status open_file(const char *path, struct error *error) {
    struct llama2c_checkpoint checkpoint;
    enum status status = llama2c_open(&checkpoint, path, error);
    llama2c_close(&checkpoint);
    return status;
}

C_TEST(llama2c, missing_files_folders_and_empty_files) {
    expect_bad_files_named(open_file, STATUS_TRUNCATED, "header needs 28 bytes, file has 0");
    static const char text[] = "Once upon a time, there was a little girl named Lily.\n";
    char path[4096];
    test_temporary_path("text.bin", path, sizeof path);
    ASSERT_OK(file_write(path, text, sizeof text - 1, NULL));
    expect_open_fails(open_file, path, "", STATUS_BAD_FORMAT, "this is a text file");
}

C_TEST(llama2c, opens_a_real_checkpoint) {
    char path[4096];
    if (!test_data_path("stories260K.bin", path, sizeof path)) {
        TEST_SKIP("no stories260K.bin: set WARPBOOK_DATA to the folder that holds it");
    }
    struct llama2c_checkpoint checkpoint;
    ASSERT_OK(llama2c_open(&checkpoint, path, NULL));
    const struct llama2_config want = {.C = 64,
                                       .hidden = 172,
                                       .L = 5,
                                       .NH = 8,
                                       .KVH = 4,
                                       .HS = 8,
                                       .V = 512,
                                       .T = 512,
                                       .rope_theta = 10000.0f,
                                       .norm_eps = 1e-5f,
                                       .rope_layout = NN_ROPE_INTERLEAVED};
    checkpoint_expect_same_config(&want, &checkpoint.config);
    EXPECT_TRUE(checkpoint.shared_classifier);
    /* A wrong offset would show in norms: trained ones are positive, matrices are not.
     */
    for (size_t i = 0; i < 64; i++) {
        EXPECT_NEAR(2.5, checkpoint.weights.final_norm[i], 2.4);
        EXPECT_NEAR(1.0, checkpoint.weights.layers[4].ffn_norm[i], 0.9);
    }
    const float *embedding_end = checkpoint.weights.embedding + (size_t)512 * 64;
    EXPECT_TRUE(checkpoint.weights.layers[0].attention_norm == embedding_end);
    llama2c_close(&checkpoint);
}
