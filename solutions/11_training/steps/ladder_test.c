/*
 * Every step of the ladder against the double oracle, twice with the same bits; the grader only
 * sees the last one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "labs/11_training/problem/adamw.h"
#include "labs/11_training/problem/attention.h"
#include "labs/11_training/problem/norm.h"
#include "labs/11_training/training.h"
#include "solutions/ladder_gpu.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { STEPS = 7 };

static const char *const names[STEPS] = {"v1_plain",  "v2_rows",   "v3_one_pass",     "v4_flash",
                                         "v5_tensor", "v6_hopper", "v7_five_products"};

static const struct training_functions *functions_of(size_t step) {
    size_t count;
    return &training_ladder(&count)[step].functions;
}

/* Whether a step has a function that the one before has not. */
static bool is_new(size_t step, size_t offset) {
    size_t size = sizeof(void (*)(void));
    const char *now = (const char *)functions_of(step) + offset;
    return step == 0 || memcmp(now, (const char *)functions_of(step - 1) + offset, size) != 0;
}

#define IS_NEW(step, member) is_new(step, offsetof(struct training_functions, member))

/* What went wrong with a call, or with what it wrote. */
static void judge(size_t step, const char *what, enum status status, const struct error *error,
                  const char *text) {
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s, %s: %s%s", names[step], what, text,
                  status != STATUS_OK ? error_text(error, status) : "");
    }
}

/* A case at hand, and the step that is called for it. */
struct step_call {
    void *problem; /* the case */
    size_t step;
    void *workspace;
    bool again; /* the second call */
};

/* Calls a step; if its result is right, calls it again: it must write the same bits. */
static enum status
call_twice(struct step_call *call, tensor_call *run,
           enum status (*check)(void *problem, char *text, size_t size, struct error *error),
           const struct tensor_outputs *outputs, char *text, size_t size, struct error *error) {
    bool same = true;
    TRY(run(call, error));
    TRY(check(call->problem, text, size, error));
    call->again = true;
    if (text[0] == '\0') {
        TRY(tensor_repeat(outputs, run, call, &same, error));
    }
    if (!same) {
        snprintf(text, size, "other bits the second time");
    }
    return STATUS_OK;
}

/* ---- LayerNorm ---- */

static enum status call_norm(void *argument, struct error *error) {
    const struct step_call *call = argument;
    struct norm_case *c = call->problem;
    const struct layernorm_backward_problem problem = norm_case_problem(c);
    TRY(norm_case_send(c, error));
    TRY(functions_of(call->step)->layernorm_backward(&problem, call->workspace, NULL, error));
    return device_synchronize(NULL, error);
}

static enum status check_norm_case(void *problem, char *text, size_t size, struct error *error) {
    return norm_case_check(problem, text, size, error);
}

static enum status make_norm(struct norm_case *c, const struct norm_spec *spec, bool guarded,
                             struct error *error) {
    struct rng rng = rng_create(11 + spec->rows * 31 + spec->C);
    TRY(norm_case_create(c, spec, guarded, error));
    return norm_case_draw(c, &rng, error);
}

static void check_norm(const struct norm_spec *spec, void *workspace, bool guarded) {
    struct norm_case c = {0};
    struct error error = {0};
    char text[600] = "";
    enum status status = make_norm(&c, spec, guarded, &error);
    const struct tensor_outputs outputs = norm_case_outputs(&c);
    judge(0, c.name, status, &error, text);
    for (size_t i = 0; i < STEPS && status == STATUS_OK && !test_has_failed(); i++) {
        struct step_call call = {&c, i, workspace, false};
        if (IS_NEW(i, layernorm_backward)) {
            status =
                call_twice(&call, call_norm, check_norm_case, &outputs, text, sizeof text, &error);
            judge(i, c.name, status, &error, text);
        }
    }
    norm_case_free(&c);
}

static void check_norms(const struct norm_spec *list, size_t count) {
    struct device_properties gpu;
    struct error error = {0};
    void *workspace = NULL;
    if (!ladder_gpu_open(&gpu)) {
        return;
    }
    EXPECT_OK(device_alloc(&workspace, TRAINING_WORKSPACE_BYTES, &error));
    for (size_t i = 0; i < 2 * count && !test_has_failed(); i++) {
        struct norm_spec spec = list[i / 2];
        spec.dtype = i % 2 == 0 ? NN_F32 : NN_BF16;
        check_norm(&spec, workspace, !gpu.modelled);
    }
    device_free(workspace);
}

