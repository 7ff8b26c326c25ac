/*
 * Matrix products and moves of matrices against sums in double. Fragments are
 * laid out here as the tables of the PTX manual say, element by element, one
 * function a table; the emulator uses one formula for all of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/simt/core/launch/launch_testing.h"
#include "common/testing/testing.h"

enum { LANES = 32, MOST = 1024 };

/* --- element formats --- */

enum format { F16, BF16, TF32, F32, F64, S8, U8, S4, U4, S32, E4M3, E5M2 };

static const struct {
    int bits, exponent_bits, fraction_bits; /* 0 exponent bits: an integer */
    double step, most;                      /* of the random values in the tests */
} formats[] = {
    [F16] = {16, 5, 10, 0.125, 8}, [BF16] = {16, 8, 7, 0.125, 8},  [TF32] = {32, 8, 23, 0.125, 8},
    [F32] = {32, 8, 23, 0.25, 64}, [F64] = {64, 11, 52, 0.125, 8}, [S8] = {8, 0, 0, 1, 127},
    [U8] = {8, 0, 0, 1, 255},      [S4] = {4, 0, 0, 1, 7},         [U4] = {4, 0, 0, 1, 15},
    [S32] = {32, 0, 0, 1, 1000},   [E4M3] = {8, 4, 3, 0.25, 2},    [E5M2] = {8, 5, 2, 0.5, 2},
};

static bool has_sign(enum format f) {
    return f != U8 && f != U4;
}

static double random_value(struct rng *rng, enum format f) {
    double steps = 2 * formats[f].most / formats[f].step;
    double value = (double)rng_below(rng, (uint32_t)steps + 1) * formats[f].step - formats[f].most;
    return has_sign(f) ? value
                       : (value + formats[f].most) / 2 - fmod(value + formats[f].most, 2) / 2;
}

/* The bits of a value that the format holds exactly and that is normal or zero. */
static uint64_t encode(enum format f, double value) {
    int fraction = formats[f].fraction_bits;
    int bits = formats[f].bits;
    if (formats[f].exponent_bits == 0) {
        return (uint64_t)(int64_t)value & (((uint64_t)1 << bits) - 1);
    }
    int exponent;
    double mantissa = frexp(fabs(value), &exponent);
    uint64_t sign = signbit(value) ? (uint64_t)1 << (bits - 1) : 0;
    if (value == 0.0) {
        return sign;
    }
    int bias = (1 << (formats[f].exponent_bits - 1)) - 1;
    uint64_t digits = (uint64_t)ldexp(2 * mantissa - 1, fraction);
    return sign | (uint64_t)(exponent - 1 + bias) << fraction | digits;
}

static double decode(enum format f, uint64_t word) {
    int fraction = formats[f].fraction_bits;
    int bits = formats[f].bits;
    if (formats[f].exponent_bits == 0) {
        return (double)(int32_t)word;
    }
    int bias = (1 << (formats[f].exponent_bits - 1)) - 1;
    int exponent = (int)(word >> fraction & (((uint64_t)1 << formats[f].exponent_bits) - 1));
    double digits = (double)(word & (((uint64_t)1 << fraction) - 1));
    double value = exponent == 0 ? ldexp(digits, 1 - bias - fraction)
                                 : ldexp(digits + ldexp(1, fraction), exponent - bias - fraction);
    return word >> (bits - 1) & 1 ? -value : value;
}

/* --- layouts: row and column of element i of lane 4g + t --- */

struct at {
    int row, column;
};

typedef struct at layout(int i, int g, int t);

static struct at a_16bit_k8(int i, int g, int t) {
    return (struct at){i < 2 ? g : g + 8, 2 * t + (i & 1)};
}

static struct at b_16bit_k8(int i, int g, int t) {
    return (struct at){2 * t + i, g};
}

static struct at a_16bit_k16(int i, int g, int t) {
    return (struct at){(i >= 0 && i < 2) || (i >= 4 && i < 6) ? g : g + 8,
                       i < 4 ? 2 * t + (i & 1) : 2 * t + (i & 1) + 8};
}

static struct at b_16bit_k16(int i, int g, int t) {
    return (struct at){i < 2 ? 2 * t + (i & 1) : 2 * t + (i & 1) + 8, g};
}

