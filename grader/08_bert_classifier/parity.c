/*
 * Lab 08, parity: encoders against the CPU's reference. Sizes odd and even, sequences of one token
 * and of all positions, several batches through one encoder, several encoders at once, and the
 * model end to end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/models/bert.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/08_bert_classifier/remote.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/logits.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "labs/08_bert_classifier/problem/case.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Sizes of a model. */
struct size {
    size_t C, hidden, L, NH;
    enum nn_activation f;
};

enum { V = 53, T = 40, TYPES = 3, LABELS = 3 };

static struct bert_config config_of(const struct size *size) {
    return (struct bert_config){.C = size->C,
                                .hidden = size->hidden,
                                .L = size->L,
                                .NH = size->NH,
                                .V = V,
                                .T = T,
                                .types = TYPES,
                                .labels = LABELS,
                                .norm_eps = 1e-12f,
                                .activation = size->f};
}

/* A model with an encoder for it. */
struct pair {
    struct encoder_net net;
    struct encoder *encoder;
};

static enum status pair_fill(struct pair *pair, const struct bert_config *config, size_t max_tokens,
                             struct fixture *fixture, struct error *error) {
    TRY(encoder_net_create(&pair->net, config, rng_u64(&fixture->rng), max_tokens, error));
    grader_watch("encoder_create", PATIENCE);
    enum status status =
        remote_encoder_create(&pair->encoder, &pair->net.model, max_tokens, fixture->stream, error);
    grader_watch("", 0);
    return status;
}

static bool pair_create(struct pair *pair, const struct bert_config *config, size_t max_tokens,
                        struct fixture *fixture) {
    struct error error = {0};
    *pair = (struct pair){0};
    enum status status = pair_fill(pair, config, max_tokens, fixture, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("C=%zu hidden=%zu L=%zu NH=%zu, %zu token%s: %s (%s)", config->C, config->hidden,
                  config->L, config->NH, max_tokens, plural(max_tokens), error_text(&error, status),
                  status_name(status));
    }
    return status == STATUS_OK;
}

static void pair_free(struct pair *pair) {
    remote_encoder_free(pair->encoder);
    if (pair->net.count > 0 && !test_has_failed() && !encoder_net_intact(&pair->net)) {
        TEST_FAIL("C=%zu: the encoder changed the model's weights", pair->net.model.C);
    }
    encoder_net_free(&pair->net);
}

/* Runs a batch and waits for it. */
static enum status run_and_wait(struct encoder *encoder, const struct encoder_batch *batch,
                                struct fixture *fixture, struct error *error) {
    const struct encoder_batch *there;
    TRY(remote_encoder_batch(&there, batch, error));
    enum status status = remote_encoder_run(encoder, there, error);
    enum status waited = device_synchronize(fixture->stream, status == STATUS_OK ? error : NULL);
    return status != STATUS_OK ? status : waited;
}

static enum status run_and_check(struct encoder_case *c, struct encoder *encoder,
                                 struct fixture *fixture, char *text, size_t size,
                                 struct error *error) {
    TRY(encoder_case_reset(c, error));
    grader_watch(c->name, PATIENCE);
    enum status status = run_and_wait(encoder, &c->batch, fixture, error);
    grader_watch("", 0);
    TRY(status);
    return encoder_case_check(c, text, size, error);
}

static enum status create_and_check(struct encoder_case *c, struct pair *pair,
                                    const struct encoder_spec *spec, struct fixture *fixture,
                                    char *text, size_t size, struct error *error) {
    /* On simt every other case has no canaries: simt itself reports the line of a write outside. */
    bool guarded = fixture_has_guards(fixture);
    TRY(encoder_case_create(c, &pair->net, spec, &fixture->rng, guarded, false, error));
    return run_and_check(c, pair->encoder, fixture, text, size, error);
}

/* @param after a note on earlier batches, or "" */
static void run_batch(struct pair *pair, const struct encoder_spec *spec, const char *after,
                      struct fixture *fixture) {
    struct encoder_case c;
    struct error error = {0};
    char text[400] = "";
    enum status status = create_and_check(&c, pair, spec, fixture, text, sizeof text, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s%s: %s (%s)", c.name, after, error_text(&error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s%s: %s", c.name, after, text);
    }
    encoder_case_free(&c);
}

static size_t rows_of(const struct encoder_spec *spec) {
    size_t rows = 0;
    for (size_t b = 0; b < spec->B; b++) {
        rows += (size_t)spec->lengths[b];
    }
    return rows;
}

