/* Lab 05, parity: the subject's norms and softmax against the double oracle, alone and in models.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/compare.h"
#include "common/testing/device_buffer.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/05_layernorm_softmax/calls.h"
#include "grader/harness/bed.h"
#include "grader/harness/gpu.h"
#include "grader/harness/logits.h"
#include "grader/harness/own_work.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/watch.h"
#include "grader/isolation/remote.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"
#include "labs/05_layernorm_softmax/problem/oracle.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 20 };

struct shape {
    size_t rows, C;
};

/* How a list of shapes is run. */
struct variant {
    struct rows_flavour flavour;
    bool in_place;
    size_t skew; /* elements that every pointer is past a 256-byte boundary */
};

/* One case: host values, device buffers, and what they are. Buffers count in floats. */
struct rows_case {
    struct rows_data data;
    struct variant variant;
    struct device_buffer in, out, weight, bias, mask;
    float *bytes; /* host, as large as the largest buffer */
    size_t floats;
    char name[240];
};

/* Floats that hold so many elements behind the skew. */
static size_t floats_of(const struct rows_case *c, size_t elements, size_t element_bytes) {
    return ((elements + c->variant.skew) * element_bytes + 3) / 4;
}

/* A buffer with elements behind the skew; bytes of ones, NaN in every type, around them. */
static enum status make_buffer(struct rows_case *c, struct device_buffer *buffer,
                               const float *values, size_t count, bool guarded,
                               struct error *error) {
    size_t size = nn_dtype_bytes(c->data.type), floats = floats_of(c, count, size);
    enum status status = device_buffer_create(buffer, floats, guarded, 0, error);
    memset(c->bytes, 0xff, floats * sizeof(float));
    if (values != NULL) {
        nn_dtype_store((char *)c->bytes + c->variant.skew * size, values, count, c->data.type);
    }
    return status == STATUS_OK ? device_buffer_put(buffer, c->bytes, error) : status;
}

static enum status make_mask(struct rows_case *c, bool guarded, struct error *error) {
    size_t count = c->data.masks * c->data.C, floats = floats_of(c, count, 1);
    enum status status = device_buffer_create(&c->mask, floats, guarded, 0, error);
    memset(c->bytes, 0xff, floats * sizeof(float));
    memcpy((char *)c->bytes + c->variant.skew, c->data.mask, count);
    return status == STATUS_OK ? device_buffer_put(&c->mask, c->bytes, error) : status;
}

static enum status make_buffers(struct rows_case *c, bool guarded, struct error *error) {
    const struct rows_data *data = &c->data;
    bool in_place = c->variant.in_place;
    enum status status =
        make_buffer(c, &c->in, in_place ? NULL : data->in, data->rows * data->C, guarded, error);
    if (status == STATUS_OK) {
        status = make_buffer(c, &c->out, in_place ? data->in : NULL, data->rows * data->C, guarded,
                             error);
    }
    if (status == STATUS_OK) {
        status = make_buffer(c, &c->weight, data->weight, data->C, guarded, error);
    }
    if (status == STATUS_OK) {
        status = make_buffer(c, &c->bias, data->bias, data->C, guarded, error);
    }
    return status == STATUS_OK && data->mask != NULL ? make_mask(c, guarded, error) : status;
}

static void name_case(struct rows_case *c) {
    const struct rows_data *data = &c->data;
    snprintf(c->name, sizeof c->name, "%s %s, %zu row%s of %zu%s%s%s%s", rows_op_name(data->op),
             nn_dtype_name(data->type), data->rows, plural(data->rows), data->C,
             c->variant.flavour.mean != 0.0f ? ", a large mean" : "",
             data->mask != NULL ? ", with a mask" : "", c->variant.in_place ? ", in place" : "",
             c->variant.skew > 0 ? ", pointers past a boundary" : "");
}

