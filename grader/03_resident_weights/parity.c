/* Lab 03, parity: memory and calls alone, with a given kernel; and both models. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/models/engine.h"
#include "common/models/llama2.h"
#include "common/models/llama2_random.h"
#include "common/testing/testing.h"
#include "grader/03_resident_weights/calls.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/remote_models.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_buffer.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks. */
enum { PATIENCE = 60 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Fails the test if a call failed. @return whether it succeeded */
static bool good(enum status status, const struct error *error, const char *what) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s", what, error_text(error, status));
    }
    return status == STATUS_OK;
}

/* One function of the subject's resident.h, in its own process. */
static enum status ask(const char *name, struct resident_args *args, struct error *error) {
    return remote_call(name, args, sizeof *args, error);
}

/* The subject's memory for a test; NULL after the test has failed. */
static struct resident *open_resident(void) {
    struct grader_gpu gpu;
    struct error error = {0};
    struct resident_args args = {0};
    if (!grader_gpu_open(&gpu)) {
        return NULL;
    }
    return good(ask("create", &args, &error), &error, "resident_create") ? args.resident : NULL;
}

/* Calls "release", "release_weights" or "destroy": they return nothing, but they may crash. */
static void let_go(const char *name, struct resident_args args) {
    struct error error = {0};
    if (remote_alive()) {
        good(ask(name, &args, &error), &error, name);
    }
}

/* The memory that a test uses: activations x (SIZE) and weights w (SIZE). */
enum { SIZE = 1000 };
struct memory {
    struct resident *r;
    float *x;                /* address in the subject's memory */
    const float *w;          /* address in the subject's memory */
    struct remote_buffer io; /* host side of writes and reads */
    struct remote_buffer weights;
    float host_x[SIZE], host_w[SIZE], got[SIZE];
};

/* out = a + b through resident_call(). */
static enum status add(const struct memory *m, const float *out, const float *a, const float *b,
                       size_t count, struct error *error) {
    struct add_args args = {m->r, out, a, b, count};
    return remote_call("add", &args, sizeof args, error);
}

/* Writes `count` floats at `to`. */
static enum status write_floats(struct memory *m, float *to, const float *from, size_t count,
                                struct error *error) {
    float values[SIZE] = {0};
    struct resident_args args = {
        .resident = m->r, .memory = to, .host = m->io.data, .bytes = count * sizeof *from};
    memcpy(values, from, count * sizeof *from);
    remote_buffer_put(&m->io, values);
    return ask("write", &args, error);
}

/* Reads `count` floats at `from` into m->got, whose rest becomes NaN. */
static enum status read_floats(struct memory *m, float *from, size_t count, struct error *error) {
    struct resident_args args = {
        .resident = m->r, .memory = from, .host = m->io.data, .bytes = count * sizeof *from};
    bool intact;
    remote_buffer_put(&m->io, NULL);
    TRY(ask("read", &args, error));
    TRY(remote_buffer_get(&m->io, m->got, &intact, NULL, error));
    return intact && (count == SIZE || isnan(m->got[count]))
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH, "resident_read wrote beyond what it reads");
}

/* Registers host_w as weights. */
static enum status take_weights(struct memory *m, struct error *error) {
    struct resident_args args = {
        .resident = m->r, .host = m->weights.data, .bytes = sizeof m->host_w};
    remote_buffer_put(&m->weights, m->host_w);
    TRY(ask("weights", &args, error));
    m->w = args.handle;
    return STATUS_OK;
}

static enum status fill_memory(struct memory *m, struct error *error) {
    struct resident_args args = {.resident = m->r, .bytes = sizeof m->host_x};
    TRY(remote_buffer_create(&m->io, SIZE, 0, error));
    TRY(remote_buffer_create(&m->weights, SIZE, 0, error));
    TRY(ask("alloc", &args, error));
    m->x = args.memory;
    TRY(take_weights(m, error));
    return write_floats(m, m->x, m->host_x, SIZE, error);
}

static bool memory_create(struct memory *m) {
    struct rng rng = grader_rng();
    struct error error = {0};
    *m = (struct memory){.r = open_resident()};
    rng_fill_rows(&rng, m->host_x, 1, SIZE);
    rng_fill_rows(&rng, m->host_w, 1, SIZE);
    return m->r != NULL && good(fill_memory(m, &error), &error, "alloc, weights, write");
}

static void memory_free(struct memory *m) {
    if (m->r != NULL) {
        let_go("release", (struct resident_args){.resident = m->r, .memory = m->x});
        let_go("release_weights", (struct resident_args){.resident = m->r, .handle = m->w});
        let_go("destroy", (struct resident_args){.resident = m->r});
    }
    remote_buffer_free(&m->io);
    remote_buffer_free(&m->weights);
}

