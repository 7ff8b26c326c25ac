/* Lab 05, parity: the subject's norms and softmax against the double oracle, alone and in models.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/device_buffer.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/05_layernorm_softmax/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/05_layernorm_softmax/problem/case.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

struct shape {
    size_t rows, C;
};

/* How a list of shapes is run. */
struct variant {
    struct rows_flavour flavour;
    bool in_place;
    size_t skew; /* elements that every pointer is past a 256-byte boundary */
};

/* One case: the problem on the host and in the worker's GPU. */
struct rows_case {
    struct rows_data data;
    struct variant variant;
    struct rows_buffers buffers;
    char name[240];
};

static void name_case(struct rows_case *c) {
    const struct rows_data *data = &c->data;
    snprintf(c->name, sizeof c->name, "%s %s, %zu row%s of %zu%s%s%s%s", rows_op_name(data->op),
             nn_dtype_name(data->type), data->rows, plural(data->rows), data->C,
             c->variant.flavour.mean != 0.0f ? ", a large mean" : "",
             data->mask != NULL ? ", with a mask" : "", c->variant.in_place ? ", in place" : "",
             c->variant.skew > 0 ? ", pointers past a boundary" : "");
}

static enum status case_create(struct rows_case *c, enum rows_op op, enum nn_dtype type,
                               struct shape s, struct fixture *fixture, struct error *error) {
    const struct rows_variant v = {.flavour = c->variant.flavour,
                                   .skew_in = c->variant.skew,
                                   .skew_out = c->variant.skew,
                                   .in_place = c->variant.in_place};
    enum status status =
        rows_data_create(&c->data, op, type, s.rows, s.C, v.flavour, &fixture->rng, error);
    name_case(c);
    TRY(status);
    TRY(rows_buffers_create(&c->buffers, &c->data, v, fixture_has_guards(fixture), error));
    return rows_buffers_put(&c->buffers, &c->data, error);
}

static void case_free(struct rows_case *c) {
    rows_buffers_free(&c->buffers);
    rows_data_free(&c->data);
}

/* The subject's layernorm_softmax(), in its own process. */
static enum status remote_rows(const struct rows_problem *problem, const struct fixture *fixture,
                               struct error *error) {
    struct rows_call c = {*problem, fixture->workspace, fixture->stream};
    return remote_call("rows", &c, sizeof c, error);
}

static enum status call(const struct rows_case *c, const struct fixture *fixture,
                        struct error *error) {
    const struct rows_problem problem = rows_buffers_problem(&c->buffers, &c->data);
    grader_watch(c->name, PATIENCE);
    return remote_finish_watched(remote_rows(&problem, fixture, error), fixture->stream, error);
}

/* Who wrote where, and the values of a result that nobody wrote beside. */
static enum status check_result(struct rows_case *c, struct error *error) {
    char text[512];
    bool outside;
    const char *changed;
    TRY(rows_buffers_get(&c->buffers, &outside, &changed, error));
    if (changed != NULL) {
        TEST_FAIL("%s: changed its input %s", c->name, changed);
    }
    if (outside) {
        TEST_FAIL("%s: wrote outside of the output", c->name);
    }
    if (!test_has_failed() && !rows_buffers_check(&c->buffers, &c->data, 1, text, sizeof text)) {
        TEST_FAIL("%s: %s", c->name, text);
    }
    return STATUS_OK;
}

static enum status check_case(struct rows_case *c, enum rows_op op, enum nn_dtype type,
                              struct shape shape, struct fixture *fixture, struct error *error) {
    TRY(case_create(c, op, type, shape, fixture, error));
    TRY(call(c, fixture, error));
    return check_result(c, error);
}

static void run_case(enum rows_op op, enum nn_dtype type, struct shape shape,
                     struct variant variant, struct fixture *fixture) {
    struct rows_case c = {.variant = variant};
    struct error error = {0};
    enum status status = check_case(&c, op, type, shape, fixture, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    }
    case_free(&c);
}

static void run_shapes(enum rows_op op, const struct shape *shapes, size_t count,
                       struct variant variant, struct fixture *fixture) {
    for (int type = 0; type < ROWS_TYPES; type++) {
        for (size_t i = 0; i < count && !test_has_failed(); i++) {
            run_case(op, (enum nn_dtype)type, shapes[i], variant, fixture);
        }
    }
}

