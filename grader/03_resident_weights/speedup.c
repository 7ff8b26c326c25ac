/*
 * Lab 03, speedup: Llama2's decode against the solved lab 02's engine, in one run; and the bytes
 * that one token copies. On a GPU the fastest token counts, on simt the modelled time of the
 * device's work.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/models/llama2.h"
#include "common/models/llama2_random.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/03_resident_weights/calls.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"

static const char lab[] = "03_resident_weights";

/* On simt every token takes the same modelled time, apart from the few keys that it adds. */
enum { TOKENS = 24, TOKENS_MODELLED = 3, PATIENCE = 120 /* seconds */ };

/* One side's decoder and its results; logits of tokens that were not decoded are zeros. */
struct decoding {
    struct remote_llama2 llama2;
    double ms;                 /* of the fastest token */
    struct device_traffic one; /* counts of the last token */
    float *logits;             /* (TOKENS, V) */
};

/*
 * On simt: whether the logits that the subject returned are those that its kernels left on the GPU.
 * Who computes them on the CPU, which takes no modelled time, has none there, and must send them or
 * compute them when they are asked for.
 */
struct shown {
    float *buffer;   /* device, (V): where the worker has them copied */
    float *logits;   /* (V) */
    bool differ;     /* in one token */
    double sent;     /* most bytes that were sent for it */
    double computed; /* most operations that kernels did for it */
};

/* The same model on both sides. */
struct comparison_run {
    struct grader_gpu gpu;
    struct shown shown;
    struct llama2_config config;
    int32_t tokens[TOKENS];
    struct decoding sides[REMOTE_SIDES];
};

/* Of all matrices. */
static double weight_bytes(const struct llama2_config *c) {
    double layer = 2.0 * (double)c->C * (double)(c->NH + c->KVH) * (double)c->HS +
                   3.0 * (double)c->C * (double)c->hidden;
    return sizeof(float) * ((double)c->L * layer + (double)c->V * (double)c->C);
}

/* FLOPs of its products. */
static double flops_of_token(const struct llama2_config *c) {
    return 2.0 * weight_bytes(c) / sizeof(float);
}

/* Has the subject's last logits copied by a kernel of the grader's, which it must find them for. */
static enum status show(struct shown *s, const float *logits, size_t V, struct error *error) {
    struct show_args call = {s->buffer, V * sizeof *logits};
    TRY(remote_call("show", &call, sizeof call, error));
    const struct remote_counts counts = remote_counted();
    TRY(device_read(s->logits, s->buffer, V * sizeof *logits, NULL, error));
    s->differ = s->differ || memcmp(s->logits, logits, V * sizeof *logits) != 0;
    s->sent = fmax(s->sent, counts.sent);
    s->computed = fmax(s->computed, counts.flops);
    return STATUS_OK;
}

/* One token by the worker in use, timed and counted. */
static enum status decode_token(struct comparison_run *r, enum remote_side which, size_t i,
                                struct error *error) {
    struct decoding *d = &r->sides[which];
    int32_t token = r->tokens[i];
    float *logits = d->logits + i * d->llama2.V;
    double ms;
    struct device_traffic before = device_traffic();
    TRY(remote_llama2_forward(&d->llama2, &token, 1, i, logits, &ms, error));
    remote_check_counted(flops_of_token(&r->config), REMOTE_FP32_PRODUCTS);
    remote_check_counted_bytes(weight_bytes(&r->config));
    struct device_traffic after = device_traffic();
    d->one = (struct device_traffic){
        .bytes_to_device = after.bytes_to_device - before.bytes_to_device,
        .bytes_to_host = after.bytes_to_host - before.bytes_to_host,
        .allocations = after.allocations - before.allocations,
    };
    if (which == REMOTE_SUBJECT && r->gpu.modelled) {
        TRY(show(&r->shown, logits, d->llama2.V, error));
    }
    /* The first token is the warm-up. */
    d->ms = i == 1 || ms < d->ms ? ms : d->ms;
    return STATUS_OK;
}

static enum status decode_tokens(struct comparison_run *r, enum remote_side which, int tokens,
                                 struct error *error) {
    for (int i = 0; i < tokens; i++) {
        TRY(decode_token(r, which, (size_t)i, error));
    }
    return STATUS_OK;
}

static void decode(struct comparison_run *r, enum remote_side which, int tokens) {
    struct error error = {0};
    remote_use(which);
    grader_watch("Llama2 decode, 15M shape", PATIENCE);
    enum status status = decode_tokens(r, which, tokens, &error);
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("Llama2 decode: %s", error_text(&error, status));
    }
}

static void run_free(struct comparison_run *r) {
    free(r->shown.logits);
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        remote_llama2_free(&r->sides[i].llama2);
        free(r->sides[i].logits);
    }
}

