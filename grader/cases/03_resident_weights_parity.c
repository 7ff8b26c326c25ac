/* Lab 03, parity: memory and calls alone, with a kernel that is known; and both models. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/formats/bert_random.h"
#include "common/model/engine.h"
#include "common/model/llama2.h"
#include "common/model/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/bert_batch.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/small_llama2.h"
#include "grader/watch.h"
#include "labs/03_resident_weights/engine.h"
#include "labs/03_resident_weights/operators.h"
#include "labs/03_resident_weights/resident.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 60 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Notes a failure of a step of a test. */
static bool good(enum status status, const struct error *error, const char *what) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", what, error_text(error, status));
    }
    return status == STATUS_OK;
}

/* The subject's memory for a test; NULL after the test has failed. */
static struct resident *open_resident(void) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct resident *resident = NULL;
    if (!grader_gpu_open(&gpu)) {
        return NULL;
    }
    return good(resident_create(&resident, &error), &error, "resident_create") ? resident : NULL;
}

/* operands: out, a, b; arguments: a size_t. */
static enum status add_kernel(const void *arguments, void *const *d, device_stream stream,
                              struct error *error) {
    return launch_residual(d[0], d[1], d[2], *(const size_t *)arguments, stream, error);
}

/* out = a + b through resident_call(). */
static enum status add(struct resident *r, const void *out, const void *a, const void *b,
                       size_t count, struct error *error) {
    const struct resident_operand operands[] = {
        {out, count * sizeof(float), RESIDENT_OUT},
        {a, count * sizeof(float), RESIDENT_IN},
        {b, count * sizeof(float), RESIDENT_IN},
    };
    return resident_call(r, add_kernel, &count, operands, COUNT(operands), error);
}

/* What the tests of memory hold: activations x (SIZE) and weights w (SIZE). */
enum { SIZE = 1000 };
struct memory {
    struct resident *r;
    void *x;
    const void *w;
    float host_x[SIZE], host_w[SIZE], got[SIZE];
};

static bool memory_create(struct memory *m) {
    struct rng rng = rng_create(grader_seed());
    struct error error = {0};
    *m = (struct memory){.r = open_resident()};
    if (m->r == NULL) {
        return false;
    }
    grader_fill(&rng, m->host_x, 1, SIZE);
    grader_fill(&rng, m->host_w, 1, SIZE);
    return good(resident_alloc(m->r, sizeof m->host_x, &m->x, &error), &error, "resident_alloc") &&
           good(resident_weights(m->r, m->host_w, sizeof m->host_w, &m->w, &error), &error,
                "resident_weights") &&
           good(resident_write(m->r, m->x, m->host_x, sizeof m->host_x, &error), &error,
                "resident_write");
}

static void memory_free(struct memory *m) {
    if (m->r != NULL) {
        resident_release(m->r, m->x);
        resident_release_weights(m->r, m->w);
    }
    resident_destroy(m->r);
}

static bool read_back(struct memory *m, const char *what) {
    struct error error = {0};
    for (size_t i = 0; i < SIZE; i++) {
        m->got[i] = NAN;
    }
    if (!good(resident_read(m->r, m->got, m->x, sizeof m->got, &error), &error, what)) {
        return false;
    }
    return true;
}

/* got[i] must be want(i), bit for bit. */
#define CHECK_ALL(m, want, what)                                                          \
    for (size_t i = 0; i < SIZE; i++) {                                                   \
        float want_ = (want);                                                             \
        if ((m)->got[i] != want_) {                                                       \
            TEST_FAIL("%s: element %zu is %.9g, want %.9g", what, i, (double)(m)->got[i], \
                      (double)want_);                                                     \
            break;                                                                        \
        }                                                                                 \
    }

C_TEST(parity, what_is_written_is_read) {
    struct memory m;
    if (memory_create(&m) && read_back(&m, "resident_read")) {
        CHECK_ALL(&m, m.host_x[i], "written and read");
    }
    memory_free(&m);
}

C_TEST(parity, a_call_reads_and_writes_its_operands) {
    struct memory m;
    struct error error = {0};
    const char *what = "x + w";
    if (memory_create(&m)) {
        grader_watch(what, PATIENCE);
        if (good(add(m.r, m.x, m.x, m.w, SIZE, &error), &error, what) && read_back(&m, what)) {
            CHECK_ALL(&m, m.host_x[i] + m.host_w[i], what);
        }
        grader_watch("", 0);
    }
    memory_free(&m);
}

/* Slices of one allocation, in and out: out[200..299] = x[0..99] + w[300..399]. */
C_TEST(parity, operands_may_lie_inside_an_allocation) {
    struct memory m;
    struct error error = {0};
    const char *what = "a slice of x + a slice of w";
    if (memory_create(&m)) {
        float *x = m.x;
        const float *w = m.w;
        grader_watch(what, PATIENCE);
        if (good(add(m.r, x + 200, x, w + 300, 100, &error), &error, what) && read_back(&m, what)) {
            CHECK_ALL(&m, i >= 200 && i < 300 ? m.host_x[i - 200] + m.host_w[i + 100] : m.host_x[i],
                      what);
        }
        grader_watch("", 0);
    }
    memory_free(&m);
}

