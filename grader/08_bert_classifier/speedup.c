/*
 * Lab 08, speedup: launches of a batch; a batch of news articles by the subject's encoder and by
 * the starter's; and the same through the model, from ids to logits. On a GPU times are measured
 * and the fastest of several calls counts, on both sides; on simt they are modelled, and one call
 * is enough.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/models/bert.h"
#include "common/testing/testing.h"
#include "grader/08_bert_classifier/remote.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/models.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/08_bert_classifier/problem/case.h"
#include "labs/08_bert_classifier/problem/lengths.h"

static const char lab[] = "08_bert_classifier";

enum { PATIENCE = 150 /* seconds */, CALLS = 9, TEXTS = ENCODER_ARTICLES, LABELS = 4 };

/*
 * Launches, copies and fills of a batch: lab 06 allows two for each of a layer's four matmuls, and
 * attention is one. OTHERS are those before the first layer, and those that a special last layer
 * has more.
 */
enum { MOST_A_LAYER = 9, OTHERS = 6 };

/* The most rows of a padded batch: encoders are created for them. */
enum { POSITIONS = 128, MOST_ROWS = TEXTS * POSITIONS };

/* The grader's own tests do not want times: a narrower model will do. */
#ifdef GRADER_SMALL
enum { SIMT_HEADS = 1, SIMT_HIDDEN = 64 };
#else
enum { SIMT_HEADS = 3, SIMT_HIDDEN = 768 };
#endif

