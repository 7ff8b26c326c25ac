/**
 * @file attention_test.c
 * @brief Attention against the textbook formulation with whole matrices, and its properties.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"

static const struct tolerance rounded_once = {
    .absolute = 1e-12, .relative = 0x1.01p-24, .norm = 0x1.01p-24};

/* One problem with random inputs; strides leave gaps, which hold NaN. */
struct problem {
    struct nn_attention a;
    float *q, *k, *v;
    uint8_t *mask;
    struct guarded out;
    double *scores;
    double *want; /* (B, T, NH, HS) */
};

static float *random_rows(struct rng *rng, size_t rows, size_t width, size_t stride) {
    float *x = malloc((rows * stride + 1) * sizeof *x);
    for (size_t i = 0; x != NULL && i < rows * stride; i++) {
        x[i] = i % stride < width ? rng_normal(rng) : NAN;
    }
    return x;
}

/* Allocates and fills the arrays for the sizes in p->a, with @p gap elements after each token. */
static bool problem_create(struct problem *p, size_t gap, bool masked, uint64_t seed) {
    struct nn_attention *a = &p->a;
    struct rng rng = rng_create(seed);
    a->q_stride = a->NH * a->HS + gap;
    a->kv_stride = a->KVH * a->HS + gap;
    a->scale = 1.0f / sqrtf((float)a->HS);
    p->q = random_rows(&rng, a->B * a->T, a->NH * a->HS, a->q_stride);
    p->k = random_rows(&rng, a->B * a->S, a->KVH * a->HS, a->kv_stride);
    p->v = random_rows(&rng, a->B * a->S, a->KVH * a->HS, a->kv_stride);
    p->mask = malloc(a->B * a->S + 1);
    for (size_t i = 0; p->mask != NULL && i < a->B * a->S; i++) {
        p->mask[i] = rng_below(&rng, 3) != 0;
    }
    a->q = p->q;
    a->k = p->k;
    a->v = p->v;
    a->mask = masked ? p->mask : NULL;
    p->scores = malloc((a->S + 1) * sizeof *p->scores);
    p->want = calloc(a->B * a->T * a->NH * a->HS + 1, sizeof *p->want);
    return p->q && p->k && p->v && p->mask && p->scores && p->want &&
           guarded_create(&p->out, a->B * a->T * a->NH * a->HS) == STATUS_OK;
}

static void problem_free(struct problem *p) {
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->mask);
    free(p->scores);
    free(p->want);
    guarded_free(&p->out);
}

/* Weight of key s for query t before normalisation; the inputs are small enough for a bare exp. */
static long double weight(const struct nn_attention *a, size_t b, size_t t, size_t h, size_t s) {
    bool masked =
        (a->mask != NULL && a->mask[b * a->S + s] == 0) || (a->causal && s + a->T > a->S + t);
    size_t group = a->NH / a->KVH;
    long double sum = 0.0L;
    for (size_t i = 0; i < a->HS; i++) {
        sum += (long double)a->q[(b * a->T + t) * a->q_stride + h * a->HS + i] *
               a->k[(b * a->S + s) * a->kv_stride + h / group * a->HS + i];
    }
    return masked ? 0.0L : expl(sum * a->scale);
}

/* want = one element of out by the definition, in long double. */
static double element(const struct nn_attention *a, size_t b, size_t t, size_t h, size_t i) {
    size_t group = a->NH / a->KVH;
    long double total = 0.0L, sum = 0.0L;
    for (size_t s = 0; s < a->S; s++) {
        long double w = weight(a, b, t, h, s);
        total += w;
        sum += w * a->v[(b * a->S + s) * a->kv_stride + h / group * a->HS + i];
    }
    return total > 0.0L ? (double)(sum / total) : 0.0;
}

static void problem_solve(struct problem *p) {
    const struct nn_attention *a = &p->a;
    for (size_t n = 0; n < a->B * a->T * a->NH * a->HS; n++) {
        size_t h = n / a->HS % a->NH;
        size_t t = n / (a->HS * a->NH) % a->T;
        size_t b = n / (a->HS * a->NH * a->T);
        p->want[n] = element(a, b, t, h, n % a->HS);
    }
}

static void expect_close(const char *what, const struct problem *p, struct tolerance tolerance) {
    struct comparison result = compare_f32(p->out.data, p->want, p->out.count, tolerance);
    if (!result.pass) {
        char text[256];
        comparison_describe(&result, p->a.HS, text, sizeof text);
        TEST_FAIL("%s, B %zu, T %zu, S %zu, NH %zu, KVH %zu, HS %zu: %s", what, p->a.B, p->a.T,
                  p->a.S, p->a.NH, p->a.KVH, p->a.HS, text);
    }
    EXPECT_TRUE(guarded_intact(&p->out));
}