/* Parts written and read at an offset, between calls that change the rest. */
C_TEST(parity, parts_are_written_and_read) {
    struct memory m;
    struct error error = {0};
    const char *what = "part of x written";
    float part[10];
    if (memory_create(&m)) {
        float *x = m.x;
        for (size_t i = 0; i < COUNT(part); i++) {
            part[i] = 1000.0f + (float)i;
        }
        if (good(add(m.r, x, x, m.w, SIZE, &error), &error, what) &&
            good(resident_write(m.r, x + 50, part, sizeof part, &error), &error, what) &&
            read_back(&m, what)) {
            CHECK_ALL(&m, i >= 50 && i < 60 ? part[i - 50] : m.host_x[i] + m.host_w[i], what);
        }
        if (good(resident_read(m.r, part, x + 500, sizeof part, &error), &error, what)) {
            EXPECT_TRUE(part[9] == m.host_x[509] + m.host_w[509]);
        }
    }
    memory_free(&m);
}

/* A chain of calls, none waited for: each must find what the one before wrote. */
C_TEST(parity, calls_run_in_order) {
    struct memory m;
    struct error error = {0};
    const char *what = "x + w, twenty times";
    if (memory_create(&m)) {
        bool fine = true;
        grader_watch(what, PATIENCE);
        for (int i = 0; i < 20 && fine; i++) {
            fine = good(add(m.r, m.x, m.x, m.w, SIZE, &error), &error, what);
        }
        if (fine && good(resident_synchronize(m.r, &error), &error, what) && read_back(&m, what)) {
            for (size_t i = 0; i < SIZE; i++) {
                for (int j = 0; j < 20; j++) {
                    m.host_x[i] += m.host_w[i];
                }
            }
            CHECK_ALL(&m, m.host_x[i], what);
        }
        grader_watch("", 0);
    }
    memory_free(&m);
}

/* Memory comes and goes as models do; nothing of a released one may come back. */
C_TEST(parity, memory_can_be_released_and_allocated_again) {
    struct resident *r = open_resident();
    struct error error = {0};
    float value, got;
    for (int i = 0; r != NULL && i < 50 && !test_has_failed(); i++) {
        void *memory = NULL;
        size_t count = 1 + (size_t)(i * 37 % 11) * 100;
        value = (float)i;
        if (good(resident_alloc(r, count * sizeof value, &memory, &error), &error, "alloc") &&
            good(resident_write(r, (float *)memory + count - 1, &value, sizeof value, &error),
                 &error, "write") &&
            good(resident_read(r, &got, (float *)memory + count - 1, sizeof got, &error), &error,
                 "read") &&
            got != value) {
            TEST_FAIL("allocation %d: read %g, want %g", i + 1, (double)got, (double)value);
        }
        resident_release(r, memory);
    }
    if (r != NULL) {
        resident_release(r, NULL);
        resident_release_weights(r, NULL);
    }
    resident_destroy(r);
    resident_destroy(NULL);
}

/* Weights of one model are released, another's come: the old values must be gone. */
C_TEST(parity, weights_can_be_released_and_taken_again) {
    struct memory m;
    struct error error = {0};
    const char *what = "x + new weights";
    if (memory_create(&m)) {
        resident_release_weights(m.r, m.w);
        m.w = NULL;
        for (size_t i = 0; i < SIZE; i++) {
            m.host_w[i] = -m.host_w[i];
        }
        if (good(resident_weights(m.r, m.host_w, sizeof m.host_w, &m.w, &error), &error, what) &&
            good(add(m.r, m.x, m.x, m.w, SIZE, &error), &error, what) && read_back(&m, what)) {
            CHECK_ALL(&m, m.host_x[i] + m.host_w[i], what);
        }
    }
    memory_free(&m);
}

/* A kernel's failure is handed on, with its line. */
static enum status failing_kernel(const void *arguments, void *const *d, device_stream stream,
                                  struct error *error) {
    (void)arguments;
    (void)d;
    (void)stream;
    return error_set(error, STATUS_UNSUPPORTED, "the kernel says no");
}

C_TEST(parity, failures_are_handed_on) {
    struct memory m;
    struct error error = {0};
    if (memory_create(&m)) {
        const struct resident_operand operand = {m.x, sizeof m.host_x, RESIDENT_IN_OUT};
        enum status status = resident_call(m.r, failing_kernel, NULL, &operand, 1, &error);
        EXPECT_STATUS(STATUS_UNSUPPORTED, status);
        EXPECT_STR_EQ("the kernel says no", error.message);
    }
    memory_free(&m);
}

