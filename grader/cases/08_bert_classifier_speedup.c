/*
 * Lab 08, speedup: launches of a batch; a batch of news articles by the encoder
 * and by the starter's way; and the same through the model, from ids to logits.
 * On a GPU time is measured and the fastest of several calls counts, on both
 * sides; on simt it is modelled, and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/bench/device_launches.h"
#include "common/device/device.h"
#include "common/model/bert.h"
#include "common/testing/testing.h"
#include "grader/cases/08_bert_classifier_baseline.h"
#include "grader/cases/08_bert_classifier_case.h"
#include "grader/cases/08_bert_classifier_lengths.h"
#include "grader/foreign.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/08_bert_classifier/engine.h"

static const char lab[] = "08_bert_classifier";

enum { PATIENCE = 150 /* seconds */, CALLS = 9, TEXTS = ENCODER_ARTICLES, LABELS = 4 };

/*
 * Launches, copies and fills of a batch: lab 06 allows two for each of a
 * layer's four matmuls, and attention is one; what comes before the first
 * layer, and what a last layer of its own takes more, is OTHERS.
 */
enum { MOST_A_LAYER = 9, OTHERS = 6 };

/* What a padded batch of them has at most: encoders are made for as many. */
enum { POSITIONS = 128, MOST_ROWS = TEXTS * POSITIONS };

/* BERT-base's width, half of its layers; on simt a narrow model of two layers.
 */
