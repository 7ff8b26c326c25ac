/* gemm16() against sums in double; and each of its kernels, whichever it would choose. */
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/problem/problem.h"
#include "solutions/12_tensor_cores/steps/gemm16_internal.h"
#include "solutions/12_tensor_cores/steps/hopper_kernels.h"

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

/* The kernel to run, whichever gemm16() would choose. */
struct way {
    const char *name;
    enum { CHOSEN, BY_MMA, BY_WGMMA } path;
    int multiprocessors; /* BY_MMA: of the GPU that it plans for */
    int tile;            /* BY_WGMMA: index of the kernel */
    size_t splits;       /* split-K, where a factor is transposed */
    size_t shared_bytes; /* BY_MMA: of the GPU that it plans for; 0: of this one */
};

static const struct way chosen = {.name = "chosen", .path = CHOSEN};
/* On a GPU with one multiprocessor the plan is the largest tiles without split-K; with very many
   multiprocessors, the smallest tiles and many splits. */
static const struct way large_tiles = {.name = "large tiles", .path = BY_MMA, .multiprocessors = 1};
static const struct way small_tiles = {
    .name = "small tiles", .path = BY_MMA, .multiprocessors = 4096};
/* GPUs with less shared memory have other large tiles: an A100, and one of Ada. */
static const struct way others_tiles[] = {
    {.name = "A100's tiles", .path = BY_MMA, .multiprocessors = 1, .shared_bytes = 163 << 10},
    {.name = "Ada's tiles", .path = BY_MMA, .multiprocessors = 1, .shared_bytes = 99 << 10}};
/* In between: large tiles with split-K, where a factor is transposed. */
static const struct way large_with_split_k = {
    .name = "large tiles, split-K", .path = BY_MMA, .multiprocessors = 4};
/* Each tile of Hopper's, with split-K by the workspace for two of them; the kernel for everything
   else. */
enum { ANY_TILE = 100 };
static const struct way hopper[] = {{"hopper 0", BY_WGMMA, 0, 0, 1, 0},
                                    {"hopper 1", BY_WGMMA, 0, 1, 1, 0},
                                    {"hopper 1, split-K", BY_WGMMA, 0, 1, 3, 0},
                                    {"hopper 2", BY_WGMMA, 0, 2, 1, 0},
                                    {"hopper 2, split-K", BY_WGMMA, 0, 2, 3, 0},
                                    {"hopper 3", BY_WGMMA, 0, 3, 1, 0},
                                    {"hopper 4", BY_WGMMA, 0, 4, 1, 0},
                                    {"hopper 5", BY_WGMMA, 0, 5, 1, 0},
                                    {"hopper 6", BY_WGMMA, 0, 6, 1, 0},
                                    {"hopper 7", BY_WGMMA, 0, 7, 1, 0},
                                    {"hopper 8", BY_WGMMA, 0, 8, 1, 0},
                                    {"hopper 9", BY_WGMMA, 0, 9, 1, 0},
                                    {"hopper's any", BY_WGMMA, 0, ANY_TILE, 1, 0},
                                    {"hopper's choice", BY_WGMMA, 0, -1, 0, 0}};

/* Whether there is such a kernel for this GPU and problem: not what would be another way's again,
   a tile without this epilogue, or split-K of transposed factors, which this is not for. */
static bool has_way(const struct gemm16_data *data, const struct way *way) {
    struct device_properties found;
    const struct gemm16_problem *p = &data->problem;
    int count = 0;
    const struct gemm16_hopper_tile *tiles = gemm16_hopper_tiles(p, &count);
    if (device_properties(&found, NULL) != STATUS_OK || p->M * p->N == 0) {
        return false;
    }
    const struct gemm16_gpu gpu = {found.code / 10, found.multiprocessors, found.shared_bytes};
    bool is_tile = way->tile >= 0 && way->tile != ANY_TILE, splits = way->splits > 1;
    enum finish finish = splits ? FINISH_FLOAT : gemm16_finish_of(p);
    bool has_tile = !is_tile || (way->tile < count && finish != FINISH_ANY &&
                                 tiles[way->tile].epilogue[finish] != 0.0);
    return gemm16_hopper_can(p, &gpu) && has_tile &&
           !(splits && (p->in_is_transposed || p->weight_is_transposed));
}

