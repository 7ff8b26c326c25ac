#include "common/programs/decoder/decoder_session.h"

#include "common/base/file.h"
#include "common/checkpoints/gpt_neox/gpt_neox_write.h"
#include "common/models/gpt_neox_random.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/bench/bench.h"
#include "common/checkpoints/gpt_neox/gpt_neox_write.h"
#include "common/checkpoints/llama2/llama2_write.h"
#include "common/models/gpt_neox_random.h"
#include "common/models/llama2_random.h"
#include "common/programs/decoder/reference_stages.h"
#include "common/testing/testing.h"
#include "common/tokenizers/bpe/tokenizer_testing.h"

enum { TOKENS = 259 };

static const struct llama2_config small = {.C = 16,
                                           .hidden = 24,
                                           .L = 2,
                                           .NH = 4,
                                           .KVH = 2,
                                           .HS = 4,
                                           .V = TOKENS,
                                           .T = 16,
                                           .rope_theta = 10000.0f,
                                           .norm_eps = 1e-5f};

/* Writes a folder with a random model in @p dtype. */
static enum status write_folder(const char *folder, enum nn_dtype dtype) {
    const struct llama2_write_options options = {.dtype = dtype, .shards = 1};
    struct llama2_random random;
    mkdir(folder, 0777);
    TRY(llama2_random_create(&random, &small, 7));
    enum status status = llama2_checkpoint_write(folder, &small, &random.weights, &options, NULL);
    llama2_random_free(&random);
    TRY(status);
    char path[1200];
    snprintf(path, sizeof path, "%s/tokenizer.bin", folder);
    return tokenizer_testing_write_bytes(path);
}

static void expect_opens(enum nn_dtype stored, const char *stage, const char *asked,
                         enum nn_dtype want, bool converts) {
    char folder[1024], text[400];
    struct decoder_session session;
    struct error error = {0};
    test_temporary_path(nn_dtype_name(stored), folder, sizeof folder);
    ASSERT_OK(write_folder(folder, stored));
    struct decoder_options options = decoder_options_defaults();
    options.checkpoint = folder;
    options.stage = stage;
    options.dtype = asked;
    enum status status = decoder_session_open(&session, &options, reference_stages(), 5, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s on %s: %s", nn_dtype_name(stored), stage, error_text(&error, status));
        return;
    }
    EXPECT_INT_EQ(want, session.dtype);
    EXPECT_INT_EQ(5, session.batch);
    EXPECT_TRUE((session.fp32.weights.layers != NULL) == converts);
    EXPECT_TRUE(language_model_draws(&session.model) != converts);
    EXPECT_STR_EQ("", decoder_session_modelled(&session));
    (void)decoder_session_where(&session, text, sizeof text);
    EXPECT_TRUE(text[0] != '\0');
    decoder_session_close(&session);
    decoder_session_close(&session);
}

C_TEST(session, an_engine_with_a_decoder_gets_the_weights_as_they_are_stored) {
    const enum nn_dtype all[] = {NN_F32, NN_F16, NN_BF16};
    for (size_t i = 0; i < 3; i++) {
        expect_opens(all[i], "03_drawing", NULL, all[i], false);
        expect_opens(all[i], "03_drawing", "fp16", NN_F16, false);
        expect_opens(all[i], "03_drawing", "fp32", NN_F32, false);
        expect_opens(all[i], "04_reference", NULL, NN_F32, true);
        expect_opens(all[i], "04_reference", "fp32", NN_F32, true);
    }
}

