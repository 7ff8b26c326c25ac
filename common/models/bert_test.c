/**
 * @file bert_test.c
 * @brief BERT at odd sizes against transformers, its properties, bad input, and engines that fail.
 */
#include "common/models/bert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/checkpoints/bert/bert_random.h"
#include "common/models/bert_encoder.h"
#include "common/models/bert_expectation.h"
#include "common/models/engine_layer.h"
#include "common/models/engine_operators.h"
#include "common/testing/fixture.h"

C_TEST(bert_expectation, padded_batch_with_types_and_classifier) {
    bert_expectation_check("padded");
}

C_TEST(bert_expectation, gelu_new_one_type_padding_in_front) {
    bert_expectation_check("gelu_new");
}

C_TEST(bert_expectation, relu_one_token_stored_as_f16) {
    bert_expectation_check("one_token");
}

C_TEST(bert_expectation, no_pooler_stored_as_bf16) {
    bert_expectation_check("no_pooler");
}

C_TEST(bert_expectation, old_tensor_names_and_heads_not_used) {
    bert_expectation_check("old_names");
}

C_TEST(bert_expectation, heads_of_one_channel) {
    bert_expectation_check("single_channel_heads");
}

/* ---- A small random model ---- */

enum { C = 12, V = 11, LONGEST = 6, LABELS = 3, MAX_TOKENS = 12 };

static const struct bert_config small = {.C = C,
                                         .hidden = 21,
                                         .L = 2,
                                         .NH = 3,
                                         .V = V,
                                         .T = LONGEST,
                                         .types = 2,
                                         .labels = LABELS,
                                         .norm_eps = 1e-12f,
                                         .activation = NN_GELU};

/* A model on an engine. */
struct fixture {
    struct bert_random random;
    struct engine engine;
    struct bert *bert;
};

static bool fixture_create(struct fixture *f) {
    *f = (struct fixture){0};
    return bert_random_create(&f->random, &small, 7) == STATUS_OK &&
           engine_reference_create(&f->engine) == STATUS_OK &&
           bert_create(&f->bert, &small, &f->random.weights, &f->engine, MAX_TOKENS, NULL) ==
               STATUS_OK;
}

static void fixture_free(struct fixture *f) {
    bert_free(f->bert);
    engine_destroy(&f->engine);
    bert_random_free(&f->random);
}

static const int32_t some_ids[MAX_TOKENS] = {1, 5, 3, 10, 0, 2, 7, 7, 4, 9, 8, 6};
static const int32_t some_types[MAX_TOKENS] = {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1};

#define MODEL_TEST(name) \
    FIXTURE_TEST(bert, name, struct fixture, f, fixture_create(f), fixture_free(f))

MODEL_TEST(sequences_of_a_batch_do_not_see_each_other) {
    float both[2 * LONGEST * C], single[LONGEST * C], logits[2 * LABELS], one_logits[LABELS];
    const struct bert_input batch = {.ids = some_ids, .types = some_types, .B = 2, .T = LONGEST};
    ASSERT_OK(
        bert_forward(f->bert, &batch, &(struct bert_output){.hidden = both, .logits = logits}));
    for (size_t b = 0; b < 2; b++) {
        const struct bert_input one = {
            .ids = some_ids + b * LONGEST, .types = some_types + b * LONGEST, .B = 1, .T = LONGEST};
        ASSERT_OK(bert_forward(f->bert, &one,
                               &(struct bert_output){.hidden = single, .logits = one_logits}));
        EXPECT_TRUE(memcmp(single, both + b * LONGEST * C, sizeof single) == 0);
        EXPECT_TRUE(memcmp(one_logits, logits + b * LABELS, sizeof one_logits) == 0);
    }
}