static struct at a_tf32_k4(int i, int g, int t) {
    return (struct at){i == 0 ? g : g + 8, t};
}

static struct at b_k4(int i, int g, int t) {
    (void)i;
    return (struct at){t, g};
}

static struct at a_k8(int i, int g, int t) {
    return (struct at){i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
}

static struct at b_k8(int i, int g, int t) {
    return (struct at){i == 0 ? t : t + 4, g};
}

static struct at a_8bit_k16(int i, int g, int t) {
    return (struct at){i < 4 ? g : g + 8, 4 * t + (i & 3)};
}

static struct at b_8bit_k16(int i, int g, int t) {
    return (struct at){4 * t + i, g};
}

static struct at a_8bit_k32(int i, int g, int t) {
    return (struct at){i < 4 || (i >= 8 && i < 12) ? g : g + 8,
                       i < 8 ? 4 * t + (i & 3) : 4 * t + (i & 3) + 16};
}

static struct at b_8bit_k32(int i, int g, int t) {
    return (struct at){i < 4 ? 4 * t + (i & 3) : 4 * t + (i & 3) + 16, g};
}

static struct at a_4bit_k32(int i, int g, int t) {
    return (struct at){i < 8 ? g : g + 8, 8 * t + (i & 7)};
}

static struct at b_4bit_k32(int i, int g, int t) {
    return (struct at){8 * t + i, g};
}

static struct at a_4bit_k64(int i, int g, int t) {
    return (struct at){i < 8 || (i >= 16 && i < 24) ? g : g + 8,
                       i < 16 ? 8 * t + (i & 7) : 8 * t + (i & 7) + 32};
}

static struct at b_4bit_k64(int i, int g, int t) {
    return (struct at){i < 8 ? 8 * t + (i & 7) : 8 * t + (i & 7) + 32, g};
}

static struct at a_m8k4(int i, int g, int t) {
    (void)i;
    return (struct at){g, t};
}

static struct at c_m16(int i, int g, int t) {
    return (struct at){i < 2 ? g : g + 8, 2 * t + (i & 1)};
}

static struct at c_m8(int i, int g, int t) {
    return (struct at){g, 2 * t + i};
}

/* Volta's m8n8k4: product q of a warp is on lanes 4q to 4q+3 and 16 further on, whose number is g,
 * t. */

static struct at volta_row(int i, int upper, int t) { /* A by rows; B by columns is its transpose */
    return (struct at){t + 4 * upper, i};
}

static struct at volta_column(int i, int upper, int t) {
    return (struct at){i + 4 * upper, t};
}

static struct at volta_float_sum(int i, int upper, int t) {
    int row = t % 2 + (i & 2);
    return (struct at){upper ? row + 4 : row, (i & 4) + (t & 2) + (i & 1)};
}

/* --- products --- */

struct product {
    const char *kernel;
    int m, n, k;
    enum format a, b, c;
    layout *la, *lb, *lc;
};

static const struct product products[] = {
    {"f16_k16", 16, 8, 16, F16, F16, F32, a_16bit_k16, b_16bit_k16, c_m16},
    {"f16_k8", 16, 8, 8, F16, F16, F32, a_16bit_k8, b_16bit_k8, c_m16},
    {"f16_k16_f16", 16, 8, 16, F16, F16, F16, a_16bit_k16, b_16bit_k16, c_m16},
    {"bf16_k16", 16, 8, 16, BF16, BF16, F32, a_16bit_k16, b_16bit_k16, c_m16},
    {"bf16_k8", 16, 8, 8, BF16, BF16, F32, a_16bit_k8, b_16bit_k8, c_m16},
    {"tf32_k8", 16, 8, 8, TF32, TF32, F32, a_k8, b_k8, c_m16},
    {"tf32_k4", 16, 8, 4, TF32, TF32, F32, a_tf32_k4, b_k4, c_m16},
    {"s8_k32", 16, 8, 32, S8, S8, S32, a_8bit_k32, b_8bit_k32, c_m16},
    {"s8_k16", 16, 8, 16, S8, S8, S32, a_8bit_k16, b_8bit_k16, c_m16},
    {"u8_s8_k32", 16, 8, 32, U8, S8, S32, a_8bit_k32, b_8bit_k32, c_m16},
    {"s4_k64", 16, 8, 64, S4, S4, S32, a_4bit_k64, b_4bit_k64, c_m16},
    {"u4_k32", 16, 8, 32, U4, U4, S32, a_4bit_k32, b_4bit_k32, c_m16},
    {"e4m3_k32", 16, 8, 32, E4M3, E4M3, F32, a_8bit_k32, b_8bit_k32, c_m16},
    {"e5m2_e4m3_k32", 16, 8, 32, E5M2, E4M3, F32, a_8bit_k32, b_8bit_k32, c_m16},
    {"f64_k4", 8, 8, 4, F64, F64, F64, a_m8k4, b_k4, c_m8},
    {"f64_k8", 16, 8, 8, F64, F64, F64, a_k8, b_k8, c_m16},
};

/* Packs a matrix (rows, columns) into the fragments of 32 lanes; @return bytes of a lane. */
static size_t pack(unsigned char *fragments, const double *matrix, int rows, int columns,
                   enum format f, layout *place) {
    int elements = rows * columns / LANES;
    size_t lane_bytes = (size_t)elements * (size_t)formats[f].bits / 8;
    memset(fragments, 0, LANES * lane_bytes);
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < elements; i++) {
            struct at at = place(i, lane / 4, lane % 4);
            uint64_t bits = encode(f, matrix[at.row * columns + at.column]);
            size_t bit = (size_t)i * (size_t)formats[f].bits;
            unsigned char *to = fragments + (size_t)lane * lane_bytes + bit / 8;
            for (int byte = 0; byte < (formats[f].bits + 7) / 8; byte++) {
                to[byte] |= (unsigned char)(bits >> 8 * byte << bit % 8);
            }
        }
    }
    return lane_bytes;
}