static enum status case_create(struct rows_case *c, enum rows_op op, enum nn_dtype type,
                               struct shape s, struct bed *bed, struct error *error) {
    enum status status =
        rows_data_create(&c->data, op, type, s.rows, s.C, c->variant.flavour, &bed->rng, error);
    name_case(c);
    c->floats = (s.rows + 1) * s.C + c->variant.skew + 4;
    c->bytes = malloc(c->floats * sizeof *c->bytes);
    if (status == STATUS_OK && c->bytes == NULL) {
        status = error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    bool guarded = bed_guards(bed);
    return status == STATUS_OK ? make_buffers(c, guarded, error) : status;
}

static void case_free(struct rows_case *c) {
    device_buffer_free(&c->in);
    device_buffer_free(&c->out);
    device_buffer_free(&c->weight);
    device_buffer_free(&c->bias);
    device_buffer_free(&c->mask);
    rows_data_free(&c->data);
    free(c->bytes);
}

/* Elements of a buffer behind the skew, or NULL. */
static void *elements(const struct rows_case *c, const struct device_buffer *buffer,
                      size_t element_bytes) {
    return buffer->data == NULL ? NULL : (char *)buffer->data + c->variant.skew * element_bytes;
}

/* The subject's layernorm_softmax(), in its own process. */
static enum status remote_rows(const struct rows_problem *problem, const struct bed *bed,
                               struct error *error) {
    struct rows_call c = {*problem, bed->workspace, bed->stream};
    return remote_call("rows", &c, sizeof c, error);
}

static enum status call(const struct rows_case *c, const struct bed *bed, struct error *error) {
    const struct rows_data *data = &c->data;
    size_t size = nn_dtype_bytes(data->type);
    const struct rows_problem problem = {
        .op = data->op,
        .type = data->type,
        .rows = data->rows,
        .C = data->C,
        .in = elements(c, c->variant.in_place ? &c->out : &c->in, size),
        .out = elements(c, &c->out, size),
        .weight = data->op != ROWS_SOFTMAX ? elements(c, &c->weight, size) : NULL,
        .bias = data->op == ROWS_LAYERNORM ? elements(c, &c->bias, size) : NULL,
        .eps = data->eps,
        .mask = elements(c, &c->mask, 1),
        .rows_a_mask = data->rows_a_mask,
    };
    grader_watch(c->name, PATIENCE);
    enum status status = remote_rows(&problem, bed, error);
    if (status == STATUS_OK) {
        status = device_synchronize(bed->stream, error);
    }
    grader_watch("", 0);
    return status;
}

/* Row by row: each has a tolerance of its own. c->bytes holds the output. */
static void check_values(const struct rows_case *c) {
    const struct rows_data *data = &c->data;
    size_t size = nn_dtype_bytes(data->type);
    double *want = malloc(data->C * sizeof *want);
    float *got = malloc(data->C * sizeof *got);
    EXPECT_TRUE(want != NULL && got != NULL);
    for (size_t row = 0; row < data->rows && !test_has_failed(); row++) {
        rows_expect(data, row, want, got);
        nn_dtype_load(got, (char *)c->bytes + (c->variant.skew + row * data->C) * size, data->C,
                      data->type);
        struct comparison result = compare_f32(got, want, data->C, rows_tolerance(data, row));
        if (!result.pass) {
            char text[512];
            comparison_describe(&result, data->C, text, sizeof text);
            TEST_FAIL("%s: row %zu: %s", c->name, row, text);
        }
    }
    free(want);
    free(got);
}

/* Reads everything back: the result into c->bytes, and who wrote where. */
static enum status check_buffers(struct rows_case *c, struct error *error) {
    static const char *const names[] = {"in", "weight", "bias", "mask"};
    const struct device_buffer *inputs[] = {&c->in, &c->weight, &c->bias, &c->mask};
    bool intact = true, changed = false;
    enum status status = device_buffer_get(&c->out, c->bytes, &intact, &changed, error);
    for (size_t i = 0; i < c->variant.skew * nn_dtype_bytes(c->data.type); i++) {
        intact = intact && ((unsigned char *)c->bytes)[i] == 0xff;
    }
    for (int i = 0; i < 4 && status == STATUS_OK; i++) {
        bool same = true, touched = false;
        if (inputs[i]->block != NULL) {
            status = device_buffer_get(inputs[i], NULL, &same, &touched, error);
        }
        intact = intact && same;
        if (touched) {
            TEST_FAIL("%s: changed its input %s", c->name, names[i]);
        }
    }
    if (!intact) {
        TEST_FAIL("%s: wrote outside of the output", c->name);
    }
    return status;
}

static void run_case(enum rows_op op, enum nn_dtype type, struct shape shape,
                     struct variant variant, struct bed *bed) {
    struct rows_case c = {.variant = variant};
    struct error error = {0};
    enum status status = case_create(&c, op, type, shape, bed, &error);
    if (status == STATUS_OK) {
        status = call(&c, bed, &error);
        if (status == STATUS_OK) {
            status = check_buffers(&c, &error);
        }
        if (status == STATUS_OK && !test_has_failed()) {
            check_values(&c);
        }
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", c.name, error_text(&error, status), status_name(status));
    }
    case_free(&c);
}

static void run_shapes(enum rows_op op, const struct shape *shapes, size_t count,
                       struct variant variant, struct bed *bed) {
    for (int type = 0; type < ROWS_TYPES; type++) {
        for (size_t i = 0; i < count && !test_has_failed(); i++) {
            run_case(op, (enum nn_dtype)type, shapes[i], variant, bed);
        }
    }
}

/* Rows of one, odd rows, primes, and around the widths of warps, blocks and vectors. */
static const struct shape small_shapes[] = {
    {1, 1},  {70, 1}, {1, 2},  {5, 3},   {3, 7},   {4, 8},   {9, 17},  {2, 31},  {3, 32},
    {4, 33}, {5, 64}, {3, 97}, {2, 127}, {2, 128}, {3, 129}, {2, 256}, {1, 257}, {2, 768},
};

static const struct shape large_shapes[] = {{3, 769}, {2, 1031}, {130, 40}, {2, 2560}, {1, 8191}};

/* A GPU does them at once; simt in a minute. */
static const struct shape gpu_shapes[] = {
    {2048, 2560}, {8192, 768}, {1000, 4096}, {300, 16384}, {257, 50257}, {3, 1000003}, {100003, 17},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void run_lists(enum rows_op op, struct variant variant) {
    struct bed bed;
    if (bed_open(&bed, ROWS_WORKSPACE_BYTES)) {
        run_shapes(op, small_shapes, COUNT(small_shapes), variant, &bed);
        run_shapes(op, large_shapes, COUNT(large_shapes), variant, &bed);
    }
    bed_close(&bed);
}

C_TEST(parity, layernorm) {
    run_lists(ROWS_LAYERNORM, (struct variant){.in_place = false});
}

C_TEST(parity, rmsnorm) {
    run_lists(ROWS_RMSNORM, (struct variant){.in_place = false});
}

C_TEST(parity, softmax) {
    run_lists(ROWS_SOFTMAX, (struct variant){.in_place = false});
}

/* The first mask hides all of its rows, the second nothing. */
C_TEST(parity, softmax_with_mask) {
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.masked = true}});
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.masked = true, .rows_a_mask = 2}});
}