C_TEST(ladder, has_its_steps) {
    size_t count;
    const struct training_step *steps = training_ladder(&count);
    ASSERT_TRUE(count == STEPS);
    for (size_t i = 0; i < STEPS; i++) {
        EXPECT_STR_EQ(names[i], steps[i].name);
    }
}

/* A test of these cases. */
#define LAYERNORM_TEST(name, ...)                             \
    C_TEST(ladder, name) {                                    \
        static const struct norm_spec list[] = {__VA_ARGS__}; \
        check_norms(list, COUNT(list));                       \
    }

/* Narrow and wide, and around what a lane, a warp and a block hold. */
LAYERNORM_TEST(layernorm_of_many_widths, {.rows = 1, .C = 1}, {.rows = 5, .C = 3},
               {.rows = 70, .C = 8}, {.rows = 9, .C = 33}, {.rows = 17, .C = 128},
               {.rows = 8, .C = 257}, {.rows = 9, .C = 264}, {.rows = 3, .C = 511},
               {.rows = 20, .C = 512}, {.rows = 11, .C = 768}, {.rows = 7, .C = 1000},
               {.rows = 3, .C = 1023}, {.rows = 9, .C = 1024}, {.rows = 3, .C = 1025},
               {.rows = 4, .C = 1032}, {.rows = 2, .C = 2560}, {.rows = 2, .C = 4095},
               {.rows = 2, .C = 4096}, {.rows = 1, .C = 5000}, {.rows = 1, .C = 8191},
               {.rows = 1, .C = 8200}, {.rows = 2, .C = 16384}, {.rows = 0, .C = 16})

/* Blocks go on to further rows. */
LAYERNORM_TEST(layernorm_of_many_rows, {.rows = 4500, .C = 4, .mean = 3.0}, {.rows = 4300, .C = 9},
               {.rows = 301, .C = 1040, .mean = -1.0})

LAYERNORM_TEST(layernorm_in_place, {.rows = 30, .C = 96, .in_place = true},
               {.rows = 30, .C = 65, .in_place = true}, {.rows = 3, .C = 1100, .in_place = true})

/* ---- Attention ---- */

/* Scratch memory holds what the call before left, or the second time other bits. */
static enum status call_attention(void *argument, struct error *error) {
    const struct step_call *call = argument;
    struct attention_gradient_case *c = call->problem;
    const struct attention_backward_problem problem = attention_gradient_problem(c);
    if (call->again) {
        TRY(device_set(c->scratch, 0xff, attention_backward_scratch(&problem), NULL, error));
    }
    TRY(attention_gradient_send(c, error));
    TRY(functions_of(call->step)->attention_backward(&problem, c->scratch, NULL, error));
    return device_synchronize(NULL, error);
}

static enum status check_attention_case(void *problem, char *text, size_t size,
                                        struct error *error) {
    return attention_gradient_check(problem, text, size, error);
}

/* v5 and v6 pass fp32 on to the step before, v6 also other heads, and on simt, whose code has no
   wgmma, everything; v7 passes on bf16 and large heads: few rows show that. */
enum { FEW_ROWS = 6, TENSOR_STEP = 4, HOPPER_STEP = 5, FIVE_PRODUCTS_STEP = 6 };

static bool only_passes_on(size_t step, const struct attention_gradient_case *c, bool on_gpu) {
    bool fp32 = c->spec.dtype == NN_F32;
    bool wgmma = on_gpu && !fp32 && (c->spec.HS == 64 || c->spec.HS == 128);
    bool passes_on = (step == TENSOR_STEP && fp32) || (step == HOPPER_STEP && !wgmma) ||
                     (step == FIVE_PRODUCTS_STEP && (!fp32 || c->spec.HS > 64));
    return passes_on && c->rows > FEW_ROWS;
}