static double unpack(const unsigned char *fragments, size_t lane_bytes, int lane, int i,
                     enum format f) {
    uint64_t word = 0;
    size_t size = (size_t)formats[f].bits / 8;
    memcpy(&word, fragments + (size_t)lane * lane_bytes + (size_t)i * size, size);
    return decode(f, word);
}

static void fill(struct rng *rng, double *matrix, int count, enum format f) {
    for (int i = 0; i < count; i++) {
        matrix[i] = random_value(rng, f);
    }
}

/* A sum rounded once: half a unit of its last place. */
static double tolerance(enum format f, double want) {
    return f == S32 ? 0.0 : ldexp(fabs(want), -formats[f].fraction_bits - 1);
}

static void check_product(struct launch_testing *t, const struct product *p, struct rng *rng) {
    static double a[MOST], b[MOST], c[MOST];
    static unsigned char fa[8 * MOST], fb[8 * MOST], fc[8 * MOST];
    fill(rng, a, p->m * p->k, p->a);
    fill(rng, b, p->k * p->n, p->b);
    fill(rng, c, p->m * p->n, p->c);
    size_t bytes_a = LANES * pack(fa, a, p->m, p->k, p->a, p->la);
    size_t bytes_b = LANES * pack(fb, b, p->k, p->n, p->b, p->lb);
    size_t lane_bytes = pack(fc, c, p->m, p->n, p->c, p->lc);
    struct {
        uint64_t a, b, c;
    } parameters = {launch_testing_upload(t, fa, bytes_a), launch_testing_upload(t, fb, bytes_b),
                    launch_testing_upload(t, fc, LANES * lane_bytes)};
    if (!launch_testing_block_clean(t, p->kernel, LANES, &parameters)) {
        return;
    }
    const unsigned char *got = launch_testing_result(t, parameters.c);
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < p->m * p->n / LANES; i++) {
            struct at at = p->lc(i, lane / 4, lane % 4);
            double want = c[at.row * p->n + at.column];
            for (int k = 0; k < p->k; k++) {
                want += a[at.row * p->k + k] * b[k * p->n + at.column];
            }
            double value = unpack(got, lane_bytes, lane, i, p->c);
            if (!(fabs(value - want) <= tolerance(p->c, want))) {
                TEST_FAIL("%s row %d column %d: want %.9g, got %.9g", p->kernel, at.row, at.column,
                          want, value);
                return;
            }
        }
    }
    int64_t flops = p->c == S32 ? 0 : 2 * p->m * p->n * p->k;
    EXPECT_INT_EQ(flops, t->counters.flops);
}

