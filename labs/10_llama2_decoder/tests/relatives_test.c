/* Llama 3, Mistral, Qwen2, GPT-NeoX and others as transformers saves them: each stage computes its
 * logits. */
#include <string.h>

#include "common/checkpoints/gpt_neox/recorded_gpt_neox.h"
#include "common/checkpoints/llama2/recorded_llama2.h"
#include "common/testing/testing.h"
#include "labs/10_llama2_decoder/given/stages.h"

enum { BATCH = 16 };

/* What an engine could do wrong: the others differ in numbers that the host computes. */
static const char *const names[] = {"llama 3", "all biases", "qwen2, window from layer 1, yarn"};

struct stage {
    struct engine engine;
    size_t checked;
};

static void check_stage(void *context, const struct recorded_llama2 *recorded) {
    struct stage *stage = context;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(recorded->name, names[i]) == 0) {
            recorded_llama2_check(recorded, &stage->engine, BATCH);
            if (strcmp(stage->engine.name, "09_kv_cache") == 0) { /* its decoder takes them */
                recorded_llama2_check_stored(recorded, &stage->engine, BATCH);
            }
            stage->checked++;
        }
    }
}

/* A parallel and a sequential one: a prompt at once, then a token. */
static void check_gpt_neox(void *context, const struct recorded_gpt_neox *recorded) {
    struct stage *stage = context;
    if (strncmp(recorded->name, "parallel,", 9) == 0 || strncmp(recorded->name, "older", 5) == 0) {
        recorded_gpt_neox_check(recorded, &stage->engine, 24, 1);
        stage->checked++;
    }
}

C_TEST(relatives, every_stage_computes_the_logits_of_transformers) {
    const struct decoder_stages *stages = decoder_stages_of_the_course();
    for (size_t i = 0; i < stages->count; i++) {
        struct stage stage = {.checked = 0};
        struct program_device device;
        struct error error = {0};
        if (stages->table[i].on_device) {
            ASSERT_OK(stages->open_device(&device, &error));
        }
        ASSERT_OK(stages->table[i].create(&stage.engine, 1, &error));
        EXPECT_STR_EQ(stages->table[i].name, stage.engine.name);
        EXPECT_TRUE(recorded_llama2_visit(check_stage, &stage) > 0);
        EXPECT_INT_EQ(3, stage.checked);
        EXPECT_TRUE(recorded_gpt_neox_visit(check_gpt_neox, &stage, false) > 0);
        EXPECT_INT_EQ(3 + 2, stage.checked);
        engine_destroy(&stage.engine);
    }
}
