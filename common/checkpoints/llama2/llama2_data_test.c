/* Checkpoints that transformers has saved, against the logits that it computes of them. */
#include "common/checkpoints/llama2/recorded_llama2.h"
#include "common/testing/testing.h"

/* Token by token; in calls that begin and end inside windows; and all at once. */
static void check_batches(void *context, const struct recorded_llama2 *recorded) {
    static const size_t batches[] = {1, 4, 11, 48};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        recorded_llama2_check(recorded, context, batches[i]);
    }
}

C_TEST(llama2_data, checkpoints_of_transformers) {
    struct engine engine;
    ASSERT_OK(engine_reference_create(&engine));
    EXPECT_INT_EQ(13, recorded_llama2_visit(check_batches, &engine));
    engine_destroy(&engine);
}
