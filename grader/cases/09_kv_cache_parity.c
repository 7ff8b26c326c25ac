/*
 * Lab 09, parity: the subject's two operators against sums in double precision, and a small Llama2
 * on them, token by token.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/formats/llama2_tensors.h"
#include "common/model/llama2.h"
#include "common/model/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/bed.h"
#include "grader/cases/09_kv_cache_linear.h"
#include "grader/cases/09_kv_cache_text.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/logits.h"
#include "grader/small_llama2.h"
#include "grader/watch.h"
#include "labs/09_kv_cache/engine.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- kv_linear() ---- */

static void run_linear(const struct kv_linear_spec *spec, struct bed *bed) {
    struct kv_linear_case c;
    struct error error = {0};
    char text[400] = "";
    bool guarded = bed_guards(bed);
    enum status status = kv_linear_case_create(&c, spec, &bed->rng, guarded, &error);
    if (status == STATUS_OK) {
        grader_watch(c.name, PATIENCE);
        status = kv_linear_case_run(&c, kv_linear, bed->stream, &error);
        grader_watch("", 0);
    }
    if (status == STATUS_OK) {
        status = kv_linear_case_check(&c, text, sizeof text, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s: %s", c.name, text);
    }
    kv_linear_case_free(&c);
}

/* Every case in all three formats. */
static void run_linears(const struct kv_linear_spec *list, size_t count) {
    struct bed bed;
    bool open = bed_open(&bed, 0);
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct kv_linear_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            run_linear(&spec, &bed);
        }
    }
    bed_close(&bed);
}

C_TEST(parity, linear_even_sizes) {
    static const struct kv_linear_spec list[] = {
        {.N = 8, .K = 8},
        {.N = 64, .K = 64},
        {.N = 128, .K = 512},
        {.N = 16, .K = 2048},
    };
    run_linears(list, COUNT(list));
}

C_TEST(parity, linear_odd_sizes) {
    static const struct kv_linear_spec list[] = {
        {.N = 1, .K = 1},   {.N = 1, .K = 33},    {.N = 3, .K = 4},     {.N = 7, .K = 12},
        {.N = 67, .K = 61}, {.N = 131, .K = 257}, {.N = 33, .K = 1023},
    };
    run_linears(list, COUNT(list));
}

C_TEST(parity, linear_empty_sizes) {
    static const struct kv_linear_spec list[] = {
        {.N = 0, .K = 0},
        {.N = 0, .K = 8},
        {.N = 5, .K = 0},
        {.N = 5, .K = 0, .residual = KV_RESIDUAL},
        {.N = 5, .K = 0, .residual = KV_IN_PLACE},
        {.N = 5, .K = 0, .norm = true},
        {.N = 5, .K = 0, .norm = true, .residual = KV_RESIDUAL},
    };
    run_linears(list, COUNT(list));
}

C_TEST(parity, linear_with_a_norm) {
    static const struct kv_linear_spec list[] = {
        {.N = 16, .K = 64, .norm = true},  {.N = 5, .K = 1, .norm = true},
        {.N = 67, .K = 131, .norm = true}, {.N = 24, .K = 1000, .norm = true},
        {.N = 9, .K = 4104, .norm = true},
    };
    run_linears(list, COUNT(list));
}

C_TEST(parity, linear_with_a_residual) {
    static const struct kv_linear_spec list[] = {
        {.N = 16, .K = 64, .residual = KV_RESIDUAL},
        {.N = 16, .K = 64, .residual = KV_IN_PLACE},
        {.N = 67, .K = 131, .residual = KV_RESIDUAL},
        {.N = 131, .K = 67, .residual = KV_IN_PLACE},
        {.N = 33, .K = 72, .norm = true, .residual = KV_RESIDUAL},
        {.N = 72, .K = 33, .norm = true, .residual = KV_IN_PLACE},
    };
    run_linears(list, COUNT(list));
}

C_TEST(parity, linear_odd_pointers) {
    static const struct kv_linear_spec list[] = {
        {.N = 24, .K = 64, .skew = 1},
        {.N = 24, .K = 64, .skew = 4},
        {.N = 24, .K = 64, .norm = true, .residual = KV_RESIDUAL, .skew = 3},
        {.N = 24, .K = 128, .norm = true, .residual = KV_IN_PLACE, .skew = 2},
    };
    run_linears(list, COUNT(list));
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, linear_random_sizes) {
    struct bed bed;
    bool open = bed_open(&bed, 0);
    for (int i = 0; i < 18 && open && !test_has_failed(); i++) {
        struct rng *rng = &bed.rng;
        size_t step = i % 2 == 0 ? 1 : 8;
        const struct kv_linear_spec spec = {.N = 1 + rng_below(rng, 300),
                                            .K = step * (1 + rng_below(rng, 600 / step)),
                                            .dtype = (enum nn_dtype)(i % 3),
                                            .norm = rng_below(rng, 2) == 0,
                                            .residual = (enum kv_residual)rng_below(rng, 3),
                                            .skew = rng_below(rng, 3) == 0 ? 1 : 0};
        run_linear(&spec, &bed);
    }
    bed_close(&bed);
}

