/* Lab 07, parity: the subject's attention against the double oracle, alone, in BERT and in Llama2.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/07_attention/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/fixture.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "labs/07_attention/attention.h"
#include "labs/07_attention/problem/case.h"
#include "labs/07_attention/problem/test_cases.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The subject's attention(), in its own process. */
static enum status remote_attention(const struct attention_problem *problem, device_stream stream,
                                    struct error *error) {
    struct attention_call c = {*problem, stream};
    void *starts;
    if (problem->host_starts != NULL) {
        TRY(remote_copy(&starts, problem->host_starts,
                        (problem->B + 1) * sizeof *problem->host_starts, error));
        c.problem.host_starts = starts;
    }
    return remote_call("attention", &c, sizeof c, error);
}

static void run_case(struct attention_spec spec, struct fixture *fixture) {
    struct attention_case c;
    struct error error = {0};
    char text[400] = "";
    spec.loudness = spec.loudness > 0.0f ? spec.loudness : 1.0f;
    bool guarded = fixture_has_guards(fixture);
    enum status status = attention_case_create(&c, &spec, rng_u64(&fixture->rng), guarded, &error);
    if (status == STATUS_OK) {
        grader_watch(c.name, PATIENCE);
        status = attention_case_run(&c, remote_attention, fixture->stream, &error);
        grader_watch("", 0);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    } else if (!attention_case_check(&c, text, sizeof text)) {
        TEST_FAIL("%s: %s", c.name, text);
    }
    attention_case_free(&c);
}

/* Every case in all three formats. */
static void run_cases(const struct attention_spec *list, size_t count) {
    struct fixture fixture;
    bool open = fixture_open(&fixture, 0);
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct attention_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            run_case(spec, &fixture);
        }
    }
    fixture_close(&fixture);
}

static void run_topic(enum attention_topic topic) {
    size_t count;
    const struct attention_spec *list = attention_list(topic, &count);
    run_cases(list, count);
}

/* A test of these cases. */
#define CASES_TEST(name, ...)                                      \
    C_TEST(parity, name) {                                         \
        static const struct attention_spec list[] = {__VA_ARGS__}; \
        run_cases(list, COUNT(list));                              \
    }

CASES_TEST(even_sizes, {.B = 1, .T = 16, .S = 16, .NH = 1, .KVH = 1, .HS = 16},
           {.B = 2, .T = 64, .S = 64, .NH = 2, .KVH = 2, .HS = 64},
           {.B = 1, .T = 32, .S = 128, .NH = 1, .KVH = 1, .HS = 128})

CASES_TEST(odd_sizes, {.B = 1, .T = 1, .S = 1, .NH = 1, .KVH = 1, .HS = 1},
           {.B = 2, .T = 3, .S = 5, .NH = 3, .KVH = 3, .HS = 7},
           {.B = 1, .T = 1, .S = 131, .NH = 1, .KVH = 1, .HS = 64},
           {.B = 1, .T = 67, .S = 61, .NH = 2, .KVH = 2, .HS = 64},
           {.B = 1, .T = 31, .S = 65, .NH = 1, .KVH = 1, .HS = 127},
           {.B = 1, .T = 97, .S = 33, .NH = 1, .KVH = 1, .HS = 72})

#define TOPIC_TEST(name, topic) \
    C_TEST(parity, name) {      \
        run_topic(topic);       \
    }

TOPIC_TEST(empty_sizes, TOPIC_EMPTY)
TOPIC_TEST(causal, TOPIC_CAUSAL)
TOPIC_TEST(grouped_heads, TOPIC_GROUPED_HEADS)
TOPIC_TEST(masks, TOPIC_MASKS)
TOPIC_TEST(packed, TOPIC_PACKED)
TOPIC_TEST(layouts, TOPIC_LAYOUTS)
TOPIC_TEST(large_scores, TOPIC_LARGE_SCORES)