static void check_attention(const struct attention_gradient_spec *spec, bool on_gpu) {
    struct attention_gradient_case c = {0};
    struct error error = {0};
    char text[700] = "";
    struct rng rng = rng_create(7 + spec->HS * 31 + spec->B);
    enum status status = attention_gradient_create(&c, spec, &rng, on_gpu, &error);
    const struct tensor_outputs outputs = attention_gradient_outputs(&c);
    judge(0, c.name, status, &error, text);
    for (size_t i = 0; i < STEPS && status == STATUS_OK && !test_has_failed(); i++) {
        struct step_call call = {&c, i, NULL, false};
        if (IS_NEW(i, attention_backward) && !only_passes_on(i, &c, on_gpu)) {
            status = call_twice(&call, call_attention, check_attention_case, &outputs, text,
                                sizeof text, &error);
            judge(i, c.name, status, &error, text);
        }
    }
    attention_gradient_free(&c);
}

static void check_attentions(const struct attention_gradient_spec *list, size_t count) {
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    for (size_t i = 0; i < 2 * count && open && !test_has_failed(); i++) {
        struct attention_gradient_spec spec = list[i / 2];
        spec.dtype = i % 2 == 0 ? NN_F32 : NN_BF16;
        spec.loudness = spec.loudness > 0.0 ? spec.loudness : 1.0;
        check_attention(&spec, !gpu.modelled);
    }
}

/* A test of these cases. */
#define ATTENTION_TEST(name, ...)                                           \
    C_TEST(ladder, name) {                                                  \
        static const struct attention_gradient_spec list[] = {__VA_ARGS__}; \
        check_attentions(list, COUNT(list));                                \
    }

ATTENTION_TEST(attention_heads, {.NH = 1, .KVH = 1, .HS = 8, .B = 1, .lengths = {1}},
               {.NH = 2, .KVH = 2, .HS = 8, .B = 2, .lengths = {5, 1}},
               {.NH = 1, .KVH = 1, .HS = 24, .B = 1, .lengths = {31}},
               {.NH = 1, .KVH = 1, .HS = 32, .B = 1, .lengths = {64}},
               {.NH = 1, .KVH = 1, .HS = 40, .B = 1, .lengths = {33}},
               {.NH = 2, .KVH = 2, .HS = 64, .B = 1, .lengths = {65}},
               {.NH = 1, .KVH = 1, .HS = 72, .B = 1, .lengths = {20}},
               {.NH = 1, .KVH = 1, .HS = 128, .B = 1, .lengths = {70}})

ATTENTION_TEST(
    attention_of_texts_of_many_lengths,
    {.NH = 2, .KVH = 2, .HS = 16, .B = 6, .lengths = {1, 63, 1, 64, 65, 2}, .joined = true},
    {.NH = 1, .KVH = 1, .HS = 64, .B = 3, .lengths = {140, 1, 30}},
    {.NH = 1, .KVH = 1, .HS = 96, .B = 2, .lengths = {3, 66}, .joined = true})

ATTENTION_TEST(attention_causal,
               {.NH = 1, .KVH = 1, .HS = 32, .B = 3, .lengths = {70, 1, 129}, .causal = true},
               {.NH = 2, .KVH = 2, .HS = 64, .B = 2, .lengths = {17, 150}, .causal = true},
               {.NH = 1, .KVH = 1, .HS = 128, .B = 2, .lengths = {80, 1}, .causal = true})

ATTENTION_TEST(
    attention_with_grouped_heads,
    {.NH = 4, .KVH = 2, .HS = 16, .B = 2, .lengths = {40, 9}, .causal = true, .joined = true},
    {.NH = 6, .KVH = 1, .HS = 48, .B = 2, .lengths = {2, 35}},
    {.NH = 4, .KVH = 2, .HS = 128, .B = 1, .lengths = {34}, .causal = true})

/* Probabilities next to 0 and 1. */
ATTENTION_TEST(
    attention_of_loud_scores,
    {.NH = 1, .KVH = 1, .HS = 32, .B = 1, .lengths = {50}, .loudness = 20.0},
    {.NH = 1, .KVH = 1, .HS = 64, .B = 1, .lengths = {66}, .loudness = 20.0, .causal = true})

/* The last step alone. */
static enum status check_tall(struct attention_gradient_case *c,
                              const struct attention_gradient_spec *spec, struct rng *rng,
                              bool guarded, char *text, size_t size, struct error *error) {
    struct step_call call = {c, STEPS - 1, NULL, false};
    TRY(attention_gradient_create(c, spec, rng, guarded, error));
    TRY(call_attention(&call, error));
    return attention_gradient_check(c, text, size, error);
}

