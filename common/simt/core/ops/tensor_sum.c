#include "common/simt/core/ops/tensor_sum.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "common/simt/core/ops/small_float.h"

enum { LANES = 8, STEP = 8, MOST_N = 256, MOST_K = 64, MOST_B = MOST_N * MOST_K };

typedef float floats __attribute__((vector_size(32)));
typedef int32_t integers __attribute__((vector_size(32)));

static bool is_eight_bits(enum tile_format format) {
    return format == TILE_E4M3 || format == TILE_E5M2;
}

/* Until Ada a group has 16 bytes of K, since Hopper 32. */
struct tensor_sum tensor_sum_of(uint32_t code, enum tile_format factor, enum tile_format sum,
                                bool warpgroup) {
    bool is_float =
        factor == TILE_F16 || factor == TILE_BF16 || factor == TILE_TF32 || is_eight_bits(factor);
    /* The 8-bit products of Ada and of wgmma: not those of mma on Hopper, which are products of
       fp16 there. */
    bool few = is_eight_bits(factor) && (warpgroup || code == 89);
    uint32_t bytes = code >= 90 ? 32 : 16;
    struct tensor_sum how = {.factor = factor, .sum = sum, .result_bits = few ? 13 : 23};
    how.fraction_bits = few ? 13 : code >= 90 ? 25 : 24;
    how.group = bytes * 8 / tile_bits(factor);
    if (code == 0 || !is_float) {
        how.fraction_bits = 0;
    }
    return how;
}

/* ---- Exact ---- */

static const double *row_of_b(const struct tensor_factors *f, size_t row, size_t k) {
    return &f->b[(f->columns == NULL ? k : f->columns[row * f->k + k]) * f->n];
}

static void multiply_exactly(const struct tensor_factors *f, double *restrict c) {
    for (size_t row = 0; row < f->m; row++) {
        for (size_t k = 0; k < f->k; k++) {
            double x = f->a[row * f->a_row + k * f->a_k];
            const double *restrict b = row_of_b(f, row, k);
            for (size_t column = 0; column < f->n; column++) {
                c[row * f->n + column] = fma(x, b[column], c[row * f->n + column]);
            }
        }
    }
}

/* ---- One element, whatever its values are ---- */

static int least_exponent(enum tile_format format) {
    return format == TILE_F16 || format == TILE_E5M2 ? -14 : format == TILE_E4M3 ? -6 : -126;
}

/* Of a value that is not 0. */
static int exponent_of(double x, enum tile_format format) {
    int exponent = ilogb(x), least = least_exponent(format);
    return exponent < least ? least : exponent;
}

/* Towards zero; beyond the largest to infinity. */
static double cut_to_float(double x, int bits) {
    float nearest = (float)x;
    uint32_t word = row_bits_of_float(nearest);
    if (fabs((double)nearest) > fabs(x)) {
        word--;
    }
    return isfinite(x) && fabs(x) < 0x1p128
               ? (double)row_float_of_bits(word & UINT32_MAX << (23 - bits))
               : x;
}

static double round_sum(const struct tensor_sum *sum, double x) {
    return sum->sum == TILE_F16 ? (double)half_to_float(float_to_half(double_to_odd(x)))
                                : cut_to_float(x, sum->result_bits);
}

/* The products of a group: at most MOST_K. */
struct addends {
    double values[MOST_K];
    int exponents[MOST_K];
    size_t count;
};

static void add_to(struct addends *addends, double value, int exponent) {
    if (value != 0.0) {
        addends->values[addends->count] = value;
        addends->exponents[addends->count++] = exponent;
    }
}

static double sum_of(const struct tensor_sum *sum, const struct addends *addends) {
    int top = INT32_MIN;
    double all = 0.0;
    for (size_t n = 0; n < addends->count; n++) {
        if (!isfinite(addends->values[n])) {
            for (size_t i = 0; i < addends->count; i++) {
                all += addends->values[i];
            }
            return all;
        }
        top = addends->exponents[n] > top ? addends->exponents[n] : top;
    }
    for (size_t n = 0; n < addends->count; n++) {
        all += trunc(ldexp(addends->values[n], sum->fraction_bits - top));
    }
    return all == 0.0 ? 0.0 : ldexp(all, top - sum->fraction_bits);
}

