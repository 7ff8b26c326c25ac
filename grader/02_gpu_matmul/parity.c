/* Lab 02, parity: the subject's kernel and its call against the double oracle, and in Llama2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/testing/testing.h"
#include "grader/01_cpu_matmul/remote.h"
#include "grader/02_gpu_matmul/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "labs/02_gpu_matmul/problem/case.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 30 };

/* Values and their right result, here alone; room for what the submission computes. */
struct values {
    struct matmul_data data;
    float *got, *again;
};

static enum status values_create(struct values *v, struct matmul_shape s, struct rng *rng,
                                 struct error *error) {
    v->got = malloc(s.M * s.N * sizeof(float) + 1);
    v->again = malloc(s.M * s.N * sizeof(float) + 1);
    if (v->got == NULL || v->again == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    return matmul_data_create(&v->data, s, 0, MATMUL_ROWS, rng, error);
}

static void values_free(struct values *v) {
    matmul_data_free(&v->data);
    free(v->got);
    free(v->again);
}

static void describe(char *name, size_t size, const char *part, struct matmul_shape s,
                     size_t skew) {
    snprintf(name, size, "%s, shape M=%zu N=%zu K=%zu%s", part, s.M, s.N, s.K,
             skew > 0 ? ", pointers 4 bytes past a multiple of 256" : "");
}

static void check_values(const struct values *v, const char *name) {
    char text[512];
    if (!matmul_check(&v->data, v->got, text, sizeof text)) {
        TEST_FAIL("%s: %s", name, text);
    }
}

/* Part one: the kernel, with device pointers. */
static enum status call_kernel(const struct gpu_matmul_buffers *b, struct matmul_shape s,
                               device_stream stream, struct error *error) {
    struct launch_call call = {b->out.data, b->in.data, b->weight.data, s.M, s.N, s.K, stream};
    TRY(remote_call("launch", &call, sizeof call, error));
    return device_synchronize(stream, error);
}

/* Runs the subject's kernel on NaN and reads the result into out; nothing else may be written. */
static enum status launch_once(struct gpu_matmul_buffers *b, const struct values *v, float *out,
                               const char *name, device_stream stream, struct error *error) {
    const char *wrong;
    TRY(gpu_matmul_buffers_put(b, &v->data, error));
    grader_watch(name, PATIENCE);
    enum status status = call_kernel(b, v->data.shape, stream, error);
    grader_watch("", 0);
    TRY(status);
    TRY(gpu_matmul_buffers_get(b, out, &wrong, error));
    if (wrong != NULL) {
        TEST_FAIL("%s: %s", name, wrong);
    }
    return STATUS_OK;
}

/* Once for the values, once more for the same bits. */
static enum status launch_twice(struct gpu_matmul_buffers *b, struct values *v, const char *name,
                                device_stream stream, struct error *error) {
    const size_t bytes = v->data.shape.M * v->data.shape.N * sizeof(float);
    TRY(launch_once(b, v, v->got, name, stream, error));
    check_values(v, name);
    TRY(launch_once(b, v, v->again, name, stream, error));
    if (!test_has_failed() && memcmp(v->got, v->again, bytes) != 0) {
        TEST_FAIL("%s: the same call gives other bits the second time; sums must be added in the "
                  "same order in every run",
                  name);
    }
    return STATUS_OK;
}

/* A problem on the device, and its values here. */
struct launch_case {
    struct values v;
    struct gpu_matmul_buffers buffers;
    char name[200];
};

static enum status run_launch(struct launch_case *c, const struct grader_gpu *gpu,
                              struct matmul_shape shape, size_t skew, device_stream stream,
                              struct rng *rng, struct error *error) {
    TRY(values_create(&c->v, shape, rng, error));
    TRY(gpu_matmul_buffers_create(&c->buffers, shape, skew, !gpu->modelled, error));
    return launch_twice(&c->buffers, &c->v, c->name, stream, error);
}

static void check_launch(const struct grader_gpu *gpu, struct matmul_shape shape, size_t skew,
                         device_stream stream, struct rng *rng) {
    struct launch_case c = {0};
    struct error error = {0};
    describe(c.name, sizeof c.name, "kernel", shape, skew);
    enum status status = run_launch(&c, gpu, shape, skew, stream, rng, &error);
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", c.name, error_text(&error, status));
    }
    gpu_matmul_buffers_free(&c.buffers);
    values_free(&c.v);
}

