/*
 * Lab 11, parity: the gradients of LayerNorm and of attention, and AdamW, against the reference in
 * double; the same bits twice; and whole training steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/11_training/model.h"
#include "grader/11_training/remote.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/11_training/problem/adamw.h"
#include "labs/11_training/problem/attention.h"
#include "labs/11_training/problem/norm.h"

/* Seconds allowed for a call; the slowest machine needs well under one with all checks. */
enum { PATIENCE = 30 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Fails the test if a case went wrong, or could not be completed. */
static void judge(const char *name, enum status status, const struct error *error,
                  const char *text) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", name, error_text(error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s", text);
    }
}

/* ---- Calls that must be refused ---- */

C_TEST(parity, wrong_calls_are_refused) {
    struct grader_gpu gpu;
    struct error error = {0};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    const int32_t starts[] = {0, 4};
    const struct layernorm_backward_problem no_columns = {.rows = 1};
    const struct attention_backward_problem odd_head = {.starts = starts,
                                                        .host_starts = starts,
                                                        .B = 1,
                                                        .rows = 4,
                                                        .longest = 4,
                                                        .NH = 1,
                                                        .KVH = 1,
                                                        .HS = 12,
                                                        .q_stride = 16,
                                                        .kv_stride = 16,
                                                        .scale = 1.0f};
    const struct adamw_problem no_step = {.count = 4, .beta1 = 0.9f, .beta2 = 0.9f};
    enum status got[] = {remote_training.layernorm_backward(&no_columns, NULL, NULL, &error),
                         remote_training.attention_backward(&odd_head, NULL, NULL, &error),
                         remote_training.adamw(&no_step, NULL, &error)};
    static const char *const what[] = {"layernorm_backward of rows of 0 columns",
                                       "attention_backward of a head of 12 channels",
                                       "adamw of step 0"};
    for (size_t i = 0; i < COUNT(got); i++) {
        if (got[i] != STATUS_INVALID_ARGUMENT) {
            TEST_FAIL("%s: must be refused with STATUS_INVALID_ARGUMENT, got %s; the given checks "
                      "do that",
                      what[i], status_name(got[i]));
        }
    }
    EXPECT_DONE(device_synchronize(NULL, &error), &error);
}

/* ---- AdamW ---- */

static enum status call_adamw(struct adamw_case *c, struct fixture *fixture, struct error *error) {
    const struct adamw_problem problem = adamw_case_problem(c);
    grader_watch(c->name, PATIENCE);
    return remote_finish_watched(remote_training.adamw(&problem, fixture->stream, error),
                                 fixture->stream, error);
}

static enum status check_adamw(struct adamw_case *c, const struct adamw_spec *spec,
                               struct fixture *fixture, char *text, size_t size,
                               struct error *error) {
    TRY(adamw_case_create(c, spec, fixture_has_guards(fixture), error));
    TRY(adamw_case_draw(c, &fixture->rng, error));
    TRY(call_adamw(c, fixture, error));
    return adamw_case_check(c, text, size, error);
}

static void run_adamw(const struct adamw_spec *spec, struct fixture *fixture) {
    struct adamw_case c = {0};
    struct error error = {0};
    char text[400] = "";
    enum status status = check_adamw(&c, spec, fixture, text, sizeof text, &error);
    judge(c.name, status, &error, text);
    adamw_case_free(&c);
}

FIXTURE_TEST(parity, adamw_of_any_count, 0) {
    static const struct {
        size_t all, decayed;
    } counts[] = {{0, 0},     {1, 0},     {1, 1},    {3, 2},      {4, 4},       {7, 5},
                  {255, 100}, {257, 256}, {1000, 0}, {1001, 999}, {4099, 2050}, {70001, 35003}};
    for (size_t i = 0; i < COUNT(counts) && !test_has_failed(); i++) {
        struct adamw_spec spec = adamw_spec_usual(counts[i].all, counts[i].decayed);
        spec.copy = i % 3 != 0;
        run_adamw(&spec, fixture);
    }
}

