/* Every step of the ladder, and every way of v6, against the double oracle. */
#include <string.h>

#include "labs/05_layernorm_softmax/problem/case.h"
#include "solutions/05_layernorm_softmax/steps/ladder.h"
#include "solutions/ladder_gpu.h"

struct shape {
    size_t rows, C;
};

/* Around the widths at which steps change their way, odd sizes and primes. */
static const struct shape shapes[] = {
    {0, 5},  {1, 1},   {67, 1},  {5, 2},   {7, 3},   {3, 8},    {33, 17}, {9, 31},   {6, 64},
    {3, 97}, {4, 128}, {5, 129}, {2, 257}, {3, 769}, {2, 1031}, {2, 768}, {1, 2560},
};
static const struct shape long_shapes[] = {{1, 4099}, {2, 8200}, {1, 16384}};
static const struct shape gpu_shapes[] = {
    {1, 50257}, {300, 50257}, {600, 16384}, {1, 1000003}, {5, 262144}, {70001, 33}, {2048, 2560},
};

/* Problems of LARGE elements or more: only about SOME_ROWS rows are checked. */
enum { LARGE = 1 << 20, SOME_ROWS = 31 };

/* Runs a step, or a plan of v6. */
struct subject {
    const char *name;
    rows_function *run;
    const struct rows_plan *plan;
};

/* One problem on the host and on the device. */
struct bed {
    struct rows_data data;
    struct rows_buffers buffers;
    void *workspace; /* device */
};

static enum status bed_create(struct bed *bed, enum rows_op op, enum nn_dtype type, struct shape s,
                              struct rows_variant v, struct error *error) {
    struct rng rng = rng_create(s.rows * 31 + s.C * 7 + (size_t)type);
    struct device_properties gpu;
    *bed = (struct bed){0};
    TRY(device_properties(&gpu, error));
    TRY(device_alloc(&bed->workspace, ROWS_WORKSPACE_BYTES, error));
    TRY(rows_data_create(&bed->data, op, type, s.rows, s.C, v.flavour, &rng, error));
    return rows_buffers_create(&bed->buffers, &bed->data, v, !gpu.modelled, error);
}

static void bed_free(struct bed *bed) {
    device_free(bed->workspace);
    rows_buffers_free(&bed->buffers);
    rows_data_free(&bed->data);
}

static enum status run_subject(const struct subject *s, struct bed *bed, struct error *error) {
    TRY(rows_buffers_put(&bed->buffers, &bed->data, error));
    const struct rows_problem problem = rows_buffers_problem(&bed->buffers, &bed->data);
    if (s->plan != NULL) {
        TRY(rows_v6_with_plan(&problem, *s->plan, bed->workspace, NULL, error));
    } else {
        TRY(s->run(&problem, bed->workspace, NULL, error));
    }
    return device_synchronize(NULL, error);
}

static void check_subject(const struct subject *s, struct bed *bed) {
    char text[400] = "";
    bool outside = false;
    const char *changed = NULL;
    struct error error = {0};
    const struct rows_data *data = &bed->data;
    const struct rows_variant *v = &bed->buffers.variant;
    /* Of a large problem some rows: the oracle has one CPU. */
    size_t step = data->rows * data->C < LARGE ? 1 : data->rows / SOME_ROWS + 1;
    bool good = run_subject(s, bed, &error) == STATUS_OK &&
                rows_buffers_get(&bed->buffers, &outside, &changed, &error) == STATUS_OK &&
                !outside && changed == NULL &&
                rows_buffers_check(&bed->buffers, data, step, text, sizeof text);
    if (!good) {
        TEST_FAIL("%s %s %s rows=%zu C=%zu mean=%g masked=%d skew=%zu,%zu in_place=%d: %s%s%s%s %s",
                  s->name, rows_op_name(data->op), nn_dtype_name(data->type), data->rows, data->C,
                  (double)v->flavour.mean, data->mask != NULL, v->skew_in, v->skew_out, v->in_place,
                  outside ? "wrote outside of the output " : "",
                  changed != NULL ? "changed its input " : "", changed != NULL ? changed : "", text,
                  error.message);
    }
}

