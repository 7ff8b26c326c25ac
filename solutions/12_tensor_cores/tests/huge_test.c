/* Matrices of more than 2^31 elements: every step of the ladder computes the right elements, around
 * the indices and bytes that 32 bits cannot tell apart and at the corners. A GPU needs 30 GB for
 * it. On simt the same cases have at most 136 rows and columns. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/12_tensor_cores/tensor_cores.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Element i of every matrix is value i % PERIOD of a table. The period is a prime, so that elements
   2^31 or 2^32 apart differ. */
enum { PERIOD = 1000003, SMALL = 136, SAMPLES = 96 };

static const size_t ALL_BYTES = (size_t)16 << 30;

struct huge_case {
    size_t M, N, K;
    bool in_is_transposed, weight_is_transposed, residual, floats, in_place;
};

/* M * N, M * K or N * K is above 2^31; few rows have kernels of their own. */
static const struct huge_case cases[] = {
    {.M = 66000, .N = 32776, .K = 64, .residual = true},
    {.M = 66000, .N = 32776, .K = 64, .floats = true},
    {.M = 1048600, .N = 16, .K = 2056},
    {.M = 128, .N = 1048600, .K = 2056},
    {.M = 64, .N = 1048600, .K = 2056},
    {.M = 16, .N = 1048600, .K = 2056},
    {.M = 1, .N = 1048600, .K = 2056},
    {.M = 24, .N = 1048600, .K = 2056, .weight_is_transposed = true},
    {.M = 2056, .N = 24, .K = 1048600, .in_is_transposed = true, .weight_is_transposed = true},
    {.M = 66000,
     .N = 32776,
     .K = 64,
     .in_is_transposed = true,
     .weight_is_transposed = true,
     .residual = true,
     .floats = true,
     .in_place = true},
};

struct huge {
    struct huge_case c;
    struct gemm16_problem problem;
    float values[PERIOD]; /* multiples of 1/4 from -1 to 1: sums of products are exact */
    uint16_t bf16[PERIOD];
    void *in, *weight, *residual, *out, *workspace;
};

static size_t at_most(size_t size, size_t most) {
    return size < most ? size : most;
}

static void draw_values(struct huge *h) {
    struct rng rng = rng_create(1);
    for (size_t i = 0; i < PERIOD; i++) {
        h->values[i] = (float)rng_below(&rng, 9) / 4.0f - 1.0f;
    }
    nn_dtype_store(h->bf16, h->values, PERIOD, NN_BF16);
}

/* A matrix of `count` elements: one period, and then copies of all there is. */
static enum status create(void **matrix, const struct huge *h, size_t count, bool floats) {
    size_t size = floats ? sizeof *h->values : sizeof *h->bf16, done = at_most(count, PERIOD);
    TRY(device_alloc(matrix, count * size, NULL));
    TRY(device_write(*matrix, floats ? (const void *)h->values : h->bf16, done * size, NULL, NULL));
    while (done < count) {
        size_t more = at_most(done, count - done);
        TRY(device_copy((char *)*matrix + done * size, *matrix, more * size, NULL, NULL));
        done += more;
    }
    return device_synchronize(NULL, NULL);
}

static enum status open_case(struct huge *h, const struct huge_case *c, size_t most) {
    h->c = *c;
    h->c.M = at_most(c->M, most), h->c.N = at_most(c->N, most), h->c.K = at_most(c->K, most);
    size_t outs = h->c.M * h->c.N;
    TRY(create(&h->in, h, h->c.M * h->c.K, false));
    TRY(create(&h->weight, h, h->c.N * h->c.K, false));
    TRY(create(&h->out, h, outs, c->floats));
    TRY(device_alloc(&h->workspace, GEMM16_WORKSPACE_BYTES, NULL));
    if (c->residual && !c->in_place) {
        TRY(create(&h->residual, h, outs, c->floats));
    }
    h->problem = (struct gemm16_problem){.dtype = NN_BF16,
                                         .out_dtype = c->floats ? NN_F32 : NN_BF16,
                                         .M = h->c.M,
                                         .N = h->c.N,
                                         .K = h->c.K,
                                         .in = h->in,
                                         .weight = h->weight,
                                         .in_is_transposed = c->in_is_transposed,
                                         .weight_is_transposed = c->weight_is_transposed,
                                         .residual = c->in_place ? h->out : h->residual,
                                         .residual_is_float = c->residual && c->floats,
                                         .out = h->out};
    return STATUS_OK;
}

static void close_case(struct huge *h) {
    void **const matrices[] = {&h->in, &h->weight, &h->out, &h->residual, &h->workspace};
    for (size_t i = 0; i < COUNT(matrices); i++) {
        device_free(*matrices[i]);
        *matrices[i] = NULL;
    }
}

