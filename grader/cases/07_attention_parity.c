/* Lab 07, parity: the subject's attention against the double oracle, alone, in BERT and in Llama2.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/formats/bert_random.h"
#include "common/model/engine.h"
#include "common/testing/testing.h"
#include "grader/bed.h"
#include "grader/bert_batch.h"
#include "grader/cases/07_attention_case.h"
#include "grader/cases/07_attention_lists.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/small_llama2.h"
#include "grader/watch.h"
#include "labs/07_attention/attention.h"
#include "labs/07_attention/engine.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void run_case(struct attention_spec spec, struct bed *bed) {
    struct attention_case c;
    struct error error = {0};
    char text[400] = "";
    spec.loudness = spec.loudness > 0.0f ? spec.loudness : 1.0f;
    bool guarded = bed_guards(bed);
    enum status status = attention_case_create(&c, &spec, rng_u64(&bed->rng), guarded, &error);
    if (status == STATUS_OK) {
        grader_watch(c.name, PATIENCE);
        status = attention_case_run(&c, attention, bed->stream, &error);
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
    struct bed bed;
    bool open = bed_open(&bed, 0);
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct attention_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            run_case(spec, &bed);
        }
    }
    bed_close(&bed);
}

static void run_topic(enum attention_topic topic) {
    size_t count;
    const struct attention_spec *list = attention_list(topic, &count);
    run_cases(list, count);
}

C_TEST(parity, even_sizes) {
    static const struct attention_spec list[] = {
        {.B = 1, .T = 16, .S = 16, .NH = 1, .KVH = 1, .HS = 16},
        {.B = 2, .T = 64, .S = 64, .NH = 2, .KVH = 2, .HS = 64},
        {.B = 1, .T = 32, .S = 128, .NH = 1, .KVH = 1, .HS = 128},
    };
    run_cases(list, COUNT(list));
}

C_TEST(parity, odd_sizes) {
    static const struct attention_spec list[] = {
        {.B = 1, .T = 1, .S = 1, .NH = 1, .KVH = 1, .HS = 1},
        {.B = 2, .T = 3, .S = 5, .NH = 3, .KVH = 3, .HS = 7},
        {.B = 1, .T = 1, .S = 131, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 67, .S = 61, .NH = 2, .KVH = 2, .HS = 64},
        {.B = 1, .T = 31, .S = 65, .NH = 1, .KVH = 1, .HS = 127},
        {.B = 1, .T = 97, .S = 33, .NH = 1, .KVH = 1, .HS = 72},
    };
    run_cases(list, COUNT(list));
}

C_TEST(parity, empty_sizes) {
    run_topic(TOPIC_EMPTY);
}

C_TEST(parity, causal) {
    run_topic(TOPIC_CAUSAL);
}

C_TEST(parity, grouped_heads) {
    run_topic(TOPIC_GROUPED_HEADS);
}

C_TEST(parity, masks) {
    run_topic(TOPIC_MASKS);
}

C_TEST(parity, packed) {
    run_topic(TOPIC_PACKED);
}

C_TEST(parity, layouts) {
    run_topic(TOPIC_LAYOUTS);
}

C_TEST(parity, large_scores) {
    run_topic(TOPIC_LARGE_SCORES);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, random_sizes) {
    struct bed bed;
    bool open = bed_open(&bed, 0);
    for (int i = 0; i < 18 && open && !test_has_failed(); i++) {
        struct rng *rng = &bed.rng;
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
        run_case(spec, &bed);
    }
    bed_close(&bed);
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
        enum status status = attention(bad[i], NULL, &error);
        if (status != STATUS_INVALID_ARGUMENT) {
            TEST_FAIL("HS %zu, T %zu, S %zu%s, KVH %zu: must be refused with "
                      "STATUS_INVALID_ARGUMENT, got %s; attention_check() does that",
                      bad[i]->HS, bad[i]->T, bad[i]->S, bad[i]->causal ? " causal" : "",
                      bad[i]->KVH, status_name(status));
        }
    }
    EXPECT_OK(device_synchronize(NULL, &error));
}

enum { TEXTS = 3, LONGEST = 37, LABELS = 3 };
static const int32_t text_starts[TEXTS + 1] = {0, 12, 49, 50};

/* Logits of three texts, padded (from the mask's side of the model) or packed. */
static enum status classify(const struct engine *engine, const struct bert_random *random,
                            bool packed, float *logits) {
    int32_t padded_ids[TEXTS * LONGEST] = {0}, packed_ids[TEXTS * LONGEST] = {0};
    uint8_t mask[TEXTS * LONGEST] = {0};
    for (int b = 0; b < TEXTS; b++) {
        for (int32_t i = text_starts[b]; i < text_starts[b + 1]; i++) {
            int place = b * LONGEST + (int)(i - text_starts[b]);
            padded_ids[place] = packed_ids[i] = (i * 37 + 5) % 300;
            mask[place] = 1;
        }
    }
    const struct bert_input input = {.ids = packed ? packed_ids : padded_ids,
                                     .mask = packed ? NULL : mask,
                                     .starts = packed ? text_starts : NULL,
                                     .B = TEXTS,
                                     .T = LONGEST};
    return bert_batch_run(random, engine, &input, logits, NULL);
}

C_TEST(parity, bert_end_to_end) {
    const struct bert_config config = {.C = 60,
                                       .hidden = 90,
                                       .L = 2,
                                       .NH = 3,
                                       .V = 300,
                                       .T = LONGEST,
                                       .types = 2,
                                       .labels = LABELS,
                                       .norm_eps = 1e-12f,
                                       .activation = NN_GELU};
    struct bert_random random;
    struct engine reference, engine;
    struct grader_gpu gpu;
    struct error error = {0};
    float want[TEXTS * LABELS] = {0}, got[TEXTS * LABELS] = {0};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(bert_random_create(&random, &config, grader_seed()));
    ASSERT_OK(engine_reference_create(&reference));
    ASSERT_OK(engine_attention_create(&engine, &error));
    EXPECT_OK(classify(&reference, &random, false, want));
    grader_watch("BERT with padding", 2 * PATIENCE);
    EXPECT_OK(classify(&engine, &random, false, got));
    grader_check_logits(got, want, COUNT(got), "BERT with your attention, padded,");
    grader_watch("BERT without padding", 2 * PATIENCE);
    EXPECT_OK(classify(&engine, &random, true, got));
    grader_check_logits(got, want, COUNT(got), "BERT with your attention, packed,");
    grader_watch("", 0);
    engine_destroy(&engine);
    engine_destroy(&reference);
    bert_random_free(&random);
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    struct engine engine;
    struct grader_gpu gpu;
    struct error error = {0};
    l.config.L = 2;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(engine_attention_create(&engine, &error));
    if (small_llama2_run(&l, &engine, "Llama2, prompt and one token", 2 * PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your attention");
    }
    engine_destroy(&engine);
}
