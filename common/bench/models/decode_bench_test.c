/* Engines that run out of memory: the error message says where, and what to do. */
#include "common/bench/models/decode_bench.h"

#include <string.h>

#include "common/testing/testing.h"

static enum status no_memory(void *context, float *out, const float *in, const float *weight,
                             size_t M, size_t N, size_t K) {
    (void)context, (void)out, (void)in, (void)weight, (void)M, (void)N, (void)K;
    return STATUS_OUT_OF_MEMORY;
}

static enum status no_room(void *context, size_t bytes, void **memory) {
    (void)context, (void)bytes;
    *memory = NULL;
    return STATUS_OUT_OF_MEMORY;
}

/* Runs a bench whose only stage is this engine, and expects it to run out of memory. */
static void run(const struct engine *engine, bool on_device, struct error *error) {
    struct decode_model model;
    const struct device_properties properties = {.name = "none"};
    const struct decode_bench bench = {
        .lab = "none", .subject = "none", .properties = &properties, .steps = 1};
    struct decode_stage stage = {
        .name = "failing", .engine = engine, .threads = 1, .on_device = on_device};
    *error = (struct error){0};
    ASSERT_OK(decode_model_open(&model, NULL, LLAMA2_SHAPE_15M, NULL));
    EXPECT_STATUS(STATUS_OUT_OF_MEMORY, decode_bench(&bench, &model, &stage, 1, error));
    EXPECT_TRUE(strchr(error->message, '\n') == NULL);
    decode_model_close(&model);
}

C_TEST(decode_bench, says_what_to_do_when_memory_is_out) {
    struct error error;
    struct engine engine, without_room;
    ASSERT_OK(engine_reference_create(&engine));
    engine.matmul = no_memory;
    without_room = engine;
    without_room.alloc = no_room;
    run(&engine, true, &error);
    EXPECT_STR_EQ("decoding on engine reference: out of memory on the GPU or the host; take a "
                  "smaller model, or end other programs that use the GPU",
                  error.message);
    run(&without_room, true, &error);
    EXPECT_TRUE(strstr(error.message, "out of memory on the GPU or the host; take") != NULL);
    run(&engine, false, &error);
    EXPECT_STR_EQ("decoding on engine reference: out of memory", error.message);
    engine_destroy(&engine);
}