/* The k of a group, from first to last. */
struct group {
    size_t first, last;
};

static struct group group_at(const struct tensor_sum *sum, const struct tensor_factors *f,
                             size_t first) {
    size_t last = first + sum->group;
    return (struct group){first, last < f->k ? last : f->k};
}

static double add_one(const struct tensor_sum *sum, const struct tensor_factors *f, size_t row,
                      size_t column, struct group group, double c) {
    struct addends addends = {.count = 0};
    bool no_number = false;
    add_to(&addends, c, c == 0.0 || !isfinite(c) ? 0 : exponent_of(c, sum->sum));
    for (size_t k = group.first; k < group.last; k++) {
        double a = f->a[row * f->a_row + k * f->a_k], b = row_of_b(f, row, k)[column];
        bool finite = isfinite(a) && isfinite(b) && a != 0.0 && b != 0.0;
        no_number = no_number || isnan(a * b);
        add_to(&addends, a * b,
               finite ? exponent_of(a, sum->factor) + exponent_of(b, f->b_format) : 0);
    }
    return no_number ? (double)NAN : round_sum(sum, sum_of(sum, &addends));
}

static double element(const struct tensor_sum *sum, const struct tensor_factors *f, size_t row,
                      size_t column, double c) {
    for (size_t first = 0; first < f->k; first += sum->group) {
        c = add_one(sum, f, row, column, group_at(sum, f, first), c);
    }
    return c;
}

/* ---- Eight columns at a time ---- */

/*
 * Addends in units of the last bit that is kept are integers below 2^27, eight of which an int32_t
 * holds. What is too small for fp32 is cut off in any case, where the largest exponent is at least
 * that of LEAST_TOP; else elements are added one by one.
 */
#define LEAST_TOP 0x1p-100f

static bool is_moderate(const double *values, size_t count, double most) {
    bool moderate = true;
    for (size_t n = 0; n < count; n++) {
        moderate &= fabs(values[n]) <= most;
    }
    return moderate;
}

/* The power of two at or below a value, but for 0. */
static float power_of(float value, float least, float of_zero) {
    float power = row_float_of_bits(row_bits_of_float(value) & 0x7f800000);
    power = power < least ? least : power;
    return value == 0.0f ? of_zero : power;
}

static void find_powers(const double *from, size_t count, size_t stride, enum tile_format format,
                        float *values, float *powers) {
    const float least = (float)ldexp(1, least_exponent(format));
    for (size_t n = 0; n < count; n++) {
        values[n] = (float)from[n * stride];
        powers[n] = power_of(values[n], least, 0.0f);
    }
}

static floats load(const float *from) {
    floats to;
    memcpy(&to, from, sizeof to);
    return to;
}

static floats largest(floats x, floats y) {
    return (floats)_mm256_max_ps((__m256)x, (__m256)y);
}

static void add_up(double *sums, integers parts) {
    for (size_t n = 0; n < LANES; n++) {
        sums[n] += parts[n];
    }
}

/* A row of a, and the rows of b that its elements meet. */
struct row {
    size_t number;
    float a[MOST_K], a_powers[MOST_K];
    const float *b[MOST_K], *b_powers[MOST_K];
};

/* The largest power of two of the addends; 0 if all are 0. */
static floats top_of(const struct tensor_sum *sum, const struct row *row, struct group group,
                     size_t column, const float *c) {
    const float least = (float)ldexp(1, least_exponent(sum->sum));
    floats top;
    for (size_t n = 0; n < LANES; n++) {
        top[n] = power_of(c[n], least, 0.0f);
    }
    for (size_t k = group.first; k < group.last; k++) {
        top = largest(top, row->a_powers[k] * load(row->b_powers[k] + column));
    }
    return top;
}

static bool is_tiny(floats top) {
    bool tiny = false;
    for (size_t n = 0; n < LANES; n++) {
        tiny |= top[n] > 0.0f && top[n] < LEAST_TOP;
    }
    return tiny;
}

