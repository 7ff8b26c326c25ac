/* Every step of the ladder against sums in double; the grader runs the last one only. */
#include <stdio.h>
#include <stdlib.h>

#include "labs/09_kv_cache/problem/graph.h"
#include "labs/09_kv_cache/problem/linear.h"
#include "labs/09_kv_cache/problem/text.h"
#include "solutions/09_kv_cache/steps/ladder.h"
#include "solutions/ladder_gpu.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Shared by all cases of a test. */
struct bench {
    struct device_properties gpu;
    device_stream stream; /* not the default one: calls are recorded */
    void *workspace;
};

static enum status bench_create(struct bench *b, struct error *error) {
    TRY(device_stream_create(&b->stream, error));
    return device_alloc(&b->workspace, KV_WORKSPACE_BYTES, error);
}

static bool bench_open(struct bench *b) {
    struct error error = {0};
    *b = (struct bench){0};
    if (!ladder_gpu_open(&b->gpu)) {
        return false;
    }
    enum status status = bench_create(b, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    return status == STATUS_OK;
}

static void bench_close(struct bench *b) {
    device_free(b->workspace);
    device_stream_destroy(b->stream);
}

static void report(const char *step, const char *name, enum status status, const char *text,
                   const struct error *error) {
    if (status != STATUS_OK || text[0] != '\0') {
        TEST_FAIL("%s %s: %s %s", step, name, text, error->message);
    }
}

/* ---- kv_linear() ---- */

static enum status run_and_check_linear(struct kv_linear_case *c, kv_linear_function *run,
                                        const struct bench *b, char *text, size_t size,
                                        struct error *error) {
    TRY(kv_linear_case_run(c, run, b->stream, error));
    return kv_linear_case_check(c, text, size, error);
}

static void check_linear(const struct kv_linear_spec *spec, const struct bench *b, bool last) {
    size_t count;
    const struct kv_step *steps = kv_ladder(&count);
    struct kv_linear_case c;
    struct error error = {0};
    struct rng rng = rng_create(7 + spec->N * 31 + spec->K);
    enum status status = kv_linear_case_create(&c, spec, &rng, !b->gpu.modelled, &error);
    report("case", c.name, status, "", &error);
    for (size_t i = last ? count - 1 : 0; i < count && status == STATUS_OK; i++) {
        char text[400] = "";
        status = run_and_check_linear(&c, steps[i].linear, b, text, sizeof text, &error);
        report(steps[i].name, c.name, status, text, &error);
    }
    kv_linear_case_free(&c);
}

/* Every case in the three formats. */
static void check_linears(const struct kv_linear_spec *list, size_t count, bool large) {
    struct bench b;
    bool open = bench_open(&b);
    if (open && large && b.gpu.modelled) {
        bench_close(&b);
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct kv_linear_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            check_linear(&spec, &b, false);
        }
    }
    bench_close(&b);
}

C_TEST(ladder, has_its_steps) {
    size_t count;
    (void)kv_ladder(&count);
    EXPECT_INT_EQ(7, count);
}

/* A test of these cases. large: on a GPU alone */
#define LINEAR_TEST(name, large, ...)                              \
    C_TEST(ladder, name) {                                         \
        static const struct kv_linear_spec list[] = {__VA_ARGS__}; \
        check_linears(list, COUNT(list), large);                   \
    }

LINEAR_TEST(linear_sizes, false, {.N = 0, .K = 8},
            {.N = 5, .K = 0, .norm = true, .residual = KV_RESIDUAL}, {.N = 1, .K = 1},
            {.N = 1, .K = 8, .norm = true}, {.N = 3, .K = 4, .norm = true},
            {.N = 7, .K = 12, .residual = KV_IN_PLACE},
            {.N = 67, .K = 61, .norm = true, .residual = KV_RESIDUAL},
            {.N = 31, .K = 264, .norm = true, .residual = KV_IN_PLACE}, {.N = 13, .K = 1023})

/* Every launch plan: 1 to 8 rows a block, the last block short; 1, 2 and 4 pieces a thread; rows of
   several rounds. */
LINEAR_TEST(linear_plans, false, {.N = 2113, .K = 32, .norm = true},
            {.N = 1061, .K = 40, .residual = KV_RESIDUAL}, {.N = 533, .K = 8},
            {.N = 1058, .K = 2056}, {.N = 5, .K = 2056, .norm = true},
            {.N = 5, .K = 5640, .norm = true, .residual = KV_RESIDUAL}, {.N = 531, .K = 5640},
            {.N = 3, .K = 16392, .norm = true})