static void check_shape(enum rows_op op, enum nn_dtype type, struct shape s,
                        struct rows_variant v) {
    struct bed bed;
    struct error error = {0};
    size_t count;
    const struct rows_step *steps = layernorm_softmax_ladder(&count);
    if (bed_create(&bed, op, type, s, v, &error) != STATUS_OK) {
        TEST_FAIL("rows=%zu C=%zu: %s", s.rows, s.C, error.message);
        count = 0;
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        const struct subject subject = {steps[i].name, steps[i].run, NULL};
        check_subject(&subject, &bed);
    }
    bed_free(&bed);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check_shapes(enum rows_op op, const struct shape *list, size_t count,
                         struct rows_variant v) {
    for (int type = 0; type < ROWS_TYPES; type++) {
        for (size_t i = 0; i < count && !test_has_failed(); i++) {
            check_shape(op, (enum nn_dtype)type, list[i], v);
        }
    }
}

static void check_ladder(enum rows_op op, struct rows_variant v) {
    struct device_properties gpu;
    if (ladder_gpu_open(&gpu)) {
        check_shapes(op, shapes, COUNT(shapes), v);
    }
}

/* A test of every step for one operator. */
#define LADDER_TEST(name, op, ...)                            \
    C_TEST(ladder, name) {                                    \
        check_ladder(op, (struct rows_variant){__VA_ARGS__}); \
    }

LADDER_TEST(layernorm, ROWS_LAYERNORM, 0)
LADDER_TEST(rmsnorm, ROWS_RMSNORM, 0)
LADDER_TEST(softmax, ROWS_SOFTMAX, 0)
LADDER_TEST(softmax_with_mask, ROWS_SOFTMAX, .flavour = {.masked = true})

C_TEST(ladder, softmax_with_a_mask_for_three_rows_and_minus_infinity) {
    const struct rows_flavour flavour = {.masked = true, .rows_a_mask = 3, .infinities = true};
    check_ladder(ROWS_SOFTMAX, (struct rows_variant){.flavour = flavour});
}

/* E[x^2] - mean^2 would be off by tenths here. */
LADDER_TEST(layernorm_of_a_large_mean, ROWS_LAYERNORM, .flavour = {.mean = 3000.0f})

/* e^1000 overflows. */
LADDER_TEST(softmax_of_large_numbers, ROWS_SOFTMAX, .flavour = {.mean = 1000.0f})

C_TEST(ladder, in_place) {
    for (int op = 0; op < ROWS_OPS; op++) {
        check_ladder((enum rows_op)op, (struct rows_variant){.in_place = true});
    }
}

C_TEST(ladder, unaligned_pointers) {
    check_ladder(ROWS_LAYERNORM, (struct rows_variant){.skew_in = 1, .skew_out = 1});
    check_ladder(ROWS_RMSNORM, (struct rows_variant){.skew_in = 3});
    check_ladder(ROWS_SOFTMAX,
                 (struct rows_variant){.flavour = {.masked = true}, .skew_in = 1, .skew_out = 3});
    check_ladder(ROWS_SOFTMAX, (struct rows_variant){.skew_out = 1, .in_place = true});
}

C_TEST(ladder, long_rows) {
    struct device_properties gpu;
    if (ladder_gpu_open(&gpu)) {
        for (int op = 0; op < ROWS_OPS; op++) {
            check_shapes((enum rows_op)op, long_shapes, COUNT(long_shapes),
                         (struct rows_variant){0});
        }
    }
}

C_TEST(ladder, large_sizes_on_a_gpu) {
    struct device_properties gpu;
    if (ladder_gpu_open(&gpu) && gpu.modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
        check_shapes((enum rows_op)op, gpu_shapes, COUNT(gpu_shapes), (struct rows_variant){0});
    }
    check_shapes(ROWS_SOFTMAX, gpu_shapes, COUNT(gpu_shapes),
                 (struct rows_variant){.flavour = {.masked = true, .rows_a_mask = 2}});
}

/* Every way, with more rows than blocks where blocks go on to the next row. */
static const struct {
    struct shape shape;
    struct rows_plan plan;
} plans[] = {
    {{70, 24}, {ROWS_WAY_EIGHTH, 64, 1}},
    {{70, 128}, {ROWS_WAY_EIGHTH, 64, 1}},
    {{19, 120}, {ROWS_WAY_WARP, 64, 1}},
    {{19, 512}, {ROWS_WAY_WARP, 64, 1}},
    {{3, 360}, {ROWS_WAY_BLOCK, 96, 1}},
    {{3, 512}, {ROWS_WAY_BLOCK, 32, 1}},
    {{3, 512}, {ROWS_WAY_BLOCK, 512, 1}},
    {{3, 360}, {ROWS_WAY_SHARED, 64, 1}},
    {{600, 17}, {ROWS_WAY_SHARED, 1024, 1}},
    {{600, 16}, {ROWS_WAY_SHARED, 1024, 1}},
    {{600, 5}, {ROWS_WAY_SHARED, 32, 1}},
    {{4500, 1}, {ROWS_WAY_SHARED, 32, 1}},
    {{3, 4001}, {ROWS_WAY_SPLIT, 64, 5}},
    {{3, 4000}, {ROWS_WAY_SPLIT, 64, 5}},
    {{2, 40}, {ROWS_WAY_SPLIT, 32, 70}},
    {{260, 16}, {ROWS_WAY_SPLIT, 32, 1000}}, /* more parts than the workspace holds; last */
};

C_TEST(widths, every_way_is_right) {
    static const struct rows_variant variants[] = {
        {.flavour = {.mean = 100.0f}},
        {.flavour = {.masked = true, .rows_a_mask = 2, .infinities = true}, .in_place = true},
    };
    struct device_properties gpu;
    struct error error = {0};
    ASSERT_TRUE(ladder_gpu_open(&gpu));
    size_t count = COUNT(plans) - gpu.modelled; /* half a million blocks take simt minutes */
    for (size_t i = 0; i < count * ROWS_OPS * ROWS_TYPES && !test_has_failed(); i++) {
        size_t which = i / (ROWS_OPS * ROWS_TYPES);
        enum rows_op op = (enum rows_op)(i / ROWS_TYPES % ROWS_OPS);
        enum nn_dtype type = (enum nn_dtype)(i % ROWS_TYPES);
        struct bed bed;
        struct rows_variant v = variants[op == ROWS_SOFTMAX];
        const struct subject subject = {"v6", NULL, &plans[which].plan};
        ASSERT_OK(bed_create(&bed, op, type, plans[which].shape, v, &error));
        check_subject(&subject, &bed);
        bed_free(&bed);
    }
}

C_TEST(widths, plans_that_cannot_hold_a_row_are_refused) {
    static const struct rows_plan small[] = {
        {ROWS_WAY_EIGHTH, 64, 1},  {ROWS_WAY_WARP, 64, 1},   {ROWS_WAY_BLOCK, 1024, 1},
        {ROWS_WAY_BLOCK, 100, 1},  {ROWS_WAY_SHARED, 0, 1},  {ROWS_WAY_SHARED, 1024, 1},
        {ROWS_WAY_SPLIT, 1024, 2}, {ROWS_WAY_SPLIT, 256, 0},
    };
    struct device_properties gpu;
    struct error error = {0};
    const struct rows_problem problem = {.op = ROWS_RMSNORM, .rows = 1, .C = 1 << 20};
    ASSERT_TRUE(ladder_gpu_open(&gpu));
    for (size_t i = 0; i < COUNT(small); i++) {
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                      rows_v6_with_plan(&problem, small[i], NULL, NULL, &error));
    }
}