C_TEST(session, a_model_is_made_for_the_positions_that_are_used) {
    static const char *const stages[] = {"03_drawing", "04_reference"};
    for (size_t i = 0; i < 4; i++) {
        char folder[1024];
        struct decoder_session session;
        struct decoder_options options = decoder_options_defaults();
        test_temporary_path("positions", folder, sizeof folder);
        ASSERT_OK(write_folder(folder, NN_F32));
        options.checkpoint = folder;
        options.stage = stages[i % 2];
        options.positions = i < 2 ? 3 : 1 << 20;
        ASSERT_OK(decoder_session_open(&session, &options, reference_stages(), 5, NULL));
        size_t want = i < 2 ? 3 : small.T;
        EXPECT_INT_EQ(want, language_model_context(&session.model));
        EXPECT_INT_EQ(want, session.context);
        EXPECT_INT_EQ(small.T, session.checkpoint.config.T);
        EXPECT_INT_EQ(want < 5 ? want : 5, session.batch);
        decoder_session_close(&session);
    }
}

/* A random GPT-NeoX with V rows of embedding, and a tokenizer of 256 bytes. */
static enum status write_gpt_neox(const char *folder, size_t V) {
    static const char settings[] =
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}";
    const struct gpt_neox_config config = {.C = 16,
                                           .hidden = 24,
                                           .L = 1,
                                           .NH = 2,
                                           .HS = 8,
                                           .V = V,
                                           .T = 20,
                                           .rotary = 2,
                                           .rope_theta = 10000.0f,
                                           .norm_eps = 1e-5f,
                                           .parallel = true};
    char path[1200];
    struct gpt_neox_random random;
    char *json = tokenizer_testing_byte_level(settings, "", "", "");
    mkdir(folder, 0777);
    TRY(gpt_neox_random_create(&random, &config, true, 7));
    enum status status = gpt_neox_checkpoint_write(folder, &config, &random.weights, NN_BF16, NULL);
    gpt_neox_random_free(&random);
    TRY(status);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    status = file_write(path, json, strlen(json), NULL);
    free(json);
    return status;
}

/* Also on an engine with a decoder, which is for Llama2: in fp32, operator by operator. */
C_TEST(session, a_gpt_neox_is_found_by_its_configuration) {
    char folder[1024];
    float logits[300];
    struct decoder_session session;
    struct decoder_options options = decoder_options_defaults();
    test_temporary_path("gpt_neox", folder, sizeof folder);
    ASSERT_OK(write_gpt_neox(folder, 300));
    options.checkpoint = folder;
    options.stage = "03_drawing";
    options.positions = 11;
    ASSERT_OK(decoder_session_open(&session, &options, reference_stages(), 5, NULL));
    EXPECT_INT_EQ(300, language_model_vocabulary(&session.model));
    EXPECT_INT_EQ(11, language_model_context(&session.model));
    EXPECT_INT_EQ(20, decoder_session_longest(&session));
    EXPECT_INT_EQ(NN_F32, session.dtype);
    EXPECT_TRUE(!language_model_draws(&session.model));
    EXPECT_OK(language_model_forward(&session.model, (int32_t[]){65, 299}, 2, 0, logits));
    decoder_session_close(&session);
    options.dtype = "bf16";
    EXPECT_ERROR(STATUS_UNSUPPORTED,
                 "--dtype bf16: stage 03_drawing computes a GPT-NeoX in fp32 only",
                 decoder_session_open(&session, &options, reference_stages(), 5, &error));
}

C_TEST(session, a_vocabulary_larger_than_the_embedding_is_refused) {
    char folder[1024];
    struct decoder_session session;
    struct decoder_options options = decoder_options_defaults();
    test_temporary_path("gpt_neox_small", folder, sizeof folder);
    ASSERT_OK(write_gpt_neox(folder, 255));
    options.checkpoint = folder;
    EXPECT_ERROR_CONTAINS(STATUS_MISMATCH, "256",
                          decoder_session_open(&session, &options, reference_stages(), 5, &error));
}