static enum status run(const struct gemm16_data *data, const struct way *way, struct error *error) {
    struct device_properties found;
    TRY(device_properties(&found, error));
    const struct gemm16_gpu own = {found.code / 10, found.multiprocessors, found.shared_bytes};
    const struct gemm16_gpu other = {found.code / 10, way->multiprocessors,
                                     way->shared_bytes > 0 ? way->shared_bytes
                                                           : found.shared_bytes};
    bool empty = data->c.M * data->c.N == 0;
    if (!empty && way->path == BY_MMA) {
        return gemm16_tile(&data->problem, &other, data->workspace, NULL, error);
    }
    if (!empty && way->path == BY_WGMMA) {
        return gemm16_hopper(&data->problem, &own, way->tile, way->splits, data->workspace, NULL,
                             error);
    }
    return gemm16(&data->problem, data->workspace, NULL, error);
}

static bool on_simt(void) {
    struct device_properties gpu;
    return device_properties(&gpu, NULL) == STATUS_OK && gpu.modelled;
}

static enum status run_and_check(struct gemm16_data *data, const struct way *way, char *wrong,
                                 size_t size, struct error *error) {
    TRY(gemm16_data_reset(data, error));
    TRY(run(data, way, error));
    return gemm16_data_check(data, wrong, size, error);
}

static void check_way(struct gemm16_data *data, const struct way *way) {
    const struct gemm16_case *c = &data->c;
    struct error error = {0};
    char wrong[300];
    enum status status = run_and_check(data, way, wrong, sizeof wrong, &error);
    const char *message = status == STATUS_OK ? wrong : error.message;
    if (status != STATUS_OK || wrong[0] != '\0') {
        TEST_FAIL("%s, %zux%zux%zu%s%s, %s to %s, bias %d%s, activation %d, residual %d%s%s, skew "
                  "%zu: %s",
                  way->name, c->M, c->N, c->K, c->in_is_transposed ? ", in transposed" : "",
                  c->weight_is_transposed ? ", weight transposed" : "", nn_dtype_name(c->dtype),
                  nn_dtype_name(c->out_dtype), c->bias, c->bias_is_float ? " fp32" : "",
                  c->activate ? (int)c->f : -1, c->residual, c->residual_is_float ? " fp32" : "",
                  c->in_place ? " in place" : "", c->skew, message);
    }
}

static void check_case(const struct gemm16_case *c) {
    struct gemm16_data data;
    struct error error = {0};
    enum status status = gemm16_data_create(&data, c, on_simt() ? 0 : GUARD, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error.message);
    }
    if (status == STATUS_OK) {
        check_way(&data, &chosen);
        check_way(&data, &large_tiles);
        check_way(&data, &small_tiles);
    }
    bool has_others = c->skew == 0 && !c->in_is_transposed && !c->weight_is_transposed && c->M > 16;
    for (size_t i = 0; status == STATUS_OK && has_others && i < COUNT(others_tiles); i++) {
        check_way(&data, &others_tiles[i]);
    }
    if (status == STATUS_OK && (c->in_is_transposed || c->weight_is_transposed)) {
        check_way(&data, &large_with_split_k);
    }
    /* on simt gemm16_hopper_test runs these */
    for (size_t i = 0; i < COUNT(hopper) && !on_simt() && !test_has_failed(); i++) {
        if (has_way(&data, &hopper[i])) {
            check_way(&data, &hopper[i]);
        }
    }
    gemm16_data_free(&data);
}

