/*
 * Lab 10, speedup: launches of a step; steps, and a prompt, by the decoder and by the starter's
 * way; and both through the engine, from a prompt to drawn tokens. On a GPU time is measured and
 * the fastest of several calls counts, on both sides; on simt it is modelled, and one call is as
 * good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/bench/device_launches.h"
#include "common/device/device.h"
#include "common/model/llama2.h"
#include "common/testing/testing.h"
#include "grader/cases/10_llama2_decoder_baseline.h"
#include "grader/cases/10_llama2_decoder_case.h"
#include "grader/foreign.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/logits.h"
#include "grader/speedup.h"
#include "grader/watch.h"

static const char lab[] = "10_llama2_decoder";

enum { PATIENCE = 150 /* seconds */, CALLS = 7 };

/*
 * Launches, copies and fills of a step, one by one where it has a graph. A layer's are two of
 * attention, the product behind it, gate and up, SwiGLU and down; before the first and
 * behind the last come drawing, the embedding and the classifier, and two to spare.
 */
enum { MOST_A_LAYER = 6, OTHERS = 6 };

static const struct sampling greedy = {1, 0.0f, 0.0f, 0};

/* What is measured: a model, a prompt, and steps behind it. */
struct work {
    struct decoder_size size;
    size_t prompt, steps;
    struct sampling how; /* steps draw */
};

/* On a GPU 160 MB of weights, more than its L2 holds; on simt what it can model in seconds. */
static struct work work_of(bool modelled) {
    static const struct work on_gpu = {{.NH = 8,
                                        .KVH = 4,
                                        .HS = 64,
                                        .hidden = 1408,
                                        .L = 8,
                                        .V = 32000,
                                        .T = 768,
                                        .dtype = NN_F32},
                                       512,
                                       64,
                                       {42, 0.9f, 0.9f, 0}},
                             on_simt = {{.NH = 4,
                                         .KVH = 2,
                                         .HS = 64,
                                         .hidden = 512,
                                         .L = 2,
                                         .V = 1000,
                                         .T = 64,
                                         .dtype = NN_F32},
                                        40,
                                        2,
                                        {1, 0.0f, 0.0f, 0}};
    return modelled ? on_simt : on_gpu;
}

static struct decoder_functions own_functions(void) {
    return (struct decoder_functions){decoder_create, decoder_prefill, decoder_step, decoder_free};
}

static void fail(enum status status, const struct error *error, const char *text) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(error, status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s", text);
    }
}

/* ---- Launches ---- */

struct recorded {
    struct decoder *decoder;
    size_t position;
};

static enum status step_recorded(void *argument, device_stream stream, struct error *error) {
    const struct recorded *r = argument;
    (void)stream; /* the decoder's */
    return decoder_step(r->decoder, r->position, error);
}

/* Two steps in earnest, which may make a graph, then one that is only recorded. */
static enum status count_launches(struct decoder_case *c, size_t *launches, char *text, size_t size,
                                  struct error *error) {
    TRY(decoder_case_feed(c, 5, 0, text, size, error));
    for (int i = 0; i < 2 && text[0] == '\0'; i++) {
        TRY(decoder_case_step(c, &greedy, NULL, text, size, error));
    }
    struct recorded r = {c->decoder, c->fed};
    enum status status = device_count_launches_on(step_recorded, &r, c->stream, launches, error);
    if (status != STATUS_OK) {
        snprintf(
            text, size,
            "%s launches too often: a step that is recorded waits for the GPU, launches a graph, "
            "or does what else cannot be recorded: %s",
            lab, error_text(error, status));
    }
    return STATUS_OK;
}

static void check_launches(const struct decoder_size *size, struct rng *rng) {
    const struct decoder_functions own = own_functions();
    struct decoder_net net;
    struct decoder_case c = {0};
    struct error error = {0};
    device_stream stream = NULL;
    char text[700] = "";
    size_t launches = 0, most = MOST_A_LAYER * size->L + OTHERS;
    enum status status = decoder_net_create(&net, size, grader_seed(), false, &error);
    status = status == STATUS_OK ? device_stream_create(&stream, &error) : status;
    status = status == STATUS_OK
                 ? decoder_case_create(&c, &net, &own, 8, rng, stream, false, &error)
                 : status;
    grader_watch(c.name, PATIENCE);
    status =
        status == STATUS_OK ? count_launches(&c, &launches, text, sizeof text, &error) : status;
    grader_watch("", 0);
    if (status != STATUS_OK || text[0] != '\0') {
        fail(status, &error, text);
    } else if (launches > most) {
        TEST_FAIL("%s launches too often: %s: a step is %zu launches and copies, at most %zu", lab,
                  c.name, launches, most);
    } else {
        printf("%s launches, %s: a step is %zu, at most %zu\n", lab, c.name, launches, most);
    }
    decoder_case_free(&c);
    device_stream_destroy(stream);
    decoder_net_free(&net);
}