/* Runs each batch by an encoder of its own, created for just its rows. */
static void run_batches(const struct size *size, const struct encoder_spec *specs, size_t count,
                        struct fixture *fixture) {
    const struct bert_config config = config_of(size);
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        struct pair pair;
        if (pair_create(&pair, &config, rows_of(&specs[i]), fixture)) {
            run_batch(&pair, &specs[i], "", fixture);
        }
        pair_free(&pair);
    }
}

/* Every size with a batch, its hidden state not wanted and wanted. */
static void run_sizes(const struct size *sizes, size_t count, const int32_t *lengths, size_t B) {
    struct fixture fixture;
    const struct encoder_spec specs[] = {{lengths, B, false, false}, {lengths, B, true, true}};
    bool open = fixture_open(&fixture, 0);
    for (size_t i = 0; i < count && open && !test_has_failed(); i++) {
        run_batches(&sizes[i], specs, COUNT(specs), &fixture);
    }
    fixture_close(&fixture);
}

#define LENGTHS(...) \
    { __VA_ARGS__ }

/* A test of models of these sizes with texts of these LENGTHS(). */
#define SIZES_TEST(name, texts, ...)                             \
    C_TEST(parity, name) {                                       \
        static const int32_t lengths[] = texts;                  \
        static const struct size sizes[] = {__VA_ARGS__};        \
        run_sizes(sizes, COUNT(sizes), lengths, COUNT(lengths)); \
    }

SIZES_TEST(even_sizes, LENGTHS(8, 4, 16), {32, 64, 2, 2, NN_GELU}, {64, 128, 1, 1, NN_GELU},
           {96, 64, 3, 12, NN_GELU})

SIZES_TEST(odd_sizes, LENGTHS(5, 1, 13), {3, 5, 1, 3, NN_GELU}, {35, 37, 2, 5, NN_GELU},
           {77, 19, 2, 1, NN_GELU}, {130, 67, 1, 2, NN_GELU})

SIZES_TEST(activations, LENGTHS(3, 9), {24, 40, 2, 2, NN_GELU_TANH}, {24, 40, 2, 2, NN_SILU},
           {24, 40, 2, 2, NN_TANH}, {24, 40, 2, 2, NN_RELU})

/* Heads of 128 channels are the longest; rows longer than 1024 channels, and eps that matters. */
SIZES_TEST(long_heads_and_long_rows, LENGTHS(2, 7), {128, 33, 2, 1, NN_GELU},
           {1060, 8, 1, 20, NN_GELU})

FIXTURE_TEST(parity, lengths, 0) {
    static const struct size size = {36, 52, 2, 3, NN_GELU};
    static const int32_t one[] = {1}, ones[] = {1, 1, 1, 1, 1}, all[] = {T, T}, mixed[] = {1, T, 1};
    static const int32_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    static const struct encoder_spec specs[] = {{one, 1, false, false},
                                                {ones, COUNT(ones), false, false},
                                                {all, COUNT(all), true, false},
                                                {mixed, COUNT(mixed), false, true},
                                                {primes, COUNT(primes), true, false}};
    run_batches(&size, specs, COUNT(specs), fixture);
}

/* A batch must not depend on data of the batches before it. */
FIXTURE_TEST(parity, batches_of_one_encoder, 0) {
    static const struct size size = {40, 44, 2, 2, NN_GELU};
    static const int32_t large[] = {31, 9, T, 22}, small[] = {3, 11}, one[] = {17};
    static const struct encoder_spec specs[] = {{large, COUNT(large), true, true},
                                                {small, COUNT(small), false, true},
                                                {one, COUNT(one), false, false},
                                                {large, COUNT(large), false, false},
                                                {small, COUNT(small), true, false}};
    const struct bert_config config = config_of(&size);
    struct pair pair = {0};
    bool open = pair_create(&pair, &config, rows_of(&specs[0]), fixture);
    for (size_t i = 0; i < COUNT(specs) && open && !test_has_failed(); i++) {
        run_batch(&pair, &specs[i], i > 0 ? ", after other batches" : "", fixture);
    }
    pair_free(&pair);
}

enum { AT_ONCE = 3 };

