/* Lab 02, parity: the subject's kernel and its call against the double oracle, and in Llama2. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/nn/nn.h"
#include "common/testing/compare.h"
#include "common/testing/device_buffer.h"
#include "common/testing/testing.h"
#include "grader/02_gpu_matmul/calls.h"
#include "grader/harness/gpu.h"
#include "grader/harness/own_work.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/watch.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_buffer.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 30 };

struct shape {
    size_t M, N, K;
};

/* Values of one case and what must come of them; out of the submission's sight. */
struct values {
    struct shape shape;
    float *in, *weight;
    float *got;
    double *want;
};

static bool values_create(struct values *v, struct shape s, struct rng *rng) {
    *v = (struct values){.shape = s};
    v->in = malloc(s.M * s.K * sizeof(float) + 1);
    v->weight = malloc(s.N * s.K * sizeof(float) + 1);
    v->got = malloc(s.M * s.N * sizeof(float) + 1);
    v->want = malloc(s.M * s.N * sizeof(double) + 1);
    if (v->in == NULL || v->weight == NULL || v->got == NULL || v->want == NULL) {
        TEST_FAIL("the grader is out of memory");
        return false;
    }
    rng_fill_rows(rng, v->in, s.M, s.K);
    rng_fill_rows(rng, v->weight, s.N, s.K);
    nn_matmul_f64(v->want, v->in, v->weight, s.M, s.N, s.K);
    return true;
}

static void values_free(struct values *v) {
    free(v->in);
    free(v->weight);
    free(v->got);
    free(v->want);
}

static void describe(char *name, size_t size, const char *part, struct shape s, size_t skew) {
    snprintf(name, size, "%s, shape M=%zu N=%zu K=%zu%s", part, s.M, s.N, s.K,
             skew > 0 ? ", pointers 4 bytes past a multiple of 256" : "");
}

static void check_values(const float *got, const struct values *v, const char *name) {
    const struct shape *s = &v->shape;
    /* Rows have a scale of about 1 and an offset of about 0.25. */
    double scale = sqrt(s->K > 0 ? (double)s->K : 1.0);
    struct comparison result =
        compare_f32(got, v->want, s->M * s->N, tolerance_dot_f32(s->K, scale));
    if (!result.pass) {
        char text[512];
        comparison_describe(&result, s->N, text, sizeof text);
        TEST_FAIL("%s: %s", name, text);
    }
}

/* Part one: the kernel, with device pointers. */
struct launch_case {
    struct device_buffer out, in, weight;
    const char *name;
};

