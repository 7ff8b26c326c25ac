/*
 * Every step of the ladder against the double oracle, token by token over four times the cache's
 * length; the grader only sees the last one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "labs/14_endless_text/given/decoder.h"
#include "labs/14_endless_text/problem/model.h"
#include "labs/14_endless_text/problem/norms.h"
#include "labs/14_endless_text/problem/text.h"
#include "solutions/14_endless_text/steps/ladder.h"
#include "solutions/ladder_gpu.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct gpu {
    struct device_properties properties;
    device_stream stream;
    void *workspace;
};

static bool gpu_open(struct gpu *g) {
    struct error error = {0};
    *g = (struct gpu){0};
    if (!ladder_gpu_open(&g->properties)) {
        return false;
    }
    EXPECT_OK(device_stream_create(&g->stream, &error));
    EXPECT_OK(device_alloc(&g->workspace, ENDLESS_WORKSPACE_BYTES, &error));
    EXPECT_OK(device_set(g->workspace, 0, ENDLESS_WORKSPACE_BYTES, g->stream, &error));
    return !test_has_failed();
}

static void gpu_close(struct gpu *g) {
    device_free(g->workspace);
    device_stream_destroy(g->stream);
}

static void judge(const char *step, const char *name, size_t position, enum status status,
                  const char *text, const struct error *error) {
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s %s, token %zu: %s %s", step, name, position, text,
                  status != STATUS_OK ? error_text(error, status) : "");
    }
}

/* ---- Attention ---- */

static enum status feed(struct endless_text *t, endless_attention_function *run,
                        const struct gpu *g, bool check, char *text, size_t size,
                        struct error *error) {
    TRY(endless_text_next(t, error));
    TRY(run(&t->call, g->workspace, g->stream, error));
    TRY(device_synchronize(g->stream, error));
    return check ? endless_text_check(t, text, size, error) : STATUS_OK;
}

/* A text of four times the cache, and a short second one in the same memory; with `every` above 1
   just a little more than the cache. */
static void check_step(const struct endless_step *step, const struct endless_text_spec *spec,
                       size_t every, const struct gpu *g) {
    struct endless_text t;
    struct error error = {0};
    char text[400] = "";
    size_t rows = spec->sinks + spec->window, tokens = every > 1 ? rows + 6 : 4 * rows;
    enum status status = endless_text_create(&t, spec, tokens, 7 + spec->HS, true, &error);
    judge(step->name, t.name, 0, status, text, &error);
    for (size_t i = 0; i < tokens + 3 && !test_has_failed(); i++) {
        if (i == tokens) {
            endless_text_restart(&t);
        }
        bool check = i % every == 0 || i + 2 >= tokens;
        status = feed(&t, step->functions.attention, g, check, text, sizeof text, &error);
        judge(step->name, t.name, i, status, text, &error);
    }
    endless_text_free(&t);
}

/* Steps from `first` on; of two in a row with the same function, the first. @p every: tokens from
   check to check */
static void check_texts(const struct endless_text_spec *list, size_t count, size_t every,
                        size_t first) {
    size_t steps_count;
    const struct endless_step *steps = endless_ladder(&steps_count);
    struct gpu g;
    bool open = gpu_open(&g);
    for (size_t i = 0; i < count && open; i++) {
        for (size_t s = first; s < steps_count && !test_has_failed(); s++) {
            if (s == first || steps[s].functions.attention != steps[s - 1].functions.attention) {
                check_step(&steps[s], &list[i], every, &g);
            }
        }
    }
    gpu_close(&g);
}

#define TEXT_TEST(name, every, first, ...)                            \
    C_TEST(ladder, name) {                                            \
        static const struct endless_text_spec list[] = {__VA_ARGS__}; \
        check_texts(list, COUNT(list), every, first);                 \
    }

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)endless_ladder(&count);
    EXPECT_INT_EQ(7, count);
}

TEXT_TEST(heads_and_types, 1, 1,
          {.NH = 2, .KVH = 2, .HS = 16, .rotary = 4, .sinks = 4, .window = 6, .dtype = NN_F32},
          {.NH = 4,
           .KVH = 2,
           .HS = 80,
           .rotary = 20,
           .sinks = 2,
           .window = 5,
           .dtype = NN_BF16,
           .layout = NN_ROPE_HALVES},
          {.NH = 5,
           .KVH = 1,
           .HS = 33,
           .rotary = 10,
           .sinks = 1,
           .window = 3,
           .dtype = NN_F16,
           .layout = NN_ROPE_HALVES},
          {.NH = 3, .KVH = 1, .HS = 7, .rotary = 0, .sinks = 0, .window = 4, .dtype = NN_F32},
          {.NH = 1,
           .KVH = 1,
           .HS = ENDLESS_MAX_HS,
           .rotary = ENDLESS_MAX_HS,
           .sinks = 3,
           .window = 1,
           .dtype = NN_BF16})

/* Long enough for several splits, several rounds of a team and its restart: v3 and v4. */
TEXT_TEST(splits, 37, 3,
          {.NH = 2, .KVH = 1, .HS = 64, .rotary = 64, .sinks = 4, .window = 130, .dtype = NN_F16},
          {.NH = 1,
           .KVH = 1,
           .HS = 256,
           .rotary = 64,
           .sinks = 3,
           .window = 140,
           .dtype = NN_F32,
           .layout = NN_ROPE_HALVES})

TEXT_TEST(odd_pointers_and_loud_scores, 1, 1,
          {.NH = 2, .KVH = 1, .HS = 16, .rotary = 16, .sinks = 2, .window = 3, .skew = 1},
          {.NH = 2, .KVH = 1, .HS = 32, .rotary = 8, .sinks = 2, .window = 6, .loudness = 100.0f})