/* Starts a batch on each encoder, then waits for all. */
static enum status run_at_once(struct pair pairs[AT_ONCE], struct encoder_case cases[AT_ONCE],
                               struct fixture *fixture, struct error *error) {
    const struct encoder_batch *there[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        TRY(encoder_case_reset(&cases[i], error));
        TRY(remote_encoder_batch(&there[i], &cases[i].batch, error));
    }
    grader_watch("several encoders at once", AT_ONCE * PATIENCE);
    for (int i = 0; i < AT_ONCE; i++) {
        TRY(remote_encoder_run(pairs[i].encoder, there[i], error));
    }
    TRY(device_synchronize(fixture->stream, error));
    grader_watch("", 0);
    for (int i = 0; i < AT_ONCE; i++) {
        char text[400];
        TRY(encoder_case_check(&cases[i], text, sizeof text, error));
        if (text[0] != '\0') {
            TEST_FAIL("%s, one of %d encoders at once: %s", cases[i].name, AT_ONCE, text);
        }
    }
    return STATUS_OK;
}

FIXTURE_TEST(parity, several_encoders, 0) {
    static const struct size sizes[AT_ONCE] = {
        {24, 32, 2, 2, NN_GELU}, {45, 21, 1, 3, NN_GELU}, {24, 32, 2, 2, NN_RELU}};
    static const int32_t lengths[] = {6, 1, 12};
    const struct encoder_spec spec = {lengths, COUNT(lengths), true, false};
    struct pair pairs[AT_ONCE] = {0};
    struct encoder_case cases[AT_ONCE] = {0};
    struct error error = {0};
    bool open = true;
    for (int i = 0; i < AT_ONCE && open; i++) {
        const struct bert_config config = config_of(&sizes[i]);
        open = pair_create(&pairs[i], &config, rows_of(&spec), fixture) &&
               encoder_case_create(&cases[i], &pairs[i].net, &spec, &fixture->rng, true, false,
                                   &error) == STATUS_OK;
    }
    if (open) {
        enum status status = run_at_once(pairs, cases, fixture, &error);
        if (status != STATUS_OK) {
            TEST_FAIL("several encoders at once: %s", error_text(&error, status));
        }
    }
    for (int i = 0; i < AT_ONCE; i++) {
        encoder_case_free(&cases[i]);
        pair_free(&pairs[i]);
    }
}

static enum status run_and_read(struct encoder *encoder, const struct encoder_batch *batch,
                                float *first, size_t C, struct fixture *fixture,
                                struct error *error) {
    TRY(run_and_wait(encoder, batch, fixture, error));
    return device_read(first, batch->first, C * sizeof *first, fixture->stream, error);
}

/* One sequence of a batch, alone, by the same encoder: its first row must be the batch's. */
static void check_alone(struct pair *pair, const struct encoder_case *all, const float *together,
                        size_t b, struct fixture *fixture) {
    struct error error = {0};
    size_t C = pair->net.model.C, start = (size_t)all->starts[b];
    const int32_t starts[] = {0, all->starts[b + 1] - all->starts[b]};
    float alone[64];
    const struct encoder_batch batch = {.ids = all->ids + start,
                                        .types = all->types + start,
                                        .starts = starts,
                                        .B = 1,
                                        .rows = (size_t)starts[1],
                                        .longest = (size_t)starts[1],
                                        .first = all->first.data};
    grader_watch("a sequence alone", PATIENCE);
    enum status status = run_and_read(pair->encoder, &batch, alone, C, fixture, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("sequence %zu alone: %s", b, error_text(&error, status));
        return;
    }
    struct logits_difference d = logits_difference(alone, together + b * C, C);
    if (!(d.worst <= ENCODER_TOLERANCE * d.largest)) {
        TEST_FAIL(
            "sequence %zu of %zu: alone it differs by %.3g of %.3g from the same among others", b,
            all->batch.B, d.worst, d.largest);
    }
}

