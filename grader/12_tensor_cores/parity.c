/* Lab 12, parity: the subject's gemm16 against the double oracle, alone and in a BERT in bf16. */
#include <stdio.h>
#include <string.h>

#include "common/testing/testing.h"
#include "grader/12_tensor_cores/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/12_tensor_cores/problem/problem.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

enum { GUARD = 64 /* elements before and behind out */ };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void name_case(const struct gemm16_case *c, char *text, size_t size) {
    static const char *const names[] = {"GELU", "GELU (tanh)", "SiLU", "tanh", "ReLU"};
    snprintf(text, size, "M=%zu N=%zu K=%zu%s%s%s%s%s%s%s%s", c->M, c->N, c->K,
             c->out_dtype == NN_F32 ? ", fp32 out" : "", c->bias ? ", bias" : "",
             c->gate ? ", SiLU gate" : "", c->activate ? ", " : "", c->activate ? names[c->f] : "",
             c->residual ? ", residual" : "", c->in_place ? " in place" : "",
             c->skew > 0 ? ", pointers 2 bytes past a boundary" : "");
}

/* The subject's gemm16(), in its own process. */
static enum status remote_gemm16(const struct gemm16_problem *problem,
                                 const struct fixture *fixture, struct error *error) {
    struct gemm16_call c = {*problem, fixture->workspace, fixture->stream};
    return remote_call("gemm16", &c, sizeof c, error);
}

static enum status check_case(struct gemm16_data *data, const struct gemm16_case *c,
                              const char *name, struct fixture *fixture, struct error *error) {
    char wrong[400];
    TRY(gemm16_data_create(data, c, fixture_has_guards(fixture) ? GUARD : 0, error));
    TRY(gemm16_data_reset(data, error));
    gemm16_name_tensors(&data->problem);
    grader_watch(name, PATIENCE);
    TRY(remote_finish_watched(remote_gemm16(&data->problem, fixture, error), fixture->stream,
                              error));
    TRY(gemm16_data_check(data, wrong, sizeof wrong, error));
    if (wrong[0] != '\0') {
        TEST_FAIL("%s: %s", name, wrong);
    }
    return STATUS_OK;
}

static void run_case(struct gemm16_case c, struct fixture *fixture) {
    struct gemm16_data data = {0};
    struct error error = {0};
    char name[200];
    c.dtype = NN_BF16;
    c.out_dtype = c.out_dtype == NN_F32 && !c.in_place ? NN_F32 : NN_BF16;
    c.seed = grader_secret(&fixture->rng) | 1;
    name_case(&c, name, sizeof name);
    enum status status = check_case(&data, &c, name, fixture, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", name, error_text(&error, status), status_name(status));
    }
    gemm16_data_free(&data);
}

/* A GPU before Ampere has no products of bf16: every call says so. */
static bool has_tensor_cores(struct fixture *fixture, struct error *error) {
    struct gemm16_data data = {0};
    const struct gemm16_case c = {
        .M = 16, .N = 16, .K = 16, .dtype = NN_BF16, .out_dtype = NN_BF16};
    struct device_properties gpu;
    if (device_properties(&gpu, error) != STATUS_OK || gpu.code >= 80) {
        return true;
    }
    enum status status = gemm16_data_create(&data, &c, 0, error);
    status = status == STATUS_OK ? remote_gemm16(&data.problem, fixture, error) : status;
    gemm16_data_free(&data);
    return status != STATUS_UNSUPPORTED;
}

#define NEED_TENSOR_CORES(fixture)                                                     \
    do {                                                                               \
        struct error error_ = {0};                                                     \
        if (!has_tensor_cores(fixture, &error_)) {                                     \
            TEST_SKIP("gemm16() says that this GPU cannot do it: %s", error_.message); \
        }                                                                              \
    } while (0)

struct shape {
    size_t M, N, K;
};

static void run_shapes(const struct shape *shapes, size_t count, struct gemm16_case form,
                       struct fixture *fixture) {
    NEED_TENSOR_CORES(fixture);
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        form.M = shapes[i].M;
        form.N = shapes[i].N;
        form.K = shapes[i].K;
        run_case(form, fixture);
    }
}

static const struct gemm16_case plain = {.out_dtype = NN_BF16};