MODEL_TEST(padding_changes_nothing_before_it) {
    const uint8_t mask[LONGEST] = {1, 1, 1, 1, 0, 0};
    float padded[LONGEST * C], cut[4 * C], logits[LABELS], cut_logits[LABELS];
    const struct bert_input with = {.ids = some_ids, .mask = mask, .B = 1, .T = LONGEST};
    const struct bert_input without = {.ids = some_ids, .B = 1, .T = 4};
    ASSERT_OK(
        bert_forward(f->bert, &with, &(struct bert_output){.hidden = padded, .logits = logits}));
    ASSERT_OK(bert_forward(f->bert, &without,
                           &(struct bert_output){.hidden = cut, .logits = cut_logits}));
    EXPECT_TRUE(memcmp(cut, padded, sizeof cut) == 0);
    EXPECT_TRUE(memcmp(cut_logits, logits, sizeof logits) == 0);
}

MODEL_TEST(no_types_are_types_of_zero_and_no_mask_is_all_visible) {
    const int32_t zeros[LONGEST] = {0};
    const uint8_t ones[LONGEST] = {1, 1, 1, 1, 1, 1};
    float a[LONGEST * C], b[LONGEST * C], typed[LONGEST * C];
    struct bert_input input = {.ids = some_ids, .types = zeros, .mask = ones, .B = 1, .T = LONGEST};
    ASSERT_OK(bert_forward(f->bert, &input, &(struct bert_output){.hidden = a}));
    input.types = NULL;
    input.mask = NULL;
    ASSERT_OK(bert_forward(f->bert, &input, &(struct bert_output){.hidden = b}));
    EXPECT_TRUE(memcmp(a, b, sizeof a) == 0);
    input.types = some_types;
    ASSERT_OK(bert_forward(f->bert, &input, &(struct bert_output){.hidden = typed}));
    EXPECT_TRUE(memcmp(a, typed, sizeof a) != 0);
}

MODEL_TEST(packed_sequences_are_as_padded_ones) {
    const int32_t lengths[] = {4, 1, 6}, starts[] = {0, 4, 5, 11};
    float packed[11 * C], logits[3 * LABELS];
    const struct bert_input input = {
        .ids = some_ids, .types = some_types, .B = 3, .starts = starts};
    ASSERT_OK(
        bert_forward(f->bert, &input, &(struct bert_output){.hidden = packed, .logits = logits}));
    for (size_t b = 0; b < 3; b++) {
        uint8_t mask[LONGEST] = {0};
        int32_t ids[LONGEST] = {0}, types[LONGEST] = {0};
        for (int32_t i = 0; i < lengths[b]; i++) {
            mask[i] = 1;
            ids[i] = some_ids[starts[b] + i];
            types[i] = some_types[starts[b] + i];
        }
        float one[LONGEST * C], one_logits[LABELS];
        const struct bert_input padded = {
            .ids = ids, .types = types, .mask = mask, .B = 1, .T = LONGEST};
        ASSERT_OK(bert_forward(f->bert, &padded,
                               &(struct bert_output){.hidden = one, .logits = one_logits}));
        EXPECT_TRUE(memcmp(one, packed + starts[b] * C, lengths[b] * C * sizeof(float)) == 0);
        EXPECT_TRUE(memcmp(one_logits, logits + b * LABELS, sizeof one_logits) == 0);
    }
}

/* ---- Bad input ---- */

