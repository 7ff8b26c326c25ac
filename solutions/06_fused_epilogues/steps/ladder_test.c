/* Every step of the ladder, and every plan of the last one, against the double oracle. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "labs/06_fused_epilogues/problem/oracle.h"
#include "solutions/06_fused_epilogues/steps/ladder.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { GUARD = 64 }; /* floats around out and sum, on a GPU */

struct bed {
    void *workspace;
    bool modelled;
};

/* Around the sizes where kernels take another way: 4, 16, 32, 64, 96, 128, 256, 768, 1024. */
static const struct fused_shape shapes[] = {
    {0, 3, 3},    {3, 0, 3},     {3, 4, 0},     {33, 17, 0},   {70, 68, 0},  {1, 1, 1},
    {1, 2, 1},    {2, 3, 1},     {3, 4, 16},    {17, 33, 57},  {16, 12, 20}, {31, 129, 7},
    {64, 64, 64}, {97, 131, 13}, {96, 128, 16}, {129, 257, 9}, {5, 772, 12}, {18, 1028, 8},
};

/* Rows of all the kinds the LayerNorm's kernels know, and one longer than registers hold. */
static const struct fused_shape norm_shapes[] = {
    {1, 1, 0},    {3, 4, 0},    {7, 256, 0},  {9, 260, 0},  {3, 767, 0},  {17, 768, 0},
    {5, 1024, 0}, {2, 4096, 0}, {3, 5003, 0}, {2, 8192, 0}, {2, 8196, 0},
};

/* Seconds each for the host's double oracle. */
static const struct fused_shape gpu_shapes[] = {
    {1536, 768, 768}, {1000, 768, 3072}, {130, 3072, 768}, {1021, 1031, 533}, {4099, 65, 1053},
};

static void bed_create(struct bed *bed) {
    struct device_properties gpu;
    struct error error = {0};
    *bed = (struct bed){0};
    if (device_open(&error) != STATUS_OK) {
        TEST_STOP("%s", error.message);
    }
    ASSERT_OK(device_properties(&gpu, &error));
    bed->modelled = gpu.modelled;
    ASSERT_OK(device_alloc(&bed->workspace, FUSED_WORKSPACE_BYTES, &error));
    ASSERT_OK(device_set(bed->workspace, 0, FUSED_ZERO_BYTES, NULL, &error));
}

/* A way of doing an operation that takes a plan. */
typedef enum status planned_function(const struct fused_problem *p, struct sgemm_plan plan,
                                     void *workspace, device_stream stream, struct error *error);

/* How a step is called: by itself, or a way with a plan. */
struct call {
    const struct fused_step *step;
    const struct sgemm_plan *plan;
    planned_function *planned;
    bool in_place; /* out (sum, where there is one) is the residual */
    size_t skew;   /* floats that every pointer is past a boundary */
};

static enum status run(const struct call *call, const struct fused_problem *p, void *workspace,
                       struct error *error) {
    if (call->plan != NULL) {
        return call->planned(p, *call->plan, workspace, NULL, error);
    }
    return call->step->run(p, workspace, NULL, error);
}

/* Device memory of one call. */
struct buffers {
    void *in, *weight, *bias, *residual, *norm_weight, *norm_bias, *out, *sum;
    float *host; /* what out or sum is with what lies around it */
    size_t count, guard, skew;
};

static enum status send(void **d, const float *values, size_t count, size_t skew,
                        struct error *error) {
    TRY(device_alloc(d, (count + skew) * sizeof(float), error));
    return values == NULL || count == 0
               ? STATUS_OK
               : device_write((float *)*d + skew, values, count * sizeof(float), NULL, error);
}

/* NaN, with the values, if any, in the middle. */
static enum status send_guarded(struct buffers *b, void **d, const float *values,
                                struct error *error) {
    size_t all = b->count + 2 * b->guard + b->skew;
    for (size_t i = 0; i < all; i++) {
        b->host[i] = NAN;
    }
    if (values != NULL) {
        memcpy(b->host + b->guard + b->skew, values, b->count * sizeof(float));
    }
    return send(d, b->host, all, 0, error);
}

