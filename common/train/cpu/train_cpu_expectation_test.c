/* The CPU's engine trains as PyTorch does. */
#include "common/testing/testing.h"
#include "common/train/cpu/train_cpu.h"
#include "common/train/models/train_expectation.h"

static const char *const cases[] = {"classifier", "masked", "language", "language_tied"};

enum { CASES = sizeof cases / sizeof *cases, STEPS = 200 };

C_TEST(train_cpu_expectation, gradients_are_the_frameworks) {
    struct train_engine engine;
    ASSERT_OK(train_cpu_create(&engine, 2));
    for (size_t i = 0; i < CASES; i++) {
        train_expectation_gradient(&engine, cases[i], 1e-5);
    }
    train_engine_destroy(&engine);
}

C_TEST(train_cpu_expectation, losses_of_many_steps_are_the_frameworks) {
    struct train_engine engine;
    ASSERT_OK(train_cpu_create(&engine, 2));
    for (size_t i = 0; i < CASES; i++) {
        train_expectation_losses(&engine, cases[i], STEPS, 1e-4);
    }
    train_engine_destroy(&engine);
}