/* What out holds before a run: the residual, or NaN. */
static enum status reset(struct huge *h) {
    size_t size = h->c.floats ? sizeof *h->values : sizeof *h->bf16, count = h->c.M * h->c.N;
    if (!h->c.in_place) {
        return device_set(h->out, 0xff, count * size, NULL, NULL);
    }
    device_free(h->out);
    h->out = NULL;
    TRY(create(&h->out, h, count, h->c.floats));
    h->problem.out = h->out;
    h->problem.residual = h->out;
    return STATUS_OK;
}

struct position {
    size_t m, n;
};

/* Elements of out, rows of in and rows of weight around indices and bytes that 31 or 32 bits hold,
   first and last ones, and random positions. */
static struct position position_of(const struct huge_case *c, struct rng *rng, size_t sample) {
    static const size_t edges[] = {0,
                                   ((size_t)1 << 30) - 1,
                                   (size_t)1 << 30,
                                   ((size_t)1 << 31) - 1,
                                   (size_t)1 << 31,
                                   ((size_t)1 << 31) + 8,
                                   SIZE_MAX};
    struct position p = {rng_below(rng, c->M), rng_below(rng, c->N)};
    if (sample < 3 * COUNT(edges)) {
        size_t edge = edges[sample / 3], element = at_most(edge, c->M * c->N - 1);
        size_t row = edge / c->K;
        if (sample % 3 == 0) {
            p = (struct position){element / c->N, element % c->N};
        } else if (sample % 3 == 1) {
            p.m = at_most(row, c->M - 1);
        } else {
            p.n = at_most(row, c->N - 1);
        }
    }
    return p;
}

static double right_result(const struct huge *h, struct position p) {
    const struct huge_case *c = &h->c;
    double sum = c->residual ? h->values[(p.m * c->N + p.n) % PERIOD] : 0.0;
    for (size_t k = 0; k < c->K; k++) {
        size_t in = c->in_is_transposed ? k * c->M + p.m : p.m * c->K + k;
        size_t weight = c->weight_is_transposed ? k * c->N + p.n : p.n * c->K + k;
        sum += (double)h->values[in % PERIOD] * h->values[weight % PERIOD];
    }
    return sum;
}

static double read_result(const struct huge *h, struct position p) {
    size_t at = p.m * h->c.N + p.n;
    float result = NAN;
    uint16_t bf16 = 0;
    if (h->c.floats) {
        EXPECT_OK(device_read(&result, (float *)h->out + at, sizeof result, NULL, NULL));
    } else {
        EXPECT_OK(device_read(&bf16, (uint16_t *)h->out + at, sizeof bf16, NULL, NULL));
        nn_dtype_load(&result, &bf16, 1, NN_BF16);
    }
    return result;
}

/* An fp32 sum is exact; bf16 rounds it to 8 bits. */
static void check_step(struct huge *h, const struct gemm16_step *step, const double *want) {
    struct rng rng = rng_create(2);
    struct error error = {0};
    EXPECT_OK(reset(h));
    enum status status = step->run(&h->problem, h->workspace, NULL, &error);
    if (status == STATUS_OK) {
        status = device_synchronize(NULL, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s, %zux%zux%zu: %s", step->name, h->c.M, h->c.N, h->c.K, error.message);
        return;
    }
    for (size_t i = 0; i < SAMPLES && !test_has_failed(); i++) {
        struct position p = position_of(&h->c, &rng, i);
        double got = read_result(h, p), most = h->c.floats ? 0.0 : fabs(want[i]) / 256.0;
        if (!(fabs(got - want[i]) <= most)) {
            TEST_FAIL("%s, %zux%zux%zu: element (%zu, %zu) is %.9g, not %.9g", step->name, h->c.M,
                      h->c.N, h->c.K, p.m, p.n, got, want[i]);
        }
    }
}

static void check_case(struct huge *h) {
    size_t count;
    double want[SAMPLES];
    const struct gemm16_step *steps = gemm16_ladder(&count);
    struct rng rng = rng_create(2);
    for (size_t i = 0; i < SAMPLES; i++) {
        want[i] = right_result(h, position_of(&h->c, &rng, i));
    }
    for (size_t n = 0; n < count && !test_has_failed(); n++) {
        check_step(h, &steps[n], want);
    }
}

C_TEST(huge, every_step_beyond_32_bits) {
    static struct huge h;
    struct device_properties gpu = {0};
    struct error error = {0};
    if (device_open(&error) != STATUS_OK || device_properties(&gpu, &error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    if (!gpu.modelled && (gpu.memory_bytes < ALL_BYTES || gpu.code / 10 != 9)) {
        TEST_SKIP("needs a Hopper GPU with 16 GB of memory");
    }
    draw_values(&h);
    for (size_t i = 0; i < COUNT(cases) && !test_has_failed(); i++) {
        ASSERT_OK(open_case(&h, &cases[i], gpu.modelled ? SMALL : SIZE_MAX));
        check_case(&h);
        close_case(&h);
    }
}