MODEL_TEST(refuses_packed_sequences_that_do_not_fit) {
    static const struct {
        int32_t starts[4];
        bool masked;
        enum status want;
    } cases[] = {
        {{0, 1, 2, 12}, false, STATUS_TOO_LONG},  /* a sequence of 10, the longest is 6 */
        {{0, 6, 12, 13}, false, STATUS_TOO_LONG}, /* 13 rows, 12 fit */
        {{0, 2, 2, 4}, false, STATUS_INVALID_ARGUMENT},
        {{0, 3, 2, 4}, false, STATUS_INVALID_ARGUMENT},
        {{1, 2, 3, 4}, false, STATUS_INVALID_ARGUMENT},
        {{0, -1, 3, 4}, false, STATUS_INVALID_ARGUMENT},
        {{INT32_MIN, 0, 3, 4}, false, STATUS_INVALID_ARGUMENT},
        {{0, 2, 3, 4}, true, STATUS_INVALID_ARGUMENT},
        {{0, 2, 3, 4}, false, STATUS_OK},
    };
    const uint8_t mask[MAX_TOKENS] = {1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct bert_input input = {.ids = some_ids,
                                         .mask = cases[i].masked ? mask : NULL,
                                         .B = 3,
                                         .starts = cases[i].starts};
        EXPECT_STATUS(cases[i].want, bert_forward(f->bert, &input, &(struct bert_output){0}));
    }
    const struct bert_input many = {.ids = some_ids, .B = MAX_TOKENS + 1, .starts = some_ids};
    EXPECT_STATUS(STATUS_TOO_LONG, bert_forward(f->bert, &many, &(struct bert_output){0}));
}

MODEL_TEST(refuses_ids_and_types_out_of_range) {
    const int32_t bad[] = {-1, V, INT32_MAX, INT32_MIN};
    float hidden[LONGEST * C] = {42};
    for (size_t i = 0; i < 4; i++) {
        int32_t ids[] = {0, 1, bad[i]};
        int32_t types[] = {0, 1, bad[i] == V ? 2 : bad[i]};
        const struct bert_input wrong_id = {.ids = ids, .B = 1, .T = 3};
        const struct bert_input wrong_type = {.ids = some_ids, .types = types, .B = 1, .T = 3};
        const struct bert_output output = {.hidden = hidden};
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT, bert_forward(f->bert, &wrong_id, &output));
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT, bert_forward(f->bert, &wrong_type, &output));
        ids[2] = V - 1;
        EXPECT_OK(bert_forward(f->bert, &wrong_id, &(struct bert_output){0}));
    }
    EXPECT_NEAR(42.0, hidden[0], 0.0); /* nothing half-written */
}

MODEL_TEST(refuses_batches_that_are_empty_or_too_large) {
    static const struct {
        size_t B, T;
        enum status want;
    } batches[] = {
        {0, 3, STATUS_INVALID_ARGUMENT},
        {3, 0, STATUS_INVALID_ARGUMENT},
        {1, LONGEST + 1, STATUS_TOO_LONG},
        {3, 5, STATUS_TOO_LONG}, /* 15 tokens, 12 fit */
        {SIZE_MAX, 2, STATUS_TOO_LONG},
        {SIZE_MAX / 2 + 2, 2, STATUS_TOO_LONG}, /* the product wraps to 2 */
        {2, LONGEST, STATUS_OK},
        {MAX_TOKENS, 1, STATUS_OK},
    };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        const struct bert_input input = {.ids = some_ids, .B = batches[i].B, .T = batches[i].T};
        EXPECT_STATUS(batches[i].want, bert_forward(f->bert, &input, &(struct bert_output){0}));
    }
}

C_TEST(bert, refuses_outputs_that_the_checkpoint_does_not_have) {
    struct bert_random random;
    struct engine engine;
    ASSERT_OK(bert_random_create(&random, &small, 7));
    ASSERT_OK(engine_reference_create(&engine));
    float out[C];
    const struct bert_input input = {.ids = some_ids, .B = 1, .T = 2};
    struct bert_weights weights = random.weights;
    for (int missing = 0; missing < 2; missing++) {
        struct bert *bert;
        if (missing == 0) {
            weights.classifier = (struct bert_linear){0};
        } else {
            weights.classifier = random.weights.classifier; /* useless without a pooler */
            weights.pooler = (struct bert_linear){0};
        }
        ASSERT_OK(bert_create(&bert, &small, &weights, &engine, 2, NULL));
        EXPECT_STATUS(missing == 0 ? STATUS_OK : STATUS_UNSUPPORTED,
                      bert_forward(bert, &input, &(struct bert_output){.pooled = out}));
        EXPECT_STATUS(STATUS_UNSUPPORTED,
                      bert_forward(bert, &input, &(struct bert_output){.logits = out}));
        bert_free(bert);
    }
    engine_destroy(&engine);
    bert_random_free(&random);
}