FIXTURE_TEST(parity, alone_as_among_others, 0) {
    enum { C = 48 };
    static const struct size size = {C, 96, 2, 4, NN_GELU};
    static const int32_t lengths[] = {7, 33, 1, 16};
    const struct encoder_spec spec = {lengths, COUNT(lengths), true, false};
    const struct bert_config config = config_of(&size);
    struct pair pair = {0};
    struct encoder_case c = {0};
    struct error error = {0};
    char text[400] = "";
    float together[COUNT(lengths) * C];
    if (pair_create(&pair, &config, rows_of(&spec), fixture)) {
        EXPECT_DONE(encoder_case_create(&c, &pair.net, &spec, &fixture->rng, true, false, &error),
                    &error);
        EXPECT_DONE(run_and_check(&c, pair.encoder, fixture, text, sizeof text, &error), &error);
        EXPECT_DONE(device_read(together, c.first.data, sizeof together, fixture->stream, &error),
                    &error);
        for (size_t b = 0; b < COUNT(lengths) && !test_has_failed(); b++) {
            check_alone(&pair, &c, together, b, fixture);
        }
    }
    encoder_case_free(&c);
    pair_free(&pair);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, random_sizes, 0) {
    for (int i = 0; i < 8 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        int32_t lengths[16];
        size_t NH = 1 + rng_below(rng, 12), B = 1 + rng_below(rng, COUNT(lengths));
        const struct size size = {NH * (1 + rng_below(rng, 9)), 1 + rng_below(rng, 100),
                                  1 + rng_below(rng, 3), NH, NN_GELU};
        for (size_t b = 0; b < B; b++) {
            lengths[b] = 1 + (int32_t)rng_below(rng, rng_below(rng, 3) == 0 ? T : 8);
        }
        const struct encoder_spec spec = {lengths, B, i % 2 == 0, i % 4 < 2};
        run_batches(&size, &spec, 1, fixture);
    }
}

FIXTURE_TEST(parity, large_sizes_on_a_gpu, 0) {
    static const int32_t lengths[] = {257, 1, 67};
    if (fixture->modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    struct bert_config config = config_of(&(struct size){768, 3072, 2, 12, NN_GELU});
    config.T = 512;
    for (int wanted = 0; wanted < 2 && !test_has_failed(); wanted++) {
        const struct encoder_spec spec = {lengths, COUNT(lengths), true, wanted == 1};
        struct pair pair;
        if (pair_create(&pair, &config, rows_of(&spec), fixture)) {
            run_batch(&pair, &spec, "", fixture);
        }
        pair_free(&pair);
    }
}

enum { TEXTS = 3, LONGEST = 37 };
static const int32_t text_starts[TEXTS + 1] = {0, 12, 49, 50};

/* How the model gets its texts; EQUAL: padding counts as text, there is no mask. */
enum form { PACKED, MASKED, EQUAL };

/* Three texts, in any form. */
struct texts {
    int32_t padded_ids[TEXTS * LONGEST], packed_ids[TEXTS * LONGEST];
    uint8_t mask[TEXTS * LONGEST];
};

static struct texts draw_texts(struct rng *rng) {
    struct texts texts = {0};
    struct rng text = grader_text_rng(rng);
    for (int b = 0; b < TEXTS; b++) {
        for (int32_t i = text_starts[b]; i < text_starts[b + 1]; i++) {
            int place = b * LONGEST + (int)(i - text_starts[b]);
            texts.padded_ids[place] = texts.packed_ids[i] = (int32_t)rng_below(&text, V);
            texts.mask[place] = 1;
        }
    }
    return texts;
}

static struct bert_input input_of(const struct texts *texts, enum form form) {
    return (struct bert_input){.ids = form == PACKED ? texts->packed_ids : texts->padded_ids,
                               .mask = form == MASKED ? texts->mask : NULL,
                               .starts = form == PACKED ? text_starts : NULL,
                               .B = TEXTS,
                               .T = LONGEST};
}

static void check_form(const struct bert_config *config, enum form form, const char *whose,
                       struct rng *rng) {
    float want[TEXTS * LABELS] = {0};
    const struct texts texts = draw_texts(rng);
    const struct remote_bert_job job = {.config = *config,
                                        .seed = grader_secret(rng),
                                        .input = input_of(&texts, form),
                                        .what = "BERT",
                                        .seconds = 2 * PATIENCE};
    EXPECT_OK(remote_bert_reference(&job, 1, want));
    remote_bert_expect(&job, want, grader_check_logits, whose);
}

static void check_model(const struct size *size, const char *whose) {
    struct grader_gpu gpu;
    const struct bert_config config = config_of(size);
    struct rng rng = grader_rng();
    bool open = grader_gpu_open(&gpu);
    for (int form = PACKED; form <= EQUAL && open && !test_has_failed(); form++) {
        check_form(&config, (enum form)form, whose, &rng);
    }
}

C_TEST(parity, bert_end_to_end) {
    check_model(&(struct size){60, 90, 2, 3, NN_GELU}, "your encoder");
}

/* The engine runs these operator by operator. */
C_TEST(parity, heads_that_lab_07_does_not_take) {
    check_model(&(struct size){130, 20, 1, 1, NN_GELU}, "heads of 130 channels");
}