/* The first steps, when the moments' bias is largest, and late ones. */
FIXTURE_TEST(parity, adamw_of_any_step, 0) {
    static const uint64_t steps[] = {1, 2, 3, 30, 1000, 1000000};
    for (size_t i = 0; i < COUNT(steps) && !test_has_failed(); i++) {
        struct adamw_spec spec = adamw_spec_usual(1000, 600);
        spec.step = steps[i];
        run_adamw(&spec, fixture);
    }
}

FIXTURE_TEST(parity, adamw_of_other_settings, 0) {
    struct adamw_spec clipped = adamw_spec_usual(1000, 600), plain = clipped, coarse = clipped;
    clipped.scale = 0.037;
    plain.decay = 0.0f;
    plain.beta2 = 0.95f;
    coarse.eps = 0.03f;
    coarse.rate = 0.02f;
    const struct adamw_spec *const list[] = {&clipped, &plain, &coarse};
    for (size_t i = 0; i < COUNT(list) && !test_has_failed(); i++) {
        run_adamw(list[i], fixture);
    }
}

/* ---- LayerNorm ---- */

/* A case, and the fixture that a call of it needs. */
struct watched_call {
    void *problem;
    struct fixture *fixture;
};

/* A second call must write the same bits. */
static enum status repeat(const char *name, struct watched_call *call, tensor_call *run,
                          const struct tensor_outputs *outputs, struct error *error) {
    bool same;
    TRY(tensor_repeat(outputs, run, call, &same, error));
    if (!same) {
        TEST_FAIL("%s: the same inputs gave other bits the second time: a run that is resumed "
                  "would not go on as it was",
                  name);
    }
    return STATUS_OK;
}

static enum status call_norm(struct norm_case *c, struct fixture *fixture, struct error *error) {
    const struct layernorm_backward_problem problem = norm_case_problem(c);
    grader_watch(c->name, PATIENCE);
    return remote_finish_watched(
        remote_training.layernorm_backward(&problem, fixture->workspace, fixture->stream, error),
        fixture->stream, error);
}

static enum status call_norm_again(void *argument, struct error *error) {
    const struct watched_call *call = argument;
    TRY(norm_case_send(call->problem, error));
    return call_norm(call->problem, call->fixture, error);
}

static enum status check_norm(struct norm_case *c, const struct norm_spec *spec,
                              struct fixture *fixture, char *text, size_t size,
                              struct error *error) {
    TRY(norm_case_create(c, spec, fixture_has_guards(fixture), error));
    TRY(norm_case_draw(c, &fixture->rng, error));
    TRY(call_norm(c, fixture, error));
    return norm_case_check(c, text, size, error);
}

static void run_norm(struct norm_spec spec, struct fixture *fixture, bool twice) {
    struct norm_case c = {0};
    struct error error = {0};
    char text[600] = "";
    enum status status = check_norm(&c, &spec, fixture, text, sizeof text, &error);
    judge(c.name, status, &error, text);
    if (twice && !test_has_failed()) {
        struct watched_call call = {&c, fixture};
        const struct tensor_outputs outputs = norm_case_outputs(&c);
        status = repeat(c.name, &call, call_norm_again, &outputs, &error);
        judge(c.name, status, &error, "");
    }
    norm_case_free(&c);
}

struct shape {
    size_t rows, C;
};

/* Rows of one, odd rows, primes, and around the widths of warps, blocks and vectors. */
static const struct shape shapes[] = {{1, 1},   {3, 2},   {70, 1},  {5, 7},   {33, 8},
                                      {9, 31},  {40, 32}, {17, 33}, {4, 127}, {65, 128},
                                      {3, 129}, {6, 257}, {2, 768}, {130, 40}};

static void run_norms(struct norm_spec spec) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, TRAINING_WORKSPACE_BYTES);
    for (size_t i = 0; i < 2 * COUNT(shapes) && open && !test_has_failed(); i++) {
        spec.dtype = i % 2 == 0 ? NN_F32 : NN_BF16;
        spec.rows = shapes[i / 2].rows;
        spec.C = shapes[i / 2].C;
        run_norm(spec, &fixture, false);
    }
    fixture_close(&fixture);
}

