#include "common/simt/alu/approximate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/simt/alu/exact_float.h"
#include "common/simt/alu/testing.h"
#include "common/testing/testing.h"

static double reciprocal_root(double x) {
    return 1 / sqrt(x);
}

struct subject {
    const char *name;
    approximate_row *function;
    double (*oracle)(double);
    float least, most; /**< arguments whose error is measured */
    double ulps;       /**< what is allowed, as approximate.h states */
};

static const struct subject subjects[] = {
    {"ex2", approximate_ex2, exp2, -149.0f, 128.0f, 1},
    {"lg2", approximate_lg2, log2, 0x1p-149f, 0x1.fffffep127f, 1},
    {"sin", approximate_sin, sin, -314.0f, 314.0f, 1},
    {"cos", approximate_cos, cos, -314.0f, 314.0f, 1},
    {"tanh", approximate_tanh, tanh, -30.0f, 30.0f, 1},
    {"rsqrt", approximate_rsqrt, reciprocal_root, 0x1p-149f, 0x1.fffffep127f, 1},
};

/** Distance of two floats in floats that lie between. */
static double distance(float a, float b) {
    int32_t x;
    int32_t y;

    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    x = x < 0 ? INT32_MIN - x : x;
    y = y < 0 ? INT32_MIN - y : y;
    return fabs((double)x - (double)y);
}

/** An argument: the bits of a random float in half of the cases, else uniform in the range. */
static float argument(const struct subject *s, struct rng *rng) {
    uint32_t bits = (uint32_t)rng_u64(rng);
    float x;

    memcpy(&x, &bits, 4);
    if (rng_below(rng, 2) == 0 || !(x >= s->least && x <= s->most)) {
        const float span = s->most - s->least < INFINITY ? s->most - s->least : 1000.0f;
        x = s->least + rng_uniform(rng) * span;
    }
    return x;
}

C_TEST(approximate, within_the_stated_distance_of_libm) {
    enum { ROWS = 30000 };

    for (size_t n = 0; n < COUNT(subjects); n++) {
        const struct subject *s = &subjects[n];
        struct rng rng = rng_create(n);
        double worst = 0;
        size_t wrong = 0;

        for (size_t row = 0; row < ROWS; row++) {
            float x[SIMT_LANES];
            float result[SIMT_LANES];
            for (size_t i = 0; i < SIMT_LANES; i++) {
                x[i] = argument(s, &rng);
            }
            s->function(x, result);
            for (size_t i = 0; i < SIMT_LANES; i++) {
                const double error = distance((float)s->oracle((double)x[i]), result[i]);
                worst = error > worst ? error : worst;
                wrong += error > 0;
            }
        }
        printf("%-5s worst %g ulp, %zu of %d differ from libm's rounded double\n", s->name, worst,
               wrong, ROWS * SIMT_LANES);
        EXPECT_TRUE(worst <= s->ulps);
    }
}

struct point {
    const char *opcode;
    uint32_t x, want;
};

/* Special values as the tables of the PTX ISA give them. */
static const struct point points[] = {
    {"ex2.approx.f32", 0xff800000, 0x00000000},
    {"ex2.approx.f32", 0x7f800000, 0x7f800000},
    {"ex2.approx.f32", 0x80000000, 0x3f800000},
    {"ex2.approx.f32", 0x7fc00001, 0x7fffffff},
    {"ex2.approx.f32", 0xc3120000, 0x00000008},
    {"ex2.approx.ftz.f32", 0xc3120000, 0x00000000},
    {"ex2.approx.f32", 0x41200000, 0x44800000},
    {"ex2.approx.f32", 0x43000000, 0x7f800000},
    {"lg2.approx.f32", 0x00000000, 0xff800000},
    {"lg2.approx.f32", 0x80000000, 0xff800000},
    {"lg2.approx.f32", 0xbf800000, 0x7fffffff},
    {"lg2.approx.f32", 0x7f800000, 0x7f800000},
    {"lg2.approx.f32", 0x3f800000, 0x00000000},
    {"lg2.approx.f32", 0x00000001, 0xc3150000},
    {"lg2.approx.ftz.f32", 0x00000001, 0xff800000},
    {"lg2.approx.f32", 0x44800000, 0x41200000},
    {"sin.approx.f32", 0x00000000, 0x00000000},
    {"sin.approx.f32", 0x80000000, 0x80000000},
    {"sin.approx.f32", 0x7f800000, 0x7fffffff},
    {"sin.approx.ftz.f32", 0x80000001, 0x80000000},
    {"cos.approx.f32", 0x00000000, 0x3f800000},
    {"cos.approx.f32", 0xff800000, 0x7fffffff},
    {"tanh.approx.f32", 0x80000000, 0x80000000},
    {"tanh.approx.f32", 0x7f800000, 0x3f800000},
    {"tanh.approx.f32", 0xff800000, 0xbf800000},
    {"tanh.approx.f32", 0xffffffff, 0x7fffffff},
    {"rsqrt.approx.f32", 0x80000000, 0xff800000},
    {"rsqrt.approx.f32", 0x00000000, 0x7f800000},
    {"rsqrt.approx.f32", 0x7f800000, 0x00000000},
    {"rsqrt.approx.f32", 0xbf800000, 0x7fffffff},
    {"rsqrt.approx.ftz.f32", 0x00000001, 0x7f800000},
    {"rsqrt.approx.f32", 0x40800000, 0x3f000000},
    {"ex2.approx.f16", 0xfc00, 0x0000},
    {"ex2.approx.f16", 0x4000, 0x4400},
    {"ex2.approx.f16x2", 0x3c004000, 0x40004400},
    {"ex2.approx.ftz.bf16x2", 0x3f804000, 0x40004080},
    {"tanh.approx.f16", 0xfc00, 0xbc00},
    {"tanh.approx.bf16x2", 0xff807f80, 0xbf803f80},
    {"ex2.approx.ftz.f16", 0xcb80, 0x0000},
};