/* The last step's persistent kernel, which few, long rows get. */
C_TEST(ladder, linear_persistent) {
    static const struct kv_linear_spec list[] = {
        {.N = 2049, .K = 2056, .dtype = NN_F32, .norm = true, .residual = KV_RESIDUAL},
        {.N = 2048, .K = 4104, .dtype = NN_BF16, .residual = KV_IN_PLACE},
    };
    struct bench b;
    bool open = bench_open(&b);
    for (size_t i = 0; i < COUNT(list) && open; i++) {
        check_linear(&list[i], &b, true);
    }
    bench_close(&b);
}

LINEAR_TEST(linear_odd_pointers, false, {.N = 24, .K = 64, .skew = 1},
            {.N = 24, .K = 128, .norm = true, .residual = KV_IN_PLACE, .skew = 3},
            {.N = 24, .K = 64, .norm = true, .residual = KV_RESIDUAL, .skew = 8})

LINEAR_TEST(linear_large_sizes_on_a_gpu, true, {.N = 4096, .K = 4096, .residual = KV_IN_PLACE},
            {.N = 12288, .K = 4096, .norm = true}, {.N = 4096, .K = 11008, .residual = KV_RESIDUAL},
            {.N = 2304, .K = 768, .norm = true}, {.N = 32000, .K = 2048, .norm = true},
            {.N = 10007, .K = 101, .norm = true})

/* ---- kv_attention() ---- */

/* Runs one token on one step, by a graph of the call if there is one. */
static enum status run_and_check_token(struct kv_text *t, size_t position,
                                       const struct kv_step *step, void *graph,
                                       const struct bench *b, char *text, size_t size,
                                       struct error *error) {
    TRY(kv_text_prepare(t, position, error));
    TRY(graph != NULL
            ? kv_graph_launch(graph, b->stream, error)
            : kv_text_call(t, position + 1, step->attention, b->workspace, b->stream, error));
    return kv_text_check(t, position, text, size, error);
}

static void feed(struct kv_text *t, size_t position, const struct kv_step *step, void *graph,
                 const struct bench *b) {
    struct error error = {0};
    char text[400] = "", name[300];
    snprintf(name, sizeof name, "%s, position %zu%s", t->name, position,
             graph != NULL ? ", recorded" : "");
    enum status status =
        run_and_check_token(t, position, step, graph, b, text, sizeof text, &error);
    report(step->name, name, status, text, &error);
}

/* Positions one by one. With `recorded`, all of them by one graph of the call, recorded for T rows.
 */
static void check_text(const struct kv_text_spec *spec, const size_t *positions, size_t count,
                       bool recorded, const struct bench *b) {
    size_t steps_count;
    const struct kv_step *steps = kv_ladder(&steps_count);
    for (size_t i = 0; i < steps_count && !test_has_failed(); i++) {
        struct kv_text t;
        void *graph = NULL;
        struct error error = {0};
        enum status status = kv_text_create(&t, spec, 7 + spec->HS, !b->gpu.modelled, &error);
        if (status == STATUS_OK && recorded) {
            t.call.longest = spec->T;
            status = kv_graph_record(&graph, steps[i].attention, &t.call, b->workspace, b->stream,
                                     &error);
        }
        report(steps[i].name, t.name, status, "", &error);
        for (size_t j = 0; j < count && !test_has_failed(); j++) {
            feed(&t, positions[j], &steps[i], graph, b);
        }
        kv_graph_free(graph);
        kv_text_free(&t);
    }
}

static void check_texts(const struct kv_text_spec *list, size_t count, const size_t *positions,
                        size_t positions_count, bool recorded, bool large) {
    struct bench b;
    bool open = bench_open(&b);
    if (open && large && b.gpu.modelled) {
        bench_close(&b);
        TEST_SKIP("large sizes are for a GPU; this is simt");
    }
    for (size_t i = 0; i < count && open; i++) {
        for (int dtype = NN_F32; dtype <= NN_BF16 && !test_has_failed(); dtype++) {
            struct kv_text_spec spec = list[i];
            spec.dtype = (enum nn_dtype)dtype;
            check_text(&spec, positions, positions_count, recorded, &b);
        }
    }
    bench_close(&b);
}

#define AT(...) \
    { __VA_ARGS__ }

/* A test of these texts at each of the positions AT(). recorded: by a graph; large: on a GPU alone
 */
#define ATTENTION_TEST(name, at, recorded, large, ...)                                \
    C_TEST(ladder, name) {                                                            \
        static const size_t positions[] = at;                                         \
        static const struct kv_text_spec list[] = {__VA_ARGS__};                      \
        check_texts(list, COUNT(list), positions, COUNT(positions), recorded, large); \
    }

