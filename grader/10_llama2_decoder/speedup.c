/*
 * Lab 10, speedup: launches of a step; steps and a prompt, by the subject's decoder and by the
 * starter's; and both decoders through the engine, from a prompt to drawn tokens. On a GPU times
 * are measured and the fastest of several calls counts, on both sides; on simt they are modelled,
 * and one call is enough.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/10_llama2_decoder/calls.h"
#include "grader/10_llama2_decoder/remote.h"
#include "grader/harness/gpu.h"
#include "grader/harness/logits.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/decoding.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/10_llama2_decoder/problem/case.h"
#include "labs/10_llama2_decoder/problem/draw.h"

static const char lab[] = "10_llama2_decoder";

enum { PATIENCE = 150 /* seconds */, CALLS = 7, MOST_STEPS = 64 };

/*
 * Launches, copies and fills of a step; those of a graph count each. A layer has two of attention,
 * and one each of the output product, gate and up, SwiGLU and down. OTHERS are sampling, the
 * embedding and the classifier, and two to spare.
 */
enum { MOST_A_LAYER = 6, OTHERS = 6 };

static const struct sampling greedy = {1, 0.0f, 0.0f, 0};

/* What is measured: a model, a prompt, and steps after it. */
struct task {
    struct decoder_size size;
    size_t prompt, steps;
    struct sampling how; /* of the steps */
};

/*
 * On a GPU 160 MB of weights, more than its L2 holds; on simt a model that it runs in seconds, and
 * that the smallest L2 of its GPUs holds: launches are what counts there.
 */
static struct task task_of(bool modelled) {
    static const struct task on_gpu = {{.NH = 8,
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
                             on_simt = {{.NH = 3,
                                         .KVH = 1,
                                         .HS = 64,
                                         .hidden = 256,
                                         .L = 2,
                                         .V = 1000,
                                         .T = 64,
                                         .dtype = NN_F32},
                                        40,
                                        2,
                                        {1, 0.0f, 0.0f, 0}};
    return modelled ? on_simt : on_gpu;
}

static void fail(enum status status, const struct error *error, const char *text) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(error, status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s", text);
    }
}

/* ---- Launches ---- */

/* A decoder's step function takes no context. */
static struct {
    device_stream stream;
    size_t launches;
} counted;

static enum status counted_step(struct decoder *decoder, size_t position, struct error *error) {
    struct decoder_steps_call call = {.decoder = decoder, .position = position, .count = 1};
    return remote_count_launches("decoder_steps", &call, sizeof call, counted.stream,
                                 &counted.launches, error);
}

/* Runs two steps, which may create a graph, then records one, runs its launches and checks them. */
static enum status count_launches(struct decoder_case *c, size_t *launches, char *text, size_t size,
                                  struct error *error) {
    TRY(decoder_case_feed(c, 5, 0, text, size, error));
    for (int i = 0; i < 2 && text[0] == '\0'; i++) {
        TRY(decoder_case_step(c, &greedy, NULL, text, size, error));
    }
    if (text[0] != '\0') {
        return STATUS_OK;
    }
    counted.stream = c->stream;
    c->functions.step = counted_step;
    enum status status = decoder_case_step(c, &greedy, NULL, text, size, error);
    *launches = counted.launches;
    if (status != STATUS_OK && remote_alive()) {
        snprintf(text, size,
                 "%s launches too often: while a step is recorded it waits for the GPU, launches a "
                 "graph, "
                 "or makes another call that cannot be recorded: %s",
                 lab, error_text(error, status));
        return STATUS_OK;
    }
    return status;
}

/* Creates the case and counts its launches. */
static enum status create_and_count(struct decoder_net *net, struct decoder_case *c,
                                    const struct decoder_size *size, struct rng *rng,
                                    device_stream *stream, size_t *launches, char *text,
                                    size_t text_size, struct error *error) {
    const struct decoder_functions own = remote_decoder();
    TRY(decoder_net_create(net, size, grader_seed(), false, error));
    TRY(device_stream_create(stream, error));
    TRY(decoder_case_create(c, net, &own, 8, rng, *stream, false, error));
    grader_watch(c->name, PATIENCE);
    return count_launches(c, launches, text, text_size, error);
}

static void check_launches(const struct decoder_size *size, struct rng *rng) {
    struct decoder_net net;
    struct decoder_case c = {0};
    struct error error = {0};
    device_stream stream = NULL;
    char text[700] = "";
    size_t launches = 0, most = MOST_A_LAYER * size->L + OTHERS;
    enum status status =
        create_and_count(&net, &c, size, rng, &stream, &launches, text, sizeof text, &error);
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
        struct rng rng = grader_rng();
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !test_has_failed(); i++) {
            check_launches(&sizes[i], &rng);
        }
    }
}

