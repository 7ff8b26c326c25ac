/*
 * Whole models on the engine with the subject's three functions, next to the reference engine in
 * double: losses, every gradient, and the weights after updates; and again, with each step in one
 * launch, with the same bits.
 */
#include "labs/11_training/given/engine.h"

#include "common/testing/testing.h"
#include "common/train/models/model_outcome.h"
#include "common/train/models/model_testing.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Shares of the right value: of a gradient's norm, and of a loss. fp32's roundings, of which a sum
   has a few dozen, with room for a GPU's exp; of bf16's 2^-9 each, some ten lie one behind the
   other in the gradient, while the loss is a mean. */
static const struct model_outcome_allowed allowed_f32 = {1e-5, 2e-6}, allowed_bf16 = {3e-2, 2e-3};

static void check_on(const struct train_engine *gpu, const struct train_config *config,
                     const struct model_outcome *want, struct model_outcome_allowed allowed,
                     const char *what) {
    struct model_outcome first, second = {.count = 0};
    if (model_outcome_run(&first, gpu, config, false) &&
        model_outcome_run(&second, gpu, config, true)) {
        model_outcome_compare(want, &first, allowed, what);
        model_outcome_same(&first, &second, what);
        if (training_engine_launched_at_once(gpu) == 0) {
            TEST_FAIL("%s: no step was one launch", what);
        }
    }
    model_outcome_free(&first);
    model_outcome_free(&second);
}

static void check(const struct train_config *config, const char *what) {
    static const enum nn_dtype types[] = {NN_F32, NN_BF16};
    struct train_engine reference, gpu;
    struct model_outcome want;
    struct error error = {0};
    ASSERT_OK(train_reference_create(&reference));
    bool good = model_outcome_run(&want, &reference, config, false);
    for (size_t i = 0; i < COUNT(types) && good; i++) {
        enum status status = training_engine_create(&gpu, types[i], &error);
        if (status == STATUS_NO_DEVICE) {
            test_stop(__FILE__, __LINE__, "%s", error.message);
        } else if (status != STATUS_OK) {
            TEST_FAIL("%s: %s", what, error_text(&error, status));
        } else {
            check_on(&gpu, config, &want, i == 0 ? allowed_f32 : allowed_bf16, what);
        }
        train_engine_destroy(&gpu);
    }
    model_outcome_free(&want);
    train_engine_destroy(&reference);
}

C_TEST(engine, classifies) {
    const struct train_config config = model_testing_bert(TRAIN_CLASSIFY, 0.1f);
    check(&config, "BERT, classify");
}

C_TEST(engine, finds_masked_tokens) {
    const struct train_config config = model_testing_bert(TRAIN_MLM, 0.1f);
    check(&config, "BERT, mlm");
}

/* Heads of 8 channels, the fewest that attention_backward() takes. */
static struct train_config llama2(bool tied, enum nn_rope_layout layout) {
    struct train_config config = model_testing_llama2(tied, layout);
    config.llama2.HS = 8;
    config.llama2.C = config.llama2.NH * config.llama2.HS;
    return config;
}

C_TEST(engine, predicts_tokens) {
    const struct train_config config = llama2(false, NN_ROPE_INTERLEAVED);
    check(&config, "Llama2");
}

C_TEST(engine, predicts_tokens_with_a_tied_embedding) {
    const struct train_config config = llama2(true, NN_ROPE_HALVES);
    check(&config, "Llama2, tied");
}

C_TEST(engine, predicts_tokens_as_gpt_neox) {
    const struct train_config config = model_testing_gpt_neox(true, true);
    check(&config, "GPT-NeoX, tied");
}
