/* Every step of the ladder, and every plan of the last one, against the double oracle. */
#include "labs/06_fused_epilogues/fused_epilogues.h"
#include "labs/06_fused_epilogues/problem/case.h"
#include "solutions/06_fused_epilogues/steps/ladder.h"
#include "solutions/ladder_gpu.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct fixture {
    void *workspace; /* device */
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

static void fixture_create(struct fixture *fixture) {
    struct device_properties gpu;
    struct error error = {0};
    *fixture = (struct fixture){0};
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    fixture->modelled = gpu.modelled;
    ASSERT_OK(device_alloc(&fixture->workspace, FUSED_WORKSPACE_BYTES, &error));
    ASSERT_OK(device_set(fixture->workspace, 0, FUSED_ZERO_BYTES, NULL, &error));
}

/* A test with such a fixture. */
#define FIXTURE_TEST(name)                     \
    static void body_##name(struct fixture *); \
    C_TEST(ladder, name) {                     \
        struct fixture created;                \
        fixture_create(&created);              \
        body_##name(&created);                 \
        device_free(created.workspace);        \
    }                                          \
    static void body_##name(struct fixture *fixture)

/* A step's function for an operation, which is given a plan. */
typedef enum status planned_function(const struct fused_problem *p, struct sgemm_plan plan,
                                     void *workspace, device_stream stream, struct error *error);

/* A step, or one of its functions with a plan. */
struct call {
    const char *name;
    fused_function *run;
    const struct sgemm_plan *plan; /* NULL: run */
    planned_function *planned;
};

static enum status run_and_check(const struct call *call, struct fused_case *c,
                                 const struct fixture *fixture, char *text, size_t size,
                                 struct error *error) {
    TRY(fused_case_put(c, error));
    TRY(call->plan != NULL
            ? call->planned(&c->problem, *call->plan, fixture->workspace, NULL, error)
            : call->run(&c->problem, fixture->workspace, NULL, error));
    TRY(device_synchronize(NULL, error));
    return fused_case_check(c, text, size, error);
}

static void check_call(const struct call *call, struct fused_case *c,
                       const struct fixture *fixture) {
    struct error error = {0};
    char text[400] = "";
    enum status status = run_and_check(call, c, fixture, text, sizeof text, &error);
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s: %s, f=%d plan=%d/%d: %s %s", call->name, c->name, (int)c->flavour.f,
                  call->plan != NULL ? call->plan->shape : -1,
                  call->plan != NULL ? call->plan->splits : 0, text, error.message);
    }
}

/* Fails the test and returns false when there is no memory for the case. */
static bool case_create(struct fused_case *c, uint64_t seed, const struct fixture *fixture) {
    struct rng rng = rng_create(seed);
    struct error error = {0};
    enum status status = fused_case_create(c, &rng, !fixture->modelled, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", c->name, error_text(&error, status));
    }
    return status == STATUS_OK;
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

/* One problem: all steps, and what fused_epilogues() calls. */
static void check_steps(struct fused_case c, const struct fixture *fixture) {
    size_t count, elements = c.shape.M * c.shape.N;
    const struct fused_step *steps = fused_epilogues_ladder(&count);
    bool made = case_create(&c, c.shape.M * 31 + c.shape.N * 7 + c.shape.K, fixture);
    /* Only fused_epilogues() takes problems without elements. */
    for (size_t i = elements > 0 ? 0 : count; made && i <= count && !test_has_failed(); i++) {
        const struct call call = {.name = i < count ? steps[i].name : "fused_epilogues",
                                  .run = i < count ? steps[i].run : fused_epilogues};
        if (elements <= FEW_ELEMENTS || (i < count && has_own_way(i, c.op))) {
            check_call(&call, &c, fixture);
        }
    }
    fused_case_free(&c);
}

/* One operation on its list of shapes; `pattern` is the rest of each case. */
static void check_op(enum fused_op op, struct fused_case pattern) {
    struct fixture fixture;
    fixture_create(&fixture);
    bool multiplies = fused_op_multiplies(op);
    const struct fused_shape *list = multiplies ? shapes : norm_shapes;
    size_t count = multiplies ? COUNT(shapes) : COUNT(norm_shapes);
    pattern.op = op;
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        pattern.shape = list[i];
        check_steps(pattern, &fixture);
    }
    device_free(fixture.workspace);
}

