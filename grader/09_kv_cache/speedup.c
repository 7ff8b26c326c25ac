/*
 * Lab 09, speedup: one matrix-vector product; attention of one layer for a late token; and a small
 * Llama2 that decodes from position 0 on. Each against the starter in one run. On a GPU times are
 * measured and the fastest of several calls counts, on both sides; on simt they are modelled, and
 * one call is enough.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/models/llama2.h"
#include "common/models/llama2_device.h"
#include "common/models/llama2_random.h"
#include "common/models/rounded_llama2.h"
#include "common/testing/testing.h"
#include "grader/09_kv_cache/calls.h"
#include "grader/09_kv_cache/remote.h"
#include "grader/harness/gpu.h"
#include "grader/harness/logits.h"
#include "grader/harness/secret_weights.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/decoding.h"
#include "grader/isolation/link.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/09_kv_cache/problem/linear.h"
#include "labs/09_kv_cache/problem/text.h"

static const char lab[] = "09_kv_cache";

enum { PATIENCE = 60 /* seconds */, CALLS = 7 };

/* Least work of a call. */
struct least_work {
    double bytes, flops;
};

/* Bytes beyond L2's size come from memory, at its bandwidth; FLOPs take their time, too. */
static void check_possible(const struct grader_gpu *gpu, struct least_work work, double ms) {
    const struct device_properties *p = &gpu->properties;
    double outside = work.bytes - (double)p->l2_bytes;
    double least = 1e3 * fmax(outside / p->memory_bandwidth, work.flops / p->peak_flops);
    if (ms < 0.9 * least) {
        TEST_FAIL("%.4g ms is less than the work takes on this GPU, %.4g ms: it was not done", ms,
                  least);
    }
}

/* ---- One product ---- */

/* The same case in both workers. The baseline's turn, which comes first, draws for both. */
struct timed_linear {
    struct kv_linear_case sides[REMOTE_SIDES]; /* host memory is the subject's */
    struct rng rng;
};

/* One call by the worker in use. */
static enum status run_linear(const struct kv_linear_case *c, double *ms, struct error *error) {
    struct kv_linear_call call = {c->call, NULL};
    return remote_call_timed("kv_linear", &call, sizeof call, NULL, ms, error);
}

static struct least_work least_of_linear(const struct kv_linear_spec *s) {
    double products = (double)s->N * (double)s->K;
    return (struct least_work){products * (double)nn_dtype_bytes(s->dtype), 2.0 * products};
}

/* One call on the inputs drawn last; the subject's result is checked. */
static enum status send_and_run(struct kv_linear_case *c, bool subject, double *ms, char *text,
                                size_t size, struct error *error) {
    TRY(kv_linear_case_send(c, error));
    grader_watch(c->name, PATIENCE);
    enum status status = run_linear(c, ms, error);
    grader_watch("", 0);
    TRY(status);
    if (!subject) {
        return STATUS_OK;
    }
    remote_check_counted(least_of_linear(&c->spec).flops, REMOTE_16_BIT_PRODUCTS);
    remote_check_counted_bytes(least_of_linear(&c->spec).bytes);
    remote_check_sent(0.0, sizeof(float) * (double)c->spec.N);
    remote_check_fetched(least_of_linear(&c->spec).bytes);
    return kv_linear_case_check(c, text, size, error);
}

/* Milliseconds of one call. */
static double time_linear(void *argument, bool subject) {
    struct timed_linear *t = argument;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct kv_linear_case *c = &t->sides[which];
    struct error error = {0};
    char text[400] = "";
    double ms = INFINITY;
    remote_use(which);
    if (!subject) { /* where the baseline's time is recorded, the subject's one call has the first
                     */
        kv_linear_case_draw(&t->sides[REMOTE_SUBJECT], &t->rng);
    }
    enum status status = send_and_run(c, subject, &ms, text, sizeof text, &error);
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s: %s", c->name, status != STATUS_OK ? error_text(&error, status) : text);
    }
    return ms;
}

/* One call on each side does not count: it fills L2 with weights. */
static enum status warm_up_linear(struct kv_linear_case *c, struct error *error) {
    grader_watch(c->name, PATIENCE);
    enum status status = kv_linear_case_run(c, remote_kv_linear, NULL, error);
    grader_watch("", 0);
    return status;
}

static enum status linear_create(struct timed_linear *t, const struct kv_linear_spec *spec,
                                 struct error *error) {
    struct kv_linear_case *subject = &t->sides[REMOTE_SUBJECT];
    t->rng = grader_rng();
    TRY(kv_linear_case_create(subject, spec, &t->rng, false, error));
    TRY(warm_up_linear(subject, error));
    kv_linear_case_draw(subject, &t->rng); /* which the warm-up has not seen */
    t->sides[REMOTE_BASELINE] = *subject;
    TRY(remote_open_side(REMOTE_BASELINE, error));
    TRY(kv_linear_case_place(&t->sides[REMOTE_BASELINE], error));
    return warm_up_linear(&t->sides[REMOTE_BASELINE], error);
}

