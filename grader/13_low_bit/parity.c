/* Lab 13, parity: products with dequantised weights, in double, against the subject's. */
#include <stdio.h>
#include <string.h>

#include "common/testing/testing.h"
#include "grader/13_low_bit/calls.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/13_low_bit/problem/problem.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static enum status remote_prepare(const struct low_bit_data *data, device_stream stream,
                                  struct error *error) {
    struct low_bit_prepare_call c = {data->matrix, data->prepared.data, stream};
    return remote_finish_watched(remote_call("low_bit_prepare", &c, sizeof c, error), stream,
                                 error);
}

static enum status remote_linear(const struct low_bit_linear *linear, void *workspace,
                                 device_stream stream, struct error *error) {
    struct low_bit_linear_call c = {*linear, workspace, stream};
    return remote_finish_watched(remote_call("low_bit_linear", &c, sizeof c, error), stream, error);
}

/* Prepared once, multiplied twice, with other rows of `in`. */
static enum status check_case(struct low_bit_data *data, const struct low_bit_case *c,
                              struct fixture *fixture, struct error *error) {
    TRY(low_bit_data_create(data, c, error));
    grader_watch(data->name, PATIENCE);
    TRY(remote_prepare(data, fixture->stream, error));
    for (int i = 0; i < 2 && !test_has_failed(); i++) {
        char wrong[400];
        if (i > 0) {
            TRY(low_bit_data_redraw(data, grader_secret(&fixture->rng), error));
        }
        grader_watch(data->name, PATIENCE);
        TRY(remote_linear(&data->linear, fixture->workspace, fixture->stream, error));
        TRY(low_bit_data_check(data, wrong, sizeof wrong, error));
        if (wrong[0] != '\0') {
            TEST_FAIL("%s%s: %s", data->name, i > 0 ? ", the second call" : "", wrong);
        }
    }
    return STATUS_OK;
}

static void run_case(struct low_bit_case c, struct fixture *fixture) {
    struct low_bit_data data = {0};
    struct error error = {0};
    c.seed = grader_secret(&fixture->rng) | 1;
    c.guarded = fixture_has_guards(fixture);
    enum status status = check_case(&data, &c, fixture, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", data.name, error_text(&error, status), status_name(status));
    }
    low_bit_data_free(&data);
}

/* A GPU before Ampere has no products of bf16: every call may say so. */
static bool can_multiply(struct fixture *fixture, struct error *error) {
    struct device_properties gpu;
    const struct low_bit_linear none = {.layout = {LOW_BIT_INT8, 1, 1, 1, NN_F32, false},
                                        .out_dtype = NN_F32};
    if (device_properties(&gpu, error) != STATUS_OK || gpu.code >= 80) {
        return true;
    }
    return remote_linear(&none, fixture->workspace, fixture->stream, error) != STATUS_UNSUPPORTED;
}

#define NEED_PRODUCTS(fixture)                                                                 \
    do {                                                                                       \
        struct error error_ = {0};                                                             \
        if (!can_multiply(fixture, &error_)) {                                                 \
            TEST_SKIP("low_bit_linear() says that this GPU cannot do it: %s", error_.message); \
        }                                                                                      \
    } while (0)

static const struct low_bit_case int8 = {.type = LOW_BIT_INT8}, fp8 = {.type = LOW_BIT_FP8};
static const struct low_bit_case int4_128 = {
    .type = LOW_BIT_INT4, .group = 128, .scale_dtype = NN_BF16, .has_zeros = true};
static const struct low_bit_case int4_32 = {
    .type = LOW_BIT_INT4, .group = 32, .scale_dtype = NN_BF16, .has_zeros = true};

struct shape {
    size_t M, N, K;
};

/* Those whose K is below the group are left out. */
static void run_shapes(const struct shape *shapes, size_t count, struct low_bit_case form,
                       struct fixture *fixture) {
    NEED_PRODUCTS(fixture);
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        form.M = shapes[i].M;
        form.N = shapes[i].N;
        form.K = shapes[i].K;
        form.out_dtype = i % 2 == 0 ? NN_F32 : NN_BF16;
        if (form.K >= form.group) {
            run_case(form, fixture);
        }
    }
}

static const struct shape small_shapes[] = {
    {1, 1, 1},   {1, 1, 2},    {2, 3, 5},    {1, 16, 16},  {3, 17, 31},  {8, 32, 32},
    {9, 31, 64}, {16, 33, 65}, {1, 64, 128}, {5, 50, 200}, {7, 15, 129}, {15, 40, 264},
};

static const struct shape larger_shapes[] = {
    {1, 256, 512}, {4, 100, 1000}, {8, 48, 1024}, {16, 37, 651}, {1, 130, 1156}};

FIXTURE_TEST(parity, int8_by_row, LOW_BIT_WORKSPACE_BYTES) {
    run_shapes(small_shapes, COUNT(small_shapes), int8, fixture);
    run_shapes(larger_shapes, COUNT(larger_shapes), int8, fixture);
}

FIXTURE_TEST(parity, int4_in_groups_of_128, LOW_BIT_WORKSPACE_BYTES) {
    run_shapes(small_shapes, COUNT(small_shapes), int4_128, fixture);
    run_shapes(larger_shapes, COUNT(larger_shapes), int4_128, fixture);
}

FIXTURE_TEST(parity, int4_in_groups_of_32, LOW_BIT_WORKSPACE_BYTES) {
    run_shapes(small_shapes, COUNT(small_shapes), int4_32, fixture);
    run_shapes(larger_shapes, COUNT(larger_shapes), int4_32, fixture);
}

