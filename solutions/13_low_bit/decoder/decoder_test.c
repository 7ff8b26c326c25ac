/* The low-bit decoder against the written-out reference: every type, splits of a context, grouped
   queries, texts that go back, odd sizes, and what it refuses. */
#include "solutions/13_low_bit/decoder/low_bit_decoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "solutions/13_low_bit/decoder/random_model.h"
#include "solutions/ladder_gpu.h"

/* Largest difference of logits, relative to the largest one. Sums are fp32, an input has 16 bits or
   more: 1e-6 for integers, 7e-6 for e4m3. A key that is rounded to the neighbouring step of 127
   moves a score by a hundredth; 1.3e-4 was seen. */
#define TOLERANCE 3e-4

struct run {
    struct random_model model;
    struct low_bit_decoder *decoder;
    struct reference_cache cache;
    double *want;
    float *got;
    size_t position;
    double worst;
};

static enum status allocate(struct run *r, bool rounded) {
    const struct reference_model *h = &r->model.host;
    size_t keys = h->sizes.L * h->sizes.T * h->sizes.KVH * h->sizes.HS;
    r->cache = (struct reference_cache){calloc(keys, sizeof(double)), calloc(keys, sizeof(double)),
                                        rounded};
    r->want = calloc(h->sizes.V, sizeof *r->want);
    r->got = calloc(h->sizes.V, sizeof *r->got);
    bool all = r->cache.k != NULL && r->cache.v != NULL && r->want != NULL && r->got != NULL;
    return all ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}

static enum status open_run(struct run *r, const struct random_model_size *size, bool rounded,
                            struct error *error) {
    *r = (struct run){0};
    TRY(random_model_create(&r->model, size, size->hidden + size->NH, error));
    TRY(allocate(r, rounded));
    return low_bit_decoder_create(&r->decoder, &r->model.device, &r->model.io, NULL, error);
}

static void close_run(struct run *r) {
    low_bit_decoder_free(r->decoder);
    random_model_free(&r->model);
    free(r->cache.k);
    free(r->cache.v);
    free(r->want);
    free(r->got);
}

/* The difference of the logits, relative to the largest one; NaN counts as the most. */
static enum status compare(struct run *r, struct error *error) {
    size_t V = r->model.host.sizes.V;
    double largest = 0.0, difference = 0.0;
    TRY(device_read(r->got, r->model.io.logits, V * sizeof *r->got, NULL, error));
    for (size_t i = 0; i < V; i++) {
        double d = fabs((double)r->got[i] - r->want[i]);
        largest = fmax(largest, fabs(r->want[i]));
        difference = isfinite(d) ? fmax(difference, d) : INFINITY;
    }
    r->worst = fmax(r->worst, difference / largest);
    return STATUS_OK;
}

/* Feeds `count` tokens from a position on, and compares the last one's logits. */
static enum status feed(struct run *r, size_t count, size_t position, struct error *error) {
    const struct reference_model *h = &r->model.host;
    struct rng rng = rng_create(position + 100);
    int32_t *tokens = calloc(count + 1, sizeof *tokens);
    enum status status = tokens != NULL ? STATUS_OK : STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        tokens[i] = (int32_t)rng_below(&rng, h->sizes.V);
        status = reference_token(h, &r->cache, tokens[i], position + i, r->want);
    }
    if (status == STATUS_OK) {
        status = low_bit_decoder_prefill(r->decoder, tokens, count, position, error);
    }
    r->position = position + count;
    if (status == STATUS_OK) {
        status = compare(r, error);
    }
    free(tokens);
    return status;
}

/* Draws the most likely token, feeds it, and compares token and logits. */
static enum status step(struct run *r, struct error *error) {
    const struct sampling greedy = {1, 0.0f, 0.0f, 0};
    const struct reference_model *h = &r->model.host;
    int32_t best = 0, token = -1;
    for (size_t i = 1; i < h->sizes.V; i++) {
        best = r->got[i] > r->got[best] ? (int32_t)i : best;
    }
    TRY(device_write(r->model.io.sampling, &greedy, sizeof greedy, NULL, error));
    TRY(low_bit_decoder_step(r->decoder, r->position, error));
    TRY(device_read(&token, r->model.io.token, sizeof token, NULL, error));
    EXPECT_INT_EQ(best, token);
    TRY(reference_token(h, &r->cache, best, r->position, r->want));
    r->position++;
    return compare(r, error);
}

/* A piece of text: tokens, and the position of the first. */
struct piece {
    size_t count, position;
};