/* ---- Least bytes and FLOPs ---- */

static double layer_weights(const struct decoder_size *s) {
    double C = (double)(s->NH * s->HS), qkv = (double)((s->NH + 2 * s->KVH) * s->HS);
    return C * (qkv + C + 3.0 * (double)s->hidden);
}

static double token_weights(const struct decoder_size *s) {
    return (double)s->L * layer_weights(s) + (double)s->V * (double)(s->NH * s->HS);
}

static double flops_of_steps(const struct decoder_size *s, size_t steps) {
    return 2.0 * token_weights(s) * (double)steps;
}

/* The last layer needs only keys and values, except for the last token. */
static double flops_of_prompt(const struct decoder_size *s, size_t tokens) {
    return 2.0 * layer_weights(s) * (double)((s->L - 1) * tokens) + flops_of_steps(s, 1);
}

/* Of a prompt's token its number, its position and as much again; a step's also has settings. */
static const double BYTES_A_TOKEN = 16.0, BYTES_A_STEP = 128.0;

/* A call reads the weights at least once, and leaves logits of each step, or of a prompt's end. */
static void check_counted(const struct decoder_size *s, double flops, double inputs,
                          size_t results) {
    const double weights = token_weights(s) * (double)nn_dtype_bytes(s->dtype);
    remote_check_counted(flops, s->dtype == NN_F32 ? REMOTE_FP32_PRODUCTS : REMOTE_16_BIT_PRODUCTS);
    remote_check_counted_bytes(weights);
    remote_check_sent(inputs, sizeof(float) * (double)(results * s->V));
    remote_check_fetched(weights);
}

/*
 * A token reads its weights, except those that simt's L2 still holds from the token before, and
 * does two operations for each. A prompt's further tokens are not counted: tensor cores may
 * multiply them.
 */
static double least_ms(const struct decoder_size *s, const struct grader_gpu *gpu) {
    const struct device_properties *p = &gpu->properties;
    double bytes = token_weights(s) * (double)nn_dtype_bytes(s->dtype);
    double outside = gpu->modelled ? bytes - (double)p->l2_bytes : bytes;
    double read = p->memory_bandwidth > 0.0 ? outside / p->memory_bandwidth : 0.0;
    return 1e3 * fmax(read, flops_of_steps(s, 1) / p->peak_flops);
}

/* A step reads all weights. Its launches, as few as the lab asks for, may be nodes of a graph. */
static struct work work_of_steps(const struct decoder_size *s, size_t steps) {
    return (struct work){.fp32_flops = flops_of_steps(s, 1),
                         .read_bytes = token_weights(s) * (double)nn_dtype_bytes(s->dtype),
                         .warm = true,
                         .launches = (int)(MOST_A_LAYER * s->L + OTHERS),
                         .graph = true,
                         .times = (int)steps};
}

/* A prompt's tokens go through each layer at once. */
static struct work work_of_prompt(const struct decoder_size *s, size_t tokens) {
    return (struct work){.fp32_flops = flops_of_prompt(s, tokens),
                         .read_bytes = token_weights(s) * (double)nn_dtype_bytes(s->dtype),
                         .warm = true,
                         .launches = (int)(MOST_A_LAYER * s->L + OTHERS)};
}

/* Judges times of results that are right. */
static void judge(const struct speedup *speedup, double least) {
    if (test_has_failed()) {
        return;
    }
    if (speedup->subject_ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than this GPU allows, %.4g ms: the work was not done",
                  speedup->subject_ms, least);
    }
    speedup_check(speedup, __FILE__, __LINE__);
}

/* ---- Steps and prompts ---- */

