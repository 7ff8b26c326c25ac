/* Several texts at once against the written-out reference: every type, texts that are at other
   positions, one to eight of them, splits of a context, odd sizes, and what is refused. */
#include "solutions/13_low_bit/rows/rows_decoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "solutions/13_low_bit/decoder/random_model.h"
#include "solutions/ladder_gpu.h"

/* Largest difference of logits, relative to the largest one, and the one within which three
   quarters of the texts are. Sums are fp32. Where a step is launches, a product's inputs have 22
   bits; a key or value may be rounded to the neighbouring step of 127 all the same, on simt up
   to 1.4e-3 of logits. Where a step is one kernel, inputs are fp16, and some keys of each token
   are. */
static const struct {
    const char *name;
    double close, tolerance;
} bounds[] = {
    [ROWS_FASTEST] = {"one kernel", 1e-2, 2e-2}, [ROWS_LAUNCHES] = {"launches", 1e-5, 5e-3}};

struct run {
    struct random_model model;
    size_t rows;
    enum rows_form form;
    struct rows_decoder *decoder;
    struct rows_io io;
    struct reference_cache caches[ROWS_MOST];
    double *want; /* (V) */
    float *got;   /* (rows, V) */
    struct rng rng;
    double worst;
    size_t compared, close; /* texts and steps; those that are close */
};

static enum status open_run(struct run *r, const struct random_model_size *size, size_t rows,
                            enum rows_form form, struct error *error) {
    *r = (struct run){.rows = rows, .form = form, .rng = rng_create(5)};
    TRY(random_model_create(&r->model, size, size->hidden + size->NH, error));
    const struct reference_model *h = &r->model.host;
    size_t keys = h->sizes.L * h->sizes.T * h->sizes.KVH * h->sizes.HS;
    for (size_t i = 0; i < rows; i++) {
        r->caches[i] = (struct reference_cache){calloc(keys, sizeof(double)),
                                                calloc(keys, sizeof(double)), true};
        if (r->caches[i].k == NULL || r->caches[i].v == NULL) {
            return STATUS_OUT_OF_MEMORY;
        }
    }
    r->want = calloc(h->sizes.V, sizeof *r->want);
    r->got = calloc(rows * h->sizes.V, sizeof *r->got);
    if (r->want == NULL || r->got == NULL) {
        return STATUS_OUT_OF_MEMORY;
    }
    TRY(device_alloc((void **)&r->io.logits, rows * h->sizes.V * sizeof(float), error));
    TRY(device_alloc((void **)&r->io.tokens, rows * sizeof(int32_t), error));
    TRY(device_alloc((void **)&r->io.positions, rows * sizeof(int32_t), error));
    return rows_decoder_create(&r->decoder, &r->model.device, &r->io, rows, r->form, NULL, error);
}

static void close_run(struct run *r) {
    rows_decoder_free(r->decoder);
    random_model_free(&r->model);
    device_free(r->io.logits);
    device_free((void *)r->io.tokens);
    device_free((void *)r->io.positions);
    for (size_t i = 0; i < ROWS_MOST; i++) {
        free(r->caches[i].k);
        free(r->caches[i].v);
    }
    free(r->want);
    free(r->got);
}

/* The difference of a text's logits, relative to the largest one; NaN counts as the most. */
static double difference_of(const struct run *r, size_t row) {
    size_t V = r->model.host.sizes.V;
    double largest = 0.0, difference = 0.0;
    for (size_t i = 0; i < V; i++) {
        double d = fabs((double)r->got[row * V + i] - r->want[i]);
        largest = fmax(largest, fabs(r->want[i]));
        difference = isfinite(d) ? fmax(difference, d) : INFINITY;
    }
    return difference / largest;
}

/* Feeds each text a token; text i is i positions behind, or still at position 0. */
static enum status step(struct run *r, size_t number, bool compares, struct error *error) {
    const struct reference_model *h = &r->model.host;
    int32_t tokens[ROWS_MOST], positions[ROWS_MOST];
    for (size_t i = 0; i < r->rows; i++) {
        tokens[i] = (int32_t)rng_below(&r->rng, h->sizes.V);
        positions[i] = number > i ? (int32_t)(number - i) : 0;
    }
    TRY(device_write((void *)r->io.tokens, tokens, r->rows * sizeof *tokens, NULL, error));
    TRY(device_write((void *)r->io.positions, positions, r->rows * sizeof *tokens, NULL, error));
    TRY(rows_decoder_feed(r->decoder, number, error));
    TRY(device_read(r->got, r->io.logits, r->rows * h->sizes.V * sizeof *r->got, NULL, error));
    for (size_t i = 0; i < r->rows; i++) {
        TRY(reference_token(h, &r->caches[i], tokens[i], (size_t)positions[i], r->want));
        if (compares) {
            double difference = difference_of(r, i);
            r->worst = fmax(r->worst, difference);
            r->compared++;
            r->close += difference <= bounds[r->form].close ? 1 : 0;
        }
    }
    return STATUS_OK;
}