/* A test of all shapes in one variant. */
#define LAYERNORM_TEST(name, ...)                   \
    C_TEST(parity, name) {                          \
        run_norms((struct norm_spec){__VA_ARGS__}); \
    }

LAYERNORM_TEST(layernorm, .mean = 0.3)
LAYERNORM_TEST(layernorm_in_place, .mean = 0.3, .in_place = true)
LAYERNORM_TEST(layernorm_of_a_large_mean, .mean = 20.0)

/* More rows than blocks, a row longer than a block, none. */
FIXTURE_TEST(parity, layernorm_of_many_rows_and_long_ones, TRAINING_WORKSPACE_BYTES) {
    static const struct shape list[] = {{3000, 24}, {2, 4096}, {3, 5003}, {0, 64}};
    for (size_t i = 0; i < COUNT(list) && !test_has_failed(); i++) {
        const struct norm_spec spec = {.rows = list[i].rows, .C = list[i].C, .mean = 0.3};
        run_norm(spec, fixture, false);
    }
}

FIXTURE_TEST(parity, layernorm_of_random_sizes, TRAINING_WORKSPACE_BYTES) {
    for (int i = 0; i < 16 && !test_has_failed(); i++) {
        const struct norm_spec spec = {.dtype = i % 2 == 0 ? NN_F32 : NN_BF16,
                                       .rows = 1 + rng_below(&fixture->rng, 90),
                                       .C = 1 + rng_below(&fixture->rng, 700),
                                       .in_place = rng_below(&fixture->rng, 4) == 0,
                                       .mean = 0.5};
        run_norm(spec, fixture, false);
    }
}

/* ---- Attention ---- */

static enum status call_attention(struct attention_gradient_case *c, struct fixture *fixture,
                                  struct error *error) {
    const struct attention_backward_problem problem = attention_gradient_problem(c);
    grader_watch(c->name, PATIENCE);
    return remote_finish_watched(
        remote_training.attention_backward(&problem, c->scratch, fixture->stream, error),
        fixture->stream, error);
}

static enum status call_attention_again(void *argument, struct error *error) {
    const struct watched_call *call = argument;
    TRY(attention_gradient_send(call->problem, error));
    return call_attention(call->problem, call->fixture, error);
}

static enum status check_attention(struct attention_gradient_case *c,
                                   const struct attention_gradient_spec *spec,
                                   struct fixture *fixture, char *text, size_t size,
                                   struct error *error) {
    TRY(attention_gradient_create(c, spec, &fixture->rng, fixture_has_guards(fixture), error));
    TRY(attention_gradient_send(c, error));
    TRY(call_attention(c, fixture, error));
    return attention_gradient_check(c, text, size, error);
}

static void run_attention(struct attention_gradient_spec spec, struct fixture *fixture,
                          bool twice) {
    struct attention_gradient_case c = {0};
    struct error error = {0};
    char text[700] = "";
    spec.loudness = spec.loudness > 0.0 ? spec.loudness : 1.0;
    enum status status = check_attention(&c, &spec, fixture, text, sizeof text, &error);
    judge(c.name, status, &error, text);
    if (twice && !test_has_failed()) {
        struct watched_call call = {&c, fixture};
        const struct tensor_outputs outputs = attention_gradient_outputs(&c);
        status = repeat(c.name, &call, call_attention_again, &outputs, &error);
        judge(c.name, status, &error, "");
    }
    attention_gradient_free(&c);
}

static void run_attentions(const struct attention_gradient_spec *list, size_t count) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, 0);
    for (size_t i = 0; i < 2 * count && open && !test_has_failed(); i++) {
        struct attention_gradient_spec spec = list[i / 2];
        spec.dtype = i % 2 == 0 ? NN_F32 : NN_BF16;
        run_attention(spec, &fixture, false);
    }
    fixture_close(&fixture);
}

/* A test of these cases. */
#define ATTENTION_TEST(name, ...)                                           \
    C_TEST(parity, name) {                                                  \
        static const struct attention_gradient_spec list[] = {__VA_ARGS__}; \
        run_attentions(list, COUNT(list));                                  \
    }