/* A decoder in one worker. */
struct racer {
    struct decoder_net net;
    struct decoder_case c;
    struct rng rng;
    device_stream stream;
};

/* The starter's decoder and the subject's, the same model and text on both. */
struct race {
    struct task task;
    struct racer racers[REMOTE_SIDES];
    struct rng rng;
    float *logits;       /* (V): the first timed step draws from these */
    struct sampling how; /* of the timed steps */
};

static enum status racer_create(struct racer *r, const struct task *task, uint64_t seed,
                                struct error *error) {
    const struct decoder_functions functions = remote_decoder();
    r->rng = rng_create(seed);
    TRY(decoder_net_create(&r->net, &task->size, seed, true, error));
    TRY(device_stream_create(&r->stream, error));
    return decoder_case_create(&r->c, &r->net, &functions, task->prompt, &r->rng, r->stream, false,
                               error);
}

static enum status race_create(struct race *race, const struct grader_gpu *gpu,
                               struct error *error) {
    race->task = task_of(gpu->modelled);
    race->rng = grader_rng();
    const uint64_t seed = rng_u64(&race->rng);
    race->logits = malloc(race->task.size.V * sizeof *race->logits);
    if (race->logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    for (int i = 0; i < REMOTE_SIDES; i++) {
        TRY(remote_open_side((enum remote_side)i, error));
        TRY(racer_create(&race->racers[i], &race->task, seed, error));
    }
    return STATUS_OK;
}

static void race_free(struct race *race) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        struct racer *r = &race->racers[i];
        remote_use((enum remote_side)i);
        decoder_case_free(&r->c);
        device_stream_destroy(r->stream);
        decoder_net_free(&r->net);
    }
    free(race->logits);
}

static void compare(const struct race *race, const char *what) {
    const float *got = race->racers[REMOTE_SUBJECT].c.got;
    const float *want = race->racers[REMOTE_BASELINE].c.got;
    struct logits_difference d = logits_difference(got, want, race->task.size.V);
    if (!(d.worst <= decoder_tolerance(race->task.size.dtype) * d.largest)) {
        TEST_FAIL("%s: your logits differ by %.3g of the largest from the starter's", what,
                  d.worst / d.largest);
    }
}

/* Reads a decoder's logits. */
static enum status read_logits(struct racer *r, struct error *error) {
    bool intact, changed;
    TRY(device_synchronize(r->stream, error));
    return device_buffer_get(&r->c.logits, r->c.got, &intact, &changed, error);
}

/* Feeds the starter's decoder token i after the prompt. */
static enum status feed_baseline_one(struct race *race, const int32_t *token, size_t i,
                                     struct error *error) {
    struct racer *r = &race->racers[REMOTE_BASELINE];
    remote_use(REMOTE_BASELINE);
    TRY(r->c.functions.prefill(r->c.decoder, token, 1, race->task.prompt + i, error));
    return read_logits(r, error);
}

/*
 * Checks a prompt and a step on both sides before anything is timed. The starter's decoder is fed
 * the subject's token: if the coin falls on the edge between two tokens, either may be drawn.
 */
static enum status prepare(struct race *race, char *text, size_t size, struct error *error) {
    const size_t prompt = race->task.prompt;
    struct decoder_case *subject = &race->racers[REMOTE_SUBJECT].c;
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        TRY(decoder_case_feed(&race->racers[i].c, prompt, 0, text, size, error));
    }
    compare(race, "the prompt");
    memcpy(race->logits, race->racers[REMOTE_BASELINE].c.got, race->task.size.V * sizeof(float));
    remote_use(REMOTE_SUBJECT);
    TRY(decoder_case_step(subject, &race->task.how, race->logits, text, size, error));
    if (text[0] == '\0') {
        TRY(feed_baseline_one(race, &subject->text[prompt], 0, error));
        compare(race, "a step");
    }
    return STATUS_OK;
}