static const struct fused_flavour ordinary = {.f = NN_GELU, .eps = 1e-5f};

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)fused_epilogues_ladder(&count);
    EXPECT_INT_EQ(7, count);
}

/* A test of one operation; the rest of its struct fused_case. */
#define OP_TEST(name, op, ...)                          \
    C_TEST(ladder, name) {                              \
        check_op(op, (struct fused_case){__VA_ARGS__}); \
    }

OP_TEST(linear, FUSED_LINEAR, .flavour = ordinary)
OP_TEST(linear_activation, FUSED_LINEAR_ACTIVATION, .flavour = ordinary)
OP_TEST(linear_add_in_place, FUSED_LINEAR_ADD, .flavour = ordinary, .in_place = true)
OP_TEST(linear_add_norm, FUSED_LINEAR_ADD_NORM, .flavour = ordinary)
OP_TEST(linear_add_norm_in_place, FUSED_LINEAR_ADD_NORM, .flavour = ordinary, .in_place = true)
OP_TEST(gelu_linear_add_norm_in_place, FUSED_GELU_LINEAR_ADD_NORM, .flavour = ordinary,
        .in_place = true)

C_TEST(ladder, add_norm) {
    check_op(FUSED_ADD_NORM, (struct fused_case){.flavour = ordinary});
    check_op(FUSED_ADD_NORM, (struct fused_case){.flavour = ordinary, .in_place = true});
}

C_TEST(ladder, add_keep_norm) {
    check_op(FUSED_ADD_KEEP_NORM, (struct fused_case){.flavour = ordinary});
    check_op(FUSED_ADD_KEEP_NORM, (struct fused_case){.flavour = ordinary, .in_place = true});
}

C_TEST(ladder, unaligned_pointers) {
    check_op(FUSED_LINEAR_ACTIVATION, (struct fused_case){.flavour = ordinary, .skew = 1});
    check_op(FUSED_GELU_LINEAR_ADD_NORM,
             (struct fused_case){.flavour = ordinary, .in_place = true, .skew = 1});
    check_op(FUSED_ADD_KEEP_NORM,
             (struct fused_case){.flavour = ordinary, .in_place = true, .skew = 1});
}

/* A mean far from zero, an eps that matters. */
C_TEST(ladder, large_mean_and_large_eps) {
    check_op(FUSED_ADD_NORM,
             (struct fused_case){.flavour = {.eps = 1e-5f, .mean = 100.0f}, .in_place = true});
    check_op(FUSED_ADD_KEEP_NORM, (struct fused_case){.flavour = {.eps = 3.0f}});
    check_op(FUSED_LINEAR_ADD_NORM,
             (struct fused_case){.flavour = {.eps = 3.0f, .mean = 30.0f}, .in_place = true});
}

FIXTURE_TEST(every_activation) {
    static const struct fused_shape list[] = {{33, 36, 8}, {3, 70, 5}};
    for (int f = NN_GELU; f <= NN_RELU; f++) {
        for (size_t i = 0; i < COUNT(list); i++) {
            check_steps((struct fused_case){.op = FUSED_LINEAR_ACTIVATION,
                                            .shape = list[i],
                                            .flavour = {.f = (enum nn_activation)f, .eps = 1e-5f}},
                        fixture);
        }
    }
}

/* The functions that do an operation with a plan; the last step's comes first. */
struct planned_calls {
    const char *names[3];
    planned_function *functions[3];
    int count;
};

static struct planned_calls planned_calls_of(enum fused_op op) {
    switch (op) {
    case FUSED_LINEAR_ADD_NORM:
        return (struct planned_calls){
            {"last", "v4", "v5"}, {fused_run_plan, fused_linear_add_norm, fused_one_launch}, 3};
    case FUSED_GELU_LINEAR_ADD_NORM:
        return (struct planned_calls){
            {"last", "v6"}, {fused_run_plan, fused_gelu_linear_add_norm}, 2};
    default:
        return (struct planned_calls){{"last"}, {fused_run_plan}, 1};
    }
}