ATTENTION_TEST(attention_of_one_text, {.NH = 1, .KVH = 1, .HS = 8, .B = 1, .lengths = {1}},
               {.NH = 1, .KVH = 1, .HS = 8, .B = 1, .lengths = {2}},
               {.NH = 2, .KVH = 2, .HS = 16, .B = 1, .lengths = {16}},
               {.NH = 1, .KVH = 1, .HS = 64, .B = 1, .lengths = {64}},
               {.NH = 1, .KVH = 1, .HS = 64, .B = 1, .lengths = {131}},
               {.NH = 1, .KVH = 1, .HS = 32, .B = 1, .lengths = {200}},
               {.NH = 1, .KVH = 1, .HS = 128, .B = 1, .lengths = {67}},
               {.NH = 2, .KVH = 2, .HS = 40, .B = 1, .lengths = {33}})

/* None may see another. */
ATTENTION_TEST(attention_of_many_texts,
               {.NH = 2, .KVH = 2, .HS = 16, .B = 4, .lengths = {5, 1, 70, 3}},
               {.NH = 1, .KVH = 1, .HS = 64, .B = 3, .lengths = {63, 65, 64}},
               {.NH = 3, .KVH = 3, .HS = 32, .B = 6, .lengths = {1, 1, 33, 2, 17, 1}})

ATTENTION_TEST(attention_causal,
               {.NH = 1, .KVH = 1, .HS = 8, .causal = true, .B = 1, .lengths = {3}},
               {.NH = 2, .KVH = 2, .HS = 64, .causal = true, .B = 2, .lengths = {65, 40}},
               {.NH = 1, .KVH = 1, .HS = 32, .causal = true, .B = 1, .lengths = {150}})

/* A key head gets the sum of what its query heads give it. */
ATTENTION_TEST(attention_of_grouped_heads,
               {.NH = 4, .KVH = 2, .HS = 16, .B = 2, .lengths = {20, 9}},
               {.NH = 6, .KVH = 1, .HS = 32, .causal = true, .B = 1, .lengths = {66}})

/* What lies between rows belongs to others. */
ATTENTION_TEST(
    attention_in_one_matrix,
    {.NH = 2, .KVH = 2, .HS = 32, .joined = true, .B = 2, .lengths = {40, 30}},
    {.NH = 4, .KVH = 2, .HS = 16, .joined = true, .causal = true, .B = 1, .lengths = {70}})

ATTENTION_TEST(attention_of_large_scores,
               {.NH = 1, .KVH = 1, .HS = 64, .B = 1, .lengths = {90}, .loudness = 12.0})

FIXTURE_TEST(parity, attention_of_random_sizes, 0) {
    for (int i = 0; i < 10 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        struct attention_gradient_spec spec = {.dtype = i % 2 == 0 ? NN_F32 : NN_BF16,
                                               .KVH = 1 + rng_below(rng, 2),
                                               .HS = 8 * (1 + rng_below(rng, 16)),
                                               .causal = rng_below(rng, 2) == 0,
                                               .joined = rng_below(rng, 2) == 0,
                                               .B = 1 + rng_below(rng, 3)};
        spec.NH = spec.KVH * (1 + rng_below(rng, 2));
        for (size_t b = 0; b < spec.B; b++) {
            spec.lengths[b] = (int32_t)(1 + rng_below(rng, 90));
        }
        run_attention(spec, fixture, false);
    }
}

/* ---- All three ---- */

FIXTURE_TEST(parity, the_same_bits_twice, TRAINING_WORKSPACE_BYTES) {
    static const struct attention_gradient_spec attention[] = {
        {.dtype = NN_F32, .NH = 2, .KVH = 2, .HS = 32, .B = 2, .lengths = {130, 60}},
        {.dtype = NN_BF16, .NH = 4, .KVH = 2, .HS = 64, .B = 2, .lengths = {90, 70}}};
    for (int i = 0; i < 2 && !test_has_failed(); i++) {
        const struct norm_spec norm = {
            .dtype = attention[i].dtype, .rows = 1500, .C = 96, .mean = 0.3};
        run_norm(norm, fixture, true);
        run_attention(attention[i], fixture, true);
    }
}