static enum status run_create(struct comparison_run *r, struct error *error) {
    struct rng rng = grader_rng();
    uint64_t seed = grader_secret(&rng);
    struct rng text = grader_text_rng(&rng);
    r->config = llama2_shape_config(LLAMA2_SHAPE_15M);
    for (int i = 0; i < TOKENS; i++) {
        r->tokens[i] = (int32_t)rng_below(&text, r->config.V);
    }
    TRY(device_alloc((void **)&r->shown.buffer, r->config.V * sizeof(float), error));
    r->shown.logits = malloc(r->config.V * sizeof(float));
    if (r->shown.logits == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    for (int i = 0; i < REMOTE_SIDES; i++) {
        struct decoding *d = &r->sides[i];
        d->logits = calloc(TOKENS * r->config.V, sizeof(float));
        if (d->logits == NULL) {
            return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
        }
        TRY(remote_open_side((enum remote_side)i, error));
        TRY(remote_llama2_create(&d->llama2, &r->config, seed, 1, NULL, error));
    }
    return STATUS_OK;
}

/*
 * One token: all weights are read, logits go to the host, and each operator of the engine is a
 * launch: two norms, seven products, two rotary embeddings, attention, two residuals and SwiGLU in
 * a layer; the embedding, the last norm and the classifier beside them.
 */
static struct work work_of_token(const struct llama2_config *c) {
    return (struct work){.read_bytes = weight_bytes(c),
                         .bus_bytes = sizeof(float) * (double)c->V,
                         .warm = true,
                         .launches = (int)(15 * c->L + 3)};
}

/* Weights that the cache cannot hold come from memory for each token. */
static void check_possible(const struct comparison_run *r) {
    const struct device_properties *p = &r->gpu.properties;
    double least = 1e3 * (weight_bytes(&r->config) - (double)p->l2_bytes) / p->memory_bandwidth;
    double ms = r->sides[REMOTE_SUBJECT].ms;
    if (p->memory_bandwidth > 0.0 && ms < 0.9 * least) {
        TEST_FAIL("%.4g ms a token is less than this GPU's memory allows, %.4g ms: the work was "
                  "not done",
                  ms, least);
    }
}

static void check_speed(const struct comparison_run *r) {
    struct speedup speedup = grader_gpu_speedup(&r->gpu, lab, "end_to_end");
    speedup.baseline_ms = r->sides[REMOTE_BASELINE].ms;
    speedup.subject_ms = r->sides[REMOTE_SUBJECT].ms;
    const struct work work = work_of_token(&r->config);
    speedup.least = grader_gpu_least_time(&work);
    speedup_check(&speedup, __FILE__, __LINE__);
}

/* Counted bytes: up to 64 may be copied in, enough for token ids; the logits are copied out. */
static void check_traffic(const struct comparison_run *r) {
    const struct device_traffic *one = &r->sides[REMOTE_SUBJECT].one;
    const unsigned long long most_in = 64, most_out = r->config.V * sizeof(float);
    unsigned long long in = one->bytes_to_device, out = one->bytes_to_host;
    unsigned long long allocations = one->allocations;
    printf("one token: %llu bytes to the GPU, %llu from it, %llu allocation%s\n", in, out,
           allocations, plural(allocations));
    if (out < most_out) {
        TEST_FAIL("logits of %llu bytes did not come through device_read(): it cannot be told what "
                  "a token copies",
                  most_out);
    }
    if (in > most_in || out > most_out) {
        TEST_FAIL("%s copies too much: for one token %llu bytes to the GPU and %llu from it, "
                  "allowed %llu and %llu",
                  lab, in, out, most_in, most_out);
    }
    if (allocations > 0) {
        TEST_FAIL("%s allocates: %llu allocation%s for one token, allowed 0", lab, allocations,
                  plural(allocations));
    }
}

static void check_shown(const struct comparison_run *r) {
    const struct shown *s = &r->shown;
    double bytes = sizeof(float) * (double)r->config.V;
    if (s->differ) {
        TEST_FAIL("the logits that your memory returned are not those that the kernels left on the "
                  "GPU: they must come from there");
    }
    if (s->sent > 0.125 * bytes || s->computed > 0.0) {
        TEST_FAIL("logits are %.3g bytes, and a kernel that came after them to read them had your "
                  "code send %.3g bytes to the GPU and compute %.3g operations: they must be there "
                  "when a token is done",
                  bytes, s->sent, s->computed);
    }
}

C_TEST(speedup, end_to_end) {
    struct comparison_run r = {0};
    struct error error = {0};
    if (!grader_gpu_probe() || !grader_gpu_open(&r.gpu)) {
        return;
    }
    enum status status = run_create(&r, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else {
        int tokens = r.gpu.modelled ? TOKENS_MODELLED : TOKENS;
        decode(&r, REMOTE_BASELINE, tokens);
        decode(&r, REMOTE_SUBJECT, tokens);
    }
    if (!test_has_failed()) {
        grader_check_logits(r.sides[REMOTE_SUBJECT].logits, r.sides[REMOTE_BASELINE].logits,
                            TOKENS * r.config.V, "your memory");
        check_possible(&r);
        check_speed(&r);
        check_traffic(&r);
    }
    if (!test_has_failed()) {
        check_shown(&r);
    }
    run_free(&r);
}