/* The last step's tall tiles of 128 rows are chosen only where they fill an H200: these problems
   have just enough, 264. Texts of one tile, of one tile and a row, and of less. */
C_TEST(ladder, attention_in_tall_tiles) {
    static const struct attention_gradient_spec list[] = {
        {.NH = 66, .KVH = 66, .HS = 40, .B = 4, .lengths = {129, 127, 128, 128}, .causal = true},
        {.NH = 66, .KVH = 66, .HS = 8, .B = 5, .lengths = {127, 2, 128, 128, 127}},
    };
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    for (size_t i = 0; i < COUNT(list) && open; i++) {
        struct attention_gradient_spec spec = list[i];
        struct attention_gradient_case c = {0};
        struct error error = {0};
        char text[700] = "";
        struct rng rng = rng_create(5 + i);
        spec.dtype = NN_BF16;
        spec.loudness = 1.0;
        enum status status = check_tall(&c, &spec, &rng, !gpu.modelled, text, sizeof text, &error);
        judge(STEPS - 1, c.name, status, &error, text);
        attention_gradient_free(&c);
    }
}

/* ---- The memory between rows ---- */

/* One gradient in memory of its own, its rows as far from each other as the case's: `width`
   elements of each are the gradient's, the first of them `first` elements into the rows of
   `joined`. */
struct separate {
    void *device;
    unsigned char *bytes; /* host */
    size_t first, width;
};

static enum status separate_create(struct separate *a, size_t bytes, struct error *error) {
    a->bytes = malloc(bytes);
    if (a->bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "out of memory");
    }
    TRY(device_alloc(&a->device, bytes, error));
    return device_set(a->device, 0xff, bytes, NULL, error);
}

/* Elements are the same as in the joined matrix, and those between as they were. */
static bool separate_is_right(const struct separate *a, const unsigned char *joined, size_t rows,
                              size_t stride, size_t size) {
    bool right = true;
    for (size_t i = 0; i < rows * stride * size && right; i++) {
        size_t row = i / (stride * size), byte = i % (stride * size);
        bool own = byte < a->width * size;
        right = a->bytes[i] == (own ? joined[(row * stride + a->first) * size + byte] : 0xff);
    }
    return right;
}

/* Calls a step with each gradient in memory of its own. */
static enum status run_separate(const struct attention_gradient_case *c, size_t step,
                                struct separate *separate, size_t bytes, struct error *error) {
    struct attention_backward_problem problem = attention_gradient_problem(c);
    for (int i = 0; i < 3; i++) {
        TRY(separate_create(&separate[i], bytes, error));
    }
    problem.dq = separate[0].device;
    problem.dk = separate[1].device;
    problem.dv = separate[2].device;
    TRY(functions_of(step)->attention_backward(&problem, c->scratch, NULL, error));
    for (int i = 0; i < 3; i++) {
        TRY(device_read(separate[i].bytes, separate[i].device, bytes, NULL, error));
    }
    return STATUS_OK;
}

/* The same with the gradients in one matrix first. @param joined, separate host, (rows, stride) */
static enum status run_both(struct attention_gradient_case *c, size_t step, unsigned char *joined,
                            struct separate *separate, size_t bytes, struct error *error) {
    struct step_call call = {c, step, NULL, false};
    TRY(call_attention(&call, error));
    TRY(device_read(joined, c->dqkv[0].buffer.data, bytes, NULL, error));
    return run_separate(c, step, separate, bytes, error);
}

static enum status try_separate(struct attention_gradient_case *c, size_t step, char *text,
                                size_t size, struct error *error) {
    const struct attention_gradient_spec *s = &c->spec;
    size_t q = s->NH * s->HS, kv = s->KVH * s->HS, element = nn_dtype_bytes(s->dtype);
    size_t bytes = c->rows * c->q_stride * element;
    struct separate separate[3] = {
        {.width = q}, {.first = q, .width = kv}, {.first = q + kv, .width = kv}};
    unsigned char *joined = malloc(bytes);
    enum status status =
        joined != NULL ? run_both(c, step, joined, separate, bytes, error) : STATUS_OUT_OF_MEMORY;
    for (int i = 0; i < 3; i++) {
        if (status == STATUS_OK &&
            !separate_is_right(&separate[i], joined, c->rows, c->q_stride, element)) {
            snprintf(text, size, "gradient %d: wrote between the rows, or other bits", i);
        }
        device_free(separate[i].device);
        free(separate[i].bytes);
    }
    free(joined);
    return status;
}