C_TEST(speedup, launches) {
    static const struct decoder_size sizes[] = {
        {4, 4, 16, 96, 2, 61, 32, NN_F32, NN_ROPE_INTERLEAVED, false},
        {6, 2, 16, 128, 4, 300, 32, NN_BF16, NN_ROPE_HALVES, true}};
    struct grader_gpu gpu;
    if (grader_gpu_open_for_timing(&gpu)) {
        struct rng rng = rng_create(grader_seed());
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !test_has_failed(); i++) {
            check_launches(&sizes[i], &rng);
        }
    }
}

/* ---- Steps and prompts ---- */

/* The starter's decoder and the subject's, the same text on both. */
struct race {
    struct work work;
    struct decoder_net net;
    struct decoder_case cases[2];
    struct rng rngs[2];
    device_stream stream;
    double least_ms; /* of a step: the time to read its weights */
};

static enum status race_create(struct race *race, const struct grader_gpu *gpu,
                               struct error *error) {
    const struct decoder_functions functions[2] = {decoder_baseline(), own_functions()};
    const uint64_t seed = grader_seed(); /* of both texts */
    race->work = work_of(gpu->modelled);
    TRY(decoder_net_create(&race->net, &race->work.size, seed, true, error));
    TRY(device_stream_create(&race->stream, error));
    for (int who = 0; who < 2; who++) {
        race->rngs[who] = rng_create(seed);
        TRY(decoder_case_create(&race->cases[who], &race->net, &functions[who], race->work.prompt,
                                &race->rngs[who], race->stream, false, error));
    }
    double bandwidth = gpu->properties.memory_bandwidth;
    race->least_ms = gpu->modelled || bandwidth <= 0.0
                         ? 0.0
                         : 1e3 * (double)race->net.device.decode_bytes / bandwidth;
    return STATUS_OK;
}

static void race_free(struct race *race) {
    decoder_case_free(&race->cases[0]);
    decoder_case_free(&race->cases[1]);
    device_stream_destroy(race->stream);
    decoder_net_free(&race->net);
}

static void compare(const struct race *race, const char *what) {
    const struct decoder_case *c = race->cases;
    struct logits_difference d = logits_difference(c[1].got, c[0].got, race->work.size.V);
    if (!(d.worst <= decoder_tolerance(race->work.size.dtype) * d.largest)) {
        TEST_FAIL("%s: your logits differ by %.3g of the largest from the starter's", what,
                  d.worst / d.largest);
    }
}

/* A prompt and a step on both, from the same logits: what is timed is what is wanted. */
static enum status prepare(struct race *race, char *text, size_t size, struct error *error) {
    struct decoder_case *c = race->cases;
    grader_watch(c[1].name, PATIENCE);
    for (int who = 0; who < 2; who++) {
        TRY(decoder_case_feed(&c[who], race->work.prompt, 0, text, size, error));
    }
    compare(race, "the prompt");
    for (int who = 0; who < 2 && text[0] == '\0'; who++) {
        float *from = who == 0 ? NULL : c[0].want; /* what the starter drew from */
        if (who == 0) {
            memcpy(c[0].want, c[0].got, race->work.size.V * sizeof(float));
        }
        TRY(decoder_case_step(&c[who], &race->work.how, from, text, size, error));
    }
    compare(race, "a step");
    grader_watch("", 0);
    return STATUS_OK;
}

/* Milliseconds; infinite, and the test fails, when it goes wrong. */
static double verdict(enum status status, const struct error *error, double start) {
    double ms = 1e3 * (device_now() - start);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(error, status));
        return INFINITY;
    }
    return ms;
}

/* Steps behind the prompt, a step's share. */
static double time_steps(void *argument, bool subject) {
    struct race *race = argument;
    const struct decoder_case *c = &race->cases[subject];
    struct error error = {0};
    enum status status = STATUS_OK;
    grader_watch(c->name, PATIENCE);
    double start = device_now(); /* both wait for the whole device: no stream escapes */
    for (size_t i = 0; i < race->work.steps && status == STATUS_OK; i++) {
        status = c->functions.step(c->decoder, race->work.prompt + 1 + i, &error);
    }
    return verdict(status, &error, start) / (double)race->work.steps;
}

