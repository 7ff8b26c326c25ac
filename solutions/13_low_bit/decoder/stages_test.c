/* The stages of `generate` and `perplexity`: a model's logits after its weights have been rounded,
   beside those of the reference that rounds nothing. */
#include "solutions/13_low_bit/decoder/stages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/models/llama2.h"
#include "common/models/llama2_random.h"
#include "common/nn/low_bit.h"
#include "solutions/ladder_gpu.h"

enum { TOKENS = 3, V = 33 };

static enum status forward(const struct llama2_random *random, const struct engine *engine,
                           float *logits, struct error *error) {
    static const int32_t tokens[TOKENS] = {3, 30, 7};
    struct llama2 *model;
    TRY(llama2_create(&model, &random->config, &random->weights, engine, TOKENS, error));
    enum status status = llama2_forward(model, tokens, TOKENS, 0, logits);
    llama2_free(model);
    return status;
}

/* The largest difference from the reference, relative to the largest logit. */
static double difference_of(const struct llama2_random *random, const struct low_bit_stage *stage) {
    struct error error = {0};
    struct engine reference, engine;
    float want[V], got[V];
    double largest = 0.0, difference = 0.0;
    EXPECT_OK(engine_reference_create(&reference));
    EXPECT_OK(forward(random, &reference, want, &error));
    EXPECT_OK(engine_low_bit_create(&engine, stage, &error));
    EXPECT_OK(forward(random, &engine, got, &error));
    for (int i = 0; i < V; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        difference = fmax(difference, fabs((double)got[i] - (double)want[i]));
    }
    engine_destroy(&engine);
    engine_destroy(&reference);
    return difference / largest;
}

/* 8 bits are near, 4 bits less so, and none is exact: an engine that does not round is none of
 * them. */
C_TEST(low_bit_stages, logits_are_those_of_rounded_weights) {
    static const struct low_bit_stage int8 = {LOW_BIT_INT8, 0}, int4 = {LOW_BIT_INT4, 32};
    static const struct llama2_config config = {.C = 128,
                                                .hidden = 40,
                                                .L = 1,
                                                .NH = 2,
                                                .KVH = 1,
                                                .HS = 64,
                                                .V = V,
                                                .T = 8,
                                                .rope_theta = 1e4f,
                                                .norm_eps = 1e-5f};
    struct device_properties gpu;
    struct llama2_random random;
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(llama2_random_create(&random, &config, 5));
    double eight = difference_of(&random, &int8), four = difference_of(&random, &int4);
    printf("  int8 %.2e, int4 %.2e\n", eight, four);
    EXPECT_TRUE(eight > 1e-4 && eight < 0.03);
    EXPECT_TRUE(four > 2.0 * eight && four < 0.3);
    llama2_random_free(&random);
}

/* Weights of a matrix become multiples of scales, as in a checkpoint of 4 bits. */
static void round_matrix(const float *weights, size_t rows, size_t columns) {
    const struct low_bit_layout layout = {LOW_BIT_INT4, rows, columns, 32, NN_F16, true};
    struct low_bit_matrix m = {.layout = layout};
    m.values = calloc(1, low_bit_values_bytes(&layout));
    m.scales = calloc(1, low_bit_scales_bytes(&layout));
    m.zeros = calloc(1, low_bit_zeros_bytes(&layout));
    EXPECT_OK(low_bit_quantize(weights, &m, NULL));
    low_bit_dequantize(&m, 0, rows, (float *)weights); /* the random model's own memory */
    free(m.values);
    free(m.scales);
    free(m.zeros);
}

/* Numbers that the checkpoint has are not rounded again: what is left is the keys' rounding. */
C_TEST(low_bit_stages, numbers_of_the_checkpoint_are_kept) {
    static const struct low_bit_stage stage = {LOW_BIT_INT4, 32};
    static const struct llama2_config config = {.C = 64,
                                                .hidden = 40,
                                                .L = 1,
                                                .NH = 1,
                                                .KVH = 1,
                                                .HS = 64,
                                                .V = V,
                                                .T = 8,
                                                .rope_theta = 1e4f,
                                                .norm_eps = 1e-5f};
    struct device_properties gpu;
    struct llama2_random random;
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(llama2_random_create(&random, &config, 6));
    const struct llama2_layer *l = &random.weights.layers[0];
    double before = difference_of(&random, &stage);
    round_matrix(l->wq, 64, 64);
    round_matrix(l->wk, 64, 64);
    round_matrix(l->wv, 64, 64);
    round_matrix(l->wo, 64, 64);
    round_matrix(l->w1, 40, 64);
    round_matrix(l->w3, 40, 64);
    round_matrix(l->w2, 64, 40);
    round_matrix(random.weights.classifier, V, 64);
    double after = difference_of(&random, &stage);
    printf("  rounded %.2e, kept %.2e\n", before, after);
    EXPECT_TRUE(after < 0.2 * before);
    llama2_random_free(&random);
}

C_TEST(low_bit_stages, table) {
    const struct decoder_stages *stages = low_bit_stages();
    EXPECT_STR_EQ("13_int8", stages->table[stages->count - 1].name);
    EXPECT_TRUE(decoder_stage_find(stages, "13_int4_128") != NULL);
    EXPECT_TRUE(decoder_stage_find(stages, stages->relatives) != NULL);
}