C_TEST(attention, equals_the_definition) {
    const struct nn_attention sizes[] = {
        {.B = 1, .T = 1, .S = 1, .NH = 1, .KVH = 1, .HS = 1},
        {.B = 2, .T = 3, .S = 5, .NH = 3, .KVH = 3, .HS = 7},
        {.B = 1, .T = 4, .S = 4, .NH = 4, .KVH = 2, .HS = 8},
        {.B = 3, .T = 2, .S = 9, .NH = 6, .KVH = 1, .HS = 33},
        {.B = 1, .T = 7, .S = 33, .NH = 2, .KVH = 1, .HS = 65},
        {.B = 2, .T = 1, .S = 17, .NH = 5, .KVH = 5, .HS = 32},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int variant = 0; variant < 8; variant++) {
            struct problem p = {.a = sizes[i]};
            p.a.causal = variant & 1;
            ASSERT_TRUE(problem_create(&p, variant & 4 ? 3 : 0, variant & 2, i * 8 + variant + 1));
            problem_solve(&p);
            nn_attention(p.out.data, &p.a, p.scores);
            expect_close("attention", &p, rounded_once);
            problem_free(&p);
        }
    }
}

/* One query of one head, (HS), with S <= 3 keys; scores are the plain dot products. */
static void attend(float *out, const float *q, const float *k, const float *v, size_t S,
                   size_t HS) {
    struct nn_attention a = {.B = 1, .T = 1, .S = S, .NH = 1, .KVH = 1, .HS = HS, .scale = 1};
    double scores[3];
    a.q = q;
    a.k = k;
    a.v = v;
    a.q_stride = a.kv_stride = HS;
    nn_attention(out, &a, scores);
}

C_TEST(attention, worked_by_hand) {
    /* Scores 0 and ln 3: weights 1/4 and 3/4. */
    const float q[] = {1.0986123f}, k[] = {0, 1}, v[] = {8, -4};
    float out;
    attend(&out, q, k, v, 2, 1);
    EXPECT_NEAR(-1.0, out, 1e-6);
}

C_TEST(attention, grouped_queries_equal_repeated_keys) {
    enum { T = 3, S = 5, NH = 6, KVH = 2, HS = 4 };
    struct problem p = {.a = {.B = 1, .T = T, .S = S, .NH = NH, .KVH = KVH, .HS = HS}};
    ASSERT_TRUE(problem_create(&p, 0, false, 21));
    float k[S * NH * HS], v[S * NH * HS];
    for (size_t i = 0; i < S * NH * HS; i++) {
        size_t s = i / (NH * HS), h = i / HS % NH / (NH / KVH);
        k[i] = p.k[s * KVH * HS + h * HS + i % HS];
        v[i] = p.v[s * KVH * HS + h * HS + i % HS];
    }
    struct nn_attention repeated = p.a;
    repeated.k = k;
    repeated.v = v;
    repeated.KVH = NH;
    repeated.kv_stride = NH * HS;
    float want[T * NH * HS];
    nn_attention(p.out.data, &p.a, p.scores);
    nn_attention(want, &repeated, p.scores);
    EXPECT_TRUE(memcmp(want, p.out.data, sizeof want) == 0);
    problem_free(&p);
}

C_TEST(attention, causal_equals_one_token_at_a_time) {
    /* Prefill of T tokens after S - T cached ones equals decoding them one by one. */
    enum { T = 4, S = 9, NH = 2, HS = 6 };
    struct problem p = {
        .a = {.B = 1, .T = T, .S = S, .NH = NH, .KVH = 1, .HS = HS, .causal = true}};
    ASSERT_TRUE(problem_create(&p, 2, false, 22));
    nn_attention(p.out.data, &p.a, p.scores);
    for (size_t t = 0; t < T; t++) {
        struct nn_attention one = p.a;
        one.q = p.q + t * p.a.q_stride;
        one.T = 1;
        one.S = S - T + t + 1;
        float want[NH * HS];
        nn_attention(want, &one, p.scores);
        EXPECT_TRUE(memcmp(want, p.out.data + t * NH * HS, sizeof want) == 0);
    }
    problem_free(&p);
}

C_TEST(attention, masked_keys_equal_absent_keys) {
    enum { S = 6, KEPT = 4, HS = 5 };
    const uint8_t mask[S] = {1, 0, 1, 255, 0, 1}; /* anything but 0 is visible */
    struct problem p = {.a = {.B = 1, .T = 2, .S = S, .NH = 1, .KVH = 1, .HS = HS}};
    ASSERT_TRUE(problem_create(&p, 0, false, 23));
    float k[KEPT * HS], v[KEPT * HS];
    for (size_t s = 0, kept = 0; s < S; s++) {
        float *row_k = p.k + s * HS, *row_v = p.v + s * HS;
        if (mask[s]) {
            memcpy(k + kept * HS, row_k, HS * sizeof *k);
            memcpy(v + kept * HS, row_v, HS * sizeof *v);
            kept++;
        } else {
            row_k[0] = row_v[HS - 1] = NAN; /* must not be touched */
        }
    }
    p.a.mask = mask;
    struct nn_attention shorter = p.a;
    shorter.k = k;
    shorter.v = v;
    shorter.S = KEPT;
    shorter.mask = NULL;
    float want[2 * HS];
    nn_attention(p.out.data, &p.a, p.scores);
    nn_attention(want, &shorter, p.scores);
    EXPECT_TRUE(memcmp(want, p.out.data, sizeof want) == 0);
    problem_free(&p);
}

