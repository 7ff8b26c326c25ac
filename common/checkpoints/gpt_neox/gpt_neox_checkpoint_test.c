#include "common/checkpoints/gpt_neox/gpt_neox_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/checkpoints/gpt_neox/gpt_neox_write.h"
#include "common/models/gpt_neox_random.h"
#include "common/nn/dtype.h"
#include "common/testing/refusals.h"
#include "common/testing/testing.h"

static const struct gpt_neox_config small = {.C = 20,
                                             .hidden = 7,
                                             .L = 2,
                                             .NH = 2,
                                             .HS = 10,
                                             .V = 9,
                                             .T = 6,
                                             .rotary = 4,
                                             .rope_theta = 5000.0f,
                                             .norm_eps = 1e-6f,
                                             .activation = NN_GELU_TANH,
                                             .parallel = false,
                                             .attention_bias = true};

/* ---- The order of rows ---- */

/* By hand: a head of 10 channels, 4 of them rotated, as (0, 2) and (1, 3). */
C_TEST(gpt_neox_weights, channels_of_a_head) {
    static const size_t order[10] = {0, 1, 4, 5, 6, 2, 3, 7, 8, 9};
    for (size_t i = 0; i < 10; i++) {
        EXPECT_INT_EQ(order[i], gpt_neox_qkv_row(&small, 0, i));           /* q of head 0 */
        EXPECT_INT_EQ(40 + order[i], gpt_neox_qkv_row(&small, 1, 10 + i)); /* k of head 1 */
        EXPECT_INT_EQ(20 + i, gpt_neox_qkv_row(&small, 2, i));             /* v of head 0 */
    }
}

/* Each row of query_key_value belongs to one row of q, k or v, whatever is rotated. */
C_TEST(gpt_neox_weights, rows_are_a_permutation) {
    for (size_t rotary = 2; rotary <= small.HS; rotary += 2) {
        bool seen[60] = {false};
        struct gpt_neox_config c = small;
        c.rotary = rotary;
        for (size_t i = 0; i < 60; i++) {
            size_t row = gpt_neox_qkv_row(&c, i / 20, i % 20);
            EXPECT_TRUE(row < 60 && !seen[row]);
            seen[row % 60] = true;
        }
    }
}

C_TEST(gpt_neox_weights, frequencies) {
    float got[5];
    gpt_neox_rope_frequencies(got, &small);
    EXPECT_NEAR(1.0, got[0], 0.0);
    EXPECT_NEAR(0.01414213562, got[1], 1e-9); /* 5000^(-1/2) */
    EXPECT_TRUE(got[2] == 0.0f && got[3] == 0.0f && got[4] == 0.0f);
}

/* ---- Round trips ---- */

struct comparer {
    const struct gpt_neox_weights *got;
    enum nn_dtype dtype;
    size_t tensors;
};

static const float *in_struct(const void *base, const void *member, const void *other) {
    return *(const float *const *)((const char *)other +
                                   ((const char *)member - (const char *)base));
}

/* All members of both structs are pointers to floats: compares the members one by one. */
static void expect_equal(struct comparer *comparer, const float *want, const float *got,
                         size_t count) {
    unsigned char bytes[4];
    float rounded;
    for (size_t i = 0; i < count; i++) {
        nn_dtype_store(bytes, &want[i], 1, comparer->dtype);
        nn_dtype_load(&rounded, bytes, 1, comparer->dtype);
        if (got[i] != rounded) {
            TEST_FAIL("tensor %zu, element %zu: %g, not %g", comparer->tensors, i, got[i], rounded);
            return;
        }
    }
}

/* The converted model has the same members in the same order, so that offsets find them. */
static enum status compare_tensor(void *context, const struct decoder_weight *tensor) {
    const struct {
        struct comparer *c;
        const struct gpt_neox_weights *want;
    } *both = context;
    size_t count = decoder_weight_count(tensor) / tensor->parts;
    for (size_t part = 0; part < tensor->parts; part++) {
        const void *member = tensor->plain[part];
        const struct gpt_neox_weights *want = both->want, *got = both->c->got;
        bool outside = member >= (const void *)want && member < (const void *)(want + 1);
        size_t l = outside ? 0
                           : (size_t)((const char *)member - (const char *)want->layers) /
                                 sizeof *want->layers;
        expect_equal(both->c, *tensor->plain[part],
                     outside ? in_struct(want, member, got)
                             : in_struct(&want->layers[l], member, &got->layers[l]),
                     count);
        both->c->tensors++;
    }
    return STATUS_OK;
}

