/* v6's and v7's kernels on simt, with code for compute_90a: against the double oracle, under full
 * checks. ladder_test runs them on a GPU, with more shapes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/07_attention/given/attention_lse.h"
#include "labs/07_attention/problem/case.h"
#include "solutions/07_attention/steps/ladder.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* v7's kernel also where v6 would be faster. */
static enum status v7_kernel(const struct attention_problem *p, device_stream stream,
                             struct error *error) {
    return attention_specialised(p, NULL, 0, stream, error);
}

static void check(const struct attention_spec *spec, attention_function *step) {
    struct attention_case c;
    struct error error = {0};
    char text[400] = "";
    enum status status = attention_case_create(&c, spec, spec->T * 31 + spec->S, false, &error);
    if (status == STATUS_OK) {
        status = attention_case_run(&c, step, NULL, &error);
    }
    if (status != STATUS_OK || !attention_case_check(&c, text, sizeof text)) {
        TEST_FAIL("%s: %s %s", c.name, text, error.message);
    }
    attention_case_free(&c);
}

static void check_list(const struct attention_spec *list, size_t count, attention_function *step) {
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    EXPECT_TRUE(attention_hopper_there());
    for (size_t n = 0; n < count && !test_has_failed(); n++) {
        struct attention_spec spec = list[n];
        spec.dtype = n % 2 == 0 ? NN_F16 : NN_BF16;
        spec.loudness = spec.loudness == 0.0f ? 1.0f : spec.loudness;
        check(&spec, step);
    }
}

/* One to many tiles of keys, each kind of mask, both sizes of heads. */
C_TEST(hopper_on_simt, v6_equals_the_oracle) {
    static const int32_t lengths[] = {0, 64, 65, 193, 193, 260};
    static const struct attention_spec list[] = {
        {.B = 1, .T = 64, .S = 64, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 65, .S = 129, .NH = 2, .KVH = 1, .HS = 64},
        {.B = 1, .T = 5, .S = 300, .NH = 1, .KVH = 1, .HS = 8},
        {.B = 1, .T = 100, .S = 257, .NH = 1, .KVH = 1, .HS = 128},
        {.B = 1, .T = 130, .S = 200, .NH = 1, .KVH = 1, .HS = 72, .causal = true},
        {.B = 1, .T = 70, .S = 300, .NH = 1, .KVH = 1, .HS = 64, .mask = MASK_RANDOM},
        {.B = 2, .T = 70, .S = 200, .NH = 1, .KVH = 1, .HS = 128, .mask = MASK_BLOCKS},
        {.B = 5, .NH = 1, .KVH = 1, .HS = 64, .starts = lengths, .causal = true},
    };
    check_list(list, COUNT(list), attention_v6_hopper);
}

/* v7's own kernel: one to many tiles of keys and items, more tiles than stages, keys that end
   inside a tile, causal with more keys than queries, grouped queries, packed texts, outputs that
   are not aligned, and scores that grow from tile to tile. */
C_TEST(hopper_on_simt, v7_equals_the_oracle) {
    static const int32_t lengths[] = {0, 64, 65, 193, 193, 460};
    static const struct attention_spec list[] = {
        {.B = 1, .T = 65, .S = 64, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 128, .S = 128, .NH = 1, .KVH = 1, .HS = 128},
        {.B = 2, .T = 65, .S = 129, .NH = 2, .KVH = 1, .HS = 64},
        {.B = 1, .T = 100, .S = 500, .NH = 1, .KVH = 1, .HS = 128},
        {.B = 1, .T = 300, .S = 700, .NH = 1, .KVH = 1, .HS = 64, .causal = true},
        {.B = 1, .T = 200, .S = 200, .NH = 4, .KVH = 2, .HS = 128, .causal = true},
        {.B = 1, .T = 66, .S = 66, .NH = 2, .KVH = 2, .HS = 64, .layout = LAYOUT_JOINED},
        {.B = 1, .T = 70, .S = 600, .NH = 1, .KVH = 1, .HS = 64, .loudness = 300.0f},
        {.B = 5, .NH = 2, .KVH = 1, .HS = 64, .starts = lengths, .causal = true},
        {.B = 5, .NH = 1, .KVH = 1, .HS = 128, .starts = lengths},
    };
    check_list(list, COUNT(list), v7_kernel);
}