/* The models. */

/* Makes both engines; false after the test has failed. */
static bool engines_create(struct engine *reference, struct engine *subject) {
    struct grader_gpu gpu;
    struct error error = {0};
    *reference = (struct engine){0};
    *subject = (struct engine){0};
    return grader_gpu_open(&gpu) &&
           good(engine_reference_create(reference), &error, "the reference engine") &&
           good(engine_resident_create(subject, &error), &error, "your engine");
}

C_TEST(parity, llama2_end_to_end) {
    static const int32_t tokens[] = {1, 17, 42, 5, 99, 3, 64, 12, 200, 7, 31};
    struct small_llama2 l = small_llama2();
    struct grader_gpu gpu;
    struct engine subject = {0};
    struct error error = {0};
    memcpy(l.tokens, tokens, sizeof tokens);
    l.prompt = 6;
    l.count = COUNT(tokens);
    if (grader_gpu_open(&gpu) &&
        good(engine_resident_create(&subject, &error), &error, "your engine")) {
        if (small_llama2_run(&l, &subject, "a small Llama2 with your memory", PATIENCE)) {
            grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "your memory");
        }
    }
    engine_destroy(&subject);
}

/* Two models on one engine, calls in turn: nothing may be kept by a name that both have. */
C_TEST(parity, two_models_on_one_engine) {
    struct llama2_config config = llama2_shape_config(LLAMA2_SHAPE_15M);
    config.C = 32;
    config.hidden = 48;
    config.L = 2;
    config.NH = 4;
    config.KVH = 4;
    config.HS = 8;
    config.V = 97;
    config.T = 8;
    struct llama2_random models[2];
    struct engine engines[2];
    float logits[2][2][97]; /* engine, model, V */
    uint64_t seed = grader_seed();
    ASSERT_OK(llama2_random_create(&models[0], &config, seed));
    ASSERT_OK(llama2_random_create(&models[1], &config, seed + 1));
    bool fine = engines_create(&engines[0], &engines[1]);
    grader_watch("two small Llama2 in turn", PATIENCE);
    for (int e = 0; e < 2 && fine; e++) {
        struct llama2 *llama2[2] = {NULL, NULL};
        for (int i = 0; i < 2; i++) {
            EXPECT_OK(llama2_create(&llama2[i], &models[i].config, &models[i].weights, &engines[e],
                                    1, NULL));
        }
        for (int t = 0; t < 5 && !test_has_failed(); t++) {
            int32_t token = 5 + t;
            EXPECT_OK(llama2_forward(llama2[0], &token, 1, (size_t)t, logits[e][0]));
            EXPECT_OK(llama2_forward(llama2[1], &token, 1, (size_t)t, logits[e][1]));
        }
        llama2_free(llama2[0]);
        llama2_free(llama2[1]);
    }
    grader_watch("", 0);
    for (int i = 0; i < 2 && fine && !test_has_failed(); i++) {
        grader_check_logits(logits[1][i], logits[0][i], config.V,
                            i == 0 ? "your memory (the first of two)" : "your memory (the second)");
    }
    engine_destroy(&engines[1]);
    engine_destroy(&engines[0]);
    llama2_random_free(&models[0]);
    llama2_random_free(&models[1]);
}

/* BERT uses what Llama2 does not: biases, LayerNorm, GELU, masks, slices of a fused projection. */
static enum status encode(const struct engine *engine, const struct bert_random *random,
                          float *logits) {
    enum { B = 2, T = 7 };
    const int32_t ids[B * T] = {2, 9, 40, 3, 8, 90, 3, 2, 77, 3, 0, 0, 0, 0};
    const uint8_t mask[B * T] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    const struct bert_input input = {.ids = ids, .mask = mask, .B = B, .T = T};
    return bert_batch_run(random, engine, &input, logits, NULL);
}

C_TEST(parity, bert_end_to_end) {
    const struct bert_config config = {.C = 36,
                                       .hidden = 88,
                                       .L = 2,
                                       .NH = 3,
                                       .V = 101,
                                       .T = 9,
                                       .types = 2,
                                       .labels = 3,
                                       .norm_eps = 1e-12f,
                                       .activation = NN_GELU};
    struct bert_random random;
    struct engine reference, subject;
    float want[2 * 3], got[2 * 3];
    ASSERT_OK(bert_random_create(&random, &config, grader_seed()));
    if (engines_create(&reference, &subject)) {
        EXPECT_OK(encode(&reference, &random, want));
        grader_watch("a small BERT with your memory", PATIENCE);
        EXPECT_OK(encode(&subject, &random, got));
        grader_watch("", 0);
        if (!test_has_failed()) {
            grader_check_logits(got, want, 6, "your memory");
        }
    }
    engine_destroy(&subject);
    engine_destroy(&reference);
    bert_random_free(&random);
}