C_TEST(parity, softmax_of_minus_infinity) {
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.infinities = true}});
}

/* The mean is 3000 standard deviations: E[x^2] - mean^2 has nothing left of the variance. */
C_TEST(parity, layernorm_of_a_large_mean) {
    run_lists(ROWS_LAYERNORM, (struct variant){.flavour = {.mean = 3000.0f}});
}

/* e^1000 is not a float. */
C_TEST(parity, softmax_of_large_numbers) {
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.mean = 1000.0f}});
    run_lists(ROWS_SOFTMAX, (struct variant){.flavour = {.mean = -1000.0f}});
}

C_TEST(parity, in_place) {
    for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
        run_lists((enum rows_op)op, (struct variant){.in_place = true});
    }
}

C_TEST(parity, unaligned_pointers) {
    for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
        const struct rows_flavour flavour = {.masked = op == ROWS_SOFTMAX};
        run_lists((enum rows_op)op, (struct variant){.flavour = flavour, .skew = 1});
    }
}

/* Rows whose variance is next to nothing: epsilon decides. */
C_TEST(parity, epsilon_matters) {
    static const struct shape shapes[] = {{3, 1}, {2, 5}, {2, 96}};
    struct bed bed;
    if (bed_open(&bed, ROWS_WORKSPACE_BYTES)) {
        for (int op = 0; op < ROWS_SOFTMAX; op++) {
            const struct rows_flavour flavour = {.quiet = true};
            run_shapes((enum rows_op)op, shapes, COUNT(shapes), (struct variant){flavour, false, 0},
                       &bed);
        }
    }
    bed_close(&bed);
}

C_TEST(parity, no_rows) {
    static const struct shape shapes[] = {{0, 1}, {0, 768}};
    struct bed bed;
    if (bed_open(&bed, ROWS_WORKSPACE_BYTES)) {
        for (int op = 0; op < ROWS_OPS; op++) {
            run_shapes((enum rows_op)op, shapes, COUNT(shapes), (struct variant){.skew = 0}, &bed);
        }
    }
    bed_close(&bed);
}

/* More rows than a grid takes blocks in y and z, and a row longer than a block keeps anywhere. */
C_TEST(parity, many_rows_and_a_long_one) {
    static const struct shape shapes[] = {{70001, 1}, {1, 70001}};
    struct bed bed;
    if (bed_open(&bed, ROWS_WORKSPACE_BYTES)) {
        for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
            for (size_t i = 0; i < COUNT(shapes); i++) {
                run_case((enum rows_op)op, NN_F32, shapes[i], (struct variant){.skew = 0}, &bed);
            }
        }
    }
    bed_close(&bed);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, random_sizes) {
    struct bed bed;
    if (bed_open(&bed, ROWS_WORKSPACE_BYTES)) {
        for (int i = 0; i < 36 && !test_has_failed(); i++) {
            enum rows_op op = (enum rows_op)(i % ROWS_OPS);
            enum nn_dtype type = (enum nn_dtype)rng_below(&bed.rng, ROWS_TYPES);
            struct shape shape = {1 + rng_below(&bed.rng, 40), 1 + rng_below(&bed.rng, 1200)};
            struct variant v = {.flavour = {.masked = op == ROWS_SOFTMAX && i % 2 == 0,
                                            .rows_a_mask = 1 + rng_below(&bed.rng, 5)},
                                .skew = rng_below(&bed.rng, 2)};
            run_case(op, type, shape, v, &bed);
        }
    }
    bed_close(&bed);
}