static enum status check_separate(struct attention_gradient_case *c,
                                  const struct attention_gradient_spec *spec, size_t step,
                                  struct rng *rng, char *text, size_t size, struct error *error) {
    TRY(attention_gradient_create(c, spec, rng, false, error));
    return try_separate(c, step, text, size, error);
}

C_TEST(ladder, attention_writes_nothing_between_rows) {
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    for (size_t i = 0; i < 6 * STEPS && open && !test_has_failed(); i++) {
        static const size_t sizes[] = {24, 64, 80};
        struct attention_gradient_spec spec = {.NH = 2,
                                               .KVH = 1,
                                               .HS = sizes[i % 3],
                                               .B = 2,
                                               .lengths = {19, 3},
                                               .loudness = 1.0,
                                               .dtype = i / 3 % 2 == 0 ? NN_F32 : NN_BF16,
                                               .joined = true};
        struct attention_gradient_case c = {0};
        struct error error = {0};
        char text[200] = "";
        struct rng rng = rng_create(i);
        if (!IS_NEW(i / 6, attention_backward)) {
            continue;
        }
        enum status status = check_separate(&c, &spec, i / 6, &rng, text, sizeof text, &error);
        judge(i / 6, c.name, status, &error, text);
        attention_gradient_free(&c);
    }
}

/* ---- AdamW ---- */

static enum status call_adamw(void *argument, struct error *error) {
    const struct step_call *call = argument;
    struct adamw_case *c = call->problem;
    const struct adamw_problem problem = adamw_case_problem(c);
    TRY(adamw_case_send(c, error));
    TRY(functions_of(call->step)->adamw(&problem, NULL, error));
    return device_synchronize(NULL, error);
}

static enum status check_adamw_case(void *problem, char *text, size_t size, struct error *error) {
    return adamw_case_check(problem, text, size, error);
}

static enum status make_adamw(struct adamw_case *c, const struct adamw_spec *spec, bool guarded,
                              struct error *error) {
    struct rng rng = rng_create(3 + spec->count);
    TRY(adamw_case_create(c, spec, guarded, error));
    return adamw_case_draw(c, &rng, error);
}

static void check_adamw(const struct adamw_spec *spec, bool guarded) {
    struct adamw_case c = {0};
    struct error error = {0};
    char text[600] = "";
    enum status status = make_adamw(&c, spec, guarded, &error);
    const struct tensor_outputs outputs = adamw_case_outputs(&c);
    judge(0, c.name, status, &error, text);
    for (size_t i = 0; i < STEPS && status == STATUS_OK && !test_has_failed(); i++) {
        struct step_call call = {&c, i, NULL, false};
        if (IS_NEW(i, adamw)) {
            status = call_twice(&call, call_adamw, check_adamw_case, &outputs, text, sizeof text,
                                &error);
            judge(i, c.name, status, &error, text);
        }
    }
    adamw_case_free(&c);
}

/* Around vectors and blocks, and decay that ends within a vector. */
C_TEST(ladder, adamw) {
    static const struct {
        size_t count, decayed;
        uint64_t step;
    } sizes[] = {{1, 0, 1},       {3, 2, 7},      {4, 4, 2},          {5, 1, 1000},
                 {1023, 1022, 3}, {1024, 513, 1}, {1025, 1025, 4},    {1030, 0, 50000},
                 {4099, 2050, 9}, {0, 0, 1},      {70000, 69997, 100}};
    struct device_properties gpu;
    bool open = ladder_gpu_open(&gpu);
    for (size_t i = 0; i < 2 * COUNT(sizes) && open && !test_has_failed(); i++) {
        struct adamw_spec spec = adamw_spec_usual(sizes[i / 2].count, sizes[i / 2].decayed);
        spec.copy = i % 2 == 0;
        spec.step = sizes[i / 2].step;
        spec.scale = 0.7;
        check_adamw(&spec, !gpu.modelled);
    }
}