static bool read_back(struct memory *m, const char *what) {
    struct error error = {0};
    return good(read_floats(m, m->x, SIZE, &error), &error, what);
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

/* A test with the subject's memory, which holds host_x. */
#define MEMORY_TEST(name)                    \
    static void name(struct memory *memory); \
    C_TEST(parity, name) {                   \
        struct memory memory;                \
        if (memory_create(&memory)) {        \
            name(&memory);                   \
        }                                    \
        memory_free(&memory);                \
    }                                        \
    static void name(struct memory *m)

MEMORY_TEST(what_is_written_is_read) {
    if (read_back(m, "resident_read")) {
        CHECK_ALL(m, m->host_x[i], "written and read");
    }
}

MEMORY_TEST(a_call_reads_and_writes_its_operands) {
    struct error error = {0};
    const char *what = "x + w";
    grader_watch(what, PATIENCE);
    if (good(add(m, m->x, m->x, m->w, SIZE, &error), &error, what) && read_back(m, what)) {
        CHECK_ALL(m, m->host_x[i] + m->host_w[i], what);
    }
    grader_watch("", 0);
}

/* Slices of one allocation, in and out: out[200..299] = x[0..99] + w[300..399]. */
MEMORY_TEST(operands_may_lie_inside_an_allocation) {
    struct error error = {0};
    const char *what = "a slice of x + a slice of w";
    grader_watch(what, PATIENCE);
    if (good(add(m, m->x + 200, m->x, m->w + 300, 100, &error), &error, what) &&
        read_back(m, what)) {
        CHECK_ALL(m, i >= 200 && i < 300 ? m->host_x[i - 200] + m->host_w[i + 100] : m->host_x[i],
                  what);
    }
    grader_watch("", 0);
}

/* Parts written and read at an offset, between calls that change the rest. */
MEMORY_TEST(parts_are_written_and_read) {
    struct error error = {0};
    const char *what = "part of x written";
    float part[10];
    for (size_t i = 0; i < COUNT(part); i++) {
        part[i] = 1000.0f + (float)i;
    }
    if (good(add(m, m->x, m->x, m->w, SIZE, &error), &error, what) &&
        good(write_floats(m, m->x + 50, part, COUNT(part), &error), &error, what) &&
        read_back(m, what)) {
        CHECK_ALL(m, i >= 50 && i < 60 ? part[i - 50] : m->host_x[i] + m->host_w[i], what);
    }
    if (good(read_floats(m, m->x + 500, COUNT(part), &error), &error, what)) {
        EXPECT_TRUE(m->got[9] == m->host_x[509] + m->host_w[509]);
    }
}

/* A chain of calls without waiting: each must find the results of the one before. */
MEMORY_TEST(calls_run_in_order) {
    struct error error = {0};
    const char *what = "x + w, twenty times";
    bool fine = true;
    grader_watch(what, PATIENCE);
    for (int i = 0; i < 20 && fine; i++) {
        fine = good(add(m, m->x, m->x, m->w, SIZE, &error), &error, what);
    }
    struct resident_args args = {.resident = m->r};
    if (fine && good(ask("synchronize", &args, &error), &error, what) && read_back(m, what)) {
        for (size_t i = 0; i < SIZE; i++) {
            for (int j = 0; j < 20; j++) {
                m->host_x[i] += m->host_w[i];
            }
        }
        CHECK_ALL(m, m->host_x[i], what);
    }
    grader_watch("", 0);
}

/* One float at the end of an allocation, written and read. */
static enum status write_and_read(struct memory *m, float value, float *got, struct error *error) {
    struct resident_args args = {.resident = m->r};
    size_t count = 1 + (size_t)value * 37 % 11 * 100;
    args.bytes = count * sizeof value;
    TRY(ask("alloc", &args, error));
    float *last = (float *)args.memory + count - 1;
    TRY(write_floats(m, last, &value, 1, error));
    TRY(read_floats(m, last, 1, error));
    *got = m->got[0];
    return ask("release", &args, error);
}

/* Memory is allocated and released as models are; no value of released memory may come back. */
MEMORY_TEST(memory_can_be_released_and_allocated_again) {
    struct error error = {0};
    const char *what = "memory allocated, written, read and released";
    grader_watch(what, PATIENCE);
    for (int i = 0; i < 50 && !test_has_failed(); i++) {
        float got = NAN;
        if (good(write_and_read(m, (float)i, &got, &error), &error, what) && got != (float)i) {
            TEST_FAIL("allocation %d: read %g, want %d", i + 1, (double)got, i);
        }
    }
    let_go("release", (struct resident_args){.resident = m->r});
    let_go("release_weights", (struct resident_args){.resident = m->r});
    let_go("destroy", (struct resident_args){0});
    grader_watch("", 0);
}

/* Weights of one model are released, another model's registered: the old values must be gone. */
MEMORY_TEST(weights_can_be_released_and_taken_again) {
    struct error error = {0};
    const char *what = "x + new weights";
    let_go("release_weights", (struct resident_args){.resident = m->r, .handle = m->w});
    m->w = NULL;
    for (size_t i = 0; i < SIZE; i++) {
        m->host_w[i] = -m->host_w[i];
    }
    if (good(take_weights(m, &error), &error, what) &&
        good(add(m, m->x, m->x, m->w, SIZE, &error), &error, what) && read_back(m, what)) {
        CHECK_ALL(m, m->host_x[i] + m->host_w[i], what);
    }
}

/* A kernel's failure is passed on, with its message. */
MEMORY_TEST(failures_are_handed_on) {
    struct error error = {0};
    struct resident_args args = {.resident = m->r, .memory = m->x, .bytes = sizeof m->host_x};
    enum status status = ask("failing", &args, &error);
    EXPECT_STATUS(STATUS_UNSUPPORTED, status);
    EXPECT_STR_EQ("the kernel says no", error.message);
}

/* The models. */

C_TEST(parity, llama2_end_to_end) {
    static const int32_t tokens[] = {1, 17, 42, 5, 99, 3, 64, 12, 200, 7, 31};
    struct small_llama2 l = small_llama2();
    memcpy(l.tokens, tokens, sizeof tokens);
    l.prompt = 6;
    l.count = COUNT(tokens);
    if (remote_small_llama2(&l, "a small Llama2 with your memory", PATIENCE)) {
        grader_check_logits(l.got, l.want, SMALL_LLAMA2_V, "your memory");
    }
}

/* Two models of one shape, fed in turn; logits of the last token of each. */
enum { MODELS = 2, PAIR_V = 97, PAIR_TOKENS = 5 };
struct pair {
    struct llama2_config config;
    uint64_t seeds[MODELS]; /* of the weights */
    float want[MODELS][PAIR_V], got[MODELS][PAIR_V];
};

static int32_t pair_token(size_t t) {
    return 5 + (int32_t)t;
}

/* A model on the reference engine, in this process. */
struct reference {
    struct llama2_random random;
    struct engine engine;
    struct llama2 *llama2;
};

static enum status reference_run(struct reference *r, struct pair *p, int model) {
    TRY(llama2_random_create(&r->random, &p->config, p->seeds[model]));
    TRY(engine_reference_create(&r->engine));
    TRY(llama2_create(&r->llama2, &r->random.config, &r->random.weights, &r->engine, 1, NULL));
    for (size_t t = 0; t < PAIR_TOKENS; t++) {
        int32_t token = pair_token(t);
        TRY(llama2_forward(r->llama2, &token, 1, t, p->want[model]));
    }
    return STATUS_OK;
}

static enum status pair_reference(struct pair *p, int model) {
    struct reference r = {0};
    enum status status = reference_run(&r, p, model);
    llama2_free(r.llama2);
    engine_destroy(&r.engine);
    llama2_random_free(&r.random);
    return status;
}

static enum status pair_run(struct pair *p, struct error *error) {
    struct remote_llama2 models[MODELS] = {0};
    TRY(remote_llama2_create(&models[0], &p->config, p->seeds[0], 1, NULL, error));
    TRY(remote_llama2_create(&models[1], &p->config, p->seeds[1], 1, &models[0], error));
    for (size_t t = 0; t < PAIR_TOKENS; t++) {
        int32_t token = pair_token(t);
        for (int i = 0; i < MODELS; i++) {
            TRY(remote_llama2_forward(&models[i], &token, 1, t, p->got[i], NULL, error));
        }
    }
    remote_llama2_free(&models[1]);
    remote_llama2_free(&models[0]);
    return STATUS_OK;
}

/* Two models on one engine, called in turn: nothing may be stored under a key that both share. */
C_TEST(parity, two_models_on_one_engine) {
    struct rng rng = grader_rng();
    struct pair p = {.config = llama2_shape_config(LLAMA2_SHAPE_15M)};
    struct grader_gpu gpu;
    struct error error = {0};
    p.config.C = 32;
    p.config.hidden = 48;
    p.config.L = 2;
    p.config.NH = 4;
    p.config.KVH = 4;
    p.config.HS = 8;
    p.config.V = PAIR_V;
    p.config.T = 8;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    for (int i = 0; i < MODELS; i++) {
        p.seeds[i] = rng_u64(&rng);
        EXPECT_OK(pair_reference(&p, i));
    }
    grader_watch("two small Llama2 in turn", PATIENCE);
    bool fine = good(pair_run(&p, &error), &error, "two small Llama2 in turn");
    grader_watch("", 0);
    for (int i = 0; i < MODELS && fine && !test_has_failed(); i++) {
        grader_check_logits(p.got[i], p.want[i], PAIR_V,
                            i == 0 ? "your memory (the first of two)" : "your memory (the second)");
    }
}

/* BERT uses what Llama2 does not: biases, LayerNorm, GELU, masks, slices of a fused projection. */
C_TEST(parity, bert_end_to_end) {
    enum { B = 2, T = 7 };
    static const int32_t ids[B * T] = {2, 9, 40, 3, 8, 90, 3, 2, 77, 3, 0, 0, 0, 0};
    static const uint8_t mask[B * T] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    const struct bert_config sizes = {
        .C = 36, .hidden = 88, .L = 2, .NH = 3, .V = 101, .T = 9, .labels = 3};
    const struct remote_bert_job job = {.config = remote_bert_config(sizes),
                                        .input = {.ids = ids, .mask = mask, .B = B, .T = T},
                                        .what = "a small BERT with your memory",
                                        .seconds = PATIENCE};
    remote_bert_parity(job, grader_check_logits, "your memory");
}