C_TEST(hopper_on_simt, v7_leaves_the_rest_to_v6) {
    static const struct attention_spec list[] = {
        {.B = 1, .T = 130, .S = 70, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 70, .S = 200, .NH = 1, .KVH = 1, .HS = 128, .mask = MASK_RANDOM},
        {.B = 1, .T = 129, .S = 20, .NH = 1, .KVH = 1, .HS = 72},
    };
    check_list(list, COUNT(list), attention_v7_specialised);
}

static enum status on_two_blocks(const struct attention_problem *p, device_stream stream,
                                 struct error *error) {
    return attention_specialised(p, NULL, 2, stream, error);
}

/* More items than blocks: places for queries come round, and every second round goes backwards;
   last tiles leave warpgroups without queries. */
C_TEST(hopper_on_simt, v7_takes_item_after_item) {
    static const int32_t lengths[] = {0, 64, 65, 193, 193, 460};
    static const struct attention_spec list[] = {
        {.B = 1, .T = 65, .S = 40, .NH = 9, .KVH = 3, .HS = 64},
        {.B = 2, .T = 200, .S = 140, .NH = 2, .KVH = 2, .HS = 64},
        {.B = 2, .T = 130, .S = 131, .NH = 2, .KVH = 1, .HS = 128, .causal = true},
        {.B = 5, .NH = 2, .KVH = 1, .HS = 64, .starts = lengths, .causal = true},
    };
    check_list(list, COUNT(list), on_two_blocks);
}

static enum status on_one_block(const struct attention_problem *p, device_stream stream,
                                struct error *error) {
    return attention_specialised(p, NULL, 1, stream, error);
}

/* Four warpgroups, which one block takes where 256 queries are one item instead of two: all of them
   have queries, the last has few, the last one has none; keys that end inside a tile. */
C_TEST(hopper_on_simt, v7_has_four_warpgroups) {
    static const int32_t lengths[] = {0, 240, 480};
    static const struct attention_spec list[] = {
        {.B = 1, .T = 256, .S = 64, .NH = 1, .KVH = 1, .HS = 64},
        {.B = 1, .T = 194, .S = 600, .NH = 2, .KVH = 1, .HS = 64},
        {.B = 2, .T = 448, .S = 65, .NH = 1, .KVH = 1, .HS = 64, .loudness = 300.0f},
        {.B = 2, .NH = 1, .KVH = 1, .HS = 64, .starts = lengths},
    };
    check_list(list, COUNT(list), on_one_block);
}

/* ---- Sequences that lie side by side ---- */

enum { STRANGERS = 3 };

/* NaN in k and v of the middle one of three sequences. */
static enum status spoil_middle(const struct attention_case *c, size_t first, size_t count,
                                struct error *error) {
    size_t row = c->problem.kv_stride * nn_dtype_bytes(c->spec.dtype);
    for (int i = 1; i < 3; i++) { /* k and v */
        char *rows = (char *)c->in[c->block[i]] + c->offset[i] + first * row;
        TRY(device_set(rows, 0xff, count * row, NULL, error));
    }
    return STATUS_OK;
}

/* What the first and the last one get is the same, bit for bit. */
static void check_strangers(const struct attention_spec *spec, attention_function *step,
                            const int32_t *starts) {
    struct attention_case c;
    struct error error = {0};
    size_t row = spec->NH * spec->HS, first = (size_t)starts[1], end = (size_t)starts[2];
    size_t last = (size_t)starts[STRANGERS] - end;
    enum status status = attention_case_create(&c, spec, 3, false, &error);
    float *before = NULL;
    if (status == STATUS_OK && (status = attention_case_run(&c, step, NULL, &error)) == STATUS_OK) {
        before = malloc((size_t)starts[STRANGERS] * row * sizeof *before);
        ASSERT_TRUE(before != NULL);
        memcpy(before, c.got, (size_t)starts[STRANGERS] * row * sizeof *before);
        status = spoil_middle(&c, first, end - first, &error);
    }
    if (status == STATUS_OK && (status = attention_case_run(&c, step, NULL, &error)) == STATUS_OK) {
        EXPECT_TRUE(memcmp(before, c.got, first * row * sizeof *before) == 0);
        EXPECT_TRUE(memcmp(before + end * row, c.got + end * row, last * row * sizeof *before) ==
                    0);
        EXPECT_TRUE(isnan(c.got[first * row]));
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", c.name, error.message);
    }
    free(before);
    attention_case_free(&c);
}

