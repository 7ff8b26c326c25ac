/* gemm16() against sums in double; and each of its kernels, whichever it would choose. */
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "common/gemm16/gemm16_testing.h"
#include "common/testing/testing.h"

enum { GUARD = 64 /* elements on both sides of out, on a GPU; simt has bounds */ };

struct shape {
    size_t M, N, K;
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Around the sizes of tiles: 16, 64, 128, 192, 256; of pieces: 8; of steps: 64. */
static const struct shape shapes[] = {
    {0, 3, 3},     {3, 0, 3},     {3, 3, 0},      {130, 140, 0},   {1, 1, 1},       {2, 3, 1},
    {1, 33, 17},   {3, 8, 16},    {16, 64, 64},   {17, 72, 264},   {31, 129, 7},    {64, 64, 64},
    {65, 63, 66},  {127, 131, 8}, {128, 128, 8},  {129, 257, 9},   {128, 512, 72},  {1, 704, 1304},
    {257, 8, 304}, {5, 261, 999}, {136, 200, 56}, {256, 264, 128}, {192, 320, 200}, {300, 7, 13},
};

static const struct shape gpu_shapes[] = {
    {1024, 1024, 1024}, {1021, 1031, 1033}, {2048, 768, 768},  {8192, 768, 128},
    {4099, 72, 2056},   {7, 30011, 4096},   {70001, 8, 8},     {8, 70001, 8},
    {129, 2304, 768},   {4097, 3072, 776},  {16, 4096, 11008}, {640, 384, 5120},
};

typedef enum status run_function(const struct gemm16_data *data, struct error *error);

static enum status run_chosen(const struct gemm16_data *data, struct error *error) {
    return gemm16(&data->problem, data->workspace, NULL, error);
}

/* On a GPU with one multiprocessor the largest tiles are the best, and K is never cut. */
static enum status run_large_tiles(const struct gemm16_data *data, struct error *error) {
    struct device_properties gpu;
    if (data->c.M * data->c.N == 0) {
        return STATUS_OK;
    }
    enum status status = device_properties(&gpu, error);
    const struct gemm16_gpu one = {gpu.major, 1, gpu.shared_bytes};
    return status == STATUS_OK ? gemm16_tile(&data->problem, &one, data->workspace, NULL, error)
                               : status;
}

/* And with very many, the smallest, and K in many parts. */
static enum status run_small_tiles(const struct gemm16_data *data, struct error *error) {
    struct device_properties gpu;
    if (data->c.M * data->c.N == 0) {
        return STATUS_OK;
    }
    enum status status = device_properties(&gpu, error);
    const struct gemm16_gpu many = {gpu.major, 4096, gpu.shared_bytes};
    return status == STATUS_OK ? gemm16_tile(&data->problem, &many, data->workspace, NULL, error)
                               : status;
}

/* A kernel for Hopper; where there is none, what gemm16() chooses. */
static enum status run_hopper(const struct gemm16_data *data, int tile, struct error *error) {
    struct device_properties gpu;
    int count = 0;
    (void)gemm16_hopper_tiles(&count);
    if (data->c.M * data->c.N == 0 || tile >= count) {
        return run_chosen(data, error);
    }
    enum status status = device_properties(&gpu, error);
    const struct gemm16_gpu own = {gpu.major, gpu.multiprocessors, gpu.shared_bytes};
    if (status != STATUS_OK) {
        return status;
    }
    return gemm16_hopper_can(&data->problem, &own)
               ? gemm16_hopper(&data->problem, &own, tile, NULL, error)
               : run_chosen(data, error);
}

#define HOPPER(tile)                                                                            \
    static enum status run_hopper_##tile(const struct gemm16_data *data, struct error *error) { \
        return run_hopper(data, tile, error);                                                   \
    }
HOPPER(0)
HOPPER(1)
HOPPER(2)
HOPPER(3)
HOPPER(4)

static const struct {
    const char *name;
    run_function *run;
} ways[] = {{"chosen", run_chosen},           {"large tiles", run_large_tiles},
            {"small tiles", run_small_tiles}, {"hopper 0", run_hopper_0},
            {"hopper 1", run_hopper_1},       {"hopper 2", run_hopper_2},
            {"hopper 3", run_hopper_3},       {"hopper 4", run_hopper_4}};

static bool on_simt(void) {
    struct device_properties gpu;
    return device_properties(&gpu, NULL) == STATUS_OK && gpu.modelled;
}