/* The plan chosen is always one that is possible. */
C_TEST(widths, what_is_chosen_is_possible) {
    struct device_properties gpu;
    ASSERT_TRUE(ladder_gpu_open(&gpu));
    for (size_t C = 1; C < ROWS_MAX_C; C += C / 3 + 1) {
        for (size_t rows = 1; rows * C < (size_t)1 << 35; rows *= 11) {
            for (int type = 0; type < ROWS_TYPES; type++) {
                const struct rows_problem problem = {
                    .op = ROWS_SOFTMAX, .type = (enum nn_dtype)type, .rows = rows, .C = C};
                EXPECT_TRUE(rows_v6_possible(&problem, rows_v6_choose(&problem)));
            }
        }
    }
}

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)layernorm_softmax_ladder(&count);
    EXPECT_INT_EQ(6, count);
}

/* Refused by every step, with a line that names the number, and nothing launched. */
C_TEST(ladder, bad_sizes_are_refused) {
    static const struct {
        size_t rows, C, rows_a_mask;
        const char *word;
    } bad[] = {
        {1, 0, 1, "C = 0"},
        {1, ROWS_MAX_C + 1, 1, "1073741825"},
        {ROWS_MAX_ELEMENTS / 8 + 1, 8, 1, "137438953473"},
        {SIZE_MAX, 2, 1, "18446744073709551615"},
        {1, 8, 0, "rows_a_mask = 0"},
    };
    static const uint8_t mask[8];
    size_t count;
    struct device_properties gpu;
    ASSERT_TRUE(ladder_gpu_open(&gpu));
    const struct rows_step *steps = layernorm_softmax_ladder(&count);
    for (size_t i = 0; i < count * COUNT(bad); i++) {
        struct error error = {0};
        size_t b = i % COUNT(bad);
        const struct rows_problem problem = {.op = ROWS_SOFTMAX,
                                             .rows = bad[b].rows,
                                             .C = bad[b].C,
                                             .mask = mask,
                                             .rows_a_mask = bad[b].rows_a_mask};
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                      steps[i / COUNT(bad)].run(&problem, NULL, NULL, &error));
        EXPECT_TRUE(strstr(error.message, bad[b].word) != NULL);
    }
}