/* Rows of one, odd rows, primes, and around the widths of warps, blocks and vectors. */
static const struct shape small_shapes[] = {
    {1, 1},  {70, 1}, {1, 2},  {5, 3},   {3, 7},   {4, 8},   {9, 17},  {2, 31},  {3, 32},
    {4, 33}, {5, 64}, {3, 97}, {2, 127}, {2, 128}, {3, 129}, {2, 256}, {1, 257}, {2, 768},
};

/* In vectors of 4 and of 8 elements the last four end inside a warp, several warps on. */
static const struct shape large_shapes[] = {{3, 769},  {2, 1031}, {130, 40}, {2, 2560},
                                            {1, 8191}, {2, 764},  {2, 776}};

/* A GPU does them at once; simt in a minute. */
static const struct shape gpu_shapes[] = {
    {2048, 2560}, {8192, 768}, {1000, 4096}, {300, 16384}, {257, 50257}, {3, 1000003}, {100003, 17},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void run_lists(enum rows_op op, struct variant variant) {
    struct fixture fixture;
    if (fixture_open(&fixture, ROWS_WORKSPACE_BYTES)) {
        run_shapes(op, small_shapes, COUNT(small_shapes), variant, &fixture);
        run_shapes(op, large_shapes, COUNT(large_shapes), variant, &fixture);
    }
    fixture_close(&fixture);
}

/* A test of one operator on the lists of shapes. */
#define LISTS_TEST(name, op, ...)                     \
    C_TEST(parity, name) {                            \
        run_lists(op, (struct variant){__VA_ARGS__}); \
    }

LISTS_TEST(layernorm, ROWS_LAYERNORM, .in_place = false)
LISTS_TEST(rmsnorm, ROWS_RMSNORM, .in_place = false)
LISTS_TEST(softmax, ROWS_SOFTMAX, .in_place = false)

/* The first mask excludes all keys of its rows, the second none. */
C_TEST(parity, softmax_with_mask) {
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.masked = true}});
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.masked = true, .rows_a_mask = 2}});
}

LISTS_TEST(softmax_of_minus_infinity, ROWS_SOFTMAX, .flavour = {.infinities = true})

/* The mean is 3000 standard deviations: E[x^2] - mean^2 has nothing left of the variance. */
LISTS_TEST(layernorm_of_a_large_mean, ROWS_LAYERNORM, .flavour = {.mean = 3000.0f})

/* e^1000 is not a float. */
C_TEST(parity, softmax_of_large_numbers) {
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.mean = 1000.0f}});
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.mean = -1000.0f}});
}

C_TEST(parity, in_place) {
    for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
        run_lists((enum rows_op)op, (struct variant){.in_place = true});
    }
}

C_TEST(parity, unaligned_pointers) {
    for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
        const struct rows_flavour flavour = {.masked = op == ROWS_SOFTMAX};
        run_lists((enum rows_op)op, (struct variant){.flavour = flavour, .skew = 1});
    }
}

/* Rows whose variance is next to nothing: epsilon decides. */
FIXTURE_TEST(parity, epsilon_matters, ROWS_WORKSPACE_BYTES) {
    static const struct shape shapes[] = {{3, 1}, {2, 5}, {2, 96}};
    for (int op = 0; op < ROWS_SOFTMAX; op++) {
        const struct rows_flavour flavour = {.quiet = true};
        run_shapes((enum rows_op)op, shapes, COUNT(shapes), (struct variant){flavour, false, 0},
                   fixture);
    }
}

FIXTURE_TEST(parity, no_rows, ROWS_WORKSPACE_BYTES) {
    static const struct shape shapes[] = {{0, 1}, {0, 768}};
    for (int op = 0; op < ROWS_OPS; op++) {
        run_shapes((enum rows_op)op, shapes, COUNT(shapes), (struct variant){.skew = 0}, fixture);
    }
}