static void check_way(struct gemm16_data *data, const char *name, run_function *run) {
    const struct gemm16_case *c = &data->c;
    struct error error = {0};
    char wrong[300];
    enum status status = gemm16_data_reset(data, &error);
    if (status == STATUS_OK) {
        status = run(data, &error);
    }
    if (status == STATUS_OK) {
        status = gemm16_data_check(data, wrong, sizeof wrong, &error);
    }
    const char *message = status == STATUS_OK ? wrong : error.message;
    if (status != STATUS_OK || wrong[0] != '\0') {
        TEST_FAIL("%s, %zux%zux%zu, %s to %s, bias %d%s, activation %d, residual %d%s%s, skew %zu: "
                  "%s",
                  name, c->M, c->N, c->K, nn_dtype_name(c->dtype), nn_dtype_name(c->out_dtype),
                  c->bias, c->bias_is_float ? " fp32" : "", c->activate ? (int)c->f : -1,
                  c->residual, c->residual_is_float ? " fp32" : "", c->in_place ? " in place" : "",
                  c->skew, message);
    }
}

static void check_case(const struct gemm16_case *c) {
    struct gemm16_data data;
    struct error error = {0};
    enum status status = gemm16_data_create(&data, c, on_simt() ? 0 : GUARD, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error.message);
    }
    size_t count = on_simt() ? 3 : COUNT(ways); /* there is no Hopper to simt */
    for (size_t i = 0; i < count && status == STATUS_OK && !test_has_failed(); i++) {
        check_way(&data, ways[i].name, ways[i].run);
    }
    gemm16_data_free(&data);
}

/* What follows the sum changes from case to case: all of it comes up with every type. */
static struct gemm16_case case_of(const struct shape *s, size_t i, enum nn_dtype dtype,
                                  size_t skew) {
    bool in_place = i % 3 == 1, to_float = i % 4 == 2;
    return (struct gemm16_case){.M = s->M,
                                .N = s->N,
                                .K = s->K,
                                .dtype = dtype,
                                .out_dtype = to_float ? NN_F32 : dtype,
                                .bias = i % 2 == 0,
                                .activate = i % 5 < 3,
                                .f = (enum nn_activation)(i % 5),
                                .bias_is_float = i % 4 == 0 || i % 8 == 6,
                                .residual = i % 3 > 0,
                                .residual_is_float = to_float && (in_place || i % 8 == 2),
                                .in_place = in_place,
                                .skew = skew};
}

static void check_shapes(const struct shape *list, size_t count, enum nn_dtype dtype, size_t skew) {
    for (size_t i = 0; i < count; i++) {
        struct gemm16_case c = case_of(&list[i], i, dtype, skew);
        c.rows = c.M * c.N * c.K > ((size_t)1 << 27) ? 24 : 0;
        check_case(&c);
    }
}

/* Every test needs a GPU that gemm16() takes. */
#define NEED_GPU()                                              \
    do {                                                        \
        struct error missing = {0};                             \
        struct device_properties found;                         \
        if (device_open(&missing) != STATUS_OK ||               \
            device_properties(&found, &missing) != STATUS_OK) { \
            TEST_STOP("%s", missing.message);                   \
        }                                                       \
        if (found.major < 8) {                                  \
            TEST_STOP("%s is older than gemm16", found.name);   \
        }                                                       \
    } while (0)

C_TEST(gemm16, equals_the_oracle_in_bf16) {
    NEED_GPU();
    check_shapes(shapes, COUNT(shapes), NN_BF16, 0);
}

C_TEST(gemm16, equals_the_oracle_in_fp16) {
    NEED_GPU();
    check_shapes(shapes, COUNT(shapes), NN_F16, 0);
}

C_TEST(gemm16, takes_pointers_aligned_as_elements) {
    NEED_GPU();
    check_shapes(shapes, COUNT(shapes), NN_BF16, 1);
    check_shapes(shapes, COUNT(shapes), NN_F16, 1);
}

/* Each activation, with and without what may stand beside it, to both types of out. */
C_TEST(gemm16, has_each_activation) {
    NEED_GPU();
    for (int i = 0; i < 5 * 8; i++) {
        struct gemm16_case c = {.M = 70, .N = 200, .K = 64, .activate = true};
        c.dtype = i % 2 == 0 ? NN_BF16 : NN_F16;
        c.out_dtype = i / 2 % 2 == 0 ? c.dtype : NN_F32;
        c.bias = i / 4 % 2 == 1;
        c.residual = !c.bias;
        c.f = (enum nn_activation)(i / 8);
        check_case(&c);
    }
}