C_TEST(bert, refuses_sizes_that_do_not_fit) {
    struct bert_random random;
    struct engine engine;
    ASSERT_OK(bert_random_create(&random, &small, 7));
    ASSERT_OK(engine_reference_create(&engine));
    struct bert_config bad[8];
    for (size_t i = 0; i < 8; i++) {
        bad[i] = small;
    }
    bad[0].C = 0;
    bad[1].NH = 5; /* does not divide 12 */
    bad[2].NH = 0;
    bad[3].L = 0;
    bad[4].V = 0;
    bad[5].T = 0;
    bad[6].types = 0;
    bad[7].labels = 0; /* but there is a classifier */
    for (size_t i = 0; i < 8; i++) {
        struct bert *bert = (struct bert *)&bad;
        struct error error = {0};
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                      bert_create(&bert, &bad[i], &random.weights, &engine, 4, &error));
        EXPECT_TRUE(bert == NULL);
        EXPECT_TRUE(strstr(error.message, "BERT sizes do not fit together: C ") != NULL);
    }
    const size_t tokens[] = {0, (size_t)INT32_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        struct bert *bert;
        EXPECT_ERROR_CONTAINS(
            STATUS_INVALID_ARGUMENT, "1 to 2147483647 tokens",
            bert_create(&bert, &small, &random.weights, &engine, tokens[i], &error));
    }
    bert_free(NULL);
    engine_destroy(&engine);
    bert_random_free(&random);
}

/* ---- An engine that fails at one call, and keeps its own copy of the weights ---- */

struct failing {
    struct engine inner;
    size_t calls, fail_at; /* the call with this number fails, counted from 1; 0: none */
    size_t resident;       /* allocations not yet released */
};

static enum status count_call(struct failing *f) {
    return ++f->calls == f->fail_at ? STATUS_DEVICE : STATUS_OK;
}

static enum status failing_alloc(void *context, size_t bytes, void **memory) {
    struct failing *f = context;
    if (count_call(f) != STATUS_OK) {
        return STATUS_OUT_OF_MEMORY;
    }
    f->resident++;
    return f->inner.alloc(f->inner.context, bytes, memory);
}

static void failing_release(void *context, void *memory) {
    struct failing *f = context;
    f->resident -= memory != NULL;
    f->inner.release(f->inner.context, memory);
}

static enum status failing_weights(void *context, const void *host, size_t bytes,
                                   const void **resident) {
    void *copy = NULL;
    TRY(failing_alloc(context, bytes, &copy));
    memcpy(copy, host, bytes);
    *resident = copy;
    return STATUS_OK;
}

static void failing_release_weights(void *context, const void *resident) {
    failing_release(context, (void *)resident);
}

#define FAILING_ENTRY(NAME, name, parameters, ...)                       \
    static enum status failing_##name parameters {                       \
        struct failing *failing = context;                               \
        TRY(count_call(failing));                                        \
        return failing->inner.name(failing->inner.context, __VA_ARGS__); \
    }
ENGINE_COPIES(FAILING_ENTRY)
ENGINE_OPERATORS(FAILING_ENTRY)

static enum status failing_synchronize(void *context) {
    return count_call(context);
}

/* Entries that BERT does not use are NULL, so that the test would crash if it called one. */
static struct engine failing_engine(struct failing *f) {
    struct engine engine = {
        .name = "failing",
        .context = f,
        .alloc = failing_alloc,
        .release = failing_release,
        .weights = failing_weights,
        .release_weights = failing_release_weights,
        .synchronize = failing_synchronize,
    };
#define SET_ENTRY(NAME, name, ...) engine.name = failing_##name;
    ENGINE_COPIES(SET_ENTRY)
    ENGINE_OPERATORS(SET_ENTRY)
    engine.silu_gate = NULL;
    engine.rmsnorm = NULL;
    engine.softmax = NULL;
    engine.rope = NULL;
    return engine;
}

