/* Sums of tensor cores against the same in integers, written down from their description. What an
 * H100 computes is in sums/. */
#include "common/simt/core/ops/tensor_sum.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"

enum { M = 3, N = 16, K = 32 };

/* mantissa * 2^(exponent - digits), whose leading digit is at 2^exponent unless it is subnormal. */
struct number {
    int64_t mantissa;
    int exponent, digits;
};

static const struct {
    enum tile_format format;
    int digits, least, most; /* below the leading one; exponents */
} formats[] = {
    {TILE_F16, 10, -14, 15},   {TILE_BF16, 7, -126, 126}, {TILE_TF32, 10, -126, 126},
    {TILE_F32, 23, -126, 126}, {TILE_E4M3, 3, -6, 8},     {TILE_E5M2, 2, -14, 15},
};

static size_t find(enum tile_format format) {
    size_t n = 0;
    while (formats[n].format != format) {
        n++;
    }
    return n;
}

static double value_of(struct number x) {
    return ldexp((double)x.mantissa, x.exponent - x.digits);
}

/* A number of the format; one in eight is 0, and at the least exponent many are subnormal. */
static struct number draw(struct rng *rng, enum tile_format format, int first, int count) {
    size_t f = find(format);
    struct number x = {.digits = formats[f].digits};
    int exponent = first + (int)rng_below(rng, (uint64_t)count);
    x.exponent = exponent < formats[f].least  ? formats[f].least
                 : exponent > formats[f].most ? formats[f].most
                                              : exponent;
    int64_t leading = (int64_t)1 << x.digits;
    x.mantissa = (int64_t)rng_below(rng, (uint64_t)leading);
    x.mantissa += exponent < formats[f].least ? 0 : leading;
    x.mantissa = rng_below(rng, 2) == 0 ? -x.mantissa : x.mantissa;
    x.mantissa = rng_below(rng, 8) == 0 ? 0 : x.mantissa;
    return x;
}

static struct number product(struct number a, struct number b) {
    return (struct number){a.mantissa * b.mantissa, a.exponent + b.exponent, a.digits + b.digits};
}

/* Magnitude without what lies below the unit. */
static int64_t cut(int64_t mantissa, int shift) {
    int64_t size = mantissa < 0 ? -mantissa : mantissa;
    size = shift >= 0 ? size << shift : -shift > 62 ? 0 : size >> -shift;
    return mantissa < 0 ? -size : size;
}

/* Back to a number of fp32, of `bits` below the leading one. */
static struct number to_float(int64_t sum, int unit, int bits) {
    int64_t size = sum < 0 ? -sum : sum;
    int leading = 63 - (size == 0 ? 63 : __builtin_clzll((unsigned long long)size));
    struct number x = {.exponent = leading + unit, .digits = 23};
    x.exponent = x.exponent < -126 ? -126 : x.exponent;
    int dropped = x.exponent - bits - unit; /* digits of sum below the last one that is kept */
    x.mantissa = dropped > 0 ? size >> dropped << dropped : size;
    int shift = unit - (x.exponent - x.digits);
    x.mantissa = shift >= 0 ? x.mantissa << shift : x.mantissa >> -shift;
    x.mantissa = sum < 0 ? -x.mantissa : x.mantissa;
    x.exponent = size == 0 ? -126 : x.exponent;
    return x;
}

static struct number add(const struct tensor_sum *sum, const struct number *a,
                         const struct number *b, size_t stride, struct number c) {
    for (size_t first = 0; first < K; first += sum->group) {
        struct number addends[K + 1] = {c};
        int top = c.mantissa != 0 ? c.exponent : -1000;
        size_t count = 1;
        for (size_t k = first; k < first + sum->group && k < K; k++) {
            struct number p = product(a[k], b[k * stride]);
            addends[count++] = p;
            top = p.mantissa != 0 && p.exponent > top ? p.exponent : top;
        }
        int64_t all = 0;
        int unit = top - sum->fraction_bits;
        for (size_t n = 0; n < count && top > -1000; n++) {
            all += cut(addends[n].mantissa, addends[n].exponent - addends[n].digits - unit);
        }
        c = to_float(all, unit, sum->result_bits);
    }
    return c;
}