/* A result of gemm16() twice, and whether all bytes agree. */
static void check_same_twice(const struct gemm16_case *c) {
    struct gemm16_data first, second;
    char wrong[300];
    EXPECT_OK(gemm16_data_create(&first, c, 0, NULL));
    EXPECT_OK(gemm16_data_create(&second, c, 0, NULL));
    EXPECT_OK(gemm16_data_reset(&first, NULL));
    EXPECT_OK(gemm16_data_reset(&second, NULL));
    EXPECT_OK(run_small_tiles(&first, NULL));
    EXPECT_OK(gemm16_data_check(&first, wrong, sizeof wrong, NULL));
    EXPECT_STR_EQ("", wrong);
    EXPECT_OK(run_small_tiles(&second, NULL));
    EXPECT_OK(gemm16_data_check(&second, wrong, sizeof wrong, NULL));
    EXPECT_STR_EQ("", wrong);
    EXPECT_TRUE(memcmp(first.got, second.got, first.out_bytes) == 0);
    gemm16_data_free(&first);
    gemm16_data_free(&second);
}

C_TEST(gemm16, adds_parts_of_K_in_one_order) {
    NEED_GPU();
    struct gemm16_case c = {.M = 9, .N = 72, .K = 5000, .dtype = NN_BF16, .out_dtype = NN_F32};
    check_same_twice(&c);
    c = (struct gemm16_case){.M = 33, .N = 65, .K = 3001, .dtype = NN_F16, .out_dtype = NN_F32};
    check_same_twice(&c);
}

/* Refused with one line that has `text` in it, and nothing written. */
static void check_refused(struct gemm16_data *data, const struct gemm16_problem *problem,
                          const char *text) {
    struct error error = {0};
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, gemm16(problem, data->workspace, NULL, &error));
    if (strstr(error.message, text) == NULL) {
        TEST_FAIL("want '%s': %s", text, error.message);
    }
    EXPECT_OK(device_read(data->got, data->d_out, data->out_bytes, NULL, NULL));
    EXPECT_TRUE(memcmp(data->got, data->old, data->out_bytes) == 0);
}

C_TEST(gemm16, refuses_what_it_does_not_take) {
    NEED_GPU();
    const struct gemm16_case c = {.M = 8, .N = 8, .K = 8, .dtype = NN_F16, .out_dtype = NN_F16};
    struct gemm16_data data;
    ASSERT_OK(gemm16_data_create(&data, &c, 0, NULL));
    EXPECT_OK(gemm16_data_reset(&data, NULL));
    struct gemm16_problem p = data.problem;
    p.dtype = NN_F32;
    check_refused(&data, &p, "dtype is fp16 or bf16, not 0");
    p = data.problem;
    p.out_dtype = NN_BF16;
    check_refused(&data, &p, "out_dtype is that of in, or fp32, not 2");
    p = data.problem;
    p.activate = true;
    p.f = (enum nn_activation)5;
    check_refused(&data, &p, "f = 5 is none of enum nn_activation");
    p = data.problem;
    p.residual_is_float = true;
    check_refused(&data, &p, "an fp32 residual needs an fp32 result");
    p = data.problem;
    p.M = GEMM16_MAX_SIZE + 1;
    check_refused(&data, &p, "M = 268435457 is above 268435456");
    p = data.problem;
    p.N = GEMM16_MAX_SIZE + 1;
    check_refused(&data, &p, "N = 268435457 is above 268435456");
    p = data.problem;
    p.K = GEMM16_MAX_SIZE + 1;
    check_refused(&data, &p, "K = 268435457 is above 268435456");
    gemm16_data_free(&data);
}

C_TEST(gemm16, equals_the_oracle_at_sizes_of_models) {
    NEED_GPU();
    if (on_simt()) {
        TEST_SKIP("needs a GPU: simt would take minutes for 8192x3072x768");
    }
    const struct shape large = {8192, 3072, 768};
    check_shapes(gpu_shapes, COUNT(gpu_shapes), NN_BF16, 0);
    check_shapes(gpu_shapes, COUNT(gpu_shapes), NN_F16, 0);
    check_shapes(&large, 1, NN_BF16, 0);
    check_shapes(&large, 1, NN_F16, 0);
}