C_TEST(approximate, special_values) {
    for (size_t n = 0; n < COUNT(points); n++) {
        struct alu_fixture f;

        alu_fixture_create(&f, points[n].opcode, 1);
        ASSERT_TRUE(alu_fixture_decode(&f));
        for (size_t lane = 0; lane < SIMT_LANES; lane++) {
            alu_fixture_row(&f, 1)->u32[lane] = points[n].x;
            alu_fixture_row(&f, 0)->u32[lane] = 42;
        }
        alu_fixture_mask(&f, 0x80000001);
        f.instruction.run(&f.warp, &f.instruction);
        if (alu_fixture_row(&f, 0)->u32[31] != points[n].want) {
            TEST_FAIL("%s(%08x): want %08x, got %08x", points[n].opcode, points[n].x,
                      points[n].want, alu_fixture_row(&f, 0)->u32[31]);
        }
        EXPECT_INT_EQ(42, alu_fixture_row(&f, 0)->u32[15]);
    }
}

C_TEST(approximate, sine_stays_in_range_for_huge_arguments) {
    struct rng rng = rng_create(4);

    for (size_t row = 0; row < 1000; row++) {
        float x[SIMT_LANES];
        float sine[SIMT_LANES];
        float cosine[SIMT_LANES];
        for (size_t i = 0; i < SIMT_LANES; i++) {
            const uint32_t bits = (uint32_t)alu_make_float(&rng, 0, 32);
            memcpy(&x[i], &bits, 4);
        }
        approximate_sin(x, sine);
        approximate_cos(x, cosine);
        for (size_t i = 0; i < SIMT_LANES; i++) {
            EXPECT_TRUE(isfinite(x[i]) ? fabsf(sine[i]) <= 1 && fabsf(cosine[i]) <= 1
                                       : isnan(sine[i]) && isnan(cosine[i]));
        }
    }
}

/* div.approx is right but where the reciprocal is flushed: |y| in (2^126, 2^128). */
static uint64_t quotient(const void *context, const uint64_t s[4]) {
    const double x = exact_value(s[0], 32);
    const double y = exact_value(s[1], 32);
    const uint64_t sign = (s[0] ^ s[1]) & 0x80000000;

    (void)context;
    if (isnan(x) || isnan(y) || (isinf(x) && isinf(y)) || (x == 0 && y == 0)) {
        return 0x7fffffff;
    }
    if (fabs(y) > 0x1p126 && isfinite(y)) {
        return isinf(x) ? 0x7fffffff : sign;
    }
    if (isinf(x) || y == 0) {
        return 0x7f800000 | sign;
    }
    return isinf(y) ? sign : exact_round((struct exact){(quad)x / (quad)y, 0}, 32, 0, sign != 0);
}

C_TEST(approximate, division) {
    alu_check("div.approx.f32", 2, alu_make_float, quotient, NULL);
}

/* The coarse fp64 values: 20 bits of fraction, of the argument's upper half. Without .ftz the
 * hardware's routine delivers nearly all bits. */
C_TEST(approximate, coarse_doubles) {
    static const char *const opcodes[] = {"rcp.approx.ftz.f64", "rsqrt.approx.f64",
                                          "rsqrt.approx.ftz.f64"};
    struct rng rng = rng_create(5);

    for (size_t n = 0; n < COUNT(opcodes); n++) {
        struct alu_fixture f;
        alu_fixture_create(&f, opcodes[n], 1);
        ASSERT_TRUE(alu_fixture_decode(&f));
        for (size_t lane = 0; lane < SIMT_LANES; lane++) {
            alu_fixture_row(&f, 1)->f64[lane] =
                ldexp(1 + (double)rng_uniform(&rng), (int)lane * 40 - 600);
        }
        f.instruction.run(&f.warp, &f.instruction);
        for (size_t lane = 0; lane < SIMT_LANES; lane++) {
            const double x = alu_fixture_row(&f, 1)->f64[lane];
            const double want = n == 0 ? 1 / x : 1 / sqrt(x);
            EXPECT_NEAR(1.0, alu_fixture_row(&f, 0)->f64[lane] / want, n == 1 ? 0x1p-52 : 0x1p-19);
            EXPECT_TRUE(n == 1 || (uint32_t)alu_fixture_row(&f, 0)->u64[lane] == 0);
        }
    }
}