/* BERT-base's width, half of its layers; on simt a narrow model of two layers. */
static struct bert_config config_of(bool modelled) {
    return (struct bert_config){.C = modelled ? 64 * SIMT_HEADS : 768,
                                .hidden = modelled ? SIMT_HIDDEN : 3072,
                                .L = modelled ? 2 : 6,
                                .NH = modelled ? SIMT_HEADS : 12,
                                .V = 1000,
                                .T = POSITIONS,
                                .types = 2,
                                .labels = LABELS,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

/* ---- Launches ---- */

/* Runs and checks a call, which may allocate. */
static enum status run_and_check(struct encoder_case *c, struct encoder *encoder,
                                 device_stream stream, size_t *launches, struct error *error) {
    char text[400];
    const struct encoder_batch *there;
    TRY(remote_encoder_batch(&there, &c->batch, error));
    TRY(encoder_case_reset(c, error));
    if (launches == NULL) {
        TRY(remote_encoder_run(encoder, there, error));
        TRY(device_synchronize(stream, error));
    } else {
        TRY(remote_encoder_launches(encoder, there, stream, launches, error));
    }
    TRY(encoder_case_check(c, text, sizeof text, error));
    if (text[0] != '\0') {
        TEST_FAIL("%s: %s", c->name, text);
    }
    return STATUS_OK;
}

/* A batch, then another one of the same shape, whose launches are counted. */
static enum status count_launches(struct encoder_case cases[2], device_stream stream,
                                  size_t *launches, struct error *error) {
    struct encoder *encoder;
    TRY(remote_encoder_create(&encoder, &cases->net->model, cases->batch.rows, stream, error));
    grader_watch(cases->name, PATIENCE);
    enum status status = run_and_check(&cases[0], encoder, stream, NULL, error);
    if (status == STATUS_OK) {
        status = run_and_check(&cases[1], encoder, stream, launches, error);
    }
    grader_watch("", 0);
    remote_encoder_free(encoder);
    return status;
}

static enum status create_and_count(struct encoder_case cases[2], const struct encoder_net *net,
                                    const struct encoder_spec *spec, struct rng *rng,
                                    device_stream *stream, size_t *launches, struct error *error) {
    for (int i = 0; i < 2; i++) {
        TRY(encoder_case_create(&cases[i], net, spec, rng, false, false, error));
    }
    TRY(device_stream_create(stream, error));
    return count_launches(cases, *stream, launches, error);
}

static void check_launches(const struct encoder_net *net, const struct encoder_spec *spec,
                           struct rng *rng) {
    struct encoder_case cases[2] = {{.net = net}, {.net = net}};
    struct error error = {0};
    device_stream stream = NULL;
    const char *name = cases->name;
    size_t launches = 0, most = MOST_A_LAYER * net->model.L + OTHERS;
    enum status status = create_and_count(cases, net, spec, rng, &stream, &launches, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", name, error_text(&error, status));
    } else if (launches > most) {
        TEST_FAIL("%s launches too often: %s: %zu launches and copies, at most %zu", lab, name,
                  launches, most);
    } else {
        printf("%s launches, %s: %zu, at most %zu\n", lab, name, launches, most);
    }
    device_stream_destroy(stream);
    encoder_case_free(&cases[0]);
    encoder_case_free(&cases[1]);
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
    struct rng rng = grader_rng();
    enum status status = encoder_net_create(&net, &config, rng_u64(&rng), 512, &error);
    for (size_t i = 0; i < sizeof specs / sizeof *specs && status == STATUS_OK; i++) {
        check_launches(&net, &specs[i], &rng);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    encoder_net_free(&net);
}

/* ---- The encoder ---- */

/*
 * Least FLOPs that the contract needs without hidden: k and v in the last layer, everything in the
 * others; attention is not counted.
 */
static double least_flops(const struct bert_config *config, size_t rows) {
    double C = (double)config->C, hidden = (double)config->hidden;
    double layer = 2.0 * (4.0 * C * C + 2.0 * C * hidden), keys = 2.0 * 2.0 * C * C;
    return (double)rows * ((double)(config->L - 1) * layer + keys);
}

/* With the matrices that this takes, each read once. */
static void check_counted(const struct bert_config *config, size_t rows) {
    double flops = least_flops(config, rows);
    remote_check_counted(flops, REMOTE_FP32_PRODUCTS);
    remote_check_counted_bytes(sizeof(float) * flops / (2.0 * (double)rows));
    remote_check_fetched(sizeof(float) * flops / (2.0 * (double)rows));
}

/*
 * The limit here is no roofline: the encoder is made of operators that are given. It is their time
 * for as many rows without padding, by the starter's encoder in the same run: the same number of
 * tokens in texts of the same length, give or take one.
 */
static void even_lengths(int32_t lengths[TEXTS]) {
    int32_t rows = 0;
    for (int b = 0; b < TEXTS; b++) {
        rows += encoder_article_lengths[b];
    }
    for (int b = 0; b < TEXTS; b++) {
        lengths[b] = rows / TEXTS + (b < rows % TEXTS);
    }
}

static struct least_time least_time_of(double even_ms) {
    return (struct least_time){.ideal_ms = even_ms,
                               .limit = "the speed of the starter's operators without padding"};
}

/* A time below the GPU's peak means that the work was not done. */
static void check_possible(const struct bert_config *config, size_t rows,
                           const struct grader_gpu *gpu, double ms) {
    double least = 1e3 * least_flops(config, rows) / gpu->properties.peak_flops;
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's peak allows, %.4g ms: the work was not done", ms,
                  least);
    }
}

/* One worker's model and encoder, for the same batches as the other's. */
struct racer {
    struct encoder_net net;
    struct encoder_case c;
    struct encoder *encoder;
    float *first; /* (TEXTS, C): its last result */
};

struct race {
    struct racer racers[REMOTE_SIDES];
    struct racer even; /* the baseline's, too, on texts of the same length */
    struct speedup speedup;
};

static enum status racer_create(struct racer *r, const struct bert_config *config,
                                const int32_t *lengths, uint64_t seed, struct rng *rng,
                                struct error *error) {
    const struct encoder_spec spec = {lengths, TEXTS, true, false};
    r->first = calloc(TEXTS * config->C, sizeof *r->first);
    if (r->first == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    TRY(encoder_net_create(&r->net, config, seed, 0, error));
    TRY(encoder_case_create(&r->c, &r->net, &spec, rng, false, true, error));
    return remote_encoder_create(&r->encoder, &r->net.model, MOST_ROWS, NULL, error);
}

static enum status race_create(struct race *race, const struct bert_config *config, struct rng *rng,
                               struct error *error) {
    const int32_t *lengths = encoder_article_lengths;
    int32_t even[TEXTS];
    uint64_t seed = rng_u64(rng);
    even_lengths(even);
    TRY(racer_create(&race->racers[REMOTE_SUBJECT], config, lengths, seed, rng, error));
    TRY(remote_open_side(REMOTE_BASELINE, error));
    TRY(racer_create(&race->racers[REMOTE_BASELINE], config, lengths, seed, rng, error));
    return racer_create(&race->even, config, even, seed, rng, error);
}

static void racer_free(struct racer *r) {
    remote_encoder_free(r->encoder);
    encoder_case_free(&r->c);
    encoder_net_free(&r->net);
    free(r->first);
}

static void race_free(struct race *race) {
    remote_use(REMOTE_BASELINE);
    racer_free(&race->even);
    racer_free(&race->racers[REMOTE_BASELINE]);
    remote_use(REMOTE_SUBJECT);
    racer_free(&race->racers[REMOTE_SUBJECT]);
}

/* One call of the racer in use, on outputs of NaN; its result goes to r->first. */
static enum status run_racer(struct racer *r, double *ms, struct error *error) {
    const struct encoder_batch *there;
    TRY(encoder_case_reset(&r->c, error));
    TRY(remote_encoder_batch(&there, &r->c.batch, error));
    TRY(remote_encoder_time(r->encoder, there, ms, error));
    return device_read(r->first, r->c.first.data, r->c.first.count * sizeof *r->first, NULL, error);
}

/* One call on the batch of `seed`, the same on both sides. @return milliseconds */
static double time_racer(struct racer *r, enum remote_side which, uint64_t seed) {
    struct error error = {0};
    struct rng rng = rng_create(seed);
    double ms = INFINITY;
    remote_use(which);
    encoder_case_renew(&r->c, &rng);
    grader_watch(r->c.name, PATIENCE);
    enum status status = run_racer(r, &ms, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", r->c.name, error_text(&error, status));
    } else if (which == REMOTE_SUBJECT) {
        check_counted(&r->net.random.config, r->c.batch.rows);
    }
    return ms;
}

/* Alternates, and keeps the fastest call of each. Two that do not count load kernels and raise the
 * clock. */
static void run_race(struct race *race, bool modelled, struct rng *rng) {
    struct racer *subject = &race->racers[REMOTE_SUBJECT];
    struct racer *baseline = &race->racers[REMOTE_BASELINE];
    struct speedup *s = &race->speedup;
    double even_ms = INFINITY;
    for (int i = modelled ? 0 : -2; i < (modelled ? 1 : speedup_calls(CALLS)) && !test_has_failed();
         i++) {
        uint64_t seed = rng_u64(rng);
        double baseline_ms = time_racer(baseline, REMOTE_BASELINE, seed);
        double subject_ms = time_racer(subject, REMOTE_SUBJECT, seed);
        even_ms = fmin(even_ms, time_racer(&race->even, REMOTE_BASELINE, seed));
        if (!test_has_failed()) {
            grader_check_logits(subject->first, baseline->first, subject->c.first.count,
                                "your encoder (first rows)");
        }
        s->baseline_ms = i < 0 ? s->baseline_ms : fmin(s->baseline_ms, baseline_ms);
        s->subject_ms = i < 0 ? s->subject_ms : fmin(s->subject_ms, subject_ms);
    }
    s->least = least_time_of(even_ms);
}

C_TEST(speedup, encoder) {
    struct grader_gpu gpu;
    struct race race = {0};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct bert_config config = config_of(gpu.modelled);
    struct rng rng = grader_rng();
    race.speedup = grader_gpu_speedup(&gpu, lab, "encoder");
    enum status status = race_create(&race, &config, &rng, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else {
        run_race(&race, gpu.modelled, &rng);
    }
    if (!test_has_failed()) {
        check_possible(&config, race.racers[REMOTE_SUBJECT].c.batch.rows, &gpu,
                       race.speedup.subject_ms);
        speedup_check(&race.speedup, __FILE__, __LINE__);
    }
    race_free(&race);
}

/* ---- The model ---- */

/* Each call has tokens of its own; logits of each call on both sides. */
struct articles {
    struct bert_config config;
    uint64_t seed; /* of the weights */
    int32_t starts[TEXTS + 1], even_starts[TEXTS + 1];
    int32_t ids[CALLS + 1][MOST_ROWS];
    float logits[REMOTE_SIDES][CALLS + 1][TEXTS * LABELS];
};

static struct articles *articles_create(bool modelled, struct rng *rng) {
    struct articles *a = calloc(1, sizeof *a);
    if (a == NULL) {
        TEST_FAIL("the grader is out of memory");
        return NULL;
    }
    a->config = config_of(modelled);
    a->seed = grader_secret(rng);
    int32_t even[TEXTS];
    even_lengths(even);
    for (int b = 0; b < TEXTS; b++) {
        a->starts[b + 1] = a->starts[b] + encoder_article_lengths[b];
        a->even_starts[b + 1] = a->even_starts[b] + even[b];
    }
    for (int call = 0; call <= CALLS; call++) {
        struct rng text = grader_text_rng(rng);
        for (int i = 0; i < a->starts[TEXTS]; i++) {
            a->ids[call][i] = (int32_t)rng_below(&text, a->config.V);
        }
    }
    return a;
}

/* One call of the model in the worker in use, with that call's tokens. */
static enum status run_model(struct articles *a, enum remote_side which, int call,
                             struct remote_bert *bert, double *ms, struct error *error) {
    size_t rows = (size_t)a->starts[TEXTS];
    memcpy((void *)bert->input.ids, a->ids[call], rows * sizeof **a->ids);
    TRY(remote_bert_run(bert, a->logits[which][call], ms, error));
    if (which == REMOTE_SUBJECT) {
        check_counted(&a->config, rows);
    }
    return STATUS_OK;
}

static enum status create_and_time(struct articles *a, enum remote_side which,
                                   const int32_t *starts, int calls, struct remote_bert *bert,
                                   double *best, struct error *error) {
    const struct bert_input input = {.ids = a->ids[0], .starts = starts, .B = TEXTS};
    TRY(which == REMOTE_SUBJECT ? STATUS_OK : remote_open_device(error));
    TRY(remote_bert_create(bert, &a->config, a->seed, &input, MOST_ROWS, WORKER_ALL_OPERATORS,
                           which == REMOTE_SUBJECT, error));
    for (int i = 0; i < calls; i++) {
        double ms = INFINITY;
        TRY(run_model(a, which, i, bert, &ms, error));
        *best = calls > 1 && i == 0 ? *best : fmin(*best, ms);
    }
    return STATUS_OK;
}

/* Milliseconds of the fastest of `calls`, without the first if there are several. */
static double time_model(struct articles *a, enum remote_side which, const int32_t *starts,
                         int calls) {
    struct remote_bert bert = {0};
    struct error error = {0};
    double best = INFINITY;
    remote_use(which);
    grader_watch("BERT, a batch of articles", 2 * PATIENCE);
    enum status status = create_and_time(a, which, starts, calls, &bert, &best, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("BERT: %s", error_text(&error, status));
    }
    remote_bert_free(&bert);
    return best;
}

static void compare_models(struct articles *a, const struct grader_gpu *gpu) {
    int calls = gpu->modelled ? 1 : speedup_calls(CALLS) + 1;
    struct speedup speedup = grader_gpu_speedup(gpu, lab, "end_to_end");
    speedup.least = least_time_of(time_model(a, REMOTE_BASELINE, a->even_starts, calls));
    speedup.baseline_ms = time_model(a, REMOTE_BASELINE, a->starts, calls);
    speedup.subject_ms = time_model(a, REMOTE_SUBJECT, a->starts, calls);
    for (int i = 0; i < calls && !test_has_failed(); i++) {
        grader_check_logits(a->logits[REMOTE_SUBJECT][i], a->logits[REMOTE_BASELINE][i],
                            TEXTS * LABELS, "your encoder");
    }
    if (!test_has_failed()) {
        check_possible(&a->config, (size_t)a->starts[TEXTS], gpu, speedup.subject_ms);
        printf("%s BERT: %.0f articles/s, the starter %.0f (%s)\n", lab,
               1e3 * TEXTS / speedup.subject_ms, 1e3 * TEXTS / speedup.baseline_ms, gpu->clock);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
}

C_TEST(speedup, end_to_end) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    struct rng rng = grader_rng();
    struct articles *articles = articles_create(gpu.modelled, &rng);
    if (articles != NULL) {
        compare_models(articles, &gpu);
    }
    free(articles);
}
