/* The reference trains as PyTorch does. */
#include "common/train/models/train_expectation.h"

#include "common/testing/testing.h"

static const char *const cases[] = {"classifier", "masked", "language", "language_tied"};

enum { CASES = sizeof cases / sizeof *cases };

/* Both compute in double, except for 1 / labels and rates here, and Llama's norms and rotary angles
   in the framework, which are fp32. */
C_TEST(train_expectation, gradients_are_the_frameworks) {
    struct train_engine engine;
    ASSERT_OK(train_reference_create(&engine));
    for (size_t i = 0; i < CASES; i++) {
        train_expectation_gradient(&engine, cases[i], 1e-6);
    }
    train_engine_destroy(&engine);
}

/* With sanitizers a step is slow, and a few steps are enough for them. */
#ifdef __SANITIZE_ADDRESS__
enum { STEPS = 20 };
#else
enum { STEPS = 200 };
#endif

C_TEST(train_expectation, losses_of_many_steps_are_the_frameworks) {
    struct train_engine engine;
    ASSERT_OK(train_reference_create(&engine));
    for (size_t i = 0; i < CASES; i++) {
        train_expectation_losses(&engine, cases[i], STEPS, 1e-4);
    }
    train_engine_destroy(&engine);
}
