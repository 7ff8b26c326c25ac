#include "grader/small_llama2.h"

#include "common/model/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/inputs.h"
#include "grader/watch.h"

struct small_llama2 small_llama2(void) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    config.C = 60;
    config.hidden = 172;
    config.NH = 6;
    config.KVH = 3;
    config.HS = 10;
    config.V = SMALL_LLAMA2_V;
    config.T = SMALL_LLAMA2_TOKENS;
    return (struct small_llama2){
        .config = config, .tokens = {1, 17, 42, 5, 99, 3, 64, 12}, .prompt = 7, .count = 8};
}

/* Logits (V) of the last token. */
static enum status decode(const struct small_llama2 *l, const struct engine *engine,
                          const struct llama2_random *model, float *logits) {
    struct llama2 *llama2;
    enum status status =
        llama2_create(&llama2, &model->config, &model->weights, engine, l->prompt, NULL);
    if (status == STATUS_OK) {
        status = llama2_forward(llama2, l->tokens, l->prompt, 0, NULL);
    }
    for (size_t i = l->prompt; i < l->count && status == STATUS_OK; i++) {
        status = llama2_forward(llama2, l->tokens + i, 1, i, logits);
    }
    llama2_free(llama2);
    return status;
}

bool small_llama2_run(struct small_llama2 *l, const struct engine *subject, const char *what,
                      unsigned seconds) {
    struct llama2_random model = {0};
    struct engine reference = {0};
    EXPECT_OK(llama2_random_create(&model, &l->config, grader_seed()));
    EXPECT_OK(engine_reference_create(&reference));
    if (!test_has_failed()) {
        EXPECT_OK(decode(l, &reference, &model, l->want));
        grader_watch(what, seconds);
        EXPECT_OK(decode(l, subject, &model, l->got));
        grader_watch("", 0);
    }
    engine_destroy(&reference);
    llama2_random_free(&model);
    return !test_has_failed();
}
