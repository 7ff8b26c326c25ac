/* Lab 06, parity: the subject's fused operations against the double oracle, alone and in BERT. */
#include <stdio.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/06_fused_epilogues/calls.h"
#include "grader/harness/fixture.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/06_fused_epilogues/problem/case.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

/* A fixture whose workspace begins with the zeros of the contract. */
static bool zeroed_fixture_open(struct fixture *fixture) {
    struct error error = {0};
    if (!fixture_open(fixture, FUSED_WORKSPACE_BYTES)) {
        return false;
    }
    enum status status =
        device_set(fixture->workspace, 0, FUSED_ZERO_BYTES, fixture->stream, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    return status == STATUS_OK;
}

static void check_zeros(const struct fixture *fixture) {
    struct error error = {0};
    char text[200];
    if (fixture->workspace == NULL || test_has_failed()) {
        return;
    }
    enum status status =
        fused_workspace_check(fixture->workspace, fixture->stream, text, sizeof text, &error);
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s", status != STATUS_OK ? error_text(&error, status) : text);
    }
}

static void zeroed_fixture_close(struct fixture *fixture) {
    check_zeros(fixture);
    fixture_close(fixture);
}

/* A test with such a fixture. */
#define ZEROED_TEST(name)                      \
    static void body_##name(struct fixture *); \
    C_TEST(parity, name) {                     \
        struct fixture opened;                 \
        if (zeroed_fixture_open(&opened)) {    \
            body_##name(&opened);              \
        }                                      \
        zeroed_fixture_close(&opened);         \
    }                                          \
    static void body_##name(struct fixture *fixture)

/* The subject's fused_epilogues(), in its own process. */
static enum status remote_fused(const struct fused_problem *problem, const struct fixture *fixture,
                                struct error *error) {
    struct fused_call c = {*problem, fixture->workspace, fixture->stream};
    return remote_call("fused", &c, sizeof c, error);
}

/* wrong: receives what is wrong with the result, or "". */
static enum status run_case(struct fused_case *c, struct fixture *fixture, char *wrong, size_t size,
                            struct error *error) {
    TRY(fused_case_create(c, &fixture->rng, fixture_has_guards(fixture), error));
    grader_watch(c->name, PATIENCE);
    TRY(remote_finish_watched(remote_fused(&c->problem, fixture, error), fixture->stream, error));
    return fused_case_check(c, wrong, size, error);
}

static void grade(struct fused_case c, struct fixture *fixture) {
    struct error error = {0};
    char wrong[400] = "";
    enum status status = run_case(&c, fixture, wrong, sizeof wrong, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    } else if (wrong[0] != '\0') {
        TEST_FAIL("%s: %s", c.name, wrong);
    }
    fused_case_free(&c);
}

static const struct fused_flavour ordinary = {.f = NN_GELU, .eps = 1e-5f};

static const struct fused_shape shapes[] = {
    {1, 1, 1},    {1, 2, 1},     {2, 1, 3},    {3, 5, 7},    {8, 8, 8},
    {15, 17, 31}, {33, 31, 5},   {64, 64, 16}, {1, 97, 61},  {5, 13, 157},
    {97, 131, 7}, {37, 260, 12}, {3, 772, 4},  {130, 96, 9}, {19, 1028, 3},
};

static const struct fused_shape norm_shapes[] = {
    {1, 1, 0},   {5, 2, 0},    {2, 3, 0},    {7, 256, 0},  {3, 767, 0},
    {9, 768, 0}, {3, 1030, 0}, {2, 4100, 0}, {1, 8197, 0}, {300, 12, 0},
};

static const struct fused_shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}, {7, 5, 0},
};

static const struct fused_shape gpu_shapes[] = {{1021, 1031, 533}, {4099, 65, 253}};

/* BERT's layers for BERT_ROWS tokens: 32 different rows, over and over. */
static const struct fused_shape bert_shapes[] = {{32, 768, 768}, {32, 3072, 768}, {32, 768, 3072}};
enum { BERT_ROWS = 8192 };

static void grade_list(enum fused_op op, const struct fused_shape *list, size_t count,
                       struct fused_case pattern, struct fixture *fixture) {
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        struct fused_case c = pattern;
        c.op = op;
        c.shape = list[i];
        grade(c, fixture);
    }
}

/* An operation on its own list of shapes. */
static void grade_op(enum fused_op op, struct fused_case pattern) {
    struct fixture fixture;
    if (zeroed_fixture_open(&fixture)) {
        const struct fused_shape *list = fused_op_multiplies(op) ? shapes : norm_shapes;
        grade_list(op, list, fused_op_multiplies(op) ? COUNT(shapes) : COUNT(norm_shapes), pattern,
                   &fixture);
    }
    zeroed_fixture_close(&fixture);
}

/* A test of one operation; the rest of its struct fused_case. */
#define OP_TEST(name, op, ...)                          \
    C_TEST(parity, name) {                              \
        grade_op(op, (struct fused_case){__VA_ARGS__}); \
    }

OP_TEST(linear, FUSED_LINEAR, .flavour = ordinary)
OP_TEST(linear_activation, FUSED_LINEAR_ACTIVATION, .flavour = ordinary)

ZEROED_TEST(every_activation) {
    for (int f = NN_GELU; f <= NN_RELU && !test_has_failed(); f++) {
        const struct fused_flavour flavour = {.f = (enum nn_activation)f, .eps = 1e-5f};
        grade_list(FUSED_LINEAR_ACTIVATION, shapes + 3, 5, (struct fused_case){.flavour = flavour},
                   fixture);
    }
}