C_TEST(parity, linear_large_sizes_on_a_gpu) {
    static const struct kv_linear_spec list[] = {
        {.N = 4096, .K = 4096, .residual = KV_IN_PLACE},
        {.N = 2048, .K = 11008, .residual = KV_RESIDUAL},
        {.N = 32000, .K = 768, .norm = true},
        {.N = 100003, .K = 101, .norm = true},
    };
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        if (gpu.modelled) {
            TEST_SKIP("large sizes are for a GPU; this is simt");
        }
        run_linears(list, COUNT(list));
    }
}

/* ---- kv_attention() ---- */

/* How a text is fed. */
enum feeding {
    FEED_CALLS,   /* `longest` just above the position */
    FEED_LONGEST, /* `longest` = T */
    FEED_GRAPH    /* one recorded call, launched for every position */
};

static enum status call_once(struct kv_text *t, size_t position, enum feeding feeding,
                             struct bed *bed, struct error *error) {
    size_t T = t->spec.T;
    if (feeding != FEED_GRAPH) {
        size_t longest = feeding == FEED_CALLS ? position + 1 : T;
        return kv_text_call(t, longest, kv_attention, bed->workspace, bed->stream, error);
    }
    if (t->recorded == NULL) {
        TRY(kv_text_record(t, T, kv_attention, bed->workspace, bed->stream, error));
    }
    return kv_text_replay(t, bed->stream, error);
}

static void feed_one(struct kv_text *t, size_t position, enum feeding feeding, struct bed *bed) {
    static const char *const ways[] = {"", ", longest = T", ", a recorded call"};
    struct error error = {0};
    char text[400] = "", name[300];
    snprintf(name, sizeof name, "%s%s, position %zu", t->name, ways[feeding], position);
    enum status status = kv_text_prepare(t, position, &error);
    if (status == STATUS_OK) {
        grader_watch(name, PATIENCE);
        status = call_once(t, position, feeding, bed, &error);
        grader_watch("", 0);
    }
    if (status == STATUS_OK) {
        status = kv_text_check(t, position, text, sizeof text, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", name, error_text(&error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s: %s", name, text);
    }
}

/* Feeds the positions one after the other: with inputs they are 0, 1, 2, ... */
static void run_text(const struct kv_text_spec *spec, const size_t *positions, size_t count,
                     enum feeding feeding, struct bed *bed) {
    struct kv_text t;
    struct error error = {0};
    bool guarded = bed_guards(bed);
    enum status status = kv_text_create(&t, spec, rng_u64(&bed->rng), guarded, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", t.name, error_text(&error, status));
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        feed_one(&t, positions != NULL ? positions[i] : i, feeding, bed);
    }
    kv_text_free(&t);
}

/* Every text in all three formats: `tokens` from position 0 on, or these positions alone. */
static void run_texts(const struct kv_text_spec *list, size_t count, const size_t *positions,
                      size_t tokens, enum feeding feeding) {
    struct bed bed;
    bool open = bed_open(&bed, KV_WORKSPACE_BYTES);
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct kv_text_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            run_text(&spec, positions, tokens < spec.T ? tokens : spec.T, feeding, &bed);
        }
    }
    bed_close(&bed);
}

enum { SHORT_TEXT = 9 };

C_TEST(parity, attention_even_sizes) {
    static const struct kv_text_spec list[] = {
        {.C = 32, .NH = 2, .KVH = 2, .HS = 16, .T = 8, .inputs = true},
        {.C = 64, .NH = 1, .KVH = 1, .HS = 64, .T = 16, .inputs = true},
        {.C = 64, .NH = 4, .KVH = 4, .HS = 32, .T = 16, .inputs = true},
    };
    run_texts(list, COUNT(list), NULL, SHORT_TEXT, FEED_CALLS);
}