C_TEST(session, where_names_stage_type_and_device) {
    static const struct decoder_stage stage = {.name = "10_llama2_decoder", .on_device = true};
    struct decoder_session session = {.stage = &stage, .dtype = NN_BF16};
    char text[400];
    snprintf(session.device.name, sizeof session.device.name, "simt:h200");
    session.device.modelled = true;
    EXPECT_STR_EQ("stage 10_llama2_decoder in bf16 on simt:h200 (times are modelled)",
                  decoder_session_where(&session, text, sizeof text));
    EXPECT_STR_EQ(" modelled", decoder_session_modelled(&session));
    session.device.modelled = false;
    session.dtype = NN_F32;
    snprintf(session.device.name, sizeof session.device.name, "NVIDIA H200");
    EXPECT_STR_EQ("stage 10_llama2_decoder on NVIDIA H200",
                  decoder_session_where(&session, text, sizeof text));
}

/* A table whose device cannot be opened; the program reports that message. */
static enum status no_device(struct program_device *device, struct error *error) {
    (void)device;
    return error_set(error, STATUS_NO_DEVICE, "no usable GPU here");
}

static enum status no_engine(struct engine *engine, int threads, struct error *error) {
    (void)engine;
    (void)threads;
    return error_set(error, STATUS_OUT_OF_MEMORY, "not enough of it");
}

C_TEST(session, a_stage_that_does_not_start) {
    const struct decoder_stage table[] = {{"01_none", false, no_engine},
                                          {"02_gpu", true, no_engine}};
    const struct decoder_stages stages = {.table = table, .count = 2, .open_device = no_device};
    char folder[1024];
    struct decoder_session session;
    test_temporary_path("unused", folder, sizeof folder);
    ASSERT_OK(write_folder(folder, NN_F32));
    struct decoder_options options = decoder_options_defaults();
    options.checkpoint = folder;
    options.stage = "2";
    EXPECT_ERROR(STATUS_NO_DEVICE, "no usable GPU here",
                 decoder_session_open(&session, &options, &stages, 0, &error));
    options.stage = "1";
    EXPECT_ERROR(STATUS_OUT_OF_MEMORY, "cannot start the engine: not enough of it",
                 decoder_session_open(&session, &options, &stages, 0, &error));
}

static enum status model_of_a_gpu(struct program_device *device, struct error *error) {
    (void)error;
    *device = (struct program_device){.name = "simt:h200", .modelled = true};
    return STATUS_OK;
}

static enum status real_gpu(struct program_device *device, struct error *error) {
    (void)error;
    *device = (struct program_device){.name = "NVIDIA H200"};
    return STATUS_OK;
}

static enum status reference(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    (void)error;
    return engine_reference_create(engine);
}

C_TEST(session, by_default_prefers_a_gpu_to_the_cpu_and_the_cpu_to_simt) {
    static const struct decoder_stage table[] = {{"01_cpu", false, reference},
                                                 {"02_cpu", false, reference},
                                                 {"03_gpu", true, reference},
                                                 {"04_gpu", true, reference}};
    static const struct {
        enum status (*open)(struct program_device *device, struct error *error);
        size_t first, count;
        const char *want;
    } cases[] = {
        {no_device, 0, 4, "stage 02_cpu on the CPU"},
        {model_of_a_gpu, 0, 4, "stage 02_cpu on the CPU"},
        {real_gpu, 0, 4, "stage 04_gpu on NVIDIA H200"},
        {real_gpu, 0, 2, "stage 02_cpu on the CPU"},
        {model_of_a_gpu, 3, 1, "stage 04_gpu on simt:h200 (times are modelled)"},
    };
    char folder[1024], where[400];
    test_temporary_path("default", folder, sizeof folder);
    ASSERT_OK(write_folder(folder, NN_F32));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct decoder_stages stages = {.table = table + cases[i].first,
                                              .count = cases[i].count,
                                              .open_device = cases[i].open,
                                              .device_now = bench_now};
        struct decoder_options options = decoder_options_defaults();
        struct decoder_session session;
        struct error error = {0};
        options.checkpoint = folder;
        ASSERT_OK(decoder_session_open(&session, &options, &stages, 0, &error));
        EXPECT_STR_EQ(cases[i].want, decoder_session_where(&session, where, sizeof where));
        decoder_session_close(&session);
    }
}