LAUNCH_TEST(tensor, mma_in_all_formats, TENSOR_PTX) {
    struct rng rng = rng_create(7);
    for (size_t n = 0; n < sizeof products / sizeof *products; n++) {
        for (int round = 0; round < 3; round++) {
            check_product(t, &products[n], &rng);
        }
    }
}

struct volta {
    const char *kernel;
    layout *a, *b; /* b: (column, row) */
    layout *sum;
    enum format c;
};

static const struct volta voltas[] = {
    {"volta_row_col", volta_row, volta_row, volta_float_sum, F32},
    {"volta_row_row", volta_row, volta_column, volta_float_sum, F32},
    {"volta_col_col", volta_column, volta_row, volta_float_sum, F32},
    {"volta_col_row", volta_column, volta_column, volta_float_sum, F32},
    {"volta_half", volta_row, volta_row, volta_row, F16},
};

/* Lays four matrices (8, columns) out on the lanes; @return bytes of a lane. */
static size_t volta_pack(unsigned char *fragments, double matrix[4][64], int columns, enum format f,
                         layout *place) {
    size_t size = (size_t)formats[f].bits / 8;
    size_t lane_bytes = (size_t)columns * size;
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < columns; i++) {
            struct at at = place(i, lane / 16, lane % 4);
            uint64_t bits = encode(f, matrix[lane % 16 / 4][at.row * columns + at.column]);
            memcpy(fragments + (size_t)lane * lane_bytes + (size_t)i * size, &bits, size);
        }
    }
    return lane_bytes;
}

static void check_volta(struct launch_testing *t, const struct volta *v, struct rng *rng) {
    double a[4][64], b[4][64], c[4][64];
    unsigned char fa[LANES * 8 + 8], fb[LANES * 8 + 8], fc[LANES * 32 + 8];
    for (int q = 0; q < 4; q++) {
        fill(rng, a[q], 32, F16);
        fill(rng, b[q], 32, F16);
        fill(rng, c[q], 64, v->c);
    }
    size_t bytes_a = LANES * volta_pack(fa, a, 4, F16, v->a);
    size_t bytes_b = LANES * volta_pack(fb, b, 4, F16, v->b);
    size_t lane_bytes = volta_pack(fc, c, 8, v->c, v->sum);
    struct {
        uint64_t a, b, c;
    } parameters = {launch_testing_upload(t, fa, bytes_a), launch_testing_upload(t, fb, bytes_b),
                    launch_testing_upload(t, fc, LANES * lane_bytes)};
    if (!launch_testing_block_clean(t, v->kernel, LANES, &parameters)) {
        return;
    }
    const unsigned char *got = launch_testing_result(t, parameters.c);
    for (int n = 0; n < LANES * 8; n++) {
        int lane = n / 8, q = lane % 16 / 4;
        struct at at = v->sum(n % 8, lane / 16, lane % 4);
        double want = c[q][at.row * 8 + at.column];
        for (int k = 0; k < 4; k++) {
            want += a[q][at.row * 4 + k] * b[q][at.column * 4 + k];
        }
        double value = unpack(got, lane_bytes, lane, n % 8, v->c);
        if (!(fabs(value - want) <= tolerance(v->c, want))) {
            TEST_FAIL("%s lane %d element %d: want %.9g, got %.9g", v->kernel, lane, n % 8, want,
                      value);
            return;
        }
    }
    EXPECT_INT_EQ(4 * 2 * 8 * 8 * 4, t->counters.flops);
}

LAUNCH_TEST(tensor, volta_mma_in_all_layouts, TENSOR_PTX) {
    struct rng rng = rng_create(8);
    for (size_t n = 0; n < 3 * (sizeof voltas / sizeof *voltas); n++) {
        check_volta(t, &voltas[n / 3], &rng);
    }
}

LAUNCH_TEST(tensor, integer_sums_saturate_where_told, TENSOR_PTX) {
    static unsigned char ones[LANES * 16], twos[LANES * 8];
    int32_t start[LANES * 4];
    memset(ones, 1, sizeof ones);
    memset(twos, 2, sizeof twos);
    for (int saturating = 0; saturating < 2; saturating++) {
        for (int i = 0; i < LANES * 4; i++) {
            start[i] = INT32_MAX - 63;
        }
        struct {
            uint64_t a, b, c;
        } parameters = {launch_testing_upload(t, ones, sizeof ones),
                        launch_testing_upload(t, twos, sizeof twos),
                        launch_testing_upload(t, start, sizeof start)};
        if (launch_testing_block_clean(t, saturating ? "s8_k32_saturating" : "s8_k32", LANES,
                                       &parameters)) {
            const int32_t *got = launch_testing_result(t, parameters.c);
            EXPECT_INT_EQ(saturating ? INT32_MAX : INT32_MIN, got[5]); /* 2^31 - 64 + 64 */
        }
    }
}