ATTENTION_TEST(attention_sizes, AT(0, 1, 2), false, false,
               {.C = 1, .NH = 1, .KVH = 1, .HS = 2, .T = 3},
               {.C = 33, .NH = 3, .KVH = 3, .HS = 10, .T = 3, .layout = NN_ROPE_HALVES},
               {.C = 24, .NH = 2, .KVH = 2, .HS = 48, .T = 3},
               {.C = 40, .NH = 2, .KVH = 1, .HS = 98, .T = 3},
               {.C = 8, .NH = 1, .KVH = 1, .HS = KV_MAX_HS, .T = 3, .layout = NN_ROPE_HALVES},
               {.C = 8, .NH = 1, .KVH = 1, .HS = KV_MAX_HS - 2, .T = 3})

ATTENTION_TEST(attention_groups, AT(0, 37), false, false,
               {.C = 32, .NH = 4, .KVH = 2, .HS = 16, .T = 38},
               {.C = 32, .NH = 3, .KVH = 1, .HS = 32, .T = 38},
               {.C = 32, .NH = 8, .KVH = 2, .HS = 64, .T = 38, .layout = NN_ROPE_HALVES},
               {.C = 32, .NH = 8, .KVH = 1, .HS = 128, .T = 38},
               {.C = 32, .NH = 11, .KVH = 1, .HS = 8, .T = 38, .layout = NN_ROPE_HALVES},
               {.C = 32, .NH = 5, .KVH = 1, .HS = KV_MAX_HS, .T = 38})

ATTENTION_TEST(attention_odd_pointers, AT(0, 1, 2), false, false,
               {.C = 32, .NH = 2, .KVH = 2, .HS = 16, .T = 3, .skew = 1},
               {.C = 32, .NH = 4, .KVH = 1, .HS = 64, .T = 3, .skew = 8})

/* The context in one split and in several, the last one full, short, and the new token alone; one
   recorded call. */
ATTENTION_TEST(attention_recorded, AT(0, 1, 63, 64, 65, 127, 128, 200, 299, 5), true, false,
               {.C = 16, .NH = 1, .KVH = 1, .HS = 32, .T = 300},
               {.C = 16, .NH = 4, .KVH = 1, .HS = 16, .T = 300, .layout = NN_ROPE_HALVES})

ATTENTION_TEST(attention_large_scores, AT(1, 150, 199), false, false,
               {.C = 16, .NH = 2, .KVH = 1, .HS = 32, .T = 200, .loudness = 300.0f})

ATTENTION_TEST(attention_large_sizes_on_a_gpu, AT(4095, 0, 1000, 127, 3000), true, true,
               {.C = 512, .NH = 32, .KVH = 32, .HS = 128, .T = 4096},
               {.C = 512, .NH = 32, .KVH = 4, .HS = 64, .T = 4096, .layout = NN_ROPE_HALVES})

/* Every step refuses wrong calls without a launch. */
C_TEST(ladder, refuses) {
    const struct kv_attention good = {
        .C = 8, .NH = 2, .KVH = 2, .HS = 4, .T = 3, .theta = 1e4f, .longest = 3};
    enum { CASES = 8 };
    struct kv_attention bad[CASES];
    for (int i = 0; i < CASES; i++) {
        bad[i] = good;
    }
    bad[0].HS = KV_MAX_HS + 2;
    bad[1].HS = 3;
    bad[2].KVH = 0;
    bad[3].NH = 3;
    bad[4].longest = 4;
    bad[5].longest = 0;
    bad[6].theta = 0.0f;
    bad[7].NH = bad[7].KVH = KV_MAX_C / 4;
    const struct kv_linear no_type = {.N = 1, .K = 1, .dtype = (enum nn_dtype)7};
    const struct kv_linear wide = {.N = 1, .K = KV_MAX_SIZE + 1};
    size_t count;
    struct bench b;
    struct error error = {0};
    const struct kv_step *steps = kv_ladder(&count);
    for (size_t i = 0; i < count && bench_open(&b); i++) {
        for (int j = 0; j < CASES; j++) {
            EXPECT_STATUS(STATUS_INVALID_ARGUMENT,
                          steps[i].attention(&bad[j], b.workspace, b.stream, &error));
        }
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT, steps[i].linear(&no_type, b.stream, &error));
        EXPECT_STATUS(STATUS_INVALID_ARGUMENT, steps[i].linear(&wide, b.stream, &error));
        EXPECT_OK(device_synchronize(b.stream, &error));
        bench_close(&b);
    }
}