/* Uses one side's worker. The baseline's turn, which comes first, draws new inputs for both. */
static struct racer *take_turn(struct race *race, bool subject) {
    const struct task *w = &race->task;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    if (!subject) {
        rng_fill_normal(&race->rng, race->logits, w->size.V, 1.0f);
        race->how = w->how;
        race->how.state = grader_secret(&race->rng) | 1;
        struct rng text = grader_text_rng(&race->rng);
        for (size_t i = 0; i < w->prompt; i++) {
            race->racers[REMOTE_BASELINE].c.text[i] = (int32_t)rng_below(&text, w->size.V);
        }
    }
    memcpy(race->racers[REMOTE_SUBJECT].c.text, race->racers[REMOTE_BASELINE].c.text,
           w->prompt * sizeof(int32_t));
    remote_use(which);
    grader_watch(race->racers[which].c.name, PATIENCE);
    return &race->racers[which];
}

/* Ends a turn. @return its milliseconds; infinite, and the test fails, if something went wrong */
static double end_turn(enum status status, const char *text, const struct error *error, double ms) {
    grader_watch("", 0);
    fail(status, error, text);
    return status == STATUS_OK && text[0] == '\0' ? ms : INFINITY;
}

/*
 * Whether a sampler draws this token from these logits, given the tolerance of logits. Advances the
 * state for the next token.
 */
static enum status check_token(const float *logits, const struct decoder_size *model,
                               struct sampling *how, int32_t token, const char *what, char *text,
                               size_t size) {
    bool plausible;
    double largest = 0.0;
    if (token < 0 || (size_t)token >= model->V) {
        snprintf(text, size,
                 "%s: %d is no token: your decoder drew none, or one of those behind %zu", what,
                 (int)token, model->V - 1);
        return STATUS_OK;
    }
    for (size_t i = 0; i < model->V; i++) {
        largest = fmax(largest, fabs((double)logits[i]));
    }
    TRY(decoder_token_plausible(logits, model->V, how, token,
                                decoder_tolerance(model->dtype) * largest, &plausible));
    if (!plausible) {
        snprintf(text, size,
                 "%s: token %d was drawn by temperature %g, top_p %g, state %" PRIu64
                 ": from the starter's logits the sampler draws another one",
                 what, (int)token, (double)how->temperature, (double)how->top_p, how->state);
    }
    how->state = decoder_state_behind(how);
    return STATUS_OK;
}

/* ---- Steps ---- */

static enum status put_start(const struct race *race, struct racer *r, struct error *error) {
    float floats[sizeof race->how / sizeof(float)] = {0};
    memcpy(floats, &race->how, sizeof floats);
    TRY(device_buffer_put(&r->c.logits, race->logits, error));
    TRY(device_buffer_put(&r->c.token, NULL, error));
    return device_buffer_put(&r->c.sampling, floats, error);
}

static struct decoder_steps_call steps_of(const struct race *race, const struct racer *r) {
    return (struct decoder_steps_call){.decoder = r->c.decoder,
                                       .position = race->task.prompt + 1,
                                       .count = race->task.steps,
                                       .token = (const int32_t *)r->c.token.data,
                                       .stream = r->stream};
}

static enum status run_and_read_steps(const struct decoder_steps_call *call, int32_t *tokens,
                                      device_stream stream, struct error *error) {
    TRY(remote_decoder_steps(call, error));
    return device_read(tokens, call->drawn, call->count * sizeof *tokens, stream, error);
}

/* The subject's tokens when it repeats the timed steps, untimed. */
static enum status repeat_steps(struct race *race, int32_t *tokens, struct error *error) {
    struct racer *r = &race->racers[REMOTE_SUBJECT];
    struct decoder_steps_call call = steps_of(race, r);
    remote_use(REMOTE_SUBJECT);
    TRY(put_start(race, r, error));
    TRY(device_alloc((void **)&call.drawn, call.count * sizeof *call.drawn, error));
    enum status status = run_and_read_steps(&call, tokens, r->stream, error);
    device_free(call.drawn);
    return status;
}

/* Feeds them to the starter's decoder; its logits must allow each next token. */
static enum status feed_baseline(struct race *race, const int32_t *tokens, char *text, size_t size,
                                 struct error *error) {
    const struct task *w = &race->task;
    float *logits = race->racers[REMOTE_BASELINE].c.got;
    struct sampling how = race->how;
    memcpy(logits, race->logits, w->size.V * sizeof(float));
    for (size_t i = 0; i < w->steps && text[0] == '\0'; i++) {
        TRY(check_token(logits, &w->size, &how, tokens[i], "a timed step", text, size));
        if (text[0] == '\0') {
            TRY(feed_baseline_one(race, &tokens[i], 1 + i, error));
        }
    }
    return STATUS_OK;
}