/* ---- Norms ---- */

C_TEST(ladder, add_norms) {
    static const struct endless_norms_spec list[] = {
        {.C = 1, .count = 1, .layernorm = true, .bias = true, .addends = 3},
        {.C = 31, .count = 2, .layernorm = true, .bias = true, .addends = 1},
        {.C = 256, .count = 1, .addends = 2},
        {.C = 4096, .count = 2, .layernorm = true, .bias = true, .addends = 3, .mean = 50.0f},
        {.C = 17000, .count = 2, .addends = 0},
        {.C = 64, .count = 2, .layernorm = true, .addends = 3, .skew = 1},
    };
    static endless_add_norms_function *const runs[] = {endless_add_norms_v2_blocks,
                                                       endless_add_norms_v5_fused};
    struct gpu g;
    struct rng rng = rng_create(3);
    bool open = gpu_open(&g);
    for (size_t i = 0; i < COUNT(list) * 2 && open && !test_has_failed(); i++) {
        struct endless_norms n;
        struct error error = {0};
        char text[400] = "";
        enum status status = endless_norms_create(&n, &list[i / 2], &rng, true, &error);
        status = status == STATUS_OK ? runs[i % 2](&n.call, g.stream, &error) : status;
        status = status == STATUS_OK ? device_synchronize(g.stream, &error) : status;
        status = status == STATUS_OK ? endless_norms_check(&n, text, sizeof text, &error) : status;
        judge(i % 2 == 0 ? "blocks" : "fused", n.name, 0, status, text, &error);
        endless_norms_free(&n);
    }
    gpu_close(&g);
}

/* ---- Models ---- */

static enum status step_model(struct endless_case *c, struct endless_decoder *decoder,
                              float *d_logits, float *got, int32_t token, struct error *error) {
    device_stream stream = endless_decoder_stream(decoder);
    TRY(endless_decoder_feed(decoder, token, c->position, d_logits, error));
    TRY(device_read(got, d_logits, c->model.V * sizeof *got, stream, error));
    endless_case_next(c, token);
    for (size_t i = 0; i < c->model.V; i++) {
        if (!(fabs((double)got[i] - (double)c->want[i]) <= endless_case_tolerance(c))) {
            return error_set(error, STATUS_MISMATCH, "logit %zu: got %.9g, want %.9g", i,
                             (double)got[i], (double)c->want[i]);
        }
    }
    return STATUS_OK;
}

/* Logits of every token of a text. @param whole whether the last step has a kernel for the model */
static void check_model(const struct endless_model *shape, bool biases, size_t tokens, bool whole) {
    size_t count;
    const struct endless_step *steps = endless_ladder(&count);

    struct endless_case c;
    struct endless_decoder *decoder = NULL;
    float *d_logits = NULL, got[64];
    struct error error = {0};
    EXPECT_OK(endless_case_create(&c, shape, biases, tokens, 11, &error));
    EXPECT_OK(endless_decoder_create(&decoder, &c.model, &steps[count - 1].functions, &error));
    EXPECT_INT_EQ(whole, decoder != NULL && endless_decoder_is_whole(decoder));
    EXPECT_OK(device_alloc((void **)&d_logits, shape->V * sizeof *d_logits, &error));
    for (size_t i = 0; i < tokens && !test_has_failed(); i++) {
        int32_t token = (int32_t)(i * 31 % shape->V);
        enum status status = step_model(&c, decoder, d_logits, got, token, &error);
        judge("the last step", shape->parallel ? "parallel" : "sequential", i, status, "", &error);
    }
    device_free(d_logits);
    endless_decoder_free(decoder);
    endless_case_free(&c);
}

C_TEST(ladder, models) {
    struct gpu g;
    if (gpu_open(&g)) {
        struct endless_model neox = endless_small_neox(NN_F32);
        struct endless_model llama2 = endless_small_llama2(NN_BF16);
        check_model(&neox, true, 64, false);
        check_model(&llama2, false, 44, false);
    }
    gpu_close(&g);
}

/* A NeoX that v6's kernel takes. */
static struct endless_model one_kernel_model(size_t NH, size_t HS, size_t L, enum nn_dtype dtype) {
    struct endless_model m = endless_small_neox(dtype);
    m.C = NH * HS, m.hidden = 2 * m.C;
    m.L = L, m.NH = m.KVH = NH, m.HS = HS, m.rotary = HS / 4;
    m.sinks = 3, m.window = 10;
    return m;
}

/* The GPUs that v6's kernel is for; simt is one of them. */
static bool runs_v6(const struct gpu *g) {
    return g->properties.code / 10 == 9 || g->properties.code / 10 == 10;
}

C_TEST(ladder, one_kernel) {
    struct gpu g;
    if (gpu_open(&g) && runs_v6(&g)) {
        struct endless_model odd = one_kernel_model(8, 64, 3, NN_BF16);
        odd.sinks = 1, odd.window = 2;
        check_model(&odd, true, 5, true);
    }
    gpu_close(&g);
}

/* Layers of Pythia-2.8B and 6.9B: too large for simt. */
C_TEST(ladder, one_kernel_on_a_gpu) {
    struct gpu g;
    if (gpu_open(&g) && runs_v6(&g) && !g.properties.modelled) {
        struct endless_model small = one_kernel_model(32, 80, 2, NN_BF16);
        struct endless_model large = one_kernel_model(32, 128, 1, NN_BF16);
        small.hidden = 4 * small.C, large.hidden = 4 * large.C;
        small.sinks = large.sinks = 4, small.window = 93, large.window = 60;
        check_model(&small, true, 250, true);
        check_model(&large, true, 150, true);
    }
    gpu_close(&g);
}