LAUNCH_TEST(tensor, tf32_ignores_the_last_bits_of_a_float, TENSOR_PTX) {
    static uint32_t a[LANES * 4], b[LANES * 2];
    static float c[LANES * 4];
    for (int i = 0; i < LANES * 4; i++) {
        a[i] = 0x3f801fff; /* a little more than 1 */
        b[i / 2] = 0x3f800000;
    }
    struct {
        uint64_t a, b, c;
    } parameters = {launch_testing_upload(t, a, sizeof a), launch_testing_upload(t, b, sizeof b),
                    launch_testing_upload(t, c, sizeof c)};
    if (launch_testing_block_clean(t, "tf32_k8", LANES, &parameters)) {
        EXPECT_NEAR(8.0, ((const float *)launch_testing_result(t, parameters.c))[17], 0.0);
    }
}

/* --- wmma --- */

struct tile {
    const char *kernel;
    int m, n, k;
    enum format a, c;
    bool a_by_columns, b_by_columns, c_by_columns;
    int pad;           /* of each line, in elements */
    int loads, stores; /* requests to global memory: what ptxas 13.0 makes of the kernel */
};

static const struct tile tiles[] = {
    {"w_f16_rr", 16, 16, 16, F16, F32, false, false, false, 8, 12, 4},
    {"w_f16_rc", 16, 16, 16, F16, F32, false, true, false, 0, 12, 4},
    {"w_f16_cr", 16, 16, 16, F16, F32, true, false, true, 8, 16, 8},
    {"w_f16_cc", 16, 16, 16, F16, F32, true, true, true, 16, 16, 8},
    {"w_f16_tall", 32, 8, 16, F16, F32, false, true, false, 8, 14, 4},
    {"w_f16_wide", 8, 32, 16, F16, F32, true, false, false, 8, 18, 8},
    {"w_half_sum", 16, 16, 16, F16, F16, false, true, false, 8, 12, 4},
    {"w_bf16", 16, 16, 16, BF16, F32, false, false, false, 8, 12, 4},
    {"w_bf16_tall", 32, 8, 16, BF16, F32, true, true, false, 8, 14, 4},
    {"w_tf32", 16, 16, 8, TF32, F32, false, true, false, 4, 12, 4},
    {"w_s8", 16, 16, 16, S8, S32, false, true, false, 16, 8, 4},
    {"w_u8_wide", 8, 32, 16, U8, S32, false, false, true, 16, 21, 4},
    {"w_s8_tall", 32, 8, 16, S8, S32, true, true, false, 16, 21, 4},
    {"w_f64", 8, 8, 4, F64, F64, false, true, false, 4, 3, 1},
    {"w_shared", 16, 16, 16, F16, F32, false, false, false, 0, 24, 8},
};

/* Small enough that three times an element of A, and twice the sum, fit their formats. */
static double small_value(struct rng *rng, enum format f) {
    double value = (double)rng_below(rng, 9) * 0.5 * (formats[f].exponent_bits == 0 ? 2 : 1);
    return has_sign(f) ? value - 2.0 * (formats[f].exponent_bits == 0 ? 2 : 1) : value;
}

static size_t place_in(const unsigned rows, unsigned columns, bool by_columns, int pad,
                       unsigned row, unsigned column) {
    return by_columns ? (size_t)column * (rows + (unsigned)pad) + row
                      : (size_t)row * (columns + (unsigned)pad) + column;
}

/* Random elements, and their bits in lines of memory. */
static void lay_out(struct rng *rng, double *matrix, unsigned char *memory, int rows, int columns,
                    enum format f, bool by_columns, int pad) {
    size_t size = (size_t)formats[f].bits / 8;
    memset(memory, 0x7f, 8 * 2 * MOST);
    for (int i = 0; i < rows * columns; i++) {
        matrix[i] = small_value(rng, f);
        uint64_t bits = encode(f, matrix[i]);
        size_t at = place_in((unsigned)rows, (unsigned)columns, by_columns, pad,
                             (unsigned)(i / columns), (unsigned)(i % columns));
        memcpy(memory + at * size, &bits, size);
    }
}