static struct bert_config config_of(bool modelled) {
    return (struct bert_config){.C = modelled ? 192 : 768,
                                .hidden = modelled ? 768 : 3072,
                                .L = modelled ? 2 : 6,
                                .NH = modelled ? 3 : 12,
                                .V = 1000,
                                .T = POSITIONS,
                                .types = 2,
                                .labels = LABELS,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

/* ---- Launches ---- */

/* A batch on an encoder whose stream is being recorded. */
struct recorded {
    struct encoder *encoder;
    const struct encoder_batch *batch;
};

static enum status run_recorded(void *argument, device_stream stream, struct error *error) {
    const struct recorded *r = argument;
    (void)stream; /* the encoder's */
    return encoder_run(r->encoder, r->batch, error);
}

/* A call in earnest, which may make room for itself, then one that is only
 * recorded. */
static enum status count_launches(struct encoder_case *c, device_stream stream, size_t *launches,
                                  struct error *error) {
    struct recorded r = {NULL, &c->batch};
    char text[400];
    TRY(encoder_create(&r.encoder, &c->net->model, c->batch.rows, stream, error));
    grader_watch(c->name, PATIENCE);
    enum status status = encoder_case_reset(c, error);
    status = status == STATUS_OK ? encoder_run(r.encoder, &c->batch, error) : status;
    status = status == STATUS_OK ? device_synchronize(stream, error) : status;
    status = status == STATUS_OK ? encoder_case_check(c, text, sizeof text, error) : status;
    if (status == STATUS_OK && text[0] != '\0') {
        TEST_FAIL("%s: %s", c->name, text);
    }
    status = status == STATUS_OK
                 ? device_count_launches_on(run_recorded, &r, stream, launches, error)
                 : status;
    grader_watch("", 0);
    encoder_free(r.encoder);
    return status;
}

static void check_launches(const struct encoder_net *net, const struct encoder_spec *spec,
                           struct rng *rng) {
    struct encoder_case c = {0};
    struct error error = {0};
    device_stream stream = NULL;
    size_t launches = 0, most = MOST_A_LAYER * net->model.L + OTHERS;
    enum status status = encoder_case_create(&c, net, spec, rng, false, false, &error);
    status = status == STATUS_OK ? device_stream_create(&stream, &error) : status;
    status = status == STATUS_OK ? count_launches(&c, stream, &launches, &error) : status;
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", c.name, error_text(&error, status));
    } else if (launches > most) {
        TEST_FAIL("%s launches too often: %s: %zu launches and copies, at most %zu", lab, c.name,
                  launches, most);
    } else {
        printf("%s launches, %s: %zu, at most %zu\n", lab, c.name, launches, most);
    }
    device_stream_destroy(stream);
    encoder_case_free(&c);
}

C_TEST(speedup, launches) {
    static const int32_t few[] = {5, 3}, many[] = {60, 17, 31, 90, 64, 12, 77, 44};
    static const struct encoder_spec specs[] = {
        {few, 2, true, false}, {many, 8, false, false}, {many, 8, true, true}};
    struct grader_gpu gpu;
    struct encoder_net net = {0};
    struct error error = {0};
    struct bert_config config = config_of(true);
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    config.C = 48;
    config.hidden = 96;
    enum status status = encoder_net_create(&net, &config, grader_seed(), 512, &error);
    struct rng rng = rng_create(grader_seed());
    for (size_t i = 0; i < sizeof specs / sizeof *specs && status == STATUS_OK; i++) {
        check_launches(&net, &specs[i], &rng);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    encoder_net_free(&net);
}

/* ---- The encoder ---- */

/* Milliseconds of one batch; INFINITY, and the test fails, when it does not
 * run. */
static double time_call(const struct encoder_functions *functions, struct encoder *encoder,
                        const struct encoder_case *c) {
    struct error error = {0};
    grader_watch(c->name, PATIENCE);
    double start = device_now(); /* both wait for the whole device: no stream escapes */
    enum status status = functions->run(encoder, &c->batch, &error);
    double end = device_now();
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", c->name, error_text(&error, status));
        return INFINITY;
    }
    return 1e3 * (end - start);
}

/* FLOPs of the least that the contract asks for, with hidden not wanted: k and
   v in the last layer, everything in the others; attention not counted. */
static double least_flops(const struct encoder_net *net, size_t rows) {
    double C = (double)net->model.C, hidden = (double)net->model.hidden;
    double layer = 2.0 * (4.0 * C * C + 2.0 * C * hidden), keys = 2.0 * 2.0 * C * C;
    return (double)rows * ((double)(net->model.L - 1) * layer + keys);
}

/* The two encoders, taken in turn. */
struct race {
    struct encoder_functions functions[2];
    struct encoder *encoders[2];
    double ms[2];
};

/* One call of one of them, with nothing of an earlier result; its own goes to `first` (B, C). */
static void run_one(struct race *race, int who, bool counts, struct encoder_case *c, float *first) {
    struct error error = {0};
    size_t bytes = c->batch.B * c->net->model.C * sizeof *first;
    enum status status = encoder_case_reset(c, &error);
    if (status == STATUS_OK) {
        double ms = time_call(&race->functions[who], race->encoders[who], c);
        race->ms[who] = counts ? fmin(race->ms[who], ms) : race->ms[who];
        status = device_read(first, c->first.data, bytes, NULL, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", c->name, error_text(&error, status));
    }
}

static void run_race(struct race *race, struct encoder_case *c, const struct grader_gpu *gpu) {
    size_t count = c->batch.B * c->net->model.C;
    float *results = calloc(2 * count, sizeof *results);
    if (results == NULL) {
        TEST_FAIL("the grader is out of memory");
        return;
    }
    for (int i = gpu->modelled ? 0 : -2; i < (gpu->modelled ? 1 : CALLS); i++) {
        for (int who = 0; who < 2 && !test_has_failed(); who++) {
            run_one(race, who, i >= 0, c, results + (size_t)who * count);
        }
    }
    if (!test_has_failed()) {
        grader_check_logits(results + count, results, count, "your encoder, first rows,");
    }
    free(results);
}

static void check_possible(const struct encoder_case *c, const struct grader_gpu *gpu, double ms) {
    double least = 1e3 * least_flops(c->net, c->batch.rows) / gpu->properties.peak_flops;
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's peak allows, %.4g ms: the work "
                  "was not done",
                  ms, least);
    }
}