/* More rows than a grid takes blocks in y and z, and a row longer than a block keeps anywhere. */
FIXTURE_TEST(parity, many_rows_and_a_long_one, ROWS_WORKSPACE_BYTES) {
    static const struct shape shapes[] = {{70001, 1}, {1, 70001}};
    for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
        for (size_t i = 0; i < COUNT(shapes); i++) {
            run_case((enum rows_op)op, NN_F32, shapes[i], (struct variant){.skew = 0}, fixture);
        }
    }
}

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, random_sizes, ROWS_WORKSPACE_BYTES) {
    for (int i = 0; i < 36 && !test_has_failed(); i++) {
        enum rows_op op = (enum rows_op)(i % ROWS_OPS);
        enum nn_dtype type = (enum nn_dtype)rng_below(&fixture->rng, ROWS_TYPES);
        struct shape shape = {1 + rng_below(&fixture->rng, 40), 1 + rng_below(&fixture->rng, 1200)};
        struct variant v = {.flavour = {.masked = op == ROWS_SOFTMAX && i % 2 == 0,
                                        .rows_a_mask = 1 + rng_below(&fixture->rng, 5)},
                            .skew = rng_below(&fixture->rng, 2)};
        run_case(op, type, shape, v, fixture);
    }
}

FIXTURE_TEST(parity, large_sizes_on_a_gpu, ROWS_WORKSPACE_BYTES) {
    if (fixture->modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
        const struct rows_flavour flavour = {.masked = op == ROWS_SOFTMAX, .rows_a_mask = 7};
        run_shapes((enum rows_op)op, gpu_shapes, COUNT(gpu_shapes),
                   (struct variant){.flavour = flavour}, fixture);
    }
}

static void expect_refusal(const struct rows_problem *problem, const char *word,
                           const struct fixture *fixture) {
    struct error error = {0};
    grader_watch("sizes that must be refused", PATIENCE);
    enum status status = remote_rows(problem, fixture, &error);
    grader_watch("", 0);
    if (status != STATUS_INVALID_ARGUMENT || strstr(error.message, word) == NULL) {
        TEST_FAIL("rows=%zu C=%zu rows_a_mask=%zu: must be refused with "
                  "STATUS_INVALID_ARGUMENT and a line that names the number; got %s, '%s'",
                  problem->rows, problem->C, problem->rows_a_mask, status_name(status),
                  error.message);
    }
}

FIXTURE_TEST(parity, bad_sizes_are_refused, ROWS_WORKSPACE_BYTES) {
    static const struct {
        size_t rows, C, rows_a_mask;
        const char *word;
    } bad[] = {
        {1, 0, 1, "0"},
        {1, ROWS_MAX_C + 1, 1, "1073741825"},
        {ROWS_MAX_ELEMENTS / 8 + 1, 8, 1, "137438953473"},
        {1, 8, 0, "rows_a_mask"},
    };
    struct device_buffer buffer;
    struct error error = {0};
    bool intact, changed = true;
    ASSERT_DONE(device_buffer_create(&buffer, 8, false, 0, &error), &error);
    for (size_t i = 0; i < COUNT(bad); i++) {
        const struct rows_problem problem = {.op = ROWS_SOFTMAX,
                                             .rows = bad[i].rows,
                                             .C = bad[i].C,
                                             .in = buffer.data,
                                             .out = buffer.data,
                                             .mask = (const uint8_t *)buffer.data,
                                             .rows_a_mask = bad[i].rows_a_mask};
        expect_refusal(&problem, bad[i].word, fixture);
    }
    EXPECT_DONE(device_synchronize(fixture->stream, &error), &error);
    EXPECT_DONE(device_buffer_get(&buffer, NULL, &intact, &changed, &error), &error);
    EXPECT_TRUE(!changed);
    device_buffer_free(&buffer);
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your norms", PATIENCE)) {
        grader_check_close_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your norms");
    }
}

C_TEST(parity, bert_end_to_end) {
    enum { SENTENCES = 3, LENGTH = 7 };
    int32_t ids[SENTENCES * LENGTH];
    for (int i = 0; i < SENTENCES * LENGTH; i++) {
        ids[i] = (i * 37 + 11) % 97;
    }
    const struct bert_config sizes = {
        .C = 60, .hidden = 124, .L = 2, .NH = 6, .V = 97, .T = LENGTH, .labels = 4};
    const struct remote_bert_job job = {.config = remote_bert_config(sizes),
                                        .input = {.ids = ids, .B = SENTENCES, .T = LENGTH},
                                        .what = "a small BERT with your norms",
                                        .seconds = PATIENCE};
    remote_bert_parity(job, grader_check_close_logits, "BERT with your norms");
}
