/* Checkpoints that transformers has saved, against the logits and the text that it computes. */
#include "common/checkpoints/gpt_neox/recorded_gpt_neox.h"
#include "common/testing/testing.h"

enum { GREEDY = 200 };

/* Token by token, with all 200 drawn tokens; in calls that end inside the prompt; and at once. */
static void check_small(void *context, const struct recorded_gpt_neox *recorded) {
    recorded_gpt_neox_check(recorded, context, 1, GREEDY);
    recorded_gpt_neox_check(recorded, context, 7, 1);
    recorded_gpt_neox_check(recorded, context, 24, 1);
}

C_TEST(gpt_neox_data, checkpoints_of_transformers) {
    struct engine engine;
    ASSERT_OK(engine_reference_create(&engine));
    EXPECT_INT_EQ(5, recorded_gpt_neox_visit(check_small, &engine, false));
    engine_destroy(&engine);
}