static void check_form(const struct random_model_size *size, size_t rows, size_t steps,
                       enum rows_form form) {
    struct run r;
    struct device_properties gpu;
    struct error error = {0};
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    enum status status = open_run(&r, size, rows, form, &error);
    for (size_t i = 0; i < steps && status == STATUS_OK; i++) {
        status = step(&r, i, i < 4 || i + 1 == steps, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    printf("  %s %zu, %zu texts, %s: %.2e, %zu of %zu close\n", low_bit_type_name(size->type),
           size->group, rows, bounds[form].name, r.worst, r.close, r.compared);
    if (!(r.worst <= bounds[form].tolerance) || 4 * r.close < 3 * r.compared) {
        TEST_FAIL("%s, %zu texts, %s: logits differ by %.3g, %zu of %zu within %g",
                  low_bit_type_name(size->type), rows, bounds[form].name, r.worst, r.close,
                  r.compared, bounds[form].close);
    }
    close_run(&r);
}

static void check(const struct random_model_size *size, size_t rows, size_t steps) {
    check_form(size, rows, steps, ROWS_LAUNCHES);
    check_form(size, rows, steps, ROWS_FASTEST);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

C_TEST(rows_decoder, types) {
    static const struct {
        struct random_model_size size;
        size_t rows;
    } cases[] = {
        {{LOW_BIT_INT8, 0, NN_F32, false, 1, 1, 64, 136, 2, 37, 32, NN_ROPE_HALVES}, 8},
        {{LOW_BIT_INT8, 0, NN_F32, false, 4, 2, 64, 24, 1, 17, 32, NN_ROPE_HALVES}, 3},
        {{LOW_BIT_INT4, 128, NN_BF16, true, 2, 1, 64, 264, 1, 37, 32, NN_ROPE_HALVES}, 5},
        {{LOW_BIT_INT4, 128, NN_F16, false, 2, 2, 64, 128, 1, 16, 32, NN_ROPE_INTERLEAVED}, 1},
        {{LOW_BIT_INT4, 32, NN_BF16, true, 1, 1, 128, 72, 2, 41, 32, NN_ROPE_HALVES}, 8},
        {{LOW_BIT_INT4, 32, NN_F16, true, 6, 3, 64, 32, 1, 37, 32, NN_ROPE_INTERLEAVED}, 2}};
    for (size_t i = 0; i < COUNT(cases) && !test_has_failed(); i++) {
        check(&cases[i].size, cases[i].rows, 3);
    }
}

/* Warps have several chunks of the feed-forward network's input, the last one not whole; blocks one
   tile of it, and two where C has more tiles than a GPU has multiprocessors. */
C_TEST(rows_decoder, chunks) {
    static const struct {
        struct random_model_size size;
        size_t rows;
    } cases[] = {
        {{LOW_BIT_INT8, 0, NN_F32, false, 1, 1, 64, 4200, 1, 17, 32, NN_ROPE_HALVES}, 3},
        {{LOW_BIT_INT4, 128, NN_F16, true, 2, 1, 64, 8200, 1, 17, 32, NN_ROPE_HALVES}, 8},
        {{LOW_BIT_INT4, 32, NN_BF16, true, 1, 1, 64, 4232, 1, 17, 32, NN_ROPE_HALVES}, 3},
        {{LOW_BIT_INT4, 128, NN_BF16, true, 34, 1, 64, 4136, 1, 17, 32, NN_ROPE_HALVES}, 2}};
    for (size_t i = 0; i < COUNT(cases) && !test_has_failed(); i++) {
        check_form(&cases[i].size, cases[i].rows, 1, ROWS_FASTEST);
    }
}

/* Contexts of two splits, of texts that are in the first one still; one kernel has no splits, and
   its warps several turns of keys. */
C_TEST(rows_decoder, contexts) {
    static const struct random_model_size size = {
        LOW_BIT_INT4, 32, NN_BF16, true, 1, 1, 128, 32, 1, 9, 300, NN_ROPE_HALVES};
    check_form(&size, 4, 260, ROWS_LAUNCHES);
    check_form(&size, 4, 80, ROWS_FASTEST);
}

C_TEST(rows_decoder, refuses_what_it_does_not_support) {
    const struct rows_io io = {0};
    struct device_properties gpu;
    struct rows_decoder *decoder;
    struct error error = {0};
    struct low_bit_decoder_model model = {.type = LOW_BIT_FP8};
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    EXPECT_STATUS(STATUS_UNSUPPORTED,
                  rows_decoder_create(&decoder, &model, &io, 8, ROWS_FASTEST, NULL, &error));
    EXPECT_STR_CONTAINS("e4m3", error.message);
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                  rows_decoder_create(&decoder, &model, &io, 9, ROWS_FASTEST, NULL, &error));
    EXPECT_STR_CONTAINS("9 texts", error.message);
}
