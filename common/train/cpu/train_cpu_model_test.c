/**
 * @file train_cpu_model_test.c
 * @brief Whole models on the CPU's engine next to the reference in double: losses, every gradient
 *        and the weights after updates; on one thread and on three with the same bits.
 */
#include "common/train/cpu/train_cpu.h"

#include "common/testing/testing.h"
#include "common/train/models/model_outcome.h"
#include "common/train/models/model_testing.h"

/* fp32's roundings, of which a sum has a few dozen. */
static const struct model_outcome_allowed allowed = {1e-5, 2e-6};

static void check(const struct train_config *config, const char *what) {
    enum { REFERENCE, ONE, THREE, ENGINES };
    struct train_engine engines[ENGINES];
    struct model_outcome outcomes[ENGINES] = {{.count = 0}};
    ASSERT_OK(train_reference_create(&engines[REFERENCE]));
    ASSERT_OK(train_cpu_create(&engines[ONE], 1));
    ASSERT_OK(train_cpu_create(&engines[THREE], 3));
    bool good = true;
    for (size_t i = 0; i < ENGINES; i++) {
        good = model_outcome_run(&outcomes[i], &engines[i], config, i == 1) && good;
    }
    if (good) {
        model_outcome_compare(&outcomes[REFERENCE], &outcomes[ONE], allowed, what);
        model_outcome_same(&outcomes[ONE], &outcomes[THREE], what);
    }
    for (size_t i = 0; i < ENGINES; i++) {
        model_outcome_free(&outcomes[i]);
        train_engine_destroy(&engines[i]);
    }
}

C_TEST(train_cpu_model, classifies) {
    const struct train_config config = model_testing_bert(TRAIN_CLASSIFY, 0.1f);
    check(&config, "BERT, classify");
}

C_TEST(train_cpu_model, finds_masked_tokens) {
    const struct train_config config = model_testing_bert(TRAIN_MLM, 0.1f);
    check(&config, "BERT, mlm");
}

C_TEST(train_cpu_model, predicts_tokens) {
    const struct train_config config = model_testing_llama2(false, NN_ROPE_INTERLEAVED);
    check(&config, "Llama2");
}

C_TEST(train_cpu_model, predicts_tokens_with_a_tied_embedding) {
    const struct train_config config = model_testing_llama2(true, NN_ROPE_HALVES);
    check(&config, "Llama2, tied");
}

C_TEST(train_cpu_model, predicts_tokens_as_gpt_neox) {
    const struct train_config parallel = model_testing_gpt_neox(false, true);
    const struct train_config sequential = model_testing_gpt_neox(true, false);
    check(&parallel, "GPT-NeoX");
    check(&sequential, "GPT-NeoX, tied, sequential");
}