static void compare_encoders(const struct encoder_net *net, struct encoder_case *c,
                             const struct grader_gpu *gpu) {
    struct error error = {0};
    struct race race = {{encoder_baseline(), {encoder_create, encoder_run, encoder_free}},
                        {0},
                        {INFINITY, INFINITY}};
    enum status status = STATUS_OK;
    for (int who = 0; who < 2 && status == STATUS_OK; who++) {
        status =
            race.functions[who].create(&race.encoders[who], &net->model, MOST_ROWS, NULL, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else {
        run_race(&race, c, gpu);
    }
    if (!test_has_failed()) {
        struct speedup speedup =
            grader_gpu_speedup(gpu, lab, "encoder", GRADER_SUBJECT, GRADER_MARGIN);
        speedup.baseline_ms = race.ms[0];
        speedup.subject_ms = race.ms[1];
        check_possible(c, gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    race.functions[0].free(race.encoders[0]);
    race.functions[1].free(race.encoders[1]);
}

C_TEST(speedup, encoder) {
    struct grader_gpu gpu;
    struct encoder_net net = {0};
    struct encoder_case c = {0};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct bert_config config = config_of(gpu.modelled);
    const struct encoder_spec spec = {encoder_article_lengths, TEXTS, true, false};
    struct rng rng = rng_create(grader_seed());
    enum status status = encoder_net_create(&net, &config, grader_seed(), MOST_ROWS, &error);
    if (status == STATUS_OK) {
        status = encoder_case_create(&c, &net, &spec, &rng, false, true, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else {
        compare_encoders(&net, &c, &gpu);
    }
    grader_check_own_work();
    encoder_case_free(&c);
    encoder_net_free(&net);
}

/* ---- The model ---- */

/* Milliseconds of one batch on an engine; logits (TEXTS, LABELS). */
static double time_model(const struct bert_random *random, const struct bert_input *input,
                         const struct encoder_functions *functions, int calls, float *logits) {
    struct engine engine;
    struct bert *bert = NULL;
    struct error error = {0};
    double best = INFINITY;
    const struct bert_output output = {.logits = logits};
    grader_watch("BERT, a batch of articles", 2 * PATIENCE);
    enum status status = engine_encoder_create_with(&engine, functions, &error);
    if (status == STATUS_OK) {
        status = bert_create(&bert, &random->config, &random->weights, &engine, MOST_ROWS, &error);
    }
    for (int i = calls > 1 ? -1 : 0; i < calls && status == STATUS_OK; i++) {
        double start = device_now();
        status = bert_forward(bert, input, &output);
        best = i < 0 ? best : fmin(best, 1e3 * (device_now() - start));
    }
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("BERT: %s", error_text(&error, status));
    }
    bert_free(bert);
    engine_destroy(&engine);
    return best;
}

C_TEST(speedup, end_to_end) {
    struct grader_gpu gpu;
    struct bert_random random;
    int32_t starts[TEXTS + 1] = {0}, ids[MOST_ROWS];
    float want[TEXTS * LABELS] = {0}, got[TEXTS * LABELS] = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct bert_config config = config_of(gpu.modelled);
    struct rng rng = rng_create(grader_seed());
    for (int b = 0; b < TEXTS; b++) {
        starts[b + 1] = starts[b] + encoder_article_lengths[b];
    }
    for (int i = 0; i < starts[TEXTS]; i++) {
        ids[i] = (int32_t)rng_below(&rng, config.V);
    }
    ASSERT_OK(bert_random_create(&random, &config, grader_seed()));
    const struct bert_input input = {.ids = ids, .starts = starts, .B = TEXTS};
    const struct encoder_functions baseline = encoder_baseline(),
                                   own = {encoder_create, encoder_run, encoder_free};
    int calls = gpu.modelled ? 1 : CALLS;
    struct speedup speedup =
        grader_gpu_speedup(&gpu, lab, "end_to_end", GRADER_SUBJECT, GRADER_MARGIN);
    speedup.baseline_ms = time_model(&random, &input, &baseline, calls, want);
    speedup.subject_ms = time_model(&random, &input, &own, calls, got);
    if (!test_has_failed()) {
        grader_check_logits(got, want, TEXTS * LABELS, "your encoder");
        printf("%s BERT: %.0f articles/s, the starter's way %.0f (%s)\n", lab,
               1e3 * TEXTS / speedup.subject_ms, 1e3 * TEXTS / speedup.baseline_ms, gpu.clock);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    bert_random_free(&random);
}