static void round_trip(enum nn_dtype dtype, bool shared, bool attention_bias) {
    struct gpt_neox_config config = small;
    struct gpt_neox_random model;
    struct gpt_neox_checkpoint checkpoint;
    struct gpt_neox_fp32 fp32;
    char folder[4096];
    config.attention_bias = attention_bias;
    ASSERT_OK(gpt_neox_random_create(&model, &config, shared, 3));
    test_temporary_path("round_trip", folder, sizeof folder);
    (void)mkdir(folder, 0755);
    EXPECT_OK(gpt_neox_checkpoint_write(folder, &config, &model.weights, dtype, NULL));
    EXPECT_TRUE(gpt_neox_checkpoint_is(folder));
    ASSERT_OK(gpt_neox_checkpoint_open(&checkpoint, folder, NULL));
    ASSERT_OK(gpt_neox_checkpoint_convert(&checkpoint, 0, &fp32, NULL));
    EXPECT_TRUE(memcmp(&config, &checkpoint.config, sizeof config) == 0);
    EXPECT_INT_EQ(shared, checkpoint.shared_classifier);
    EXPECT_INT_EQ(shared, fp32.weights.classifier == fp32.weights.embedding);
    struct comparer comparer = {.got = &fp32.weights, .dtype = dtype};
    struct {
        struct comparer *c;
        const struct gpt_neox_weights *want;
    } both = {&comparer, &model.weights};
    EXPECT_OK(gpt_neox_tensors_visit(&config, shared, NULL, &model.weights, compare_tensor, &both));
    EXPECT_INT_EQ(2 * (attention_bias ? 16 : 12) + (shared ? 3 : 4), comparer.tensors);
    gpt_neox_fp32_free(&fp32);
    gpt_neox_checkpoint_close(&checkpoint);
    gpt_neox_random_free(&model);
}

C_TEST(gpt_neox_checkpoint, round_trips) {
    round_trip(NN_F32, false, true);
    round_trip(NN_F16, true, true);
    round_trip(NN_BF16, false, false);
}

/* Whatever is rotated is read as it was written. */
C_TEST(gpt_neox_config, rotary_share_round_trips) {
    for (size_t HS = 2; HS <= 256; HS += 2) {
        for (size_t rotary = 2; rotary <= HS; rotary += 2) {
            struct gpt_neox_config config = small, got;
            char *text;
            bool shared;
            config.HS = HS;
            config.C = config.NH * HS;
            config.rotary = rotary;
            ASSERT_OK(gpt_neox_config_serialize(&config, false, NN_F32, &text));
            EXPECT_OK(gpt_neox_config_parse(&got, &shared, text, strlen(text), NULL));
            EXPECT_INT_EQ(rotary, got.rotary);
            free(text);
        }
    }
}

/* ---- Refusals ---- */

static enum status parse_config(const void *data, size_t size, struct error *error) {
    struct gpt_neox_config config;
    bool shared;
    enum status status = gpt_neox_config_parse(&config, &shared, data, size, error);
    if (status != STATUS_OK) {
        EXPECT_TRUE(config.C == 0 && !shared);
    }
    return status;
}

#define SIZES                                                                              \
    "\"hidden_size\":20,\"intermediate_size\":7,\"num_hidden_layers\":2,\"vocab_size\":9," \
    "\"max_position_embeddings\":6,"
#define MODEL "{\"model_type\":\"gpt_neox\"," SIZES

C_TEST(gpt_neox_config, defaults) {
    static const char text[] = MODEL "\"num_attention_heads\":1,\"rotary_pct\":0.4}";
    struct gpt_neox_config c;
    bool shared;
    ASSERT_OK(gpt_neox_config_parse(&c, &shared, text, strlen(text), NULL));
    EXPECT_TRUE(c.parallel && c.attention_bias && !shared && c.activation == NN_GELU);
    EXPECT_INT_EQ(8, c.rotary);
    EXPECT_NEAR(10000.0, c.rope_theta, 0.0);
    EXPECT_NEAR(1e-5f, c.norm_eps, 0.0);
}