static void expect_requests(const struct launch_testing *t, const struct tile *w) {
    if (t->counters.global_load_requests != (uint64_t)w->loads ||
        t->counters.global_store_requests != (uint64_t)w->stores) {
        TEST_FAIL("%s: %d and %d requests wanted, %llu and %llu counted", w->kernel, w->loads,
                  w->stores, (unsigned long long)t->counters.global_load_requests,
                  (unsigned long long)t->counters.global_store_requests);
    }
}

/* 2 (c + 3 A B) + 1 in C's format; what has been checked is overwritten. */
static bool expect_values(const struct tile *w, const double *a, const double *b, const double *c,
                          unsigned char *got) {
    size_t size = (size_t)formats[w->c].bits / 8;
    for (int i = 0; i < w->m * w->n; i++) {
        double want = c[i];
        uint64_t word = 0;
        for (int k = 0; k < w->k; k++) {
            want += 3 * a[i / w->n * w->k + k] * b[k * w->n + i % w->n];
        }
        want = 2 * want + 1;
        size_t at = place_in((unsigned)w->m, (unsigned)w->n, w->c_by_columns, w->pad,
                             (unsigned)(i / w->n), (unsigned)(i % w->n));
        memcpy(&word, got + at * size, size);
        double value = decode(w->c, word);
        if (!(fabs(value - want) <= 2 * tolerance(w->c, want))) {
            TEST_FAIL("%s element %d: want %.9g, got %.9g", w->kernel, i, want, value);
            return false;
        }
        memset(got + at * size, 0x7f, size);
    }
    return true;
}

static void check_tile(struct launch_testing *t, const struct tile *w, struct rng *rng) {
    static double a[MOST], b[MOST], c[MOST];
    static unsigned char ma[16 * MOST], mb[16 * MOST], mc[16 * MOST];
    lay_out(rng, a, ma, w->m, w->k, w->a, w->a_by_columns, w->pad);
    lay_out(rng, b, mb, w->k, w->n, w->a, w->b_by_columns, w->pad);
    lay_out(rng, c, mc, w->m, w->n, w->c, w->c_by_columns, w->pad);
    struct {
        uint64_t a, b, c;
        int lda, ldb, ldc;
    } parameters = {
        launch_testing_upload(t, ma, sizeof ma),  launch_testing_upload(t, mb, sizeof mb),
        launch_testing_upload(t, mc, sizeof mc),  (w->a_by_columns ? w->m : w->k) + w->pad,
        (w->b_by_columns ? w->k : w->n) + w->pad, (w->c_by_columns ? w->m : w->n) + w->pad};
    if (!launch_testing_block_clean(t, w->kernel, LANES, &parameters)) {
        return;
    }
    expect_requests(t, w);
    unsigned char *got = (unsigned char *)(uintptr_t)launch_testing_result(t, parameters.c);
    if (!expect_values(w, a, b, c, got)) {
        return;
    }
    for (size_t i = 0; i < sizeof mc; i++) { /* between the lines nothing was written */
        if (got[i] != 0x7f) {
            TEST_FAIL("%s: byte %zu was written", w->kernel, i);
            return;
        }
    }
}

LAUNCH_TEST(tensor, wmma_in_all_shapes_and_layouts, TENSOR_PTX) {
    struct rng rng = rng_create(8);
    for (size_t n = 0; n < sizeof tiles / sizeof *tiles; n++) {
        check_tile(t, &tiles[n], &rng);
    }
}

LAUNCH_TEST(tensor, wmma_beyond_an_array_is_a_fault, TENSOR_PTX) {
    static unsigned char memory[16 * 16 * 4];
    struct {
        uint64_t a, b, c;
        int lda, ldb, ldc;
    } parameters = {launch_testing_upload(t, memory, 16 * 16 * 2 - 16),
                    launch_testing_upload(t, memory, 16 * 16 * 2),
                    launch_testing_upload(t, memory, sizeof memory),
                    16,
                    16,
                    16};
    EXPECT_TRUE(!launch_testing_block(t, "w_f16_rr", LANES, &parameters));
    EXPECT_INT_EQ(SIMT_FAULT_OUT_OF_BOUNDS, t->fault.kind);
    EXPECT_TRUE(t->fault.line > 0);
}