C_TEST(hopper_on_simt, sequences_see_only_themselves) {
    static const int32_t lengths[STRANGERS + 1] = {0, 90, 155, 300};
    static const int32_t equal[STRANGERS + 1] = {0, 70, 140, 210};
    static attention_function *const steps[] = {attention_v6_hopper, v7_kernel};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    for (size_t HS = 64; HS <= 128; HS += 64) {
        const struct attention_spec packed = {.dtype = NN_BF16,
                                              .B = STRANGERS,
                                              .NH = 1,
                                              .KVH = 1,
                                              .HS = HS,
                                              .starts = lengths,
                                              .loudness = 1.0f};
        const struct attention_spec padded = {.dtype = NN_F16,
                                              .B = STRANGERS,
                                              .T = 70,
                                              .S = 70,
                                              .NH = 1,
                                              .KVH = 1,
                                              .HS = HS,
                                              .loudness = 1.0f};
        for (size_t i = 0; i < COUNT(steps); i++) {
            check_strangers(&packed, steps[i], lengths);
            check_strangers(&padded, steps[i], equal);
        }
    }
}

/* ---- Logarithms of sums ---- */

/* log(sum of exp(scale * q . k)) of the keys that token t of a sequence sees, in double. */
static double want_lse(const struct attention_case *c, size_t start, size_t t, size_t seen,
                       size_t head) {
    const struct attention_spec *s = &c->spec;
    const float *q = c->q + ((start + t) * s->NH + head) * s->HS;
    double sum = 0.0;
    for (size_t key = 0; key < seen; key++) {
        const float *k = c->k + ((start + key) * s->KVH + head / (s->NH / s->KVH)) * s->HS;
        double score = 0.0;
        for (size_t i = 0; i < s->HS; i++) {
            score += (double)q[i] * k[i];
        }
        sum += exp(c->problem.scale * score);
    }
    return log(sum);
}

typedef enum status lse_function(const struct attention_problem *problem, float *lse,
                                 device_stream stream, struct error *error);

static enum status v7_lse(const struct attention_problem *p, float *lse, device_stream stream,
                          struct error *error) {
    return attention_specialised(p, lse, 0, stream, error);
}

static void check_lse(const struct attention_spec *spec, size_t tokens, lse_function *run) {
    struct attention_case c;
    struct error error = {0};
    void *d_lse = NULL;
    float *lse = malloc(tokens * spec->NH * sizeof *lse);
    ASSERT_TRUE(lse != NULL);
    ASSERT_OK(attention_case_create(&c, spec, 5, false, &error));
    EXPECT_OK(device_alloc(&d_lse, tokens * spec->NH * sizeof *lse, &error));
    EXPECT_OK(run(&c.problem, d_lse, NULL, &error));
    EXPECT_OK(device_read(lse, d_lse, tokens * spec->NH * sizeof *lse, NULL, &error));
    for (size_t b = 0; b < spec->B; b++) {
        size_t start = (size_t)spec->starts[b], length = (size_t)spec->starts[b + 1] - start;
        for (size_t i = 0; i < length * spec->NH; i++) {
            size_t t = i / spec->NH, head = i % spec->NH;
            double want = want_lse(&c, start, t, spec->causal ? t + 1 : length, head);
            EXPECT_NEAR(want, lse[start * spec->NH + i], 1e-4 * (1.0 + fabs(want)));
        }
    }
    device_free(d_lse);
    attention_case_free(&c);
    free(lse);
}

C_TEST(hopper_on_simt, lse_equals_the_oracle) {
    static const int32_t lengths[] = {0, 90, 91, 260};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    struct attention_spec spec = {
        .dtype = NN_BF16, .B = 3, .NH = 2, .KVH = 1, .HS = 64, .starts = lengths, .loudness = 1.0f};
    check_lse(&spec, 260, v7_lse);
    spec.HS = 128, spec.causal = true;
    check_lse(&spec, 260, v7_lse);
    spec.HS = 40;
    check_lse(&spec, 260, attention_lse);
}