static enum status buffers_create(struct buffers *b, const struct fused_data *data,
                                  const struct call *call, bool modelled, struct error *error) {
    const struct fused_problem *p = &data->problem;
    size_t M = p->M, N = p->N;
    *b =
        (struct buffers){.count = M * N, .guard = modelled ? 0 : (size_t)GUARD, .skew = call->skew};
    b->host = malloc((b->count + 2 * b->guard + b->skew + 1) * sizeof(float));
    if (b->host == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    bool keeps = p->op == FUSED_ADD_KEEP_NORM;
    const float *inside = call->in_place ? p->residual : NULL;
    TRY(send(&b->in, p->in, M * data->in_columns, b->skew, error));
    TRY(send(&b->weight, p->weight, N * p->K, b->skew, error));
    TRY(send(&b->bias, p->bias, N, b->skew, error));
    TRY(send(&b->residual, p->residual, M * N, b->skew, error));
    TRY(send(&b->norm_weight, p->norm.weight, N, b->skew, error));
    TRY(send(&b->norm_bias, p->norm.bias, N, b->skew, error));
    TRY(send_guarded(b, &b->sum, keeps ? inside : NULL, error));
    return send_guarded(b, &b->out, keeps ? NULL : inside, error);
}

static void buffers_free(struct buffers *b) {
    void *const all[] = {b->in,          b->weight,    b->bias, b->residual,
                         b->norm_weight, b->norm_bias, b->out,  b->sum};
    for (size_t i = 0; i < COUNT(all); i++) {
        device_free(all[i]);
    }
    free(b->host);
}

static float *past(void *memory, size_t floats) {
    return memory != NULL ? (float *)memory + floats : NULL;
}

static struct fused_problem device_problem(const struct buffers *b, const struct fused_data *data,
                                           const struct call *call) {
    struct fused_problem p = data->problem;
    p.out = past(b->out, b->guard + b->skew);
    p.sum = p.op == FUSED_ADD_KEEP_NORM ? past(b->sum, b->guard + b->skew) : NULL;
    p.in = past(b->in, b->skew);
    p.weight = p.weight != NULL ? past(b->weight, b->skew) : NULL;
    p.bias = p.bias != NULL ? past(b->bias, b->skew) : NULL;
    p.residual = p.residual != NULL ? past(b->residual, b->skew) : NULL;
    p.norm.weight = past(b->norm_weight, b->skew);
    p.norm.bias = past(b->norm_bias, b->skew);
    if (call->in_place) {
        p.residual = p.op == FUSED_ADD_KEEP_NORM ? p.sum : p.out;
    }
    return p;
}

static bool is_intact(const struct buffers *b) {
    size_t first = b->guard + b->skew, all = b->count + 2 * b->guard + b->skew;
    for (size_t i = 0; i < all; i++) {
        if ((i < first || i >= first + b->count) && !isnan(b->host[i])) {
            return false;
        }
    }
    return true;
}

/* Reads one result back and compares. */
static enum status check_result(struct buffers *b, const void *memory,
                                const struct fused_data *data, bool is_sum, char *text, size_t size,
                                struct error *error) {
    size_t all = b->count + 2 * b->guard + b->skew;
    TRY(device_read(b->host, memory, all * sizeof(float), NULL, error));
    if (!is_intact(b)) {
        snprintf(text, size, "wrote outside of the output");
        return STATUS_OK;
    }
    fused_compare(data, b->host + b->guard + b->skew, is_sum, text, size);
    return STATUS_OK;
}

static enum status run_and_check(const struct fused_data *data, const struct call *call,
                                 struct bed *bed, struct buffers *b, char *text, size_t size,
                                 struct error *error) {
    TRY(buffers_create(b, data, call, bed->modelled, error));
    const struct fused_problem p = device_problem(b, data, call);
    TRY(run(call, &p, bed->workspace, error));
    TRY(device_synchronize(NULL, error));
    if (b->count == 0) {
        return STATUS_OK;
    }
    TRY(check_result(b, b->out, data, false, text, size, error));
    if (text[0] == '\0' && p.op == FUSED_ADD_KEEP_NORM) {
        return check_result(b, b->sum, data, true, text, size, error);
    }
    return STATUS_OK;
}

static void check_call(const struct fused_data *data, const struct call *call, struct bed *bed) {
    struct buffers b = {0};
    struct error error = {0};
    char text[400] = "";
    enum status status = run_and_check(data, call, bed, &b, text, sizeof text, &error);
    if (status != STATUS_OK || text[0] != '\0') {
        const struct fused_problem *p = &data->problem;
        TEST_FAIL("%s %s M=%zu N=%zu K=%zu f=%d plan=%d/%d in_place=%d skew=%zu: %s %s",
                  call->step->name, fused_op_name(p->op), p->M, p->N, p->K, (int)p->f,
                  call->plan != NULL ? call->plan->shape : -1,
                  call->plan != NULL ? call->plan->splits : 0, call->in_place, call->skew, text,
                  error.message);
    }
    buffers_free(&b);
}

/* Whether a step does an operation in a way of its own; else it calls an earlier step. */
static bool has_own_way(size_t step, enum fused_op op) {
    enum { V1 = 1, V2 = 2, V3 = 4, V4 = 8, V5 = 16, V6 = 32, V7 = 64 };
    static const unsigned own[FUSED_OPS] = {
        [FUSED_LINEAR] = V1 | V2,
        [FUSED_LINEAR_ACTIVATION] = V1 | V2 | V3,
        [FUSED_LINEAR_ADD] = V1 | V2 | V4,
        [FUSED_LINEAR_ADD_NORM] = V1 | V2 | V4 | V5 | V7,
        [FUSED_GELU_LINEAR_ADD_NORM] = V1 | V2 | V6 | V7,
        [FUSED_ADD_NORM] = V1 | V4,
        [FUSED_ADD_KEEP_NORM] = V1 | V4,
    };
    return (own[op] >> step & 1) != 0;
}

/* Elements of the outputs that are enough to see that a step passes a problem on. */
enum { FEW_ELEMENTS = 12 };

/* One operation and shape: the calls of all steps. */
static void check_steps(enum fused_op op, struct fused_shape shape, struct fused_flavour flavour,
                        bool in_place, size_t skew, struct bed *bed) {
    size_t count, elements = shape.M * shape.N;
    const struct fused_step *steps = fused_epilogues_ladder(&count);
    const struct fused_step last = {"fused_epilogues", fused_epilogues};
    struct rng rng = rng_create(shape.M * 31 + shape.N * 7 + shape.K);
    struct fused_data data;
    struct error error = {0};
    if (fused_data_create(&data, op, shape, flavour, &rng, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.message);
    }
    /* The steps are called with elements only; the last is what fused_epilogues() calls. */
    for (size_t i = elements > 0 ? 0 : count; i <= count && !test_has_failed(); i++) {
        const struct call call = {i < count ? &steps[i] : &last, NULL, NULL,
                                  in_place && data.problem.residual != NULL, skew};
        if (elements <= FEW_ELEMENTS || (i < count && has_own_way(i, op))) {
            check_call(&data, &call, bed);
        }
    }
    fused_data_free(&data);
}

static void check_op(enum fused_op op, struct fused_flavour flavour, bool in_place, size_t skew) {
    struct bed bed;
    bed_create(&bed);
    bool multiplies = fused_multiplies(op);
    const struct fused_shape *list = multiplies ? shapes : norm_shapes;
    size_t count = multiplies ? COUNT(shapes) : COUNT(norm_shapes);
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        check_steps(op, list[i], flavour, in_place, skew, &bed);
    }
    device_free(bed.workspace);
}