C_TEST(tensor, wmma_wants_lines_of_16_bytes) {
    static const int wrong[][2] = {{8, 24}, {0, 20}}; /* bytes into A, elements between lines */
    for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
        struct launch_testing t;
        static unsigned char memory[16 * 32 * 4];
        ASSERT_TRUE(launch_testing_open(&t, TENSOR_PTX));
        struct {
            uint64_t a, b, c;
            int lda, ldb, ldc;
        } parameters = {launch_testing_upload(&t, memory, sizeof memory) + (uint64_t)wrong[n][0],
                        launch_testing_upload(&t, memory, sizeof memory),
                        launch_testing_upload(&t, memory, sizeof memory),
                        wrong[n][1],
                        16,
                        16};
        EXPECT_TRUE(!launch_testing_block(&t, "w_f16_rr", LANES, &parameters));
        EXPECT_INT_EQ(SIMT_FAULT_MISALIGNED, t.fault.kind);
        EXPECT_TRUE(strstr(t.fault.text, "not a multiple of 16") != NULL);
        launch_testing_close(&t);
    }
}

/* --- 8x8 matrices --- */

static uint32_t pair(const uint16_t rows[8][8], int lane, bool transposed) {
    int line = lane / 4, at = 2 * (lane % 4);
    uint32_t low = transposed ? rows[at][line] : rows[line][at];
    uint32_t high = transposed ? rows[at + 1][line] : rows[line][at + 1];
    return low | high << 16;
}

LAUNCH_TEST(tensor, ldmatrix_and_movmatrix, TENSOR_PTX) {
    uint16_t in[4][8][8];
    uint32_t none[LANES * 11] = {0};
    for (unsigned i = 0; i < sizeof in / 2; i++) {
        in[i / 64][i / 8 % 8][i % 8] = (uint16_t)(i * 257 + 3);
    }
    struct {
        uint64_t in, out;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, none, sizeof none)};
    if (launch_testing_block_clean(t, "matrices", LANES, &parameters)) {
        const uint32_t *got = launch_testing_result(t, parameters.out);
        for (int lane = 0; lane < LANES; lane++) {
            const uint32_t *r = got + 11 * lane;
            for (int n = 0; n < 4; n++) {
                EXPECT_INT_EQ(pair(in[n], lane, false), r[n]);
                EXPECT_INT_EQ(pair(in[n], lane, true), r[7 + n]);
            }
            EXPECT_INT_EQ(pair(in[0], lane, true), r[4]);
            EXPECT_INT_EQ(pair(in[1], lane, true), r[5]);
            EXPECT_INT_EQ(pair(in[0], lane, false), r[6]);
        }
        /* 8 rows of 16 bytes a wavefront: 4, 2 and 1, free of conflicts. */
        EXPECT_INT_EQ(3, t->counters.shared_load_requests);
        EXPECT_INT_EQ(4 + 2 + 1, t->counters.shared_load_wavefronts);
    }
}

LAUNCH_TEST(tensor, stmatrix, TENSOR_PTX) {
    uint32_t in[LANES][4];
    uint16_t zero[64 * 8] = {0};
    for (unsigned i = 0; i < LANES * 4; i++) {
        in[i / 4][i % 4] = i * 0x10003 + 7;
    }
    struct {
        uint64_t in, out;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, zero, sizeof zero)};
    if (launch_testing_block_clean(t, "stored_matrices", LANES, &parameters)) {
        const uint16_t(*rows)[8][8] = launch_testing_result(t, parameters.out);
        for (int lane = 0; lane < LANES; lane++) {
            for (int n = 0; n < 4; n++) {
                EXPECT_INT_EQ(in[lane][n], pair(rows[n], lane, false));
                EXPECT_INT_EQ(in[lane][n], pair(rows[4 + n], lane, true));
            }
        }
    }
}