C_TEST(parity, attention_odd_sizes) {
    static const struct kv_text_spec list[] = {
        {.C = 1, .NH = 1, .KVH = 1, .HS = 2, .T = 1, .inputs = true},
        {.C = 33, .NH = 3, .KVH = 3, .HS = 10, .T = 11, .inputs = true},
        {.C = 45, .NH = 5, .KVH = 5, .HS = 6, .T = 7, .inputs = true},
        {.C = 60, .NH = 1, .KVH = 1, .HS = 98, .T = 5, .inputs = true},
    };
    run_texts(list, COUNT(list), NULL, SHORT_TEXT, FEED_CALLS);
}

C_TEST(parity, attention_halves) {
    static const struct kv_text_spec list[] = {
        {.C = 32, .NH = 2, .KVH = 2, .HS = 16, .T = 9, .layout = NN_ROPE_HALVES, .inputs = true},
        {.C = 35, .NH = 3, .KVH = 1, .HS = 14, .T = 9, .layout = NN_ROPE_HALVES, .inputs = true},
    };
    run_texts(list, COUNT(list), NULL, SHORT_TEXT, FEED_CALLS);
}

C_TEST(parity, attention_grouped_heads) {
    static const struct kv_text_spec list[] = {
        {.C = 48, .NH = 6, .KVH = 2, .HS = 8, .T = 9, .inputs = true},
        {.C = 64, .NH = 8, .KVH = 1, .HS = 16, .T = 9, .inputs = true},
        {.C = 64, .NH = 8, .KVH = 2, .HS = 64, .T = 9, .inputs = true},
    };
    run_texts(list, COUNT(list), NULL, 6, FEED_CALLS);
}

C_TEST(parity, attention_longest_heads) {
    static const struct kv_text_spec list[] = {
        {.C = 24, .NH = 2, .KVH = 1, .HS = KV_MAX_HS, .T = 5, .inputs = true},
        {.C = 24, .NH = 1, .KVH = 1, .HS = KV_MAX_HS - 2, .T = 5, .inputs = true},
    };
    run_texts(list, COUNT(list), NULL, 3, FEED_CALLS);
}

C_TEST(parity, attention_odd_pointers) {
    static const struct kv_text_spec list[] = {
        {.C = 32, .NH = 2, .KVH = 2, .HS = 16, .T = 8, .inputs = true, .skew = 1},
        {.C = 64, .NH = 4, .KVH = 1, .HS = 64, .T = 8, .inputs = true, .skew = 3},
    };
    run_texts(list, COUNT(list), NULL, 4, FEED_CALLS);
}

/* The grid is for T rows, the work for those up to the position. */
C_TEST(parity, attention_longest_is_T) {
    static const struct kv_text_spec list[] = {
        {.C = 32, .NH = 2, .KVH = 1, .HS = 16, .T = 40, .inputs = true},
    };
    run_texts(list, COUNT(list), NULL, SHORT_TEXT, FEED_LONGEST);
}

C_TEST(parity, attention_a_call_recorded_once) {
    static const struct kv_text_spec list[] = {
        {.C = 32, .NH = 4, .KVH = 2, .HS = 16, .T = 24, .inputs = true},
    };
    run_texts(list, COUNT(list), NULL, SHORT_TEXT, FEED_GRAPH);
}

/* Rows before the position are there; nothing is remembered but them. */
static const size_t single_positions[] = {0, 1, 2, 15, 31, 32, 33, 63, 64, 129, 299};

C_TEST(parity, attention_without_inputs) {
    static const struct kv_text_spec list[] = {
        {.C = 32, .NH = 4, .KVH = 2, .HS = 16, .T = 300},
        {.C = 35, .NH = 3, .KVH = 1, .HS = 22, .T = 300, .layout = NN_ROPE_HALVES},
    };
    run_texts(list, COUNT(list), single_positions, COUNT(single_positions), FEED_CALLS);
}

C_TEST(parity, attention_without_inputs_recorded) {
    static const size_t positions[] = {299, 4, 70, 0, 151};
    static const struct kv_text_spec list[] = {{.C = 32, .NH = 2, .KVH = 1, .HS = 64, .T = 300}};
    run_texts(list, COUNT(list), positions, COUNT(positions), FEED_GRAPH);
}

/* e^score overflows unless the largest is subtracted, in every part of a split alike. */
C_TEST(parity, attention_large_scores) {
    static const size_t positions[] = {1, 40, 150, 299};
    const struct kv_text_spec spec = {
        .C = 32, .NH = 2, .KVH = 2, .HS = 32, .T = 300, .loudness = 300.0f};
    struct bed bed;
    if (bed_open(&bed, KV_WORKSPACE_BYTES)) {
        run_text(&spec, positions, COUNT(positions), FEED_CALLS, &bed);
        run_text(&spec, positions, COUNT(positions), FEED_LONGEST, &bed);
    }
    bed_close(&bed);
}