static const struct fused_flavour ordinary = {.f = NN_GELU, .eps = 1e-5f};

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)fused_epilogues_ladder(&count);
    EXPECT_INT_EQ(7, count);
}

C_TEST(ladder, linear) {
    check_op(FUSED_LINEAR, ordinary, false, 0);
}

C_TEST(ladder, linear_activation) {
    check_op(FUSED_LINEAR_ACTIVATION, ordinary, false, 0);
}

C_TEST(ladder, linear_add_in_place) {
    check_op(FUSED_LINEAR_ADD, ordinary, true, 0);
}

C_TEST(ladder, linear_add_norm) {
    check_op(FUSED_LINEAR_ADD_NORM, ordinary, false, 0);
}

C_TEST(ladder, linear_add_norm_in_place) {
    check_op(FUSED_LINEAR_ADD_NORM, ordinary, true, 0);
}

C_TEST(ladder, gelu_linear_add_norm_in_place) {
    check_op(FUSED_GELU_LINEAR_ADD_NORM, ordinary, true, 0);
}

C_TEST(ladder, add_norm) {
    check_op(FUSED_ADD_NORM, ordinary, false, 0);
    check_op(FUSED_ADD_NORM, ordinary, true, 0);
}

C_TEST(ladder, add_keep_norm) {
    check_op(FUSED_ADD_KEEP_NORM, ordinary, false, 0);
    check_op(FUSED_ADD_KEEP_NORM, ordinary, true, 0);
}