/* ---- Whole steps ---- */

static const struct train_config small_bert = {.task = TRAIN_CLASSIFY,
                                               .bert = {.C = 32,
                                                        .hidden = 64,
                                                        .L = 2,
                                                        .NH = 4,
                                                        .V = 61,
                                                        .T = 24,
                                                        .types = 2,
                                                        .labels = 3,
                                                        .norm_eps = 1e-12f,
                                                        .activation = NN_GELU},
                                               .dropout = 0.1f,
                                               .most_rows = 64,
                                               .most_sequences = 8};

static const struct train_config small_llama2 = {.task = TRAIN_LM,
                                                 .llama2 = {.C = 32,
                                                            .hidden = 64,
                                                            .L = 2,
                                                            .NH = 4,
                                                            .KVH = 2,
                                                            .HS = 8,
                                                            .V = 61,
                                                            .T = 24,
                                                            .rope_theta = 10000.0f,
                                                            .norm_eps = 1e-5f,
                                                            .rope_layout = NN_ROPE_HALVES},
                                                 .tied = true,
                                                 .most_rows = 64,
                                                 .most_sequences = 8};

static enum status run_steps(const struct training_job *job, struct training_result *got,
                             struct error *error) {
    void *model;
    TRY(training_job_place(job, false, false, &model, error));
    TRY(training_job_steps(job, model, 1, NULL, error));
    return training_job_result(job, model, true, got, error);
}

static enum status compare_steps(struct training_job *job, struct training_result *got,
                                 struct training_result *want, char *text, size_t size,
                                 struct error *error) {
    TRY(training_job_reference(job, want, error));
    grader_watch("training steps with your functions", 2 * PATIENCE);
    enum status status = run_steps(job, got, error);
    grader_watch("", 0);
    TRY(status);
    (void)training_result_close(job, got, want, text, size);
    return STATUS_OK;
}

static enum status train(struct training_job *job, const struct training_spec *spec,
                         struct rng *rng, char *text, size_t size, struct error *error) {
    struct training_result got = {0}, want = {0};
    TRY(training_job_create(job, spec, rng, error));
    enum status status = compare_steps(job, &got, &want, text, size, error);
    training_result_free(&got);
    training_result_free(&want);
    return status;
}

/* The given matmul in bf16 needs tensor cores; what it cannot do is no submission's mistake. */
static bool can_train(enum nn_dtype dtype) {
    struct device_properties gpu = {0};
    struct error error = {0};
    if (dtype == NN_F32 || device_properties(&gpu, &error) != STATUS_OK || gpu.code >= 80) {
        return true;
    }
    test_skip(__FILE__, __LINE__, "%s has no tensor cores for bf16: training in bf16 is not tried",
              gpu.name);
    return false;
}

static void check_training(const char *what, const struct train_config *config,
                           enum nn_dtype dtype) {
    const struct training_spec spec = {*config, dtype, 3, {17, 1, 24}, 3, 1e-2f};
    struct training_job job = {0};
    struct fixture fixture;
    struct error error = {0};
    char text[400] = "", name[120];
    snprintf(name, sizeof name, "%s, %zu training steps in %s", what, spec.steps,
             nn_dtype_name(dtype));
    if (fixture_open(&fixture, 0) && can_train(dtype)) {
        enum status status = train(&job, &spec, &fixture.rng, text, sizeof text, &error);
        if (status != STATUS_OK || text[0] != '\0') {
            TEST_FAIL("%s: %s", name, status != STATUS_OK ? error_text(&error, status) : text);
        }
        training_job_free(&job);
    }
    fixture_close(&fixture);
}

C_TEST(parity, bert_trains) {
    check_training("a small BERT", &small_bert, NN_F32);
}

C_TEST(parity, bert_trains_in_bf16) {
    check_training("a small BERT", &small_bert, NN_BF16);
}

C_TEST(parity, llama2_trains) {
    check_training("a small Llama2", &small_llama2, NN_F32);
}