/* One plan, where it is possible: all functions that take it. */
static void check_plan(struct fused_case *c, struct sgemm_plan plan,
                       const struct fixture *fixture) {
    const struct fused_shape *s = &c->shape;
    const struct sgemm_problem product = {
        .M = s->M, .N = s->N, .K = s->K, .form = SGEMM_B_TRANSPOSED};
    const struct planned_calls calls = planned_calls_of(c->op);
    for (int i = 0; i < calls.count && sgemm_v10_possible(&product, plan); i++) {
        const struct call call = {
            .name = calls.names[i], .plan = &plan, .planned = calls.functions[i]};
        if (!test_has_failed()) {
            check_call(&call, c, fixture);
        }
    }
}

/* Every tile shape, without and with split-K. */
static void check_plans(enum fused_op op, struct fused_shape shape, const struct fixture *fixture) {
    struct fused_case c = {.op = op, .shape = shape, .flavour = ordinary, .in_place = true};
    bool made = case_create(&c, shape.N, fixture);
    for (int i = 0; made && i < sgemm_v10_shape_count(); i++) {
        for (int splits = 1; splits <= 3; splits++) {
            check_plan(&c, (struct sgemm_plan){i, splits}, fixture);
        }
    }
    fused_case_free(&c);
}

static void expect_zeros(const struct fixture *fixture) {
    struct error error = {0};
    char text[200];
    EXPECT_OK(fused_workspace_check(fixture->workspace, NULL, text, sizeof text, &error));
    EXPECT_STR_EQ("", text);
}

/* Two bands of the tallest tiles, and K in three splits; then shapes that nothing divides. */
FIXTURE_TEST(every_plan_and_zeros_stay_zeros) {
    for (int op = 0; fused_op_multiplies((enum fused_op)op) && !test_has_failed(); op++) {
        check_plans((enum fused_op)op, (struct fused_shape){131, 132, 36}, fixture);
        check_plans((enum fused_op)op, (struct fused_shape){35, 67, 35}, fixture);
        expect_zeros(fixture);
    }
}

/* Blocks of a persistent kernel with a barrier go on to a second tile: there are more tiles than an
   H200 holds blocks at a time, also as simt counts them, by shared memory alone: four on each of
   132 multiprocessors. */
FIXTURE_TEST(more_tiles_than_blocks) {
    static const struct sgemm_plan tiles_of_64x64 = {3, 1};
    const struct call call = {.name = "v7", .plan = &tiles_of_64x64, .planned = fused_band_barrier};
    for (int op = FUSED_LINEAR_ADD_NORM; op <= FUSED_GELU_LINEAR_ADD_NORM; op++) {
        struct fused_case c = {.op = (enum fused_op)op,
                               .shape = {64 * 264 + 3, 68, 4}, /* 265 bands of two tiles */
                               .flavour = ordinary,
                               .in_place = true};
        if (case_create(&c, c.shape.N, fixture)) {
            check_call(&call, &c, fixture);
        }
        expect_zeros(fixture);
        fused_case_free(&c);
    }
}

FIXTURE_TEST(large_on_a_gpu) {
    if (fixture->modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (size_t i = 0; i < COUNT(gpu_shapes) && !test_has_failed(); i++) {
        for (int op = 0; op < FUSED_OPS; op++) {
            check_steps((struct fused_case){.op = (enum fused_op)op,
                                            .shape = gpu_shapes[i],
                                            .flavour = ordinary,
                                            .in_place = op % 2 == 0},
                        fixture);
        }
    }
}

FIXTURE_TEST(unknown_operations_and_too_large_sizes_are_refused) {
    struct error error = {0};
    const struct fused_problem wrong[] = {
        {.op = (enum fused_op)FUSED_OPS, .M = 1, .N = 1, .K = 1},
        {.op = (enum fused_op) - 1, .M = 1, .N = 1, .K = 1},
        {.op = FUSED_LINEAR_ACTIVATION, .M = 1, .N = 1, .K = 1, .f = (enum nn_activation)5},
        {.op = FUSED_LINEAR, .M = FUSED_MAX_ROWS + 1, .N = 1, .K = 1},
        {.op = FUSED_LINEAR, .M = 1, .N = FUSED_MAX_COLUMNS + 1, .K = 1},
        {.op = FUSED_LINEAR, .M = 1, .N = 1, .K = FUSED_MAX_COLUMNS + 1},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                      fused_epilogues(&wrong[i], fixture->workspace, NULL, &error));
    }
    EXPECT_OK(device_synchronize(NULL, &error));
}