/*
 * Checks the timed steps. Only their last logits are known, so the subject repeats them from the
 * same logits and keeps each token; fed with these tokens, the starter's decoder must get the
 * logits of the timed steps. Sums whose order changes may draw another token, so there are TRIES.
 */
static enum status check_steps(struct race *race, char *text, size_t size, struct error *error) {
    enum { TRIES = 3 };
    struct racer *subject = &race->racers[REMOTE_SUBJECT];
    const float *want = race->racers[REMOTE_BASELINE].c.got;
    int32_t tokens[MOST_STEPS];
    struct logits_difference d = {0.0, 0.0};
    remote_use(REMOTE_SUBJECT);
    TRY(read_logits(subject, error));
    for (int i = 0; i < TRIES && text[0] == '\0'; i++) {
        TRY(repeat_steps(race, tokens, error));
        TRY(feed_baseline(race, tokens, text, size, error));
        d = logits_difference(subject->c.got, want, race->task.size.V);
        if (d.worst <= decoder_tolerance(race->task.size.dtype) * d.largest) {
            return STATUS_OK;
        }
    }
    if (text[0] == '\0') {
        snprintf(text, size,
                 "the timed steps' logits are not those of the same steps repeated: they differ "
                 "by %.3g of the largest",
                 d.worst / d.largest);
    }
    return STATUS_OK;
}

static enum status run_steps(struct race *race, struct racer *r, bool subject, double *ms,
                             char *text, size_t size, struct error *error) {
    struct decoder_steps_call call = steps_of(race, r);
    TRY(put_start(race, r, error));
    /* The whole device is waited for: no stream escapes. */
    TRY(remote_call_timed("decoder_steps", &call, sizeof call, r->stream, ms, error));
    if (!subject) {
        return STATUS_OK;
    }
    check_counted(&race->task.size, flops_of_steps(&race->task.size, call.count),
                  BYTES_A_STEP * (double)call.count, call.count);
    return check_steps(race, text, size, error);
}

/* Of a step: the launch and the wait are once for all. */
static struct least_time least_time_of_a_step(const struct task *w) {
    const struct work work = work_of_steps(&w->size, w->steps);
    struct least_time least = grader_gpu_least_time(&work);
    least.fixed_ms /= (double)w->steps;
    least.ideal_ms /= (double)w->steps;
    return least;
}

/* Milliseconds per step after the prompt. */
static double time_steps(void *argument, bool subject) {
    struct race *race = argument;
    struct racer *r = take_turn(race, subject);
    struct error error = {0};
    char text[300] = "";
    double ms = INFINITY;
    enum status status = run_steps(race, r, subject, &ms, text, sizeof text, &error);
    return end_turn(status, text, &error, ms) / (double)race->task.steps;
}

/* ---- Prompts ---- */

static enum status run_prompt(struct race *race, struct racer *r, bool subject, double *ms,
                              struct error *error) {
    struct decoder_prefill_call call = {.decoder = r->c.decoder, .count = race->task.prompt};
    void *tokens;
    TRY(remote_copy(&tokens, r->c.text, call.count * sizeof(int32_t), error));
    call.tokens = tokens;
    TRY(device_buffer_put(&r->c.logits, NULL, error));
    TRY(remote_call_timed("decoder_prefill", &call, sizeof call, r->stream, ms, error));
    TRY(read_logits(r, error));
    if (subject) {
        check_counted(&race->task.size, flops_of_prompt(&race->task.size, call.count),
                      BYTES_A_TOKEN * (double)call.count, 1);
        compare(race, "a timed prompt");
    }
    return STATUS_OK;
}

static struct least_time least_time_of_prompt(const struct task *w) {
    const struct work work = work_of_prompt(&w->size, w->prompt);
    return grader_gpu_least_time(&work);
}

static double time_prompt(void *argument, bool subject) {
    struct race *race = argument;
    struct racer *r = take_turn(race, subject);
    struct error error = {0};
    double ms = INFINITY;
    enum status status = run_prompt(race, r, subject, &ms, &error);
    return end_turn(status, "", &error, ms);
}