C_TEST(ladder, unaligned_pointers) {
    check_op(FUSED_LINEAR_ACTIVATION, ordinary, false, 1);
    check_op(FUSED_GELU_LINEAR_ADD_NORM, ordinary, true, 1);
    check_op(FUSED_ADD_KEEP_NORM, ordinary, true, 1);
}

/* A mean far from zero, an eps that matters. */
C_TEST(ladder, large_mean_and_large_eps) {
    check_op(FUSED_ADD_NORM, (struct fused_flavour){.eps = 1e-5f, .mean = 100.0f}, true, 0);
    check_op(FUSED_ADD_KEEP_NORM, (struct fused_flavour){.eps = 3.0f}, false, 0);
    check_op(FUSED_LINEAR_ADD_NORM, (struct fused_flavour){.eps = 3.0f, .mean = 30.0f}, true, 0);
}

C_TEST(ladder, every_activation) {
    struct bed bed;
    bed_create(&bed);
    for (int f = NN_GELU; f <= NN_RELU; f++) {
        const struct fused_flavour flavour = {.f = (enum nn_activation)f, .eps = 1e-5f};
        check_steps(FUSED_LINEAR_ACTIVATION, (struct fused_shape){33, 36, 8}, flavour, false, 0,
                    &bed);
        check_steps(FUSED_LINEAR_ACTIVATION, (struct fused_shape){3, 70, 5}, flavour, false, 0,
                    &bed);
    }
    device_free(bed.workspace);
}

/* The ways of an operation, each to be tried with every plan; the last step's comes first. */
struct ways {
    struct fused_step of[3];
    planned_function *planned[3];
    int count;
};

static struct ways ways_of(enum fused_op op) {
    switch (op) {
    case FUSED_LINEAR_ADD_NORM:
        return (struct ways){.of = {{.name = "last"}, {.name = "v4"}, {.name = "v5"}},
                             .planned = {fused_run_plan, fused_linear_add_norm, fused_at_once},
                             .count = 3};
    case FUSED_GELU_LINEAR_ADD_NORM:
        return (struct ways){.of = {{.name = "last"}, {.name = "v6"}},
                             .planned = {fused_run_plan, fused_gelu_linear_add_norm},
                             .count = 2};
    default:
        return (struct ways){.of = {{.name = "last"}}, .planned = {fused_run_plan}, .count = 1};
    }
}

/* The tile shapes, with K whole and split. */
static void check_plans(enum fused_op op, struct fused_shape shape, struct bed *bed) {
    struct rng rng = rng_create(shape.N);
    struct fused_data data;
    struct error error = {0};
    const struct sgemm_problem product = {
        .M = shape.M, .N = shape.N, .K = shape.K, .form = SGEMM_B_TRANSPOSED};
    const struct ways ways = ways_of(op);
    ASSERT_OK(fused_data_create(&data, op, shape, ordinary, &rng, &error));
    for (int shape_index = 0; shape_index < sgemm_v10_shape_count(); shape_index++) {
        for (int splits = 1; splits <= 3; splits++) {
            const struct sgemm_plan plan = {shape_index, splits};
            for (int i = 0; i < ways.count && sgemm_v10_possible(&product, plan); i++) {
                const struct call call = {&ways.of[i], &plan, ways.planned[i],
                                          data.problem.residual != NULL, 0};
                if (!test_has_failed()) {
                    check_call(&data, &call, bed);
                }
            }
        }
    }
    fused_data_free(&data);
}