/* The epilogue changes from case to case: each form comes up with every type. */
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
        if (found.code < 80) {                                  \
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

/* A SiLU gate by every kernel: few rows and many, whole pieces of out and not, transposed factors.
 */
C_TEST(gemm16, has_gates) {
    NEED_GPU();
    static const struct shape gated[] = {{1, 2, 3},    {3, 72, 64},    {16, 80, 264},
                                         {31, 130, 8}, {70, 208, 64},  {130, 72, 72},
                                         {129, 6, 0},  {20, 144, 1032}};
    for (size_t i = 0; i < 4 * COUNT(gated); i++) {
        struct gemm16_case c = {.gate = true, .bias = i % 2 == 0};
        c.M = gated[i / 4].M, c.N = gated[i / 4].N, c.K = gated[i / 4].K;
        c.dtype = i / 4 % 2 == 0 ? NN_BF16 : NN_F16;
        c.out_dtype = i % 4 == 3 ? NN_F32 : c.dtype;
        c.bias_is_float = i % 4 == 2;
        c.weight_is_transposed = i % 8 == 5;
        c.skew = i % 8 == 1 ? 1 : 0;
        check_case(&c);
    }
}

/* A result of gemm16() twice, and whether all bytes agree. */
static void check_same_twice(const struct gemm16_case *c, const struct way *way) {
    struct gemm16_data both[2];
    char wrong[300];
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(gemm16_data_create(&both[i], c, 0, NULL));
    }
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(run_and_check(&both[i], way, wrong, sizeof wrong, NULL));
        EXPECT_STR_EQ("", wrong);
    }
    EXPECT_TRUE(memcmp(both[0].got, both[1].got, both[0].out_bytes) == 0);
    for (int i = 0; i < 2; i++) {
        gemm16_data_free(&both[i]);
    }
}

C_TEST(gemm16, split_k_is_reproducible) {
    NEED_GPU();
    struct gemm16_case c = {.M = 9, .N = 72, .K = 5000, .dtype = NN_BF16, .out_dtype = NN_F32};
    check_same_twice(&c, &small_tiles);
    c = (struct gemm16_case){.M = 33, .N = 65, .K = 3001, .dtype = NN_F16, .out_dtype = NN_F32};
    check_same_twice(&c, &small_tiles);
}

/* A weight's gradient: added to an fp32 sum, K is rows. */
static struct gemm16_case weight_gradient(size_t M, size_t N, size_t K) {
    return (struct gemm16_case){.M = M,
                                .N = N,
                                .K = K,
                                .dtype = NN_BF16,
                                .out_dtype = NN_F32,
                                .residual = true,
                                .residual_is_float = true,
                                .in_place = true,
                                .in_is_transposed = true,
                                .weight_is_transposed = true};
}

C_TEST(gemm16, split_k_of_a_gradient_is_reproducible) {
    NEED_GPU();
    const struct gemm16_case few = weight_gradient(40, 72, 1500);
    check_same_twice(&few, &small_tiles);
    const struct gemm16_case more = weight_gradient(136, 72, 1100);
    check_same_twice(&more, &small_tiles);
    check_same_twice(&more, &large_with_split_k);
    check_same_twice(&more, &chosen);
}

/* Around the sizes of tiles: 64, 128; of groups of columns: 64; of pieces: 8, of words: 2; of
   steps: 64. */
static const struct shape transposed_shapes[] = {
    {3, 3, 0},     {1, 1, 1},    {2, 3, 5},       {8, 8, 8},      {16, 64, 64},   {17, 72, 131},
    {64, 64, 64},  {65, 63, 66}, {72, 200, 9},    {128, 128, 65}, {136, 72, 700}, {200, 264, 71},
    {129, 257, 7}, {0, 8, 8},    {192, 136, 128}, {70, 130, 54},  {34, 66, 206}};

static const struct shape gpu_transposed_shapes[] = {
    {768, 768, 2048},  {768, 3072, 8192}, {3072, 768, 4100}, {8192, 768, 3072}, {2048, 768, 768},
    {1000, 1016, 999}, {64, 128, 70001},  {30522, 768, 264}, {264, 30520, 72}};

/* Each combination of transposed factors, with alternating types. */
static void check_transposed(const struct shape *list, size_t count, size_t skew) {
    for (size_t i = 0; i < 3 * count; i++) {
        size_t form = i % 3 + 1;
        const struct shape *s = &list[i / 3];
        struct gemm16_case c = case_of(s, i, i / 3 % 2 == 0 ? NN_BF16 : NN_F16, skew);
        c.in_is_transposed = form & 1;
        c.weight_is_transposed = form & 2;
        c.rows = c.M * c.N * c.K > ((size_t)1 << 27) ? 24 : 0;
        check_case(&c);
    }
}

