/*
 * Lab 03, speedup: Llama2's decode against the solved lab 02's engine, in one run; and what one
 * token copies. On a GPU the fastest token counts, on simt the modelled time of the device's work.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/model/engine.h"
#include "common/model/llama2.h"
#include "common/model/llama2_random.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/02_gpu_matmul/engine.h"
#include "labs/03_resident_weights/engine.h"

static const char lab[] = "03_resident_weights";

/* On simt every token takes the same modelled time, but for the few keys that it adds. */
enum { TOKENS = 24, TOKENS_MODELLED = 3, PATIENCE = 120 /* seconds */ };

/* What decoding gave. */
struct decoding {
    double ms;                 /* of the fastest token */
    struct device_traffic one; /* counts of the last token */
    float *logits;             /* (V), of the last token */
};

static int32_t token_at(size_t i) {
    return (int32_t)(1 + 977 * (i % 32));
}

/* One token, timed and counted. */
static enum status decode_token(struct llama2 *llama2, size_t i, struct decoding *d) {
    int32_t token = token_at(i);
    struct device_traffic before = device_traffic();
    double start = device_now();
    enum status status = llama2_forward(llama2, &token, 1, i, d->logits);
    double ms = 1e3 * (device_now() - start);
    struct device_traffic after = device_traffic();
    d->one = (struct device_traffic){
        .bytes_to_device = after.bytes_to_device - before.bytes_to_device,
        .bytes_to_host = after.bytes_to_host - before.bytes_to_host,
        .allocations = after.allocations - before.allocations,
    };
    /* The first token is the warm-up. */
    d->ms = i == 1 || ms < d->ms ? ms : d->ms;
    return status;
}

static void decode(const struct engine *engine, const struct llama2_random *model, int tokens,
                   struct decoding *d) {
    struct llama2 *llama2 = NULL;
    struct error error = {0};
    grader_watch("Llama2 decode, 15M shape", PATIENCE);
    enum status status = llama2_create(&llama2, &model->config, &model->weights, engine, 1, &error);
    for (int i = 0; i < tokens && status == STATUS_OK; i++) {
        status = decode_token(llama2, (size_t)i, d);
    }
    grader_watch("", 0);
    llama2_free(llama2);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", engine->name, error_text(&error, status));
    }
}

/* Both decoders on one model. */
struct comparison_run {
    struct grader_gpu gpu;
    struct llama2_random model;
    struct engine baseline, subject;
    struct decoding base, own;
};

static void run_free(struct comparison_run *r) {
    engine_destroy(&r->subject);
    engine_destroy(&r->baseline);
    free(r->base.logits);
    free(r->own.logits);
    llama2_random_free(&r->model);
}

static enum status run_create(struct comparison_run *r, struct error *error) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    r->base.logits = calloc(config.V, sizeof(float));
    r->own.logits = calloc(config.V, sizeof(float));
    enum status status =
        r->base.logits != NULL && r->own.logits != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    if (status == STATUS_OK) {
        status = llama2_random_create(&r->model, &config, grader_seed());
    }
    if (status == STATUS_OK) {
        status = engine_gpu_matmul_create(&r->baseline, error);
    }
    if (status == STATUS_OK) {
        status = engine_resident_create(&r->subject, error);
    }
    return status;
}

static void check_speed(const struct comparison_run *r) {
    struct speedup speedup =
        grader_gpu_speedup(&r->gpu, lab, "end_to_end", GRADER_SUBJECT, GRADER_MARGIN);
    speedup.baseline_ms = r->base.ms;
    speedup.subject_ms = r->own.ms;
    speedup_check(&speedup, __FILE__, __LINE__);
}

/* Up to 64 bytes may go in, so that token ids may be copied; the logits come out. Counted. */
static void check_traffic(const struct comparison_run *r) {
    const unsigned long long most_in = 64, most_out = r->model.config.V * sizeof(float);
    unsigned long long in = r->own.one.bytes_to_device, out = r->own.one.bytes_to_host;
    unsigned long long allocations = r->own.one.allocations;
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

C_TEST(speedup, end_to_end) {
    struct comparison_run r = {0};
    struct error error = {0};
    if (!grader_gpu_open(&r.gpu)) {
        return;
    }
    enum status status = run_create(&r, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    } else {
        int tokens = r.gpu.modelled ? TOKENS_MODELLED : TOKENS;
        decode(&r.baseline, &r.model, tokens, &r.base);
        decode(&r.subject, &r.model, tokens, &r.own);
    }
    if (!test_has_failed()) {
        grader_check_logits(r.own.logits, r.base.logits, r.model.config.V, "your memory");
        check_speed(&r);
        check_traffic(&r);
    }
    run_free(&r);
}