/* Creates, runs and frees a model. @return the first failure */
static enum status run_once(struct failing *f, const struct bert_random *random, float *logits,
                            struct error *error) {
    const struct engine engine = failing_engine(f);
    const uint8_t mask[LONGEST] = {1, 1, 1, 1, 1, 0};
    struct bert *bert;
    TRY(bert_create(&bert, &small, &random->weights, &engine, LONGEST, error));
    const struct bert_input input = {.ids = some_ids, .mask = mask, .B = 1, .T = LONGEST};
    float hidden[LONGEST * C], pooled[C];
    const struct bert_output output = {.hidden = hidden, .pooled = pooled, .logits = logits};
    enum status status = bert_forward(bert, &input, &output);
    bert_free(bert);
    return status;
}

C_TEST(bert, cleans_up_wherever_the_engine_fails) {
    struct bert_random random;
    struct failing f = {0};
    ASSERT_OK(bert_random_create(&random, &small, 7));
    ASSERT_OK(engine_reference_create(&f.inner));
    float logits[LABELS];
    ASSERT_OK(run_once(&f, &random, logits, NULL));
    EXPECT_INT_EQ(0, f.resident);
    EXPECT_TRUE(isfinite(logits[0]));
    size_t total = f.calls;
    size_t created = 0;
    for (size_t n = 1; n <= total; n++) {
        struct error error = {0};
        f.calls = 0;
        f.fail_at = n;
        enum status status = run_once(&f, &random, logits, &error);
        bool in_create = status == STATUS_OUT_OF_MEMORY;
        EXPECT_STATUS(in_create ? STATUS_OUT_OF_MEMORY : STATUS_DEVICE, status);
        EXPECT_INT_EQ(0, f.resident);
        if (in_create) {
            EXPECT_STR_EQ("cannot make the model resident on engine failing: out of memory",
                          error.message);
            created++;
        }
    }
    /* tensors; of each layer: tensors, and q, k, v in one; buffers; mask and starts */
    EXPECT_INT_EQ(9 + 2 * (10 + 2) + 7 + 2, created);
    engine_destroy(&f.inner);
    bert_random_free(&random);
}

/* ---- An engine that runs the whole encoder itself ---- */

enum { MAX_STARTS = 4 };

/* An encoder that does no work: it records its arguments and writes known values. */
struct noting {
    enum status create_status, run_status;
    bool declines; /* does not take the model: leaves the encoder NULL */
    size_t created, runs, freed;
    struct bert_encoder_model model; /* of the last creation */
    struct bert_encoder_call call;   /* of the last run; its starts are copied below */
    int32_t starts[MAX_STARTS];
};

static enum status noting_create(void *context, const struct bert_encoder_model *model,
                                 void **encoder) {
    struct noting *n = engine_layer_own(context);
    n->created++;
    n->model = *model;
    *encoder = n->declines || n->create_status != STATUS_OK ? NULL : n;
    return n->create_status;
}

/* The fake encoder's output: a value that depends on the row (sequence or token) and channel. */
static float fill_of(size_t row, size_t c) {
    return 0.1f * (float)row - 0.03f * (float)c;
}

static enum status noting_run(void *context, void *encoder, const struct bert_encoder_call *call) {
    struct noting *n = encoder;
    EXPECT_TRUE(engine_layer_own(context) == encoder);
    n->runs++;
    n->call = *call;
    memcpy(n->starts, call->starts, (call->B + 1) * sizeof *n->starts);
    for (size_t i = 0; i < call->B * C; i++) {
        call->first[i] = fill_of(i / C, i % C);
    }
    for (size_t i = 0; i < call->rows * C && call->hidden != NULL; i++) {
        call->hidden[i] = 1.0f + fill_of(i / C, i % C);
    }
    return n->run_status;
}