C_TEST(parity, attention_random_sizes) {
    struct bed bed;
    bool open = bed_open(&bed, KV_WORKSPACE_BYTES);
    for (int i = 0; i < 9 && open && !test_has_failed(); i++) {
        struct rng *rng = &bed.rng;
        size_t KVH = 1 + rng_below(rng, 3), T = 1 + rng_below(rng, 200);
        struct kv_text_spec spec = {.C = 1 + rng_below(rng, 70),
                                    .NH = KVH * (1 + rng_below(rng, 4)),
                                    .KVH = KVH,
                                    .HS = 2 * (1 + rng_below(rng, 40)),
                                    .T = T,
                                    .dtype = (enum nn_dtype)(i % 3),
                                    .layout = (enum nn_rope_layout)rng_below(rng, 2),
                                    .skew = rng_below(rng, 3) == 0 ? 1 : 0};
        const size_t positions[] = {T - 1, rng_below(rng, T)};
        run_text(&spec, positions, COUNT(positions), FEED_CALLS, &bed);
        spec.inputs = true;
        run_text(&spec, NULL, T < 4 ? T : 4, FEED_CALLS, &bed);
    }
    bed_close(&bed);
}

C_TEST(parity, attention_large_sizes_on_a_gpu) {
    static const size_t positions[] = {0, 1000, 4095};
    static const struct kv_text_spec list[] = {
        {.C = 512, .NH = 32, .KVH = 32, .HS = 128, .T = 4096},
        {.C = 512, .NH = 32, .KVH = 4, .HS = 64, .T = 4096, .layout = NN_ROPE_HALVES},
    };
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        if (gpu.modelled) {
            TEST_SKIP("large sizes are for a GPU; this is simt");
        }
        run_texts(list, COUNT(list), positions, COUNT(positions), FEED_LONGEST);
    }
}

C_TEST(parity, wrong_calls_are_refused) {
    struct grader_gpu gpu;
    struct error error = {0};
    const struct kv_attention good = {
        .C = 8, .NH = 2, .KVH = 2, .HS = 4, .T = 3, .theta = 1e4f, .longest = 3};
    struct kv_attention wide = good, odd = good, heads = good, late = good;
    wide.HS = KV_MAX_HS + 2;
    odd.HS = 3;
    heads.KVH = 0;
    late.longest = 4;
    const struct kv_attention *const bad[] = {&wide, &odd, &heads, &late};
    const struct kv_linear no_type = {.N = 1, .K = 1, .dtype = (enum nn_dtype)7};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        enum status status = kv_attention(bad[i], NULL, NULL, &error);
        if (status != STATUS_INVALID_ARGUMENT) {
            TEST_FAIL("kv_attention, HS %zu, KVH %zu, longest %zu of %zu: must be refused with "
                      "STATUS_INVALID_ARGUMENT, got %s; kv_attention_check() does that",
                      bad[i]->HS, bad[i]->KVH, bad[i]->longest, bad[i]->T, status_name(status));
        }
    }
    enum status status = kv_linear(&no_type, NULL, &error);
    if (status != STATUS_INVALID_ARGUMENT) {
        TEST_FAIL("kv_linear, dtype 7, which is none: must be refused with "
                  "STATUS_INVALID_ARGUMENT, got %s; kv_linear_check() does that",
                  status_name(status));
    }
    EXPECT_OK(device_synchronize(NULL, &error));
}

/* ---- Llama2 ---- */

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    struct engine engine;
    struct grader_gpu gpu;
    struct error error = {0};
    l.config.L = 2;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(engine_kv_cache_create(&engine, &error));
    if (small_llama2_run(&l, &engine, "Llama2, token by token", 2 * PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your operators");
    }
    engine_destroy(&engine);
}

/* Heads that the operators do not take: the engine then runs it operator by operator. */
C_TEST(parity, llama2_with_heads_too_long) {
    struct small_llama2 l = small_llama2();
    struct engine engine;
    struct grader_gpu gpu;
    struct error error = {0};
    l.config.L = 1;
    l.config.NH = 2;
    l.config.KVH = 1;
    l.config.HS = KV_MAX_HS + 2;
    l.config.C = l.config.NH * l.config.HS;
    l.count = l.prompt + 1;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(engine_kv_cache_create(&engine, &error));
    if (small_llama2_run(&l, &engine, "Llama2 with long heads", 2 * PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "heads of 258 channels");
    }
    engine_destroy(&engine);
}