struct magnitudes {
    int first, count, c_first, c_count;
};

static void check(uint32_t code, enum tile_format format, bool warpgroup, struct magnitudes s,
                  bool with_large) {
    static struct number a[M][K], b[K][N], c[M][N];
    double a_values[M * K], b_values[K * N], c_values[M * N];
    struct rng rng = rng_create((uint64_t)format * 1000 + (uint64_t)(s.first + 500));
    const struct tensor_sum sum = tensor_sum_of(code, format, TILE_F32, warpgroup);
    for (size_t n = 0; n < (size_t)M * K; n++) {
        a[n / K][n % K] = draw(&rng, format, s.first, s.count);
        a_values[n] = value_of(a[n / K][n % K]);
    }
    for (size_t n = 0; n < (size_t)K * N; n++) {
        b[n / N][n % N] = draw(&rng, format, s.first, s.count);
        b_values[n] = value_of(b[n / N][n % N]);
    }
    for (size_t n = 0; n < (size_t)M * N; n++) {
        c[n / N][n % N] = draw(&rng, TILE_F32, s.c_first, s.c_count);
        c_values[n] = value_of(c[n / N][n % N]);
    }
    if (with_large) {
        c_values[0] = 0x1p120; /* all are computed one by one */
    }
    const struct tensor_factors factors = {.m = M,
                                           .n = N,
                                           .k = K,
                                           .a = a_values,
                                           .a_row = K,
                                           .a_k = 1,
                                           .b = b_values,
                                           .b_format = format};
    tensor_multiply(&sum, &factors, c_values);
    for (size_t n = with_large; n < (size_t)M * N && !test_has_failed(); n++) {
        double want = value_of(add(&sum, a[n / N], &b[0][n % N], N, c[n / N][n % N]));
        if (c_values[n] != want) {
            TEST_FAIL("code %u, format %d, %s, exponents from %d, element %zu%s: %a, wanted %a",
                      code, (int)format, warpgroup ? "wgmma" : "mma", s.first, n,
                      with_large ? ", one by one" : "", c_values[n], want);
        }
    }
}

C_TEST(tensor_sum, equals_integers) {
    static const struct magnitudes cases[] = {
        {-1, 3, -2, 5}, {-4, 9, -6, 14}, {-6, 13, -20, 36}, {-3, 6, 6, 8}, {-16, 4, -40, 30}};
    static const uint32_t codes[] = {75, 80, 89, 90, 100};
    for (size_t n = 0; n < 5 * 5 * 6; n++) {
        enum tile_format format = formats[n % 6].format;
        bool warpgroup = codes[n / 6 % 5] == 90 && n % 2 == 0;
        if (format != TILE_F32) {
            check(codes[n / 6 % 5], format, warpgroup, cases[n / 30], false);
            check(codes[n / 6 % 5], format, warpgroup, cases[n / 30], true);
        }
    }
}

C_TEST(tensor_sum, passes_on_what_is_no_number) {
    double a[M * K] = {0}, b[K * N] = {0}, c[M * N] = {0};
    const struct tensor_sum sum = tensor_sum_of(90, TILE_BF16, TILE_F32, true);
    const struct tensor_factors factors = {
        .m = M, .n = N, .k = K, .a = a, .a_row = K, .a_k = 1, .b = b, .b_format = TILE_BF16};
    a[0] = INFINITY;
    b[0] = 1; /* inf * 1, and inf * 0 in the other columns */
    a[K] = 1;
    c[2 * N] = -INFINITY;
    tensor_multiply(&sum, &factors, c);
    EXPECT_TRUE(c[0] == (double)INFINITY);
    EXPECT_TRUE(isnan(c[1]));
    EXPECT_NEAR(1.0, c[N], 0.0);
    EXPECT_TRUE(c[2 * N] == (double)-INFINITY);
}