/* Eight columns from `column` on, whose largest powers of two are `top`. */
static void add_eight(const struct tensor_sum *sum, const struct row *row, struct group group,
                      size_t column, floats top, const float *from, double *c) {
    double sums[LANES] = {0};
    integers bits = (integers)largest(top, LEAST_TOP - (floats){0});
    floats scale = (floats)(((254 + sum->fraction_bits) - (bits >> 23)) << 23); /* units in 1 */
    add_up(sums, __builtin_convertvector(load(from) * scale, integers));
    for (size_t begin = group.first; begin < group.last; begin += STEP) {
        size_t end = begin + STEP < group.last ? begin + STEP : group.last;
        integers parts = {0};
        for (size_t k = begin; k < end; k++) {
            parts +=
                __builtin_convertvector(row->a[k] * load(row->b[k] + column) * scale, integers);
        }
        add_up(sums, parts);
    }
    for (size_t n = 0; n < LANES; n++) {
        uint64_t exponent = (uint64_t)(bits[n] >> 23) + 1023 - 127 - (uint64_t)sum->fraction_bits;
        c[n] = sums[n] * row_double_of_bits(exponent << 52);
    }
}

/* None is so small that it would have fewer bits in fp32. */
static void round_eight(const struct tensor_sum *sum, double *c) {
    const uint64_t kept = UINT64_MAX << (52 - sum->result_bits);
    for (size_t n = 0; n < LANES; n++) {
        c[n] = sum->sum == TILE_F16 ? round_sum(sum, c[n])
                                    : row_double_of_bits(row_bits_of_double(c[n]) & kept);
    }
}

static void add_group(const struct tensor_sum *sum, const struct tensor_factors *f,
                      const struct row *row, struct group group, size_t column, double *c) {
    float from[LANES];
    for (size_t n = 0; n < LANES; n++) {
        from[n] = (float)c[n];
    }
    floats top = top_of(sum, row, group, column, from);
    if (!is_tiny(top)) {
        add_eight(sum, row, group, column, top, from, c);
        round_eight(sum, c);
        return;
    }
    for (size_t n = 0; n < LANES; n++) {
        c[n] = add_one(sum, f, row->number, column + n, group, c[n]);
    }
}

/* ---- All ---- */

static bool all_moderate(const struct tensor_factors *f, const double *c) {
    size_t b_count = (size_t)f->n * f->k * (f->columns == NULL ? 1 : 2);
    return is_moderate(f->a, (size_t)f->m * f->k, 0x1p60) && is_moderate(f->b, b_count, 0x1p60) &&
           is_moderate(c, (size_t)f->m * f->n, 0x1p100);
}

static void multiply_rows(const struct tensor_sum *sum, const struct tensor_factors *f, double *c) {
    float values[MOST_B], powers[MOST_B];
    size_t count = (size_t)f->n * f->k * (f->columns == NULL ? 1 : 2);
    find_powers(f->b, count, 1, f->b_format, values, powers);
    for (size_t m = 0; m < f->m; m++) {
        struct row row = {.number = m};
        find_powers(&f->a[m * f->a_row], f->k, f->a_k, sum->factor, row.a, row.a_powers);
        for (size_t k = 0; k < f->k; k++) {
            size_t at = (size_t)(row_of_b(f, m, k) - f->b);
            row.b[k] = values + at;
            row.b_powers[k] = powers + at;
        }
        for (size_t n = 0; n < f->n; n += LANES) {
            for (size_t first = 0; first < f->k; first += sum->group) {
                add_group(sum, f, &row, group_at(sum, f, first), n, &c[m * f->n + n]);
            }
        }
    }
}

void tensor_multiply(const struct tensor_sum *sum, const struct tensor_factors *f, double *c) {
    if (sum->fraction_bits == 0) {
        multiply_exactly(f, c);
    } else if (all_moderate(f, c)) {
        multiply_rows(sum, f, c);
    } else {
        for (size_t n = 0; n < (size_t)f->m * f->n; n++) {
            c[n] = element(sum, f, n / f->n, n % f->n, c[n]);
        }
    }
}