C_TEST(gemm16, takes_transposed_factors) {
    NEED_GPU();
    check_transposed(transposed_shapes, COUNT(transposed_shapes), 0);
}

C_TEST(gemm16, takes_transposed_factors_aligned_as_elements) {
    NEED_GPU();
    check_transposed(transposed_shapes, COUNT(transposed_shapes), 1);
}

/* What Hopper's kernels take of them, neither bias nor activation: of all twelve combinations a
   shape, every `step`th. */
static void check_gradients(const struct shape *list, size_t count, size_t step) {
    for (size_t i = 0; i < 12 * count; i += step) {
        const struct shape *s = &list[i / 12];
        struct gemm16_case c = {.M = s->M, .N = s->N, .K = s->K};
        c.dtype = i % 2 == 0 ? NN_BF16 : NN_F16;
        c.in_is_transposed = i / 2 % 3 != 1;
        c.weight_is_transposed = i / 2 % 3 > 0;
        c.out_dtype = i / 6 % 2 == 0 ? c.dtype : NN_F32;
        c.residual = i % 4 > 0;
        c.in_place = c.residual && c.out_dtype == c.dtype;
        c.residual_is_float = c.residual && c.out_dtype == NN_F32;
        c.rows = c.M * c.N * c.K > ((size_t)1 << 27) ? 24 : 0;
        check_case(&c);
    }
}

C_TEST(gemm16, hopper_takes_gradients) {
    NEED_GPU();
    struct device_properties gpu;
    ASSERT_OK(device_properties(&gpu, NULL));
    if (gpu.modelled || gpu.code / 10 != 9) {
        TEST_SKIP("needs a Hopper GPU, not %s", gpu.modelled ? "simt" : gpu.name);
    }
    check_gradients(transposed_shapes, COUNT(transposed_shapes), 1);
    check_gradients(gpu_transposed_shapes, COUNT(gpu_transposed_shapes), 5);
    const struct gemm16_case c = weight_gradient(768, 264, 4104);
    int count = 0;
    (void)gemm16_hopper_tiles(
        &(struct gemm16_problem){.in_is_transposed = true, .weight_is_transposed = true}, &count);
    for (size_t i = 0; i < COUNT(hopper); i++) {
        if (hopper[i].splits == 1 && (hopper[i].tile < count || hopper[i].tile == ANY_TILE)) {
            check_same_twice(&c, &hopper[i]);
        }
    }
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
    enum { CASES = 10 };
    static const char *const texts[CASES] = {"dtype is fp16 or bf16, not 0",
                                             "out_dtype is that of in, or fp32, not 2",
                                             "f = 5 is none of enum nn_activation",
                                             "an fp32 residual needs an fp32 result",
                                             "M = 268435457 is above 268435456",
                                             "N = 268435457 is above 268435456",
                                             "K = 268435457 is above 268435456",
                                             "a gate needs an even N, not 7",
                                             "neither f nor residual",
                                             "neither f nor residual"};
    struct gemm16_problem bad[CASES];
    for (int i = 0; i < CASES; i++) {
        bad[i] = data.problem;
    }
    bad[0].dtype = NN_F32;
    bad[1].out_dtype = NN_BF16;
    bad[2].activate = true;
    bad[2].f = (enum nn_activation)5;
    bad[3].residual_is_float = true;
    bad[4].M = bad[5].N = bad[6].K = GEMM16_MAX_SIZE + 1;
    bad[7].gate = bad[8].gate = bad[9].gate = true;
    bad[7].N = 7;
    bad[8].activate = true;
    bad[9].residual = bad[9].in;
    for (int i = 0; i < CASES; i++) {
        check_refused(&data, &bad[i], texts[i]);
    }
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
    check_transposed(gpu_transposed_shapes, COUNT(gpu_transposed_shapes), 0);
}