static double time_prompt(void *argument, bool subject) {
    struct race *race = argument;
    const struct decoder_case *c = &race->cases[subject];
    struct error error = {0};
    grader_watch(c->name, PATIENCE);
    double start = device_now();
    enum status status = c->functions.prefill(c->decoder, c->text, race->work.prompt, 0, &error);
    return verdict(status, &error, start);
}

static void check_possible(double ms, double least) {
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU's memory allows, %.4g ms: the work was not done",
                  ms, least);
    }
}

static void measure(const char *name, speedup_function *time_ms) {
    struct grader_gpu gpu;
    struct race race = {0};
    struct error error = {0};
    char text[500] = "";
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    enum status status = race_create(&race, &gpu, &error);
    status = status == STATUS_OK ? prepare(&race, text, sizeof text, &error) : status;
    fail(status, &error, text);
    if (!test_has_failed()) {
        struct speedup speedup = grader_gpu_speedup(&gpu, lab, name, GRADER_SUBJECT, GRADER_MARGIN);
        speedup_measure(&speedup, CALLS, time_ms, &race);
        check_possible(speedup.subject_ms, race.least_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    race_free(&race);
}

C_TEST(speedup, decode) {
    measure("decode", time_steps);
}

C_TEST(speedup, prefill) {
    measure("prefill", time_prompt);
}

/* ---- The engine ---- */

enum { MOST_PROMPT = 512, MOST_NEW = 96, COMPARED = 6 };

/* Two engines with the same model: the starter's decoder, and the subject's. */
struct writers {
    size_t prompt, count; /* tokens of each */
    int32_t text[MOST_PROMPT], written[2][MOST_NEW];
    struct engine engines[2];
    struct llama2 *models[2];
};

static enum status writers_create(struct writers *w, const struct work *work,
                                  const struct decoder_net *net, struct error *error) {
    const struct decoder_functions functions[2] = {decoder_baseline(), own_functions()};
    struct rng rng = rng_create(grader_seed());
    w->prompt = work->prompt / 8;
    w->count = work->size.T / 8;
    for (size_t i = 0; i < w->prompt; i++) {
        w->text[i] = (int32_t)rng_below(&rng, work->size.V);
    }
    for (int who = 0; who < 2; who++) {
        TRY(engine_decoder_create_with(&w->engines[who], &functions[who], error));
        TRY(llama2_create_stored(&w->models[who], &net->random.config, &net->stored,
                                 work->size.dtype, &w->engines[who], w->prompt, error));
    }
    return STATUS_OK;
}

static void writers_free(struct writers *w) {
    for (int who = 0; who < 2; who++) {
        llama2_free(w->models[who]);
        engine_destroy(&w->engines[who]);
    }
}

static double time_text(void *argument, bool subject) {
    struct writers *w = argument;
    struct llama2 *model = w->models[subject];
    const struct llama2_sampling how = {0.9f, 0.9f, 0, 42};
    struct error error = {0};
    grader_watch("a text", PATIENCE);
    double start = device_now();
    enum status status = llama2_forward(model, w->text, w->prompt, 0, NULL);
    status = status == STATUS_OK ? llama2_begin(model, &how) : status;
    for (size_t i = 0; i < w->count && status == STATUS_OK; i++) {
        status = llama2_next(model, w->prompt + i, &w->written[subject][i]);
    }
    return verdict(status, &error, start);
}

/* Later tokens may part where two are as likely as each other but for rounding. */
static void check_written(const struct writers *w) {
    for (int i = 0; i < COMPARED; i++) {
        if (w->written[0][i] != w->written[1][i]) {
            TEST_FAIL("token %d of the text: your engine wrote %d, the starter's %d", i,
                      (int)w->written[1][i], (int)w->written[0][i]);
            return;
        }
    }
}

C_TEST(speedup, end_to_end) {
    struct grader_gpu gpu;
    struct writers writers = {0};
    struct decoder_net net = {0};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct work work = work_of(gpu.modelled);
    enum status status = decoder_net_create(&net, &work.size, grader_seed(), true, &error);
    status = status == STATUS_OK ? writers_create(&writers, &work, &net, &error) : status;
    fail(status, &error, "");
    if (!test_has_failed()) {
        struct speedup speedup =
            grader_gpu_speedup(&gpu, lab, "end_to_end", GRADER_SUBJECT, GRADER_MARGIN);
        speedup_measure(&speedup, CALLS, time_text, &writers);
        check_written(&writers);
        printf("%s text: %.0f tokens/s, the starter's way %.0f (%s)\n", lab,
               1e3 * (double)writers.count / speedup.subject_ms,
               1e3 * (double)writers.count / speedup.baseline_ms, gpu.clock);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    writers_free(&writers);
    decoder_net_free(&net);
}