C_TEST(parity, large_sizes_on_a_gpu) {
    struct bed bed;
    if (bed_open(&bed, ROWS_WORKSPACE_BYTES) && !bed.modelled) {
        for (int op = 0; op < ROWS_OPS && !test_has_failed(); op++) {
            const struct rows_flavour flavour = {.masked = op == ROWS_SOFTMAX, .rows_a_mask = 7};
            run_shapes((enum rows_op)op, gpu_shapes, COUNT(gpu_shapes),
                       (struct variant){.flavour = flavour}, &bed);
        }
    }
    bool modelled = bed.modelled;
    bed_close(&bed);
    if (modelled) {
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
}

C_TEST(parity, bad_sizes_are_refused) {
    static const struct {
        size_t rows, C, rows_a_mask;
        const char *word;
    } bad[] = {
        {1, 0, 1, "0"},
        {1, ROWS_MAX_C + 1, 1, "1073741825"},
        {ROWS_MAX_ELEMENTS / 8 + 1, 8, 1, "137438953473"},
        {1, 8, 0, "rows_a_mask"},
    };
    struct bed bed;
    struct device_buffer buffer;
    struct error error = {0};
    bool intact, changed = true;
    ASSERT_TRUE(bed_open(&bed, ROWS_WORKSPACE_BYTES));
    ASSERT_OK(device_buffer_create(&buffer, 8, false, 0, &error));
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct rows_problem problem = {.op = ROWS_SOFTMAX,
                                       .rows = bad[i].rows,
                                       .C = bad[i].C,
                                       .in = buffer.data,
                                       .out = buffer.data,
                                       .mask = (const uint8_t *)buffer.data,
                                       .rows_a_mask = bad[i].rows_a_mask};
        error = (struct error){0};
        grader_watch("sizes that must be refused", PATIENCE);
        enum status status = remote_rows(&problem, &bed, &error);
        grader_watch("", 0);
        if (status != STATUS_INVALID_ARGUMENT || strstr(error.message, bad[i].word) == NULL) {
            TEST_FAIL("rows=%zu C=%zu rows_a_mask=%zu: must be refused with "
                      "STATUS_INVALID_ARGUMENT and a line that names the number; got %s, '%s'",
                      problem.rows, problem.C, problem.rows_a_mask, status_name(status),
                      error.message);
        }
    }
    EXPECT_OK(device_synchronize(bed.stream, &error));
    EXPECT_OK(device_buffer_get(&buffer, NULL, &intact, &changed, &error));
    EXPECT_TRUE(!changed);
    device_buffer_free(&buffer);
    bed_close(&bed);
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your norms", PATIENCE)) {
        grader_check_close_logits(l.got, l.want, SMALL_LLAMA2_V, "Llama2 with your norms");
    }
}

C_TEST(parity, bert_end_to_end) {
    enum { SENTENCES = 3, LENGTH = 7, LABELS = 4 };
    struct grader_gpu gpu;
    int32_t ids[SENTENCES * LENGTH];
    float want[SENTENCES * LABELS], got[SENTENCES * LABELS] = {0};
    struct rng rng = rng_create(grader_seed());
    for (int i = 0; i < SENTENCES * LENGTH; i++) {
        ids[i] = (i * 37 + 11) % 97;
    }
    const struct remote_bert_job job = {.config = {.C = 60,
                                                   .hidden = 124,
                                                   .L = 2,
                                                   .NH = 6,
                                                   .V = 97,
                                                   .T = LENGTH,
                                                   .types = 2,
                                                   .labels = LABELS,
                                                   .norm_eps = 1e-12f,
                                                   .activation = NN_GELU},
                                        .seed = rng_u64(&rng),
                                        .input = {.ids = ids, .B = SENTENCES, .T = LENGTH},
                                        .what = "a small BERT with your norms",
                                        .seconds = PATIENCE};
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    ASSERT_OK(remote_bert_reference(&job, want));
    (void)remote_bert_fastest(&job, REMOTE_SUBJECT, 1, got);
    if (!test_has_failed()) {
        grader_check_close_logits(got, want, SENTENCES * LABELS, "BERT with your norms");
    }
    grader_check_own_work();
}