LAUNCH_TEST(tensor, half_a_warp_is_not_enough, TENSOR_PTX) {
    uint32_t in[LANES] = {0};
    struct {
        uint64_t in, out;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, NULL, sizeof in)};
    struct testing_launch launch = {
        .kernel = "half_a_warp", .threads = {LANES}, .parameters = &parameters};
    EXPECT_TRUE(!launch_testing_run(t, &launch));
    EXPECT_INT_EQ(SIMT_FAULT_BARRIER, t->fault.kind);
    launch.threads[0] = 16;
    EXPECT_TRUE(!launch_testing_run(t, &launch));
    EXPECT_INT_EQ(SIMT_FAULT_BARRIER, t->fault.kind);
    EXPECT_TRUE(strstr(t->fault.text, "mma.sync.aligned.m16n8k8") != NULL);
}

/* --- pairs of 8-bit floats, bytes --- */

/* The finite value nearest to x, of two the one with an even code; beyond the range the last. */
static unsigned nearest(enum format f, double x) {
    unsigned last = f == E4M3 ? 0x7e : 0x7b;
    unsigned best = 0;
    for (unsigned code = 1; code <= last; code++) {
        double distance = fabs(decode(f, code) - fabs(x));
        double least = fabs(decode(f, best) - fabs(x));
        best = distance < least || (distance == least && code % 2 == 0) ? code : best;
    }
    return best | (signbit(x) ? 0x80 : 0);
}

LAUNCH_TEST(tensor, pairs_of_small_floats, TENSOR_PTX) {
    enum { PAIRS = 1000 };
    struct rng rng = rng_create(9);
    static float in[PAIRS][2];
    for (int i = 0; i < 2 * PAIRS; i++) { /* half of them lie between two neighbours */
        double exponent = (double)rng_below(&rng, 40) - 21;
        double digits = (double)rng_below(&rng, 33) + (i % 4 == 0 ? 0.01 : 0.0);
        in[i / 2][i % 2] = (float)((i % 3 == 0 ? -1 : 1) * ldexp(digits, (int)exponent - 3));
    }
    struct {
        uint64_t in, bytes, halves;
        int n;
    } parameters = {launch_testing_upload(t, in, sizeof in),
                    launch_testing_upload(t, NULL, 4 * PAIRS),
                    launch_testing_upload(t, NULL, 8 * PAIRS), PAIRS};
    if (launch_testing_block_clean(t, "small_floats", LANES, &parameters)) {
        const unsigned char *bytes = launch_testing_result(t, parameters.bytes);
        const uint16_t *halves = launch_testing_result(t, parameters.halves);
        for (int i = 0; i < 4 * PAIRS; i++) {
            enum format f = i < 2 * PAIRS ? E4M3 : E5M2;
            double x = (double)in[i / 2 % PAIRS][i % 2];
            unsigned want = nearest(f, x);
            if (bytes[i] != want || decode(F16, halves[i]) != decode(f, want)) {
                TEST_FAIL("%g: want %02x, got %02x, as half %04x", x, want, bytes[i], halves[i]);
                break;
            }
        }
    }
}

LAUNCH_TEST(tensor, differences_of_bytes, TENSOR_PTX) {
    struct rng rng = rng_create(10);
    unsigned char a[LANES][4], b[LANES][4];
    for (int i = 0; i < LANES * 4; i++) {
        a[i / 4][i % 4] = (unsigned char)rng_below(&rng, 256);
        b[i / 4][i % 4] = (unsigned char)rng_below(&rng, 256);
    }
    struct {
        uint64_t a, b, out;
    } parameters = {launch_testing_upload(t, a, sizeof a), launch_testing_upload(t, b, sizeof b),
                    launch_testing_upload(t, NULL, 3 * sizeof a)};
    if (launch_testing_block_clean(t, "byte_differences", LANES, &parameters)) {
        const unsigned char(*got)[LANES][4] = launch_testing_result(t, parameters.out);
        const uint32_t *sums = (const uint32_t *)(const void *)got[2];
        for (int lane = 0; lane < LANES; lane++) {
            int sum = lane;
            for (int n = 0; n < 4; n++) {
                int x = a[lane][n], y = b[lane][n];
                EXPECT_INT_EQ(abs(x - y), got[0][lane][n]);
                EXPECT_INT_EQ(abs((signed char)x - (signed char)y), got[1][lane][n]);
                sum += abs(x - y);
            }
            EXPECT_INT_EQ(sum, sums[lane]);
        }
    }
}