/* ---- Both ---- */

static enum status create_and_prepare(struct race *race, const struct grader_gpu *gpu, char *text,
                                      size_t size, struct error *error) {
    TRY(race_create(race, gpu, error));
    grader_watch(race->racers[REMOTE_SUBJECT].c.name, PATIENCE);
    return prepare(race, text, size, error);
}

/* What a comparison times, and the least time of it. */
typedef struct least_time least_time_function(const struct task *task);

static void measure(const char *name, speedup_function *time_ms, least_time_function *least) {
    struct grader_gpu gpu;
    struct race race = {0};
    struct error error = {0};
    char text[500] = "";
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    enum status status = create_and_prepare(&race, &gpu, text, sizeof text, &error);
    grader_watch("", 0);
    fail(status, &error, text);
    if (!test_has_failed()) {
        struct speedup speedup = grader_gpu_speedup(&gpu, lab, name);
        speedup.least = least(&race.task);
        speedup_measure(&speedup, CALLS, time_ms, &race);
        judge(&speedup, least_ms(&race.task.size, &gpu));
    }
    race_free(&race);
}

C_TEST(speedup, decode) {
    measure("decode", time_steps, least_time_of_a_step);
}

C_TEST(speedup, prefill) {
    measure("prefill", time_prompt, least_time_of_prompt);
}

/* ---- The engine ---- */

enum { MOST_PROMPT = 512, MOST_NEW = 96 };

/*
 * A worker's engine with the model, and its part of the arena. The decoder's weights are made by
 * the grader and lie in the device's memory alone. The engine is made with others, of another seed:
 * who finds those in the worker's memory and computes on the CPU has the wrong ones.
 */
struct writer {
    struct decoder_net net;
    void *model;
    int32_t *prompt, *written; /* (length), (count) */
    float *logits;             /* (V) */
};

/* Two of them with the same model: the starter's decoder, and the subject's. */
struct writers {
    struct task task;
    struct rng rng;
    size_t length, count; /* of the prompt, of tokens drawn */
    int32_t prompt[MOST_PROMPT];
    struct llama2_sampling how;
    double flops; /* least FLOPs of a text */
    struct writer of[REMOTE_SIDES];
    float *logits; /* (V): the starter's engine's */
};

static enum status writer_create(struct writer *writer, struct writers *w, uint64_t seed,
                                 struct error *error) {
    const struct decoder_size *size = &w->task.size;
    struct decoding_create_call made = {.config = decoder_size_config(size),
                                        .dtype = size->dtype,
                                        .own_classifier = size->own_classifier,
                                        .seed = grader_secret(&w->rng),
                                        .batch = w->length};
    void *prompt, *written, *logits;
    TRY(remote_alloc(&prompt, w->length * sizeof(int32_t), error));
    TRY(remote_alloc(&written, w->count * sizeof(int32_t), error));
    TRY(remote_alloc(&logits, size->V * sizeof(float), error));
    writer->prompt = prompt;
    writer->written = written;
    writer->logits = logits;
    TRY(decoder_net_create(&writer->net, size, seed, true, error));
    TRY(remote_decoder_given(&writer->net.model, error));
    TRY(remote_call("decoding_create", &made, sizeof made, error));
    writer->model = made.model;
    return STATUS_OK;
}

static enum status writers_create(struct writers *w, bool modelled, struct error *error) {
    w->task = task_of(modelled);
    w->rng = grader_rng();
    w->length = w->task.prompt / 8;
    w->count = w->task.size.T / 8;
    w->flops = flops_of_prompt(&w->task.size, w->length) + flops_of_steps(&w->task.size, w->count);
    w->logits = malloc(w->task.size.V * sizeof *w->logits);
    if (w->logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    const uint64_t seed = grader_secret(&w->rng); /* of the weights */
    for (int i = 0; i < REMOTE_SIDES; i++) {
        TRY(remote_open_side((enum remote_side)i, error));
        TRY(writer_create(&w->of[i], w, seed, error));
    }
    return STATUS_OK;
}

static void writers_free(struct writers *w) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        decoder_net_free(&w->of[i].net);
    }
    free(w->logits);
}