static double worst_of(const struct random_model_size *size, const struct piece *pieces,
                       size_t count, bool rounded) {
    struct run r;
    struct error error = {0};
    enum status status = open_run(&r, size, rounded, &error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = feed(&r, pieces[i].count, pieces[i].position, &error);
        if (status == STATUS_OK) {
            status = step(&r, &error);
        }
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    double worst = r.worst;
    close_run(&r);
    return worst;
}

static void check(const struct random_model_size *sizes, size_t count, const struct piece *pieces,
                  size_t piece_count) {
    struct device_properties gpu;
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        double worst = worst_of(&sizes[i], pieces, piece_count, true);
        printf("  %s %zu: %.2e\n", low_bit_type_name(sizes[i].type), sizes[i].group, worst);
        if (!(worst <= TOLERANCE)) {
            TEST_FAIL("size %zu, %s: logits differ by %.3g", i, low_bit_type_name(sizes[i].type),
                      worst);
        }
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Each type of weights and scales, both layouts of rotary embedding, inputs that are no whole
   slices, tiles that are not whole; more heads than blocks, so that two queries share a block. */
C_TEST(low_bit_decoder, types) {
    static const struct random_model_size sizes[] = {
        {LOW_BIT_INT8, 0, NN_F32, false, 1, 1, 64, 136, 2, 37, 32, NN_ROPE_HALVES},
        {LOW_BIT_INT8, 0, NN_F32, false, 4, 2, 64, 24, 1, 17, 32, NN_ROPE_HALVES},
        {LOW_BIT_FP8, 0, NN_F32, false, 2, 1, 64, 40, 1, 33, 32, NN_ROPE_INTERLEAVED},
        {LOW_BIT_INT4, 128, NN_BF16, true, 2, 1, 64, 264, 1, 37, 32, NN_ROPE_HALVES},
        {LOW_BIT_INT4, 128, NN_F16, false, 2, 2, 64, 128, 1, 16, 32, NN_ROPE_INTERLEAVED},
        {LOW_BIT_INT4, 32, NN_BF16, true, 1, 1, 128, 72, 2, 41, 32, NN_ROPE_HALVES},
        {LOW_BIT_INT4, 32, NN_F16, true, 6, 3, 64, 32, 1, 37, 32, NN_ROPE_INTERLEAVED}};
    static const struct piece pieces[] = {{2, 0}, {1, 2}};
    check(sizes, COUNT(sizes), pieces, COUNT(pieces));
}

/* A context of one split, and of two, whose keys are more than a warp's stage. */
C_TEST(low_bit_decoder, contexts) {
    static const struct random_model_size sizes[] = {
        {LOW_BIT_INT4, 32, NN_BF16, true, 1, 1, 128, 32, 1, 9, 160, NN_ROPE_HALVES}};
    static const struct piece pieces[] = {{127, 0}, {3, 128}};
    check(sizes, COUNT(sizes), pieces, COUNT(pieces));
}

/* Inputs of down that leave no room for the seventh stage of int8. */
C_TEST(low_bit_decoder, wide_inputs) {
    static const struct random_model_size sizes[] = {
        {LOW_BIT_INT8, 0, NN_F32, false, 1, 1, 64, 13824, 1, 17, 8, NN_ROPE_HALVES}};
    static const struct piece pieces[] = {{1, 0}};
    check(sizes, COUNT(sizes), pieces, COUNT(pieces));
}

/* Keys of 8 bits are what the cache has: a reference that rounds none differs by more. */
C_TEST(low_bit_decoder, cache_has_8_bits) {
    static const struct random_model_size size = {
        LOW_BIT_INT8, 0, NN_F32, false, 1, 1, 64, 64, 2, 37, 32, NN_ROPE_HALVES};
    static const struct piece pieces[] = {{6, 0}};
    struct device_properties gpu;
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    double rounded = worst_of(&size, pieces, 1, true), exact = worst_of(&size, pieces, 1, false);
    EXPECT_TRUE(exact > 4.0 * rounded);
    EXPECT_TRUE(exact < 0.05);
}

C_TEST(low_bit_decoder, refuses_what_it_does_not_support) {
    static const struct {
        struct random_model_size size;
        const char *part;
    } cases[] = {
        {{LOW_BIT_INT8, 0, NN_F32, false, 2, 2, 32, 64, 1, 9, 8, NN_ROPE_HALVES}, "heads of 32"},
        {{LOW_BIT_INT8, 0, NN_F32, false, 3, 1, 64, 64, 1, 9, 8, NN_ROPE_HALVES}, "3 query heads"},
        {{LOW_BIT_INT8, 0, NN_F32, false, 2, 2, 64, 60, 1, 9, 8, NN_ROPE_HALVES}, "hidden = 60"},
        {{LOW_BIT_INT4, 64, NN_BF16, false, 2, 2, 64, 64, 1, 9, 8, NN_ROPE_HALVES},
         "groups of 64"}};
    struct device_properties gpu;
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct random_model_size *s = &cases[i].size;
        struct error error = {0};
        struct low_bit_decoder *decoder;
        struct low_bit_decoder_model model = {
            .type = s->type, .group = s->group, .scale_dtype = s->scale_dtype};
        model.sizes = (struct decoder_model){.C = s->NH * s->HS,
                                             .hidden = s->hidden,
                                             .L = s->L,
                                             .NH = s->NH,
                                             .KVH = s->KVH,
                                             .HS = s->HS,
                                             .V = s->V,
                                             .T = s->T,
                                             .dtype = NN_BF16};
        const struct decoder_io io = {0};
        EXPECT_STATUS(STATUS_UNSUPPORTED,
                      low_bit_decoder_create(&decoder, &model, &io, NULL, &error));
        EXPECT_STR_CONTAINS(cases[i].part, error.message);
    }
}