FIXTURE_TEST(parity, fp8_by_row, LOW_BIT_WORKSPACE_BYTES) {
    run_shapes(small_shapes, COUNT(small_shapes), fp8, fixture);
    run_shapes(larger_shapes, COUNT(larger_shapes), fp8, fixture);
}

FIXTURE_TEST(parity, scales_in_fp16_and_no_zero_points, LOW_BIT_WORKSPACE_BYTES) {
    struct low_bit_case forms[] = {int4_128, int4_128, int4_32, int4_32};
    forms[0].scale_dtype = forms[2].scale_dtype = NN_F16;
    forms[1].has_zeros = forms[2].has_zeros = false;
    for (size_t i = 0; i < COUNT(forms); i++) {
        run_shapes(larger_shapes, COUNT(larger_shapes), forms[i], fixture);
    }
}

/* Sums of the largest products, at the longest row of a 7B model: what a sum in 16 bits overflows
   or loses, and what a sum of integers cannot hold. */
FIXTURE_TEST(parity, extremes_in_long_rows, LOW_BIT_WORKSPACE_BYTES) {
    static const struct shape shapes[] = {{2, 18, 11008}, {9, 5, 4099}};
    struct low_bit_case forms[] = {int8, int4_128, int4_32, fp8};
    for (size_t i = 0; i < COUNT(forms); i++) {
        forms[i].extremes = true;
        run_shapes(shapes, COUNT(shapes), forms[i], fixture);
    }
}

FIXTURE_TEST(parity, unaligned_pointers, LOW_BIT_WORKSPACE_BYTES) {
    static const struct shape shapes[] = {{1, 32, 256}, {8, 40, 264}, {16, 16, 512}};
    struct low_bit_case forms[] = {int8, int4_128};
    for (size_t i = 0; i < COUNT(forms); i++) {
        forms[i].skew = 1;
        run_shapes(shapes, COUNT(shapes), forms[i], fixture);
    }
}

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, random_sizes, LOW_BIT_WORKSPACE_BYTES) {
    static const struct low_bit_case *const forms[] = {&int8, &int4_128, &int4_32, &fp8};
    NEED_PRODUCTS(fixture);
    for (int i = 0; i < 16 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        size_t unit = rng_below(rng, 2) == 0 ? 8 : 1;
        struct low_bit_case c = *forms[i % 4];
        c.M = 1 + rng_below(rng, LOW_BIT_MAX_ROWS);
        c.N = 1 + rng_below(rng, 200);
        c.K = unit * (1 + (c.group + rng_below(rng, 300)) / unit);
        c.out_dtype = rng_below(rng, 2) == 0 ? NN_BF16 : NN_F32;
        c.skew = rng_below(rng, 4) == 0;
        run_case(c, fixture);
    }
}

/* Seconds each on a GPU, minutes on simt. */
FIXTURE_TEST(parity, large_sizes_on_a_gpu, LOW_BIT_WORKSPACE_BYTES) {
    static const struct shape shapes[] = {{1, 4096, 4096}, {8, 4096, 11008}, {16, 30011, 1024}};
    const struct low_bit_case forms[] = {int8, int4_128, int4_32, fp8};
    if (fixture->modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (size_t i = 0; i < COUNT(forms); i++) {
        struct low_bit_case form = forms[i];
        form.checked = 64;
        run_shapes(shapes, COUNT(shapes), form, fixture);
    }
}

/* ---- What is not multiplied ---- */

static void expect_refused(const struct low_bit_linear *linear, const char *what,
                           enum status wanted, struct fixture *fixture) {
    struct error error = {0};
    grader_watch(what, PATIENCE);
    enum status status = remote_linear(linear, fixture->workspace, fixture->stream, &error);
    grader_watch("", 0);
    if (status != wanted || error.message[0] == '\0') {
        TEST_FAIL("%s: must be refused with %s and a line; got %s, '%s'", what, status_name(wanted),
                  status_name(status), error.message);
    }
}

FIXTURE_TEST(parity, wrong_calls_are_refused, LOW_BIT_WORKSPACE_BYTES) {
    const struct low_bit_linear good = {.layout = {LOW_BIT_INT4, 64, 256, 128, NN_BF16, true},
                                        .prepared = fixture->workspace,
                                        .M = 1,
                                        .in = fixture->workspace,
                                        .out_dtype = NN_F32,
                                        .out = fixture->workspace};
    struct low_bit_linear call = good;
    call.M = LOW_BIT_MAX_ROWS + 1;
    expect_refused(&call, "M = 17", STATUS_INVALID_ARGUMENT, fixture);
    call = good;
    call.out_dtype = NN_F16;
    expect_refused(&call, "out in fp16", STATUS_INVALID_ARGUMENT, fixture);
    call = good;
    call.layout.columns = LOW_BIT_MAX_SIZE + 1;
    expect_refused(&call, "too many columns", STATUS_INVALID_ARGUMENT, fixture);
    call = good;
    call.layout.group = 64;
    expect_refused(&call, "groups of 64", STATUS_UNSUPPORTED, fixture);
    call = good;
    call.layout.type = LOW_BIT_INT8;
    call.layout.has_zeros = false;
    expect_refused(&call, "int8 in groups", STATUS_UNSUPPORTED, fixture);
}

/* Without rows of `in` nothing is done. */
FIXTURE_TEST(parity, no_rows, LOW_BIT_WORKSPACE_BYTES) {
    struct low_bit_case c = int8;
    c.N = 24;
    c.K = 40;
    c.out_dtype = NN_F32;
    NEED_PRODUCTS(fixture);
    run_case(c, fixture);
}