C_TEST(gpt_neox_config, refused) {
    static const struct refusal cases[] = {
        {"{" SIZES "\"num_attention_heads\":2}", STATUS_BAD_FORMAT, "\"model_type\" is missing"},
        {"{\"model_type\":\"llama\"}", STATUS_UNSUPPORTED, "\"model_type\" is \"llama\", not"},
        {"{\"model_type\":3}", STATUS_BAD_FORMAT, "\"model_type\" is not a string"},
        {"[]", STATUS_BAD_FORMAT, "JSON"},
        {MODEL "\"num_attention_heads\":3}", STATUS_BAD_FORMAT, "must be a multiple of"},
        {MODEL "\"num_attention_heads\":4}", STATUS_BAD_FORMAT, "heads of 5 channels"},
        {MODEL "\"num_attention_heads\":0}", STATUS_BAD_FORMAT, "num_attention_heads"},
        {MODEL "\"num_attention_heads\":1e10}", STATUS_BAD_FORMAT, "num_attention_heads"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":0.3}", STATUS_BAD_FORMAT,
         "rotates 3 channels, must be an even number"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":0.1}", STATUS_BAD_FORMAT,
         "rotates 1 channels"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":0}", STATUS_BAD_FORMAT,
         "not a number above 0 and up to 1"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":1.5}", STATUS_BAD_FORMAT,
         "not a number above 0 and up to 1"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":\"all\"}", STATUS_BAD_FORMAT,
         "not a number above 0 and up to 1"},
        {MODEL "\"num_attention_heads\":2,\"rope_parameters\":{\"partial_rotary_factor\":0.5}}",
         STATUS_BAD_FORMAT, "rotates 5 channels"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":1,\"rotary_emb_base\":0}",
         STATUS_BAD_FORMAT, "\"rotary_emb_base\" is not a number from 1"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":1,\"hidden_act\":\"relu\"}",
         STATUS_UNSUPPORTED, "\"hidden_act\" is \"relu\""},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":1,\"hidden_act\":1}", STATUS_BAD_FORMAT,
         "\"hidden_act\" is not a string"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":1,\"use_parallel_residual\":1}",
         STATUS_BAD_FORMAT, "neither true nor false"},
        {MODEL "\"num_attention_heads\":2,\"rotary_pct\":1,\"layer_norm_eps\":2}",
         STATUS_BAD_FORMAT, "layer_norm_eps"},
        {MODEL "\"num_attention_heads\":2,\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}",
         STATUS_UNSUPPORTED, "\"rope_scaling\" is set"},
        {MODEL "\"num_attention_heads\":2,\"quantization_config\":{}}", STATUS_UNSUPPORTED,
         "quantized weights"},
        {"{\"model_type\":\"gpt_neox\",\"hidden_size\":-20}", STATUS_BAD_FORMAT, "hidden_size"},
    };
    expect_refusals(parse_config, cases, sizeof cases / sizeof *cases);
}

static enum status open_checkpoint(const char *path, struct error *error) {
    struct gpt_neox_checkpoint checkpoint;
    enum status status = gpt_neox_checkpoint_open(&checkpoint, path, error);
    gpt_neox_checkpoint_close(&checkpoint);
    return status;
}

/* The configuration of another model beside the tensors of `small`. */
static void expect_folder_refused(const struct gpt_neox_config *config, bool shared,
                                  const char *file, enum status status, const char *message) {
    struct gpt_neox_random model;
    char folder[4096], path[4200], *text;
    ASSERT_OK(gpt_neox_random_create(&model, &small, shared, 3));
    test_temporary_path("refused", folder, sizeof folder);
    (void)mkdir(folder, 0755);
    EXPECT_OK(gpt_neox_checkpoint_write(folder, &small, &model.weights, NN_BF16, NULL));
    ASSERT_OK(gpt_neox_config_serialize(config, false, NN_BF16, &text));
    snprintf(path, sizeof path, "%s/config.json", folder);
    EXPECT_OK(file_write(path, text, strlen(text), NULL));
    expect_open_fails(open_checkpoint, folder, file, status, message);
    free(text);
    gpt_neox_random_free(&model);
}

C_TEST(gpt_neox_checkpoint, tensors_that_disagree_with_the_configuration) {
    static const char file[] = "model.safetensors";
    struct gpt_neox_config c = small;
    c.L = 1;
    expect_folder_refused(&c, false, file, STATUS_MISMATCH, "\"num_hidden_layers\" in config.json");
    c.L = 3;
    expect_folder_refused(&c, false, file, STATUS_BAD_FORMAT,
                          "layers.2.input_layernorm.weight\" is");
    c = small;
    c.V = 10;
    expect_folder_refused(&c, false, file, STATUS_MISMATCH, "has shape (9, 20)");
    c = small;
    c.hidden = INT32_MAX;
    expect_folder_refused(&c, false, file, STATUS_MISMATCH, "dense_h_to_4h.weight\" has shape");
    expect_folder_refused(&small, true, file, STATUS_BAD_FORMAT, "embed_out.weight\" is missing");
}

C_TEST(gpt_neox_checkpoint, no_folder) {
    EXPECT_TRUE(!gpt_neox_checkpoint_is("/proc/nowhere"));
    expect_open_fails(open_checkpoint, "/proc/nowhere", "config.json", STATUS_NOT_FOUND, "");
}