static enum status launch_create(struct launch_case *c, const struct values *v, bool guarded,
                                 size_t skew, struct error *error) {
    const struct shape *s = &v->shape;
    enum status status = device_buffer_create(&c->out, s->M * s->N, guarded, skew, error);
    if (status == STATUS_OK) {
        status = device_buffer_create(&c->in, s->M * s->K, guarded, skew, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_create(&c->weight, s->N * s->K, guarded, skew, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_put(&c->in, v->in, error);
    }
    if (status == STATUS_OK) {
        status = device_buffer_put(&c->weight, v->weight, error);
    }
    return status;
}

static void launch_free(struct launch_case *c) {
    device_buffer_free(&c->out);
    device_buffer_free(&c->in);
    device_buffer_free(&c->weight);
}

/* Runs the subject's kernel on NaN and reads the result into got. */
static enum status launch_once(struct launch_case *c, const struct shape *s, device_stream stream,
                               float *got, struct error *error) {
    struct launch_call call = {c->out.data, c->in.data, c->weight.data, s->M, s->N, s->K, stream};
    bool intact = true, changed;
    enum status status = device_buffer_put(&c->out, NULL, error);
    grader_watch(c->name, PATIENCE);
    if (status == STATUS_OK) {
        status = remote_call("launch", &call, sizeof call, error);
    }
    if (status == STATUS_OK) {
        status = device_synchronize(stream, error);
    }
    grader_watch("", 0);
    if (status == STATUS_OK) {
        status = device_buffer_get(&c->out, got, &intact, &changed, error);
    }
    if (status == STATUS_OK && !intact) {
        TEST_FAIL("%s: wrote outside of the output", c->name);
    }
    return status;
}

static enum status check_inputs(const struct launch_case *c, struct error *error) {
    bool in_intact, in_changed, weight_intact, weight_changed;
    enum status status = device_buffer_get(&c->in, NULL, &in_intact, &in_changed, error);
    if (status == STATUS_OK) {
        status = device_buffer_get(&c->weight, NULL, &weight_intact, &weight_changed, error);
    }
    if (status == STATUS_OK && !(in_intact && weight_intact)) {
        TEST_FAIL("%s: wrote outside of the output", c->name);
    }
    if (status == STATUS_OK && (in_changed || weight_changed)) {
        TEST_FAIL("%s: changed its input", c->name);
    }
    return status;
}

/* Once for the values, once more for the same bits. */
static enum status launch_twice(struct launch_case *c, struct values *v, device_stream stream,
                                struct error *error) {
    size_t bytes = v->shape.M * v->shape.N * sizeof(float);
    float *again = malloc(bytes + 1);
    if (again == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    enum status status = launch_once(c, &v->shape, stream, v->got, error);
    if (status == STATUS_OK) {
        check_values(v->got, v, c->name);
        status = check_inputs(c, error);
    }
    if (status == STATUS_OK) {
        status = launch_once(c, &v->shape, stream, again, error);
    }
    if (status == STATUS_OK && !test_has_failed() && memcmp(v->got, again, bytes) != 0) {
        TEST_FAIL("%s: the same call gives other bits the second time; sums must be added in the "
                  "same order in every run",
                  c->name);
    }
    free(again);
    return status;
}

static void run_launch(const struct grader_gpu *gpu, struct shape shape, size_t skew,
                       device_stream stream, struct rng *rng) {
    char name[200];
    struct error error = {0};
    struct values v;
    struct launch_case c = {.name = name};
    describe(name, sizeof name, "kernel", shape, skew);
    if (values_create(&v, shape, rng)) {
        enum status status = launch_create(&c, &v, !gpu->modelled, skew, &error);
        if (status == STATUS_OK) {
            status = launch_twice(&c, &v, stream, &error);
        }
        if (status != STATUS_OK) {
            TEST_FAIL("%s: %s", name, error_text(&error, status));
        }
    }
    launch_free(&c);
    values_free(&v);
}

static void run_launches(const struct shape *shapes, size_t count, size_t skew, struct rng *rng) {
    struct grader_gpu gpu;
    struct error error = {0};
    device_stream stream = NULL;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    enum status status = device_stream_create(&stream, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s", error_text(&error, status));
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        run_launch(&gpu, shapes[i], skew, stream, rng);
    }
    grader_check_own_work();
    device_stream_destroy(stream);
}

static const struct shape small_shapes[] = {
    {1, 1, 1},    {1, 1, 2},   {1, 2, 1},   {2, 1, 1},   {3, 5, 7},     {7, 3, 5},   {8, 8, 8},
    {1, 33, 31},  {1, 31, 33}, {1, 5, 129}, {1, 97, 61}, {1, 64, 256},  {2, 61, 97}, {5, 13, 257},
    {15, 17, 31}, {9, 40, 64}, {31, 9, 29}, {4, 12, 24}, {13, 131, 11}, {65, 3, 1},
};

static const struct shape large_shapes[] = {
    {1, 4096, 288}, {1, 1031, 769}, {1, 300, 4099}, {4, 512, 512}, {64, 96, 288}, {97, 101, 255},
};

static const struct shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}, {1, 1, 0}, {0, 7, 0},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

C_TEST(parity, kernel_small_and_odd_sizes) {
    struct rng rng = rng_create(grader_seed());
    run_launches(small_shapes, COUNT(small_shapes), 0, &rng);
}

C_TEST(parity, kernel_large_sizes) {
    struct rng rng = rng_create(grader_seed());
    run_launches(large_shapes, COUNT(large_shapes), 0, &rng);
}

C_TEST(parity, kernel_empty_sizes) {
    struct rng rng = rng_create(grader_seed());
    run_launches(empty_shapes, COUNT(empty_shapes), 0, &rng);
}

C_TEST(parity, kernel_unaligned_pointers) {
    struct rng rng = rng_create(grader_seed());
    run_launches(small_shapes, COUNT(small_shapes), 1, &rng);
    run_launches(large_shapes, COUNT(large_shapes), 1, &rng);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, kernel_random_sizes) {
    struct rng rng = rng_create(grader_seed());
    struct shape shapes[30];
    for (size_t i = 0; i < COUNT(shapes); i++) {
        size_t most_rows = i % 2 == 0 ? 1 : 40;
        shapes[i] = (struct shape){1 + rng_below(&rng, most_rows), 1 + rng_below(&rng, 150),
                                   1 + rng_below(&rng, 400)};
    }
    run_launches(shapes, COUNT(shapes), 0, &rng);
}

/* Part two: the call, with host pointers. */
struct call_case {
    struct remote_buffer out, in, weight;
};

static enum status call_create(struct call_case *c, const struct values *v, struct error *error) {
    const struct shape *s = &v->shape;
    TRY(remote_buffer_create(&c->out, s->M * s->N, 0, error));
    TRY(remote_buffer_create(&c->in, s->M * s->K, 0, error));
    return remote_buffer_create(&c->weight, s->N * s->K, 0, error);
}

static void call_free(struct call_case *c) {
    remote_buffer_free(&c->out);
    remote_buffer_free(&c->in);
    remote_buffer_free(&c->weight);
}

/* Copies the result into v->got; inputs untouched, nothing written beside the output. */
static enum status check_call_buffers(const struct call_case *c, struct values *v, const char *name,
                                      struct error *error) {
    bool intact[3], changed[3];
    TRY(remote_buffer_get(&c->out, v->got, &intact[0], &changed[0], error));
    TRY(remote_buffer_get(&c->in, NULL, &intact[1], &changed[1], error));
    TRY(remote_buffer_get(&c->weight, NULL, &intact[2], &changed[2], error));
    if (!intact[0] || !intact[1] || !intact[2]) {
        TEST_FAIL("%s: wrote outside of the output", name);
    }
    if (changed[1] || changed[2]) {
        TEST_FAIL("%s: changed its input", name);
    }
    return STATUS_OK;
}

/* One call of the subject's with the values of v in c's memory, checked. */
static void call_once(struct gpu_matmul *matmul, struct call_case *c, struct values *v,
                      const char *name) {
    const struct shape *s = &v->shape;
    struct error error = {0};
    struct matmul_call call = {matmul, c->out.data, c->in.data, c->weight.data, s->M, s->N, s->K};
    remote_buffer_put(&c->in, v->in);
    remote_buffer_put(&c->weight, v->weight);
    remote_buffer_put(&c->out, NULL);
    grader_watch(name, PATIENCE);
    enum status status = remote_call("call", &call, sizeof call, &error);
    grader_watch("", 0);
    if (status == STATUS_OK) {
        status = check_call_buffers(c, v, name, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", name, error_text(&error, status));
        return;
    }
    check_values(v->got, v, name);
}

static void run_call(struct gpu_matmul *matmul, struct shape shape, struct rng *rng) {
    char name[200];
    struct values v;
    struct call_case c = {0};
    struct error error = {0};
    describe(name, sizeof name, "call", shape, 0);
    if (values_create(&v, shape, rng)) {
        enum status status = call_create(&c, &v, &error);
        if (status == STATUS_OK) {
            call_once(matmul, &c, &v, name);
        } else {
            TEST_FAIL("%s: %s", name, error_text(&error, status));
        }
    }
    call_free(&c);
    values_free(&v);
}

/* The context of a test's calls; NULL after the test has failed. */
static struct gpu_matmul *open_matmul(void) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct matmul_call call = {0};
    if (!grader_gpu_open(&gpu)) {
        return NULL;
    }
    enum status status = remote_call("create", &call, sizeof call, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("gpu_matmul_create: %s", error_text(&error, status));
        return NULL;
    }
    return call.matmul;
}

static void close_matmul(struct gpu_matmul *matmul) {
    struct matmul_call call = {.matmul = matmul};
    struct error error = {0};
    grader_check_own_work();
    if (remote_alive() && remote_call("destroy", &call, sizeof call, &error) != STATUS_OK) {
        TEST_FAIL("gpu_matmul_destroy: %s", error.message);
    }
}

/* Growing, shrinking and empty sizes in one context, in an order nobody can foresee. */
C_TEST(parity, calls_of_all_sizes) {
    struct rng rng = rng_create(grader_seed());
    struct gpu_matmul *matmul = open_matmul();
    for (int i = 0; i < 24 && matmul != NULL && !test_has_failed(); i++) {
        run_call(matmul, small_shapes[rng_below(&rng, COUNT(small_shapes))], &rng);
        run_call(matmul,
                 i % 4 == 0 ? large_shapes[rng_below(&rng, COUNT(large_shapes))]
                            : empty_shapes[rng_below(&rng, COUNT(empty_shapes))],
                 &rng);
    }
    close_matmul(matmul);
}

/* The same addresses hold other values in each call: what is remembered of them is wrong. */
C_TEST(parity, calls_remember_nothing) {
    const struct shape shape = {1, 70, 90};
    struct rng rng = rng_create(grader_seed());
    struct gpu_matmul *matmul = open_matmul();
    struct values v = {.shape = shape};
    struct call_case c = {0};
    struct error error = {0};
    if (matmul != NULL && call_create(&c, &v, &error) == STATUS_OK) {
        for (int i = 0; i < 4 && !test_has_failed(); i++) {
            char name[200];
            snprintf(name, sizeof name, "call %d with the same pointers and other values", i + 1);
            if (values_create(&v, shape, &rng)) {
                call_once(matmul, &c, &v, name);
            }
            values_free(&v);
        }
    }
    EXPECT_STR_EQ("", error.message);
    call_free(&c);
    close_matmul(matmul);
}

/* 4 TiB of weights are refused before anything of them is read, and the next call works. */
C_TEST(parity, out_of_memory_is_reported) {
    enum { SIDE = 1 << 20 };
    struct rng rng = rng_create(grader_seed());
    struct error error = {0};
    void *numbers = NULL;
    struct gpu_matmul *matmul = open_matmul();
    if (matmul != NULL) {
        EXPECT_OK(remote_alloc(&numbers, SIDE * sizeof(float), &error));
    }
    if (numbers != NULL) {
        struct matmul_call call = {matmul, numbers, numbers, numbers, 1, SIDE, SIDE};
        grader_watch("call, 4 TiB of weights", PATIENCE);
        enum status status = remote_call("call", &call, sizeof call, &error);
        grader_watch("", 0);
        if (status != STATUS_OUT_OF_MEMORY) {
            TEST_FAIL("a call with 4 TiB of weights must give STATUS_OUT_OF_MEMORY; got %s, '%s'",
                      status_name(status), error.message);
        }
        run_call(matmul, (struct shape){3, 5, 7}, &rng);
    }
    close_matmul(matmul);
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your matmul", PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "your matmul");
    }
    grader_check_own_work();
}