static const struct shape small_shapes[] = {
    {1, 1, 1},   {2, 1, 3},    {3, 5, 7},    {8, 8, 8},     {16, 8, 16},   {17, 9, 33},
    {31, 29, 2}, {64, 64, 64}, {65, 63, 67}, {1, 97, 61},   {127, 1, 31},  {13, 131, 11},
    {16, 16, 0}, {5, 24, 72},  {64, 128, 8}, {128, 64, 40}, {33, 72, 264},
};

/* Around the tiles' edges; the last ones with row lengths that are no multiple of 8. */
static const struct shape large_shapes[] = {
    {128, 128, 128}, {129, 136, 192}, {256, 264, 64},  {96, 200, 328},
    {129, 127, 131}, {97, 257, 65},   {130, 140, 196}, {1, 1031, 769},
};

/* Seconds each on a GPU, minutes on simt. */
static const struct shape gpu_shapes[] = {
    {1024, 1024, 1024}, {2048, 768, 768}, {1021, 1031, 1033}, {7, 30011, 4096},
    {4099, 72, 2056},   {70001, 8, 8},    {8, 70001, 8},      {512, 512, 11008},
};

/* More rows and columns than a grid takes blocks in y and z. */
static const struct shape long_shapes[] = {{1, 70001, 1}, {70001, 1, 1}, {8, 66000, 8}};

static const struct shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {0, 7, 0}, {3, 4, 0}, {130, 72, 0}, {0, 8, 16},
};

FIXTURE_TEST(parity, small_and_odd_sizes, GEMM16_WORKSPACE_BYTES) {
    run_shapes(small_shapes, COUNT(small_shapes), plain, fixture);
}

FIXTURE_TEST(parity, around_the_tiles, GEMM16_WORKSPACE_BYTES) {
    run_shapes(large_shapes, COUNT(large_shapes), plain, fixture);
}

/* Each part of the epilogue alone, and together, and with fp32 results. */
FIXTURE_TEST(parity, epilogues, GEMM16_WORKSPACE_BYTES) {
    static const struct gemm16_case forms[] = {
        {.out_dtype = NN_BF16, .bias = true},
        {.out_dtype = NN_BF16, .residual = true},
        {.out_dtype = NN_BF16, .bias = true, .activate = true, .f = NN_GELU},
        {.out_dtype = NN_BF16, .activate = true, .f = NN_GELU_TANH},
        {.out_dtype = NN_BF16, .activate = true, .f = NN_SILU},
        {.out_dtype = NN_BF16, .bias = true, .activate = true, .f = NN_TANH},
        {.out_dtype = NN_BF16, .activate = true, .f = NN_RELU},
        {.out_dtype = NN_BF16, .bias = true, .activate = true, .f = NN_RELU, .residual = true},
        {.out_dtype = NN_BF16, .bias = true, .residual = true, .in_place = true},
        {.out_dtype = NN_F32},
        {.out_dtype = NN_F32, .bias = true, .activate = true, .f = NN_GELU_TANH, .residual = true},
    };
    static const struct shape shapes[] = {{16, 16, 16}, {37, 41, 43}, {129, 136, 72}, {3, 4, 0}};
    for (size_t i = 0; i < COUNT(forms); i++) {
        run_shapes(shapes, COUNT(shapes), forms[i], fixture);
    }
}

/* Pairs of columns give one of out: two in a tile, a pair alone, rows of out of any length. */
FIXTURE_TEST(parity, gates, GEMM16_WORKSPACE_BYTES) {
    static const struct gemm16_case forms[] = {
        {.out_dtype = NN_BF16, .gate = true},
        {.out_dtype = NN_BF16, .gate = true, .bias = true},
        {.out_dtype = NN_F32, .gate = true, .bias = true},
        {.out_dtype = NN_BF16, .gate = true, .bias = true, .skew = 1},
    };
    static const struct shape shapes[] = {{16, 16, 16}, {3, 2, 5}, {37, 42, 43}, {129, 144, 72},
                                          {1, 1030, 8}, {4, 6, 0}, {0, 8, 8}};
    for (size_t i = 0; i < COUNT(forms); i++) {
        run_shapes(shapes, COUNT(shapes), forms[i], fixture);
    }
}

FIXTURE_TEST(parity, empty_sizes, GEMM16_WORKSPACE_BYTES) {
    run_shapes(empty_shapes, COUNT(empty_shapes), plain, fixture);
    run_shapes(empty_shapes, COUNT(empty_shapes),
               (struct gemm16_case){.out_dtype = NN_BF16, .bias = true, .residual = true}, fixture);
}