static void linear_free(struct timed_linear *t) {
    remote_use(REMOTE_BASELINE);
    kv_linear_case_unplace(&t->sides[REMOTE_BASELINE]);
    remote_use(REMOTE_SUBJECT);
    kv_linear_case_free(&t->sides[REMOTE_SUBJECT]);
}

/*
 * The down projection of the 70B shape: 470 MB of weights are more than L2 holds, and take so long
 * that launch and wait, which are timed, too, are the smaller part.
 */
C_TEST(speedup, linear) {
    struct grader_gpu gpu;
    struct timed_linear t = {0};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct kv_linear_spec spec = {.N = gpu.modelled ? 512 : 8192,
                                        .K = gpu.modelled ? 8192 : 28672,
                                        .dtype = NN_BF16,
                                        .residual = KV_RESIDUAL};
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "linear");
    enum status status = linear_create(&t, &spec, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else {
        const struct least_work least = least_of_linear(&spec);
        const struct work work = {
            .fp32_flops = least.flops, .read_bytes = least.bytes, .warm = true};
        speedup.least = grader_gpu_least_time(&work);
        speedup_measure(&speedup, CALLS, time_linear, &t);
    }
    if (!test_has_failed()) {
        check_possible(&gpu, least_of_linear(&spec), speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    linear_free(&t);
}

/* ---- Attention of a late token ---- */

struct timed_text {
    struct kv_text text;
    void *workspace;
};

static enum status run_text(const struct timed_text *t, size_t position, double *ms,
                            struct error *error) {
    struct kv_attention_call call = {t->text.call, t->workspace, NULL, NULL};
    call.attention.longest = position + 1;
    return remote_call_timed("kv_attention", &call, sizeof call, NULL, ms, error);
}

/* Reads the keys and values of the tokens before; computes q, k and v of this one. */
static struct least_work least_of_token(const struct kv_text_spec *s) {
    double weights = (double)((s->NH + 2 * s->KVH) * s->HS) * (double)s->C;
    double pairs = (double)s->T * (double)(s->NH * s->HS);
    double kept = 2.0 * (double)s->T * (double)(s->KVH * s->HS);
    return (struct least_work){(double)nn_dtype_bytes(s->dtype) * (weights + kept),
                               2.0 * weights + 4.0 * pairs};
}

/*
 * Feeds a text from position 0 on, the same one on both sides. *ms: the fastest of the tokens
 * from `late` on, whose results are checked.
 */
static enum status feed(struct timed_text *t, size_t late, double *ms, struct error *error) {
    char text[400] = "";
    for (size_t position = 0; position < t->text.spec.T && text[0] == '\0'; position++) {
        double one;
        TRY(kv_text_prepare(&t->text, position, error));
        TRY(run_text(t, position, &one, error));
        if (position >= late) {
            *ms = fmin(*ms, one);
            remote_check_counted(least_of_token(&t->text.spec).flops, REMOTE_16_BIT_PRODUCTS);
            remote_check_counted_bytes(least_of_token(&t->text.spec).bytes);
            remote_check_sent(0.0, sizeof(float) * (double)(t->text.spec.NH * t->text.spec.HS));
            remote_check_fetched(least_of_token(&t->text.spec).bytes);
            TRY(kv_text_check(&t->text, position, text, sizeof text, error));
        }
        if (text[0] != '\0') {
            TEST_FAIL("%s, position %zu: %s", t->text.name, position, text);
        }
    }
    return STATUS_OK;
}

static enum status create_and_feed(struct timed_text *t, const struct kv_text_spec *spec,
                                   uint64_t seed, enum remote_side which, size_t late, double *ms,
                                   struct error *error) {
    TRY(remote_open_side(which, error));
    TRY(kv_text_create(&t->text, spec, seed, false, error));
    TRY(device_alloc(&t->workspace, KV_WORKSPACE_BYTES, error));
    grader_watch(t->text.name, 2 * PATIENCE);
    enum status status = feed(t, late, ms, error);
    grader_watch("", 0);
    return status;
}

static double time_text(const struct kv_text_spec *spec, uint64_t seed, enum remote_side which,
                        size_t late) {
    struct timed_text t = {0};
    struct error error = {0};
    double ms = INFINITY;
    enum status status = create_and_feed(&t, spec, seed, which, late, &ms, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", t.text.name, error_text(&error, status));
    }
    device_free(t.workspace);
    kv_text_free(&t.text);
    return ms;
}

C_TEST(speedup, token) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct kv_text_spec spec = {.C = gpu.modelled ? 256 : 768,
                                      .NH = gpu.modelled ? 4 : 12,
                                      .KVH = gpu.modelled ? 4 : 12,
                                      .HS = 64,
                                      .T = gpu.modelled ? 32 : 512,
                                      .dtype = NN_BF16,
                                      .inputs = true};
    size_t late = gpu.modelled ? spec.T - 1 : spec.T - 8;
    uint64_t seed = grader_seed();
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "token");
    speedup.subject_ms = time_text(&spec, seed, REMOTE_SUBJECT, late);
    if (!test_has_failed()) {
        speedup.baseline_ms = time_text(&spec, seed, REMOTE_BASELINE, late);
    }
    if (!test_has_failed()) {
        const struct least_work least = least_of_token(&spec);
        const struct work work = {
            .fp32_flops = least.flops, .read_bytes = least.bytes, .warm = true, .launches = 2};
        speedup.least = grader_gpu_least_time(&work);
        check_possible(&gpu, least, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
}

/* ---- Decoding ---- */

enum { MOST_TOKENS = 256, V = 1024, MOST_TEXTS = 4 };

/* The 110M shape with fewer layers and tokens; on simt one narrow layer. */
static struct llama2_config config_of(bool modelled) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_110M);
    config.L = modelled ? 1 : 4;
    config.V = modelled ? 256 : V;
    config.T = modelled ? 16 : MOST_TOKENS;
    if (modelled) {
        config.C = 256;
        config.hidden = 512;
        config.NH = config.KVH = 4;
        config.HS = 64;
    }
    return config;
}