/* Rounds a tensor in place, and says where it is. */
static enum status round_tensor(void *dtype, const struct llama2_tensor *tensor) {
    size_t rows = tensor->rank == 2 ? tensor->shape[0] : 1;
    size_t columns = tensor->shape[tensor->rank - 1];
    float *values = (float *)*tensor->plain;
    unsigned char element[sizeof(float)];
    for (size_t i = 0; tensor->rank == 2 && i < rows * columns; i++) {
        nn_dtype_store(element, &values[i], 1, *(const enum nn_dtype *)dtype);
        nn_dtype_load(&values[i], element, 1, *(const enum nn_dtype *)dtype);
    }
    *tensor->stored = (struct llama2_stored_tensor){values, NN_F32, rows, columns};
    return STATUS_OK;
}

/* The weights rounded, so that the reference has those that the device has. */
static enum status round_weights(struct llama2_random *model, enum nn_dtype dtype,
                                 struct llama2_stored_weights *stored) {
    stored->layers = calloc(model->config.L, sizeof *stored->layers);
    if (stored->layers == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(llama2_tensors_visit(&model->config, true, stored, &model->weights, round_tensor, &dtype));
    stored->classifier = stored->embedding;
    return STATUS_OK;
}

/* A second text from position 0 on must not see the first. */
static enum status decode_twice(const struct small_llama2 *l, struct llama2 *llama2,
                                float *logits) {
    for (int text = 0; text < 2; text++) {
        for (size_t i = 0; i < l->count; i++) {
            const int32_t token = text == 0 ? l->tokens[l->count - 1 - i] : l->tokens[i];
            bool last = i == l->count - 1;
            TRY(llama2_forward(llama2, &token, 1, i, last ? logits : NULL));
        }
    }
    return STATUS_OK;
}

/* Logits of the reference, which keeps its cache in fp32, and of the subject in 16 bits. */
static enum status decode_in(enum nn_dtype dtype, struct small_llama2 *l,
                             struct llama2_random *model, const struct engine *subject,
                             struct error *error) {
    struct engine reference;
    struct llama2 *llama2 = NULL;
    struct llama2_stored_weights stored = {0};
    TRY(engine_reference_create(&reference));
    enum status status = round_weights(model, dtype, &stored);
    if (status == STATUS_OK) {
        status = llama2_create(&llama2, &model->config, &model->weights, &reference, 1, error);
    }
    if (status == STATUS_OK) {
        status = decode_twice(l, llama2, l->want);
    }
    llama2_free(llama2);
    engine_destroy(&reference);
    llama2 = NULL;
    if (status == STATUS_OK) {
        status = llama2_create_stored(&llama2, &model->config, &stored, dtype, subject, 1, error);
    }
    if (status == STATUS_OK) {
        grader_watch("Llama2 in 16 bits", 2 * PATIENCE);
        status = decode_twice(l, llama2, l->got);
        grader_watch("", 0);
    }
    llama2_free(llama2);
    free(stored.layers);
    return status;
}

/*
 * The same weights on both sides, so what is left is the cache, a rounding of each key and value in
 * both layers, on its way through the layers: eight roundings.
 */
static void check_16_bits(enum nn_dtype dtype) {
    struct small_llama2 l = small_llama2();
    struct llama2_random model = {0};
    struct engine engine = {0};
    struct error error = {0};
    l.config.L = 2;
    EXPECT_OK(llama2_random_create(&model, &l.config, grader_seed()));
    EXPECT_OK(engine_kv_cache_create(&engine, &error));
    enum status status =
        test_has_failed() ? STATUS_INVALID_ARGUMENT : decode_in(dtype, &l, &model, &engine, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("Llama2 in %s: %s", nn_dtype_name(dtype), error_text(&error, status));
    } else {
        struct logits_difference d = logits_difference(l.got, l.want, SMALL_LLAMA2_V);
        double allowed = 8.0 * nn_dtype_rounding(dtype) * d.largest;
        if (!(d.worst <= allowed)) {
            TEST_FAIL("Llama2 in %s, the second text of a model: logits differ by %.3g, tolerance "
                      "%.3g",
                      nn_dtype_name(dtype), d.worst, allowed);
        }
    }
    engine_destroy(&engine);
    llama2_random_free(&model);
}

C_TEST(parity, llama2_in_16_bits) {
    struct grader_gpu gpu;
    if (grader_gpu_open(&gpu)) {
        check_16_bits(NN_F16);
        check_16_bits(NN_BF16);
    }
}