/* Feeds the starter's engine, token by token, and reads the last one's logits. */
static enum status ask_starter(struct writers *w, const int32_t *tokens, size_t count,
                               size_t position, struct error *error) {
    const struct writer *starter = &w->of[REMOTE_BASELINE];
    struct decoding_text_call call = {
        .model = starter->model, .count = count, .position = position, .logits = starter->logits};
    void *copy;
    remote_use(REMOTE_BASELINE);
    TRY(remote_copy(&copy, tokens, count * sizeof *tokens, error));
    call.tokens = copy;
    TRY(remote_call("decoding_text", &call, sizeof call, error));
    memcpy(w->logits, starter->logits, w->task.size.V * sizeof *w->logits);
    return STATUS_OK;
}

/* The starter's logits must allow each token. */
static enum status check_written(struct writers *w, const int32_t *written, char *text, size_t size,
                                 struct error *error) {
    struct sampling how = {w->how.seed, w->how.temperature, w->how.top_p, 0};
    TRY(ask_starter(w, w->prompt, w->length, 0, error));
    for (size_t i = 0; i < w->count && text[0] == '\0'; i++) {
        char what[80];
        snprintf(what, sizeof what, "token %zu of a timed text", i);
        TRY(check_token(w->logits, &w->task.size, &how, written[i], what, text, size));
        if (text[0] == '\0' && i + 1 < w->count) {
            TRY(ask_starter(w, &written[i], 1, w->length + i, error));
        }
    }
    return STATUS_OK;
}

/* Called on the baseline's turn, which comes first: draws new inputs for both. */
static void renew_text(struct writers *w) {
    w->how = (struct llama2_sampling){0.9f, 0.9f, 0, grader_secret(&w->rng) | 1};
    struct rng text = grader_text_rng(&w->rng);
    for (size_t i = 0; i < w->length; i++) {
        w->prompt[i] = (int32_t)rng_below(&text, w->task.size.V);
    }
}

static double time_text(void *argument, bool subject) {
    struct writers *w = argument;
    const struct writer *writer = &w->of[subject ? REMOTE_SUBJECT : REMOTE_BASELINE];
    struct error error = {0};
    int32_t written[MOST_NEW];
    char text[300] = "";
    double ms = INFINITY;
    if (!subject) {
        renew_text(w);
    }
    struct decoding_write_call call = {writer->model, writer->prompt, w->length,
                                       w->how,        w->count,       writer->written};
    remote_use(subject ? REMOTE_SUBJECT : REMOTE_BASELINE);
    memcpy(writer->prompt, w->prompt, w->length * sizeof *w->prompt);
    memset(writer->written, 0xff, w->count * sizeof *written);
    grader_watch("a text", PATIENCE);
    enum status status = remote_call_timed("decoding_write", &call, sizeof call, NULL, &ms, &error);
    if (status == STATUS_OK && subject) {
        memcpy(written, writer->written, w->count * sizeof *written);
        check_counted(&w->task.size, w->flops,
                      BYTES_A_TOKEN * (double)w->length + BYTES_A_STEP * (double)w->count, 1);
        status = check_written(w, written, text, sizeof text, &error);
    }
    return end_turn(status, text, &error, ms);
}

C_TEST(speedup, end_to_end) {
    struct grader_gpu gpu;
    struct writers writers = {0};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    fail(writers_create(&writers, gpu.modelled, &error), &error, "");
    if (!test_has_failed()) {
        double count = (double)writers.count;
        struct speedup speedup = grader_gpu_speedup(&gpu, lab, "end_to_end");
        const struct work prompt = work_of_prompt(&writers.task.size, writers.length);
        const struct work steps = work_of_steps(&writers.task.size, writers.count);
        speedup.least =
            least_time_sum(grader_gpu_least_time(&prompt), grader_gpu_least_time(&steps));
        speedup_measure(&speedup, CALLS, time_text, &writers);
        if (!test_has_failed() && isfinite(speedup.subject_ms)) {
            printf("%s text: %.0f tokens/s, the starter %.0f (%s)\n", lab,
                   1e3 * count / speedup.subject_ms, 1e3 * count / speedup.baseline_ms, gpu.clock);
        }
        judge(&speedup, count * least_ms(&writers.task.size, &gpu));
    }
    writers_free(&writers);
}