C_TEST(attention, a_query_without_keys_gets_zeros) {
    struct problem p = {.a = {.B = 2, .T = 3, .S = 4, .NH = 2, .KVH = 1, .HS = 3}};
    ASSERT_TRUE(problem_create(&p, 0, true, 24));
    memset(p.mask, 0, 8);
    nn_attention(p.out.data, &p.a, p.scores);
    expect_close("all masked", &p, (struct tolerance){0}); /* want is still all zeros */
    guarded_poison(&p.out);
    p.a.S = 0;
    nn_attention(p.out.data, &p.a, p.scores);
    expect_close("S = 0", &p, (struct tolerance){0});
    problem_free(&p);
}

C_TEST(attention, causal_and_mask_together_can_leave_one_query_blind) {
    /* Query 0 sees key 0 only, which is masked; query 1 sees key 1. */
    const uint8_t mask[] = {0, 1};
    struct problem p = {.a = {.B = 1, .T = 2, .S = 2, .NH = 1, .KVH = 1, .HS = 2, .causal = true}};
    ASSERT_TRUE(problem_create(&p, 0, false, 25));
    p.a.mask = mask;
    p.want[2] = p.v[2];
    p.want[3] = p.v[3];
    nn_attention(p.out.data, &p.a, p.scores);
    expect_close("blind query", &p, (struct tolerance){0});
    problem_free(&p);
}

C_TEST(attention, empty_sizes_write_nothing) {
    const struct nn_attention sizes[] = {
        {.B = 0, .T = 2, .S = 2, .NH = 1, .KVH = 1, .HS = 2},
        {.B = 1, .T = 0, .S = 2, .NH = 1, .KVH = 1, .HS = 2},
        {.B = 1, .T = 0, .S = 0, .NH = 1, .KVH = 1, .HS = 2, .causal = true},
        {.B = 1, .T = 2, .S = 2, .NH = 0, .KVH = 1, .HS = 2},
        {.B = 1, .T = 2, .S = 2, .NH = 1, .KVH = 1, .HS = 0},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct problem p = {.a = sizes[i]};
        ASSERT_TRUE(problem_create(&p, 1, false, 30 + i));
        EXPECT_INT_EQ(0, p.out.count);
        nn_attention(p.out.data, &p.a, p.scores);
        EXPECT_TRUE(guarded_intact(&p.out));
        problem_free(&p);
    }
}

C_TEST(attention, large_scores_pick_the_largest) {
    const float q[] = {1e4f, 1e4f};
    const float k[] = {1, 1, 2, 2, -3, -3}, v[] = {1, 2, 3, 4, 5, 6};
    float out[2];
    attend(out, q, k, v, 3, 2);
    EXPECT_NEAR(3.0, out[0], 0.0);
    EXPECT_NEAR(4.0, out[1], 0.0);
}

C_TEST(attention, fused_projection_is_read_in_place) {
    /* q, k and v of a token beside each other in one row of 3*NH*HS. */
    enum { T = 5, NH = 2, HS = 3, ROW = 3 * NH * HS };
    float fused[T * ROW];
    struct rng rng = rng_create(26);
    rng_fill_normal(&rng, fused, T * ROW, 1.0f);
    struct problem p = {.a = {.B = 1, .T = T, .S = T, .NH = NH, .KVH = NH, .HS = HS}};
    ASSERT_TRUE(problem_create(&p, 0, false, 27));
    for (size_t i = 0; i < T * NH * HS; i++) {
        const float *row = fused + i / (NH * HS) * ROW + i % (NH * HS);
        p.q[i] = row[0];
        p.k[i] = row[NH * HS];
        p.v[i] = row[2 * NH * HS];
    }
    struct nn_attention in_place = p.a;
    in_place.q = fused;
    in_place.k = fused + NH * HS;
    in_place.v = fused + 2 * NH * HS;
    in_place.q_stride = in_place.kv_stride = ROW;
    float want[T * NH * HS];
    nn_attention(want, &p.a, p.scores);
    nn_attention(p.out.data, &in_place, p.scores);
    EXPECT_TRUE(memcmp(want, p.out.data, sizeof want) == 0);
    problem_free(&p);
}