/* Sizes drawn anew in every run: no list of special cases passes. */
FIXTURE_TEST(parity, random_sizes, 0) {
    for (int i = 0; i < 18 && !test_has_failed(); i++) {
        struct rng *rng = &fixture->rng;
        size_t group = 1 + rng_below(rng, 3), T = 1 + rng_below(rng, 90);
        const struct attention_spec spec = {.dtype = (enum nn_dtype)(i % 3),
                                            .B = 1 + rng_below(rng, 2),
                                            .T = T,
                                            .S = T + rng_below(rng, 90),
                                            .NH = group,
                                            .KVH = 1,
                                            .HS = 1 + rng_below(rng, ATTENTION_MAX_HS),
                                            .causal = rng_below(rng, 2) == 0,
                                            .mask = (enum attention_case_mask)rng_below(rng, 4),
                                            .layout = rng_below(rng, 2) == 0 ? LAYOUT_SEPARATE
                                                                             : LAYOUT_ODD};
        run_case(spec, fixture);
    }
}

C_TEST(parity, large_sizes_on_a_gpu) {
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        if (gpu.modelled) {
            TEST_SKIP("large sizes are for a GPU; this is simt");
        }
        run_topic(TOPIC_LARGE_SIZES);
    }
}

C_TEST(parity, wrong_calls_are_refused) {
    struct grader_gpu gpu;
    struct error error = {0};
    const struct attention_problem good = {.B = 1,
                                           .T = 3,
                                           .S = 3,
                                           .NH = 2,
                                           .KVH = 2,
                                           .HS = 4,
                                           .q_stride = 8,
                                           .kv_stride = 8,
                                           .out_stride = 8,
                                           .scale = 0.5f};
    struct attention_problem wide = good, causal = good, heads = good;
    wide.HS = ATTENTION_MAX_HS + 1;
    causal.S = 2;
    causal.causal = true;
    heads.KVH = 0;
    const struct attention_problem *const bad[] = {&wide, &causal, &heads};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        enum status status = remote_attention(bad[i], NULL, &error);
        if (status != STATUS_INVALID_ARGUMENT) {
            TEST_FAIL("HS %zu, T %zu, S %zu%s, KVH %zu: must be refused with "
                      "STATUS_INVALID_ARGUMENT, got %s; attention_check() does that",
                      bad[i]->HS, bad[i]->T, bad[i]->S, bad[i]->causal ? " causal" : "",
                      bad[i]->KVH, status_name(status));
        }
    }
    EXPECT_DONE(device_synchronize(NULL, &error), &error);
}

enum { TEXTS = 3, LONGEST = 37, LABELS = 3 };
static const int32_t text_starts[TEXTS + 1] = {0, 12, 49, 50};

/* Three texts, padded, with a mask, or packed. */
struct texts {
    int32_t padded[TEXTS * LONGEST], packed[TEXTS * LONGEST];
    uint8_t mask[TEXTS * LONGEST];
};

static struct texts make_texts(void) {
    struct texts texts = {0};
    for (int b = 0; b < TEXTS; b++) {
        for (int32_t i = text_starts[b]; i < text_starts[b + 1]; i++) {
            int place = b * LONGEST + (int)(i - text_starts[b]);
            texts.padded[place] = texts.packed[i] = (i * 37 + 5) % 300;
            texts.mask[place] = 1;
        }
    }
    return texts;
}

C_TEST(parity, bert_end_to_end) {
    struct texts texts = make_texts();
    struct rng rng = grader_rng();
    struct grader_gpu gpu;
    float want[TEXTS * LABELS] = {0};
    const struct bert_config sizes = {
        .C = 60, .hidden = 90, .L = 2, .NH = 3, .V = 300, .T = LONGEST, .labels = LABELS};
    struct remote_bert_job job = {
        .config = remote_bert_config(sizes),
        .seed = grader_secret(&rng),
        .input = {.ids = texts.padded, .mask = texts.mask, .B = TEXTS, .T = LONGEST},
        .what = "BERT with padding",
        .seconds = 2 * PATIENCE};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(remote_bert_reference(&job, 1, want));
    remote_bert_expect(&job, want, grader_check_logits, "BERT with your attention, padded,");
    job.what = "BERT without padding";
    job.input =
        (struct bert_input){.ids = texts.packed, .starts = text_starts, .B = TEXTS, .T = LONGEST};
    remote_bert_expect(&job, want, grader_check_logits, "BERT with your attention, packed,");
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    struct grader_gpu gpu;
    l.config.L = 2;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    if (remote_small_llama2(&l, "Llama2, prompt and one token", 2 * PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your attention");
    }
}