/*
 * Texts of T tokens that both sides decode with the same weights, and the logits of each token: who
 * is asked for the last ones alone may leave out most of the work for the tokens before.
 */
struct decoded {
    struct llama2_config config;
    uint64_t seed; /* of the weights */
    size_t texts;  /* if several, the first one does not count: it raises the GPU's clock */
    int32_t tokens[MOST_TEXTS][MOST_TOKENS];
    float *logits[REMOTE_SIDES]; /* (texts, T, V) */
};

static void decoded_free(struct decoded *d) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        free(d->logits[i]);
    }
    free(d);
}

static struct decoded *decoded_create(bool modelled) {
    struct rng rng = grader_rng();
    struct decoded *d = calloc(1, sizeof *d);
    bool made = d != NULL;
    if (made) {
        d->config = config_of(modelled);
        d->seed = grader_secret(&rng);
        d->texts = modelled ? 1 : 1 + (size_t)speedup_calls(MOST_TEXTS - 1);
    }
    for (int i = 0; i < REMOTE_SIDES && made; i++) {
        d->logits[i] = calloc(d->texts * d->config.T * d->config.V, sizeof *d->logits[i]);
        made = d->logits[i] != NULL;
    }
    if (!made) {
        TEST_FAIL("the grader is out of memory");
        return d;
    }
    for (size_t i = 0; i < d->texts; i++) {
        struct rng text = grader_text_rng(&rng);
        for (size_t t = 0; t < d->config.T; t++) {
            d->tokens[i][t] = (int32_t)rng_below(&text, d->config.V);
        }
    }
    return d;
}

/* Every matrix once a token, except the embedding as a table. */
static struct least_work least_of_text(const struct llama2_config *c) {
    double heads = (double)((2 * c->NH + 2 * c->KVH) * c->HS);
    double layer = (double)c->C * (heads + 3.0 * (double)c->hidden);
    double weights = (double)c->L * layer + (double)c->V * (double)c->C, tokens = (double)c->T;
    /* L2 may keep weights from token to token, so their bytes count once. */
    return (struct least_work){4.0 * weights, 2.0 * weights * tokens};
}

/*
 * A token waits for its logits. A layer is six launches: two of attention, its output product, gate
 * and up, SwiGLU and down; the embedding and the classifier beside them.
 */
static struct work work_of_text(const struct llama2_config *c) {
    struct least_work least = least_of_text(c);
    return (struct work){.fp32_flops = least.flops / (double)c->T,
                         .read_bytes = least.bytes,
                         .bus_bytes = sizeof(float) * (double)c->V,
                         .warm = true,
                         .launches = (int)(6 * c->L + 2),
                         .times = (int)c->T,
                         .waits = true};
}

/* Has the worker make the model on weights that lie in its device's memory alone: its own are of
   another seed. */