static void noting_free(void *context, void *encoder) {
    struct noting *n = engine_layer_own(context);
    n->freed += encoder != NULL;
}

/* Makes a model on the reference engine with that encoder. @return the status of bert_create() */
static enum status noting_model(struct fixture *f, struct noting *n, struct error *error) {
    struct engine reference;
    if (bert_random_create(&f->random, &small, 7) != STATUS_OK ||
        engine_reference_create(&reference) != STATUS_OK ||
        engine_layer_create(&f->engine, "noting", &reference, n, NULL) != STATUS_OK) {
        return STATUS_OUT_OF_MEMORY;
    }
    f->engine.encoder_create = noting_create;
    f->engine.encoder_run = noting_run;
    f->engine.encoder_free = noting_free;
    return bert_create(&f->bert, &small, &f->random.weights, &f->engine, MAX_TOKENS, error);
}

/* tanh(pooler(row of first)), by the operators of the reference. */
static void pool_filled(const struct fixture *f, size_t row, float pooled[C]) {
    const struct bert_linear *pooler = &f->random.weights.pooler;
    float first[C];
    for (size_t c = 0; c < C; c++) {
        first[c] = fill_of(row, c);
    }
    nn_matmul(pooled, first, pooler->weight, 1, C, C);
    nn_bias_add(pooled, pooler->bias, 1, C);
    nn_activation(pooled, pooled, C, NN_TANH);
}

C_TEST(bert_encoder, is_made_once_and_freed_before_the_engine) {
    struct fixture f = {0};
    struct noting n = {0};
    ASSERT_OK(noting_model(&f, &n, NULL));
    EXPECT_INT_EQ(1, n.created);
    EXPECT_INT_EQ(MAX_TOKENS, n.model.max_tokens);
    EXPECT_INT_EQ(small.hidden, n.model.config->hidden);
    EXPECT_TRUE(n.model.weights->layers[1].up.weight != NULL);
    EXPECT_TRUE(n.model.weights->layers[1].q.weight == NULL);
    EXPECT_TRUE(memcmp(n.model.qkv[1].weight + C * C, f.random.weights.layers[1].k.weight,
                       C * C * sizeof(float)) == 0);
    EXPECT_TRUE(memcmp(n.model.qkv[1].bias + 2 * C, f.random.weights.layers[1].v.bias,
                       C * sizeof(float)) == 0);
    bert_free(f.bert);
    f.bert = NULL;
    EXPECT_INT_EQ(1, n.freed);
    fixture_free(&f);
    EXPECT_INT_EQ(1, n.freed);
    EXPECT_INT_EQ(0, n.runs);
}

C_TEST(bert_encoder, gets_packed_batches_as_they_are) {
    struct fixture f = {0};
    struct noting n = {0};
    const int32_t starts[] = {0, 4, 5, 11};
    float hidden[11 * C], pooled[3 * C], want[C];
    ASSERT_OK(noting_model(&f, &n, NULL));
    const struct bert_input input = {
        .ids = some_ids, .types = some_types, .B = 3, .starts = starts};
    ASSERT_OK(
        bert_forward(f.bert, &input, &(struct bert_output){.hidden = hidden, .pooled = pooled}));
    EXPECT_INT_EQ(1, n.runs);
    EXPECT_TRUE(n.call.ids == some_ids && n.call.types == some_types);
    EXPECT_INT_EQ(3, n.call.B);
    EXPECT_INT_EQ(11, n.call.rows);
    EXPECT_INT_EQ(6, n.call.longest);
    EXPECT_TRUE(memcmp(n.starts, starts, sizeof starts) == 0);
    EXPECT_NEAR(1.0 + (double)fill_of(10, 5), hidden[10 * C + 5], 1e-6);
    for (size_t b = 0; b < 3; b++) {
        pool_filled(&f, b, want);
        EXPECT_TRUE(memcmp(want, pooled + b * C, sizeof want) == 0);
    }
    fixture_free(&f);
}