FIXTURE_TEST(parity, unaligned_pointers, GEMM16_WORKSPACE_BYTES) {
    run_shapes(small_shapes, COUNT(small_shapes),
               (struct gemm16_case){.out_dtype = NN_BF16, .skew = 1}, fixture);
    run_shapes(
        large_shapes, 4,
        (struct gemm16_case){.out_dtype = NN_BF16, .bias = true, .residual = true, .skew = 1},
        fixture);
}

/* More steps than a ring has stages, many times over; sums in bf16 are far off. */
FIXTURE_TEST(parity, large_k, GEMM16_WORKSPACE_BYTES) {
    static const struct shape shapes[] = {{40, 24, 2048}, {17, 33, 1999}, {64, 72, 4104}};
    run_shapes(shapes, COUNT(shapes), plain, fixture);
}

FIXTURE_TEST(parity, long_sizes, GEMM16_WORKSPACE_BYTES) {
    run_shapes(long_shapes, COUNT(long_shapes), plain, fixture);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, random_sizes, GEMM16_WORKSPACE_BYTES) {
    NEED_TENSOR_CORES(fixture);
    for (int i = 0; i < 16 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        size_t unit = rng_below(rng, 2) == 0 ? 8 : 1;
        run_case((struct gemm16_case){.M = 1 + rng_below(rng, 200),
                                      .N = unit * (1 + rng_below(rng, 200 / unit)),
                                      .K = unit * (1 + rng_below(rng, 300 / unit)),
                                      .out_dtype = NN_BF16,
                                      .bias = rng_below(rng, 2) == 0,
                                      .activate = rng_below(rng, 2) == 0,
                                      .f = (enum nn_activation)rng_below(rng, 5),
                                      .residual = rng_below(rng, 2) == 0,
                                      .skew = rng_below(rng, 4) == 0},
                 fixture);
    }
}

FIXTURE_TEST(parity, large_sizes_on_a_gpu, GEMM16_WORKSPACE_BYTES) {
    if (fixture->modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    run_shapes(gpu_shapes, COUNT(gpu_shapes),
               (struct gemm16_case){.out_dtype = NN_BF16, .rows = 64}, fixture);
}

FIXTURE_TEST(parity, too_large_is_refused, GEMM16_WORKSPACE_BYTES) {
    struct error error = {0};
    for (int i = 0; i < 3; i++) {
        size_t size = GEMM16_MAX_SIZE + 1;
        struct gemm16_problem problem = {.dtype = NN_BF16,
                                         .out_dtype = NN_BF16,
                                         .M = i == 0 ? size : 1,
                                         .N = i == 1 ? size : 1,
                                         .K = i == 2 ? size : 1,
                                         .in = fixture->workspace,
                                         .weight = fixture->workspace,
                                         .out = fixture->workspace};
        grader_watch("a size above GEMM16_MAX_SIZE", PATIENCE);
        enum status status = remote_gemm16(&problem, fixture, &error);
        grader_watch("", 0);
        if (status != STATUS_INVALID_ARGUMENT || strstr(error.message, "268435457") == NULL) {
            TEST_FAIL("M=%zu N=%zu K=%zu: must be refused with STATUS_INVALID_ARGUMENT and a line "
                      "that names the size; got %s, '%s'",
                      problem.M, problem.N, problem.K, status_name(status), error.message);
        }
    }
}

static void check_one_layer(const float *got, const float *want, size_t count, const char *whose) {
    grader_check_16_bit_logits(got, want, count, 1, whose);
}

C_TEST(parity, bert_end_to_end) {
    /* A text's logits are off together: with two texts a right product was refused once. */
    enum { TEXTS = 8, LENGTH = 24, TOKENS = TEXTS * LENGTH };
    static int32_t ids[TOKENS];
    const struct bert_config sizes = {
        .C = 64, .hidden = 136, .L = 1, .NH = 2, .V = 100, .T = LENGTH, .labels = 64};
    struct grader_gpu gpu;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    if (gpu.properties.code < 80) {
        TEST_SKIP("a BERT in bf16 needs compute capability 8.0");
    }
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (i * 37 + 11) % 100;
    }
    const struct remote_bert_job job = {.config = remote_bert_config(sizes),
                                        .input = {.ids = ids, .B = TEXTS, .T = LENGTH},
                                        .what = "a small BERT with your gemm16",
                                        .seconds = PATIENCE,
                                        .products = REMOTE_16_BIT_PRODUCTS};
    remote_bert_parity(job, check_one_layer, "BERT with your gemm16");
}