static enum status create_on_given(struct decoding_create_call *call,
                                   const struct rounded_llama2 *model, struct error *error) {
    const struct llama2_decoder_model stored = {
        .config = &model->random.config, .weights = &model->stored, .dtype = call->dtype};
    struct llama2_device device;
    TRY(llama2_device_load(&device, &stored, NULL, error));
    struct kv_given_call given = {device.embedding};
    call->seed = SECRET_WEIGHTS_OTHERS;
    enum status status = remote_call("kv_given", &given, sizeof given, error);
    status =
        status == STATUS_OK ? remote_call("decoding_create", call, sizeof *call, error) : status;
    llama2_device_free(&device);
    return status;
}

/* The subject, where its device is simt. */
static enum status create_secret(struct decoding_create_call *call, struct error *error) {
    struct rounded_llama2 model = {0};
    enum status status =
        rounded_llama2_create(&model, &call->config, call->dtype, false, call->seed);
    status = status == STATUS_OK ? create_on_given(call, &model, error) : status;
    rounded_llama2_free(&model);
    return status;
}

/* All texts by the worker in use. *best: the fastest that counts. */
static enum status decode(struct decoded *d, enum remote_side which, double *best,
                          struct error *error) {
    struct decoding_create_call made = {
        .config = d->config, .dtype = NN_F32, .seed = d->seed, .batch = 1};
    struct decoding_text_call call = {.count = d->config.T, .each = d->config.V};
    const size_t numbers = d->config.T * d->config.V, bytes = numbers * sizeof(float);
    void *logits;
    TRY(which == REMOTE_SUBJECT && remote_has_device()
            ? create_secret(&made, error)
            : remote_call("decoding_create", &made, sizeof made, error));
    TRY(remote_alloc(&logits, bytes, error));
    call.model = made.model;
    call.logits = logits;
    for (size_t i = 0; i < d->texts; i++) {
        void *tokens;
        double ms;
        TRY(remote_copy(&tokens, d->tokens[i], call.count * sizeof(int32_t), error));
        call.tokens = tokens;
        memset(logits, 0xff, bytes);
        TRY(remote_call_timed("decoding_text", &call, sizeof call, NULL, &ms, error));
        remote_check_counted(least_of_text(&d->config).flops, REMOTE_FP32_PRODUCTS);
        remote_check_counted_bytes(least_of_text(&d->config).bytes);
        remote_check_fetched(least_of_text(&d->config).bytes);
        memcpy(d->logits[which] + i * numbers, logits, bytes);
        *best = d->texts > 1 && i == 0 ? *best : fmin(*best, ms);
    }
    return remote_call("decoding_free", &call, sizeof call, error);
}

static enum status open_and_decode(struct decoded *d, enum remote_side which, double *best,
                                   struct error *error) {
    TRY(remote_open_side(which, error));
    return decode(d, which, best, error);
}

/* Milliseconds of a text on an engine with this side's operators. */
static double time_model(struct decoded *d, enum remote_side which) {
    struct error error = {0};
    double best = INFINITY;
    grader_watch("Llama2, token by token", 2 * PATIENCE);
    enum status status = open_and_decode(d, which, &best, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("Llama2: %s", error_text(&error, status));
    }
    return best;
}

static void check_decoded(const struct decoded *d) {
    const size_t T = d->config.T, count = d->config.V;
    char what[80];
    for (size_t i = 0; i < d->texts * T && !test_has_failed(); i++) {
        snprintf(what, sizeof what, "Llama2 with your operators, token %zu of a text,", i % T);
        grader_check_timed_logits(d->logits[REMOTE_SUBJECT] + i * count,
                                  d->logits[REMOTE_BASELINE] + i * count, count, what);
    }
}

static void compare_decoding(struct decoded *d, const struct grader_gpu *gpu) {
    struct speedup speedup = grader_gpu_speedup(gpu, lab, "end_to_end");
    speedup.baseline_ms = time_model(d, REMOTE_BASELINE);
    speedup.subject_ms = time_model(d, REMOTE_SUBJECT);
    if (!test_has_failed()) {
        check_decoded(d);
    }
    if (!test_has_failed()) {
        double tokens = 1e3 * (double)d->config.T;
        printf("%s Llama2: %.0f tokens/s, the starter %.0f (%s)\n", lab,
               tokens / speedup.subject_ms, tokens / speedup.baseline_ms, gpu->clock);
        const struct work work = work_of_text(&d->config);
        speedup.least = grader_gpu_least_time(&work);
        check_possible(gpu, least_of_text(&d->config), speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
}

C_TEST(speedup, end_to_end) {
    struct grader_gpu gpu;
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    struct decoded *d = decoded_create(gpu.modelled);
    if (d != NULL && !test_has_failed()) {
        compare_decoding(d, &gpu);
    }
    if (d != NULL) {
        decoded_free(d);
    }
}