/* Sequences of equal length without padding are passed as packed, and hidden only if wanted. */
C_TEST(bert_encoder, gets_equal_sequences_with_their_starts) {
    struct fixture f = {0};
    struct noting n = {0};
    const int32_t starts[] = {0, LONGEST, 2 * LONGEST};
    float logits[2 * LABELS];
    ASSERT_OK(noting_model(&f, &n, NULL));
    const struct bert_input input = {.ids = some_ids, .B = 2, .T = LONGEST};
    ASSERT_OK(bert_forward(f.bert, &input, &(struct bert_output){.logits = logits}));
    EXPECT_INT_EQ(1, n.runs);
    EXPECT_TRUE(n.call.types == NULL && n.call.hidden == NULL && n.call.first != NULL);
    EXPECT_INT_EQ(2 * LONGEST, n.call.rows);
    EXPECT_INT_EQ(LONGEST, n.call.longest);
    EXPECT_TRUE(memcmp(n.starts, starts, sizeof starts) == 0);
    fixture_free(&f);
}

enum { PADDED_B = 2 }; /* texts of a padded batch */

/* Expects the encoder's rows at the tokens' places, and zeros in padding. */
static void expect_unpacked(const float *hidden, const int32_t *starts, size_t T) {
    for (size_t b = 0; b < PADDED_B; b++) {
        size_t length = (size_t)(starts[b + 1] - starts[b]);
        for (size_t i = 0; i < T * C; i++) {
            size_t row = (size_t)starts[b] + i / C;
            double want = i / C < length ? 1.0 + (double)fill_of(row, i % C) : 0.0;
            EXPECT_NEAR(want, hidden[b * T * C + i], 1e-6);
        }
    }
}

/* A batch whose padding is behind the texts reaches the encoder without it. */
static void expect_packed(const uint8_t *mask, size_t T, const int32_t *starts, bool typed) {
    struct fixture f = {0};
    struct noting n = {0};
    float hidden[PADDED_B * LONGEST * C], pooled[PADDED_B * C], want[C];
    int32_t ids[PADDED_B * LONGEST], types[PADDED_B * LONGEST];
    size_t rows = 0;
    ASSERT_OK(noting_model(&f, &n, NULL));
    const struct bert_input input = {
        .ids = some_ids, .types = typed ? some_types : NULL, .mask = mask, .B = PADDED_B, .T = T};
    ASSERT_OK(
        bert_forward(f.bert, &input, &(struct bert_output){.hidden = hidden, .pooled = pooled}));
    for (size_t i = 0; i < PADDED_B * T; i++) {
        ids[rows] = some_ids[i];
        types[rows] = some_types[i];
        rows += mask[i] != 0;
    }
    EXPECT_INT_EQ(1, n.runs);
    EXPECT_INT_EQ(PADDED_B, n.call.B);
    EXPECT_INT_EQ(rows, n.call.rows);
    EXPECT_INT_EQ(starts[1] > starts[2] - starts[1] ? starts[1] : starts[2] - starts[1],
                  n.call.longest);
    EXPECT_TRUE(memcmp(n.starts, starts, (PADDED_B + 1) * sizeof *starts) == 0);
    EXPECT_TRUE(memcmp(n.call.ids, ids, rows * sizeof *ids) == 0);
    EXPECT_TRUE(typed ? memcmp(n.call.types, types, rows * sizeof *types) == 0
                      : n.call.types == NULL);
    expect_unpacked(hidden, starts, T);
    for (size_t b = 0; b < PADDED_B; b++) {
        pool_filled(&f, b, want);
        EXPECT_TRUE(memcmp(want, pooled + b * C, sizeof want) == 0);
    }
    fixture_free(&f);
}

