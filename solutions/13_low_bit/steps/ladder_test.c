/* Each step of the ladder: odd sizes, every type, one row and sixteen. */
#include <string.h>

#include "labs/13_low_bit/problem/problem.h"
#include "solutions/ladder_gpu.h"

struct shape {
    size_t M, N, K;
};

static enum status run_step(struct low_bit_data *data, const struct low_bit_step *step, char *wrong,
                            size_t size, struct error *error) {
    low_bit_name_tensors(data);
    TRY(low_bit_data_reset(data, error));
    TRY(step->prepare(&data->matrix, data->prepared.data, NULL, error));
    TRY(device_synchronize(NULL, error));
    TRY(step->linear(&data->linear, data->workspace, NULL, error));
    return low_bit_data_check(data, wrong, size, error);
}

/* All steps on one problem. */
static void run_case(struct low_bit_case c) {
    size_t count;
    const struct low_bit_step *steps = low_bit_ladder(&count);
    struct low_bit_data data = {0};
    struct error error = {0};
    c.seed = c.M * 1000003 + c.N * 1009 + c.K;
    enum status status = low_bit_data_create(&data, &c, &error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        char wrong[400] = "";
        status = run_step(&data, &steps[i], wrong, sizeof wrong, &error);
        if (wrong[0] != '\0') {
            TEST_FAIL("%s: %s: %s", steps[i].name, data.name, wrong);
        }
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", data.name, error_text(&error, status));
    }
    low_bit_data_free(&data);
}

static void run_forms(const struct shape *shapes, size_t count, bool guarded) {
    struct device_properties gpu;
    static const struct low_bit_case forms[] = {
        {.type = LOW_BIT_INT8},
        {.type = LOW_BIT_FP8, .extremes = true},
        {.type = LOW_BIT_INT4, .group = 128, .scale_dtype = NN_BF16, .has_zeros = true},
        {.type = LOW_BIT_INT4, .group = 32, .scale_dtype = NN_F16},
        {.type = LOW_BIT_FP8},
        {.type = LOW_BIT_INT4, .group = 32, .scale_dtype = NN_BF16, .has_zeros = true},
        {.type = LOW_BIT_INT8, .extremes = true},
        {.type = LOW_BIT_INT4, .group = 128, .scale_dtype = NN_F16, .has_zeros = true},
    };
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < sizeof forms / sizeof *forms; j++) {
            struct low_bit_case c = forms[j];
            c.M = shapes[i].M;
            c.N = shapes[i].N;
            c.K = shapes[i].K;
            c.out_dtype = (i + j) % 2 == 0 ? NN_F32 : NN_BF16;
            c.guarded = guarded;
            c.skew = guarded ? 1 : 0;
            if (c.group <= c.K && !test_has_failed()) {
                run_case(c);
            }
        }
    }
}

C_TEST(ladder, whole_tiles) {
    static const struct shape shapes[] = {{1, 32, 256}, {8, 64, 1280}, {16, 48, 128}};
    run_forms(shapes, sizeof shapes / sizeof *shapes, false);
}

C_TEST(ladder, odd_sizes) {
    static const struct shape shapes[] = {{1, 1, 1},   {3, 17, 33},   {5, 33, 129},
                                          {9, 7, 200}, {16, 15, 383}, {2, 50, 1160}};
    run_forms(shapes, sizeof shapes / sizeof *shapes, false);
}

C_TEST(ladder, nothing_is_written_beside) {
    static const struct shape shapes[] = {{7, 19, 264}, {13, 33, 135}};
    run_forms(shapes, sizeof shapes / sizeof *shapes, true);
}

C_TEST(ladder, refuses_what_it_does_not_take) {
    struct device_properties gpu;
    size_t count;
    const struct low_bit_step *steps = low_bit_ladder(&count);
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    const struct low_bit_linear good = {
        .layout = {LOW_BIT_INT4, 64, 256, 128, NN_BF16, true}, .M = 1, .out_dtype = NN_F32};
    for (size_t i = 0; i < count; i++) {
        struct low_bit_linear calls[5] = {good, good, good, good, good};
        calls[0].M = LOW_BIT_MAX_ROWS + 1;
        calls[1].out_dtype = NN_F16;
        calls[2].layout.group = 64;
        calls[3].layout.scale_dtype = NN_F32;
        calls[4].layout.rows = 0;
        for (size_t j = 0; j < 5; j++) {
            struct error error = {0};
            bool unsupported = j == 2 || j == 3;
            EXPECT_INT_EQ(unsupported ? STATUS_UNSUPPORTED : STATUS_INVALID_ARGUMENT,
                          steps[i].linear(&calls[j], NULL, NULL, &error));
            EXPECT_TRUE(strlen(error.message) > 0);
        }
        struct low_bit_linear none = good;
        struct error error = {0};
        none.M = 0;
        EXPECT_OK(steps[i].linear(&none, NULL, NULL, &error));
    }
}
