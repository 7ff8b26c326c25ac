/* Bits per byte, by numbers that can be added up by hand. */
#include "common/train/program/train_evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/programs/program.h"
#include "common/testing/testing.h"
#include "common/train/data/data_testing.h"

enum { BYTE = BPE_FIRST_BYTE, ALL_TOKENS = 259, CHANNELS = 8, ROWS = 64 };

/* A model that gives each token the same probability wherever it stands. */
struct fixture {
    struct train_engine engine;
    struct train_config config;
    struct train_model *model;
    struct train_vocabulary vocabulary;
    struct train_texts texts;
};

/* -log2 of a token's probability; together they are 1, but for 2^-52. */
static double bits_of(size_t token) {
    static const struct {
        size_t token;
        double bits;
    } known[] = {{BYTE + ' ', 1}, {BYTE + 'a', 2},  {BYTE + 'b', 3},
                 {BYTE + 'c', 4}, {BYTE + 'd', 5},  {BYTE + 'e', 6},
                 {BPE_BOS, 7},    {BYTE + 0xc3, 8}, {BYTE + 0xa9, 8}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].token == token) {
            return known[i].bits;
        }
    }
    return 60;
}

/*
 * Embeddings and norms are 1, the layers add nothing: the classifier reads a row of ones, and its
 * rows are logarithms, spread over the channels.
 */
static void set_weights(struct train_model *model) {
    size_t count;
    const struct train_parameter *list = train_model_parameters(model, &count);
    for (size_t i = 0; i < count; i++) {
        bool head = strcmp(list[i].name, "lm_head.weight") == 0;
        bool ones = strstr(list[i].name, "norm") != NULL || strstr(list[i].name, "embed") != NULL;
        double *values = calloc(list[i].count, sizeof *values);
        for (size_t at = 0; at < list[i].count && (head || ones); at++) {
            values[at] = head ? -bits_of(at / CHANNELS) * log(2.0) / CHANNELS : 1.0;
        }
        EXPECT_OK(train_model_write_f64(model, TRAIN_WEIGHTS, &list[i], values, NULL));
        free(values);
    }
}

static void create(struct fixture *f) {
    struct error error = {0};
    *f = (struct fixture){.config = {.task = TRAIN_LM, .most_rows = ROWS, .most_sequences = 8}};
    f->config.llama2 = (struct llama2_config){.C = CHANNELS,
                                              .hidden = 8,
                                              .L = 1,
                                              .NH = 1,
                                              .KVH = 1,
                                              .HS = CHANNELS,
                                              .V = ALL_TOKENS,
                                              .T = ROWS,
                                              .rope_theta = 1e4f,
                                              .norm_eps = 1e-12f,
                                              .rope_layout = NN_ROPE_HALVES};
    EXPECT_OK(train_reference_create(&f->engine));
    EXPECT_OK(train_model_create(&f->model, &f->config, &f->engine, &error));
    EXPECT_STR_EQ("", error.message);
    set_weights(f->model);
    data_testing_vocabulary(&f->vocabulary, TRAIN_LM);
    /* Three texts: BOS _ a b, BOS _ c d e, BOS _ and the two bytes of an e with an accent. */
    data_testing_texts(&f->texts, "ab\ncde\n\xc3\xa9\n", TRAIN_LM, &f->vocabulary, ROWS);
}

static void destroy(struct fixture *f) {
    train_texts_free(&f->texts);
    train_vocabulary_close(&f->vocabulary);
    train_model_free(f->model);
    train_engine_destroy(&f->engine);
}

/* Evaluates texts [first, first + count): their tokens, bits and bytes are as they should be. */
static void check(struct fixture *f, size_t first, size_t count, size_t batch_size, size_t length,
                  size_t tokens, double bits, double bytes) {
    const struct train_part part = {&f->texts, first, count};
    const struct train_batches_options options = {.task = TRAIN_LM,
                                                  .batch_size = batch_size,
                                                  .max_length = length,
                                                  .vocabulary = &f->vocabulary,
                                                  .texts_alone = true};
    struct train_batches batches;
    struct train_batch_memory memory;
    struct train_result result;
    struct error error = {0};
    EXPECT_OK(train_batches_create(&batches, &part, &options, &error));
    EXPECT_OK(train_batch_memory_create(&memory, &options, &error));
    EXPECT_OK(train_evaluate(f->model, &batches, &memory, 0, &result, &error));
    EXPECT_STR_EQ("", error.message);
    EXPECT_INT_EQ(tokens, result.labels);
    EXPECT_NEAR(bits / bytes, result.bits_per_byte, 1e-9);
    EXPECT_NEAR(bits * log(2.0) / (double)tokens, result.loss, 1e-9);
    train_batch_memory_free(&memory);
    train_batches_free(&batches);
}

C_TEST(train_evaluate, bits_per_byte_are_those_of_the_texts) {
    static const struct {
        size_t batch_size, length;
    } shapes[] = {{1, 3}, {2, 3}, {3, 4}, {8, 5}, {1, 13}, {4, 16}};
    struct fixture f;
    interrupt_watch();
    create(&f);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        size_t B = shapes[i].batch_size, T = shapes[i].length;
        /* _ab: 1 + 2 + 3, _cde: 1 + 4 + 5 + 6, _ and the accent: 1 + 8 + 8; BOS is not counted. */
        check(&f, 0, 3, B, T, 10, 39, 7);
        check(&f, 0, 1, B, T, 3, 6, 2);
        check(&f, 1, 1, B, T, 4, 16, 3);
        check(&f, 1, 2, B, T, 7, 33, 5);
    }
    destroy(&f);
}