C_TEST(bert_encoder, gets_padded_batches_without_the_padding) {
    expect_packed((const uint8_t[]){1, 1, 1, 0, 1, 0, 0, 0}, 4, (const int32_t[]){0, 3, 4}, true);
    expect_packed((const uint8_t[]){1, 0, 0, 0, 0, 0, 1, 255, 1, 1, 1, 1}, LONGEST,
                  (const int32_t[]){0, 1, 7}, false);
    expect_packed((const uint8_t[]){1, 1, 1, 1}, 2, (const int32_t[]){0, 2, 4}, false);
}

/* hidden = output of the model for a batch with a mask, or without one: NULL. */
static enum status hidden_of(const struct fixture *f, const uint8_t *mask,
                             float hidden[LONGEST * C]) {
    const struct bert_input input = {.ids = some_ids, .mask = mask, .B = 1, .T = LONGEST};
    return bert_forward(f->bert, &input, &(struct bert_output){.hidden = hidden});
}

/* Expects that the model runs operator by operator. */
static void expect_operators(const struct fixture *f, const uint8_t *mask) {
    struct fixture plain = {0};
    float want[LONGEST * C], got[LONGEST * C] = {0};
    ASSERT_TRUE(fixture_create(&plain));
    EXPECT_OK(hidden_of(&plain, mask, want));
    EXPECT_OK(hidden_of(f, mask, got));
    EXPECT_TRUE(memcmp(want, got, sizeof want) == 0);
    fixture_free(&plain);
}

/* Padding before a token: the token's position is its column, which a packed batch cannot say. */
C_TEST(bert_encoder, does_not_get_padding_before_a_token) {
    static const uint8_t masks[][LONGEST] = {
        {0, 1, 1, 1, 1, 1}, {1, 1, 0, 1, 1, 1}, {1, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 0, 0}};
    struct fixture f = {0};
    struct noting n = {0};
    ASSERT_OK(noting_model(&f, &n, NULL));
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        expect_operators(&f, masks[i]);
    }
    EXPECT_INT_EQ(0, n.runs);
    fixture_free(&f);
}

C_TEST(bert_encoder, may_decline_a_model) {
    struct fixture f = {0};
    struct noting n = {.declines = true};
    ASSERT_OK(noting_model(&f, &n, NULL));
    expect_operators(&f, NULL);
    expect_operators(&f, (const uint8_t[LONGEST]){1, 1, 1, 1, 0, 0});
    fixture_free(&f);
    EXPECT_INT_EQ(1, n.created);
    EXPECT_INT_EQ(0, n.runs);
    EXPECT_INT_EQ(0, n.freed);
}

C_TEST(bert_encoder, fails_and_so_does_the_call) {
    struct fixture f = {0};
    struct noting n = {.run_status = STATUS_DEVICE};
    float logits[LABELS] = {42};
    ASSERT_OK(noting_model(&f, &n, NULL));
    const struct bert_input input = {.ids = some_ids, .B = 1, .T = LONGEST};
    const struct bert_output output = {.logits = logits};
    EXPECT_STATUS(STATUS_DEVICE, bert_forward(f.bert, &input, &output));
    EXPECT_NEAR(42.0, logits[0], 0.0);
    n.run_status = STATUS_OK;
    EXPECT_OK(bert_forward(f.bert, &input, &output));
    EXPECT_INT_EQ(2, n.runs);
    fixture_free(&f);
}

C_TEST(bert_encoder, cannot_be_made_and_nothing_is_left) {
    struct fixture f = {0};
    struct error error = {0};
    struct noting n = {.create_status = STATUS_UNSUPPORTED};
    f.bert = (struct bert *)&f;
    EXPECT_STATUS(STATUS_UNSUPPORTED, noting_model(&f, &n, &error));
    EXPECT_TRUE(f.bert == NULL);
    EXPECT_TRUE(strstr(error.message, "cannot make the model resident on engine noting") != NULL);
    EXPECT_INT_EQ(1, n.created);
    EXPECT_INT_EQ(0, n.freed);
    fixture_free(&f);
}
