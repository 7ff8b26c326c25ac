/* Each of v10's kernels for Hopper, whichever gemm16() would choose, against sums in double; on
 * simt under full checks. gemm16_test has many more shapes for what gemm16() chooses. */
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/problem/problem.h"
#include "solutions/12_tensor_cores/steps/few_rows.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Few multiprocessors: each cluster has several tiles. */
enum { MULTIPROCESSORS = 4 };

static bool is_hopper(void) {
    struct device_properties gpu = {0};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK || device_properties(&gpu, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
        return false;
    }
    return gpu.code / 10 == 9;
}

/* `tile` is one of gemm16_hopper_tiles(), or FEW + a shape of gemm16_bulk_shapes(), then SPLITS are
   blocks of a cluster. Where there is a bias weights are called constant: both ways are tried. */
enum { FEW = 100 };

static enum status run(const struct gemm16_data *data, int tile, size_t splits,
                       struct error *error) {
    struct device_properties found;
    struct gemm16_problem problem = data->problem;
    problem.weight_is_constant = data->c.bias;
    if (tile >= FEW) {
        return gemm16_bulk(&problem, tile - FEW, (unsigned)splits, NULL, error);
    }
    TRY(device_properties(&found, error));
    const struct gemm16_gpu gpu = {found.code / 10, MULTIPROCESSORS, found.shared_bytes};
    return gemm16_hopper(&problem, &gpu, tile, splits, data->workspace, NULL, error);
}

static void check(const struct gemm16_case *c, int tile, size_t splits) {
    struct gemm16_data data = {0};
    struct error error = {0};
    char wrong[300] = "";
    enum status status = gemm16_data_create(&data, c, 0, &error);
    if (status == STATUS_OK) {
        status = gemm16_data_reset(&data, &error);
    }
    if (status == STATUS_OK) {
        status = run(&data, tile, splits, &error);
    }
    if (status == STATUS_OK) {
        status = gemm16_data_check(&data, wrong, sizeof wrong, &error);
    }
    if (status != STATUS_OK || wrong[0] != '\0') {
        TEST_FAIL("tile %d, %zu splits, %zux%zux%zu, %s to %s: %s", tile, splits, c->M, c->N, c->K,
                  nn_dtype_name(c->dtype), nn_dtype_name(c->out_dtype),
                  status == STATUS_OK ? wrong : error.message);
    }
    gemm16_data_free(&data);
}

/* Every epilogue that kernels are compiled for (enum finish), with edges in all directions; several
   tiles a cluster, and more steps of K than a ring has stages; `in` that L2 need not keep. */
C_TEST(hopper, each_tile_and_epilogue) {
    static const struct gemm16_case cases[] = {
        {.M = 300, .N = 264, .K = 72},
        {.M = 129, .N = 520, .K = 136, .bias = true},
        {.M = 72, .N = 200, .K = 64, .bias = true, .activate = true, .f = NN_SILU},
        {.M = 200, .N = 136, .K = 72, .bias = true, .activate = true, .f = NN_GELU},
        {.M = 136, .N = 328, .K = 40, .activate = true, .f = NN_GELU_TANH},
        {.M = 264, .N = 200, .K = 72, .residual = true, .bias = true, .in_place = true},
        {.M = 40, .N = 72, .K = 968, .bias = true, .bias_is_float = true},
        {.M = 140,
         .N = 264,
         .K = 72,
         .residual = true,
         .residual_is_float = true,
         .in_place = true},
        {.M = 140, .N = 67, .K = 72, .residual = true, .activate = true, .f = NN_GELU},
        {.M = 264, .N = 136, .K = 72, .residual = true, .activate = true, .f = NN_TANH},
        {.M = 200, .N = 272, .K = 136, .bias = true, .gate = true},
        {.M = 72, .N = 136, .K = 2056, .bias = true},
        {.M = 72, .N = 136, .K = 520, .bias = true, .residual = true},
    };
    struct gemm16_problem plain = {0};
    int count = 0;
    (void)gemm16_hopper_tiles(&plain, &count);
    if (!is_hopper()) {
        TEST_SKIP("needs a Hopper GPU");
    }
    for (int n = 0; n < count * (int)COUNT(cases); n++) {
        size_t i = (size_t)n % COUNT(cases);
        struct gemm16_case c = cases[i];
        c.dtype = n % 2 == 0 ? NN_F16 : NN_BF16;
        c.out_dtype = i == 6 || i == 7 ? NN_F32 : c.dtype;
        check(&c, n / (int)COUNT(cases), i + 1 == COUNT(cases) ? 3 : 1);
    }
}

/* din, dweight and the fourth combination: as a backward pass has them, the kernels of
   gemm16_hopper_tiles(), with a residual that is out or lies elsewhere; with a bias, and an
   activation or none, the one for everything else. K is long enough for those whose clusters split
   it. Columns of transposed factors are whole groups, which one copy brings, or not. */
C_TEST(hopper, each_tile_of_transposed_factors) {
    if (!is_hopper()) {
        TEST_SKIP("needs a Hopper GPU");
    }
    for (int form = 1; form < 4; form++) {
        struct gemm16_problem p = {.in_is_transposed = form & 1, .weight_is_transposed = form & 2};
        int count = 0;
        const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(&p, &count);
        for (int n = 0; n < 4 * count + 4; n++) {
            bool any = n >= 4 * count, activates = any && n % 2 == 0, whole = n / 2 % 2 == 1;
            bool is_float = form == 3 && !activates, residual = any || n % 2 == 0;
            enum nn_dtype dtype = (n / 4 + form) % 2 == 0 ? NN_BF16 : NN_F16;
            const struct gemm16_case c = {.M = whole ? 320 : 200,
                                          .N = whole ? 448 : 264,
                                          .K = 72 + (any ? 0 : 256 * (size_t)tiles[n / 4].split),
                                          .dtype = dtype,
                                          .out_dtype = is_float ? NN_F32 : dtype,
                                          .bias = any,
                                          .activate = activates,
                                          .f = NN_SILU,
                                          .residual = residual,
                                          .residual_is_float = is_float && residual,
                                          .in_place = residual && n % 8 < 4,
                                          .in_is_transposed = p.in_is_transposed,
                                          .weight_is_transposed = p.weight_is_transposed};
            check(&c, any ? -1 : n / 4, 1);
        }
    }
}

/* Few rows, by each kernel and cluster: results of 16 bits and of fp32, of fewer pieces than the
   last blocks have threads for. */
C_TEST(hopper, each_shape_and_cluster_of_few_rows) {
    int count = 0;
    (void)gemm16_bulk_shapes(&count);
    if (!is_hopper()) {
        TEST_SKIP("needs a Hopper GPU");
    }
    for (int n = 0; n < count * 4 && !test_has_failed(); n++) {
        enum nn_dtype dtype = n % 2 == 0 ? NN_BF16 : NN_F16;
        bool is_float = n % 3 == 0, residual = n % 3 < 2;
        const struct gemm16_case c = {.M = 21,
                                      .N = 136,
                                      .K = 64 * (size_t)(n % 7) + 456,
                                      .dtype = dtype,
                                      .out_dtype = is_float ? NN_F32 : dtype,
                                      .bias = n % 5 < 3,
                                      .residual = residual,
                                      .residual_is_float = is_float && residual,
                                      .in_place = residual};
        check(&c, FEW + n / 4, (size_t)n % 8 + 1);
    }
}