/* The counters' bytes are as they were found. */
static void expect_zeros(const struct bed *bed) {
    struct error error = {0};
    unsigned char *bytes = malloc(FUSED_ZERO_BYTES);
    size_t others = 0;
    ASSERT_TRUE(bytes != NULL);
    EXPECT_OK(device_read(bytes, bed->workspace, FUSED_ZERO_BYTES, NULL, &error));
    for (size_t i = 0; i < FUSED_ZERO_BYTES; i++) {
        others += bytes[i] != 0;
    }
    EXPECT_INT_EQ(0, others);
    free(bytes);
}

/* Two bands of the tallest tiles, and three parts of K; then shapes that nothing divides. */
C_TEST(ladder, every_plan_and_zeros_stay_zeros) {
    struct bed bed;
    bed_create(&bed);
    for (int op = 0; fused_multiplies((enum fused_op)op) && !test_has_failed(); op++) {
        check_plans((enum fused_op)op, (struct fused_shape){131, 132, 36}, &bed);
        check_plans((enum fused_op)op, (struct fused_shape){35, 67, 35}, &bed);
        expect_zeros(&bed);
    }
    device_free(bed.workspace);
}

/* Blocks that wait for one another go on to a second tile: more than an H200 holds at a time, also
   as simt counts them, by shared memory alone: four on each of 132 multiprocessors. */
C_TEST(ladder, more_tiles_than_blocks) {
    static const struct fused_step last = {.name = "last"};
    static const struct sgemm_plan tiles_of_64x64 = {3, 1};
    const struct call call = {&last, &tiles_of_64x64, fused_rows_meet, true, 0};
    const struct fused_shape tall = {64 * 264 + 3, 68, 4}; /* 265 bands of two tiles */
    struct bed bed;
    bed_create(&bed);
    for (int op = FUSED_LINEAR_ADD_NORM; op <= FUSED_GELU_LINEAR_ADD_NORM; op++) {
        struct rng rng = rng_create(tall.N);
        struct fused_data data;
        struct error error = {0};
        ASSERT_OK(fused_data_create(&data, (enum fused_op)op, tall, ordinary, &rng, &error));
        check_call(&data, &call, &bed);
        expect_zeros(&bed);
        fused_data_free(&data);
    }
    device_free(bed.workspace);
}

C_TEST(ladder, large_on_a_gpu) {
    struct bed bed;
    bed_create(&bed);
    for (size_t i = 0; i < COUNT(gpu_shapes) && !bed.modelled && !test_has_failed(); i++) {
        for (int op = 0; op < FUSED_OPS; op++) {
            check_steps((enum fused_op)op, gpu_shapes[i], ordinary, op % 2 == 0, 0, &bed);
        }
    }
    device_free(bed.workspace);
    if (bed.modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
}

C_TEST(ladder, what_there_is_not_is_refused) {
    struct bed bed;
    struct error error = {0};
    const struct fused_problem wrong[] = {
        {.op = (enum fused_op)FUSED_OPS, .M = 1, .N = 1, .K = 1},
        {.op = (enum fused_op) - 1, .M = 1, .N = 1, .K = 1},
        {.op = FUSED_LINEAR_ACTIVATION, .M = 1, .N = 1, .K = 1, .f = (enum nn_activation)5},
        {.op = FUSED_LINEAR, .M = FUSED_MAX_ROWS + 1, .N = 1, .K = 1},
        {.op = FUSED_LINEAR, .M = 1, .N = FUSED_MAX_COLUMNS + 1, .K = 1},
        {.op = FUSED_LINEAR, .M = 1, .N = 1, .K = FUSED_MAX_COLUMNS + 1},
    };
    bed_create(&bed);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                      fused_epilogues(&wrong[i], bed.workspace, NULL, &error));
    }
    EXPECT_OK(device_synchronize(NULL, &error));
    device_free(bed.workspace);
}
