/* Models train on the given engine, with the solution's three functions, as PyTorch trains them. */
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "common/train/models/train_expectation.h"
#include "labs/11_training/given/engine.h"

static const char *const cases[] = {"classifier", "masked", "language", "language_tied"};

enum { CASES = sizeof cases / sizeof *cases };

/* So many steps on a GPU, on simt two: the second one's loss is behind an update. */
static size_t steps_here(size_t on_a_gpu) {
    struct device_properties gpu = {.modelled = true};
    EXPECT_OK(device_properties(&gpu, NULL));
    return gpu.modelled ? 2 : on_a_gpu;
}

static void check(enum nn_dtype dtype, double gradient, size_t steps_on_a_gpu, double loss) {
    const struct training_functions functions = {layernorm_backward, attention_backward, adamw};
    struct train_engine engine;
    struct error error = {0};
    if (training_engine_create_with(&engine, dtype, &functions, &error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    size_t steps = steps_here(steps_on_a_gpu);
    for (size_t i = 0; i < CASES; i++) {
        train_expectation_gradient(&engine, cases[i], gradient);
        train_expectation_losses(&engine, cases[i], steps, loss);
    }
    train_engine_destroy(&engine);
}

C_TEST(training_models, learn_as_the_frameworks_do_in_fp32) {
    check(NN_F32, 1e-4, 200, 1e-4);
}

/* PyTorch's own bf16 (autocast), measured the same way, is off by up to 2.7e-2. */
C_TEST(training_models, learn_as_the_frameworks_do_in_bf16) {
    check(NN_BF16, 5e-2, 2, 5e-3);
}