static void run_launches(const struct matmul_shape *shapes, size_t count, size_t skew,
                         struct rng *rng) {
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
        check_launch(&gpu, shapes[i], skew, stream, rng);
    }
    device_stream_destroy(stream);
}

static const struct matmul_shape small_shapes[] = {
    {1, 1, 1},    {1, 1, 2},   {1, 2, 1},   {2, 1, 1},   {3, 5, 7},     {7, 3, 5},   {8, 8, 8},
    {1, 33, 31},  {1, 31, 33}, {1, 5, 129}, {1, 97, 61}, {1, 64, 256},  {2, 61, 97}, {5, 13, 257},
    {15, 17, 31}, {9, 40, 64}, {31, 9, 29}, {4, 12, 24}, {13, 131, 11}, {65, 3, 1},
};

static const struct matmul_shape large_shapes[] = {
    {1, 4096, 288}, {1, 1031, 769}, {1, 300, 4099}, {4, 512, 512}, {64, 96, 288}, {97, 101, 255},
};

static const struct matmul_shape empty_shapes[] = {
    {0, 5, 5}, {5, 0, 5}, {0, 0, 0}, {3, 4, 0}, {1, 1, 0}, {0, 7, 0},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

C_TEST(parity, kernel_small_and_odd_sizes) {
    struct rng rng = grader_rng();
    run_launches(small_shapes, COUNT(small_shapes), 0, &rng);
}

C_TEST(parity, kernel_large_sizes) {
    struct rng rng = grader_rng();
    run_launches(large_shapes, COUNT(large_shapes), 0, &rng);
}

C_TEST(parity, kernel_empty_sizes) {
    struct rng rng = grader_rng();
    run_launches(empty_shapes, COUNT(empty_shapes), 0, &rng);
}

C_TEST(parity, kernel_unaligned_pointers) {
    struct rng rng = grader_rng();
    run_launches(small_shapes, COUNT(small_shapes), 1, &rng);
    run_launches(large_shapes, COUNT(large_shapes), 1, &rng);
}

/* Sizes drawn anew in every run: no list of special cases passes. */
C_TEST(parity, kernel_random_sizes) {
    struct rng rng = grader_rng();
    struct matmul_shape shapes[30];
    for (size_t i = 0; i < COUNT(shapes); i++) {
        size_t most_rows = i % 2 == 0 ? 1 : 40;
        shapes[i] = (struct matmul_shape){1 + rng_below(&rng, most_rows), 1 + rng_below(&rng, 150),
                                          1 + rng_below(&rng, 400)};
    }
    run_launches(shapes, COUNT(shapes), 0, &rng);
}

/* Part two: the call, with host pointers. One call of the subject's in its memory b. */
static enum status call_once(struct gpu_matmul *matmul, struct remote_matmul *b,
                             const struct values *v, const char *name, struct error *error) {
    const struct matmul_shape *s = &v->data.shape;
    struct matmul_call call = {matmul, b->out.data, b->in.data, b->weight.data, s->M, s->N, s->K};
    const char *wrong;
    remote_matmul_put(b, &v->data);
    grader_watch(name, PATIENCE);
    enum status status = remote_call("call", &call, sizeof call, error);
    grader_watch("", 0);
    TRY(status);
    TRY(remote_matmul_get(b, v->got, &wrong, error));
    if (wrong != NULL) {
        TEST_FAIL("%s: %s", name, wrong);
    }
    check_values(v, name);
    return STATUS_OK;
}

/* One call with fresh values. */
static void run_values(struct gpu_matmul *matmul, struct remote_matmul *b,
                       struct matmul_shape shape, const char *name, struct rng *rng) {
    struct values v = {0};
    struct error error = {0};
    enum status status = values_create(&v, shape, rng, &error);
    if (status == STATUS_OK) {
        status = call_once(matmul, b, &v, name, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", name, error_text(&error, status));
    }
    values_free(&v);
}

static void run_call(struct gpu_matmul *matmul, struct matmul_shape shape, struct rng *rng) {
    char name[200];
    struct remote_matmul buffers;
    struct error error = {0};
    describe(name, sizeof name, "call", shape, 0);
    enum status status = remote_matmul_create(&buffers, shape, 0, &error);
    if (status == STATUS_OK) {
        run_values(matmul, &buffers, shape, name, rng);
    } else {
        TEST_FAIL("%s: %s", name, error_text(&error, status));
    }
    remote_matmul_free(&buffers);
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
    if (remote_alive() && remote_call("destroy", &call, sizeof call, &error) != STATUS_OK) {
        TEST_FAIL("gpu_matmul_destroy: %s", error.message);
    }
}

/* Growing, shrinking and empty sizes in one context, in random order. */
C_TEST(parity, calls_of_all_sizes) {
    struct rng rng = grader_rng();
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

/* The same addresses hold other values in each call, so a result from remembered values is wrong.
 */
C_TEST(parity, calls_remember_nothing) {
    const struct matmul_shape shape = {1, 70, 90};
    struct rng rng = grader_rng();
    struct gpu_matmul *matmul = open_matmul();
    struct remote_matmul buffers = {0};
    struct error error = {0};
    if (matmul != NULL && remote_matmul_create(&buffers, shape, 0, &error) == STATUS_OK) {
        for (int i = 0; i < 4 && !test_has_failed(); i++) {
            char name[200];
            snprintf(name, sizeof name, "call %d with the same pointers and other values", i + 1);
            run_values(matmul, &buffers, shape, name, &rng);
        }
    }
    EXPECT_STR_EQ("", error.message);
    remote_matmul_free(&buffers);
    close_matmul(matmul);
}

/* What the subject's process has allocated and not freed. */
static uint64_t kept_allocations(void) {
    const struct device_traffic traffic = device_traffic();
    return traffic.allocations - traffic.releases;
}

/* Buffers that grow from call to call: all of them are gone in the end. */
C_TEST(parity, destroy_frees_everything) {
    struct rng rng = grader_rng();
    struct gpu_matmul *matmul = open_matmul();
    if (matmul == NULL) {
        return;
    }
    for (size_t side = 2; side < 40 && !test_has_failed(); side *= 2) {
        run_call(matmul, (struct matmul_shape){side, side + 1, side + 2}, &rng);
    }
    close_matmul(matmul);
    if (!test_has_failed() && kept_allocations() != 0) {
        TEST_FAIL("after gpu_matmul_destroy %llu buffers are still allocated: memory that a call "
                  "replaces, and all that is left at the end, must be freed",
                  (unsigned long long)kept_allocations());
    }
}

/*
 * 4 TiB of weights are refused before any weight is read. The next call works, also where memory
 * of an earlier one would do for it: that may be gone.
 */
C_TEST(parity, out_of_memory_is_reported) {
    enum { SIDE = 1 << 20 };
    struct rng rng = grader_rng();
    struct error error = {0};
    void *numbers = NULL;
    struct gpu_matmul *matmul = open_matmul();
    if (matmul != NULL) {
        run_call(matmul, (struct matmul_shape){6, 10, 14}, &rng);
        EXPECT_DONE(remote_alloc(&numbers, SIDE * sizeof(float), &error), &error);
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
        run_call(matmul, (struct matmul_shape){3, 5, 7}, &rng);
    }
    close_matmul(matmul);
}

C_TEST(parity, llama2_end_to_end) {
    struct small_llama2 l = small_llama2();
    if (remote_small_llama2(&l, "a small Llama2 with your matmul", PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "your matmul");
    }
}