OP_TEST(linear_add, FUSED_LINEAR_ADD, .flavour = ordinary, .in_place = true)
OP_TEST(linear_add_norm, FUSED_LINEAR_ADD_NORM, .flavour = ordinary)
OP_TEST(linear_add_norm_in_place, FUSED_LINEAR_ADD_NORM, .flavour = ordinary, .in_place = true)
OP_TEST(gelu_linear_add_norm, FUSED_GELU_LINEAR_ADD_NORM, .flavour = ordinary, .in_place = true)

C_TEST(parity, add_norm) {
    grade_op(FUSED_ADD_NORM, (struct fused_case){.flavour = ordinary});
    grade_op(FUSED_ADD_NORM, (struct fused_case){.flavour = ordinary, .in_place = true});
}

C_TEST(parity, add_keep_norm) {
    grade_op(FUSED_ADD_KEEP_NORM, (struct fused_case){.flavour = ordinary});
    grade_op(FUSED_ADD_KEEP_NORM, (struct fused_case){.flavour = ordinary, .in_place = true});
}

C_TEST(parity, mean_far_from_zero) {
    const struct fused_flavour flavour = {.eps = 1e-5f, .mean = 200.0f};
    grade_op(FUSED_ADD_NORM, (struct fused_case){.flavour = flavour});
    grade_op(FUSED_LINEAR_ADD_NORM, (struct fused_case){.flavour = flavour, .in_place = true});
}

/* An eps as large as the variance: forgotten, it shows. */
C_TEST(parity, large_eps) {
    const struct fused_flavour flavour = {.eps = 2.0f};
    grade_op(FUSED_ADD_KEEP_NORM, (struct fused_case){.flavour = flavour});
    grade_op(FUSED_LINEAR_ADD_NORM, (struct fused_case){.flavour = flavour});
}

C_TEST(parity, unaligned_pointers) {
    struct fused_case pattern = {.flavour = ordinary, .skew = 1};
    grade_op(FUSED_LINEAR_ACTIVATION, pattern);
    pattern.in_place = true;
    grade_op(FUSED_GELU_LINEAR_ADD_NORM, pattern);
    grade_op(FUSED_ADD_KEEP_NORM, pattern);
}

ZEROED_TEST(empty_sizes) {
    for (int op = 0; op < FUSED_OPS; op++) {
        /* Without a product, K is not looked at. */
        size_t count = fused_op_multiplies((enum fused_op)op) ? COUNT(empty_shapes) : 3;
        grade_list((enum fused_op)op, empty_shapes, count, (struct fused_case){.flavour = ordinary},
                   fixture);
    }
}

/* Sizes drawn anew in every run: no list of special cases passes. */
ZEROED_TEST(random_sizes) {
    for (int i = 0; i < 28 && !test_has_failed(); i++) {
        struct fused_case c = {.op = (enum fused_op)(i % FUSED_OPS),
                               .flavour = ordinary,
                               .in_place = rng_below(&fixture->rng, 2) == 0,
                               .skew = rng_below(&fixture->rng, 2)};
        c.shape = (struct fused_shape){1 + rng_below(&fixture->rng, 140),
                                       1 + rng_below(&fixture->rng, 180),
                                       1 + rng_below(&fixture->rng, 90)};
        grade(c, fixture);
    }
}

ZEROED_TEST(large_sizes_on_a_gpu) {
    if (fixture->modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (int op = 0; op < FUSED_OPS; op++) {
        struct fused_case pattern = {.flavour = ordinary, .in_place = op % 2 == 0};
        grade_list((enum fused_op)op, gpu_shapes, COUNT(gpu_shapes), pattern, fixture);
        pattern.rows = BERT_ROWS;
        grade_list((enum fused_op)op, bert_shapes, COUNT(bert_shapes), pattern, fixture);
    }
}

static void expect_refusal(struct fused_problem p, struct fixture *fixture, const char *what) {
    struct error error = {0};
    enum status status = remote_fused(&p, fixture, &error);
    if (status != STATUS_INVALID_ARGUMENT || error.message[0] == '\0') {
        TEST_FAIL("%s must be refused with STATUS_INVALID_ARGUMENT and a message, got %s", what,
                  status_name(status));
    }
}

ZEROED_TEST(what_there_is_not_is_refused) {
    struct fused_problem p = {.op = (enum fused_op)FUSED_OPS, .M = 1, .N = 1, .K = 1};
    expect_refusal(p, fixture, "an unknown operation");
    p.op = FUSED_LINEAR_ACTIVATION;
    p.f = (enum nn_activation)(NN_RELU + 1);
    expect_refusal(p, fixture, "an unknown activation");
    p.f = NN_GELU;
    p.M = FUSED_MAX_ROWS + 1;
    expect_refusal(p, fixture, "too large an M");
    p.M = 1;
    p.N = FUSED_MAX_COLUMNS + 1;
    expect_refusal(p, fixture, "too large an N");
    p.N = 1;
    p.K = FUSED_MAX_COLUMNS + 1;
    expect_refusal(p, fixture, "too large a K");
}

/* A small BERT, once on the reference engine and once on the subject's. */
C_TEST(parity, bert) {
    enum { SENTENCES = 2, TOKENS = 9 };
    int32_t ids[SENTENCES * TOKENS];
    for (int i = 0; i < SENTENCES * TOKENS; i++) {
        ids[i] = i * 7 % 50;
    }
    const struct bert_config sizes = {
        .C = 36, .hidden = 100, .L = 3, .NH = 3, .V = 50, .T = TOKENS, .labels = 3};
    const struct remote_bert_job job = {.config = remote_bert_config(sizes),
                                        .input = {.ids = ids, .B = SENTENCES, .T = TOKENS},
                                        .what = "BERT",
                                        .seconds = PATIENCE};
    remote_bert_parity(job, grader_check_logits, "your fused operations");
}
