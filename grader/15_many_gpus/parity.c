/*
 * Lab 15, parity: sums over 2, 3 and 4 ranks, whose calls follow each other and that come at
 * different times; products cut over the ranks; the cuts; a small Llama2 on 2 and 4 GPUs.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/15_many_gpus/calls.h"
#include "grader/15_many_gpus/remote.h"
#include "grader/harness/gpu.h"
#include "grader/harness/seed.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/remote.h"
#include "labs/10_llama2_decoder/problem/case.h"

/* Seconds for a call that takes well under one, on the slowest machine and with all checks; longer
   than simt waits for ranks that wait in vain. */
enum { PATIENCE = 60 };

const char remote_many_wanted[] = "4";

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void report(const char *name, enum status status, const char *text,
                   const struct error *error) {
    if (status != STATUS_OK) {
        TEST_FAIL("%s: %s (%s)", name, error_text(error, status), status_name(status));
    } else if (text[0] != '\0') {
        TEST_FAIL("%s: %s", name, text);
    }
}

/* @return whether there are that many GPUs; skips, and says so, if not */
static bool open(int ranks) {
    struct grader_gpu gpu;
    struct error error = {0};
    if (!grader_gpu_open(&gpu)) {
        return false;
    }
    int count = remote_many_devices(&error);
    if (count < ranks && count > 0) {
        test_skip(__FILE__, __LINE__, "needs %d GPUs that reach each other's memory; there %s %d",
                  ranks, count == 1 ? "is" : "are", count);
    } else if (count == 0) {
        TEST_FAIL("%s", error_text(&error, STATUS_DEVICE));
    }
    return count >= ranks;
}

/* ---- many_all_reduce() ---- */

static enum status try_sums(struct many_sums_problem *p, char *text, size_t size,
                            struct error *error) {
    void *rig;
    TRY(remote_many_open(&rig, p->ranks, many_sums_bytes(&p->sums), error));
    grader_watch(p->name, PATIENCE);
    enum status status = remote_many_sums(rig, p, NULL, error);
    grader_watch("", 0);
    remote_many_close(rig);
    if (status == STATUS_OK) {
        many_sums_check(p, text, size);
    }
    return status;
}

static void run_sums(int ranks, const struct many_sums *sums) {
    struct many_sums_problem p;
    struct error error = {0};
    struct rng rng = grader_rng();
    char text[400] = "";
    enum status status = many_sums_create(&p, ranks, sums, &rng, &error);
    if (status == STATUS_OK) {
        status = try_sums(&p, text, sizeof text, &error);
    }
    report(p.name, status, text, &error);
    many_sums_free(&p);
}

static void run_all_sums(int ranks, const struct many_sums *list, size_t count) {
    if (!open(ranks)) {
        return;
    }
    for (size_t i = 0; i < count && !test_has_failed(); i++) {
        run_sums(ranks, &list[i]);
    }
}

#define SUMS_TEST(name, ranks, ...)                           \
    C_TEST(parity, name) {                                    \
        static const struct many_sums list[] = {__VA_ARGS__}; \
        run_all_sums(ranks, list, COUNT(list));               \
    }

SUMS_TEST(two_ranks, 2, {.count = 4, .dtype = NN_F32, .calls = 1},
          {.count = 2048, .dtype = NN_F32, .calls = 2, .delays = 9},
          {.count = 1032, .dtype = NN_BF16, .calls = 1})

/* Few numbers, too: a rank's only block may be far ahead of the others'. */
SUMS_TEST(call_after_call, 2, {.count = 1000, .dtype = NN_F32, .calls = 6, .delays = 1},
          {.count = 520, .dtype = NN_BF16, .calls = 6, .delays = 2},
          {.count = 64, .dtype = NN_F32, .calls = 12, .delays = 10})

SUMS_TEST(three_ranks, 3, {.count = 100, .dtype = NN_F32, .calls = 2},
          {.count = 1036, .dtype = NN_F32, .calls = 4, .delays = 3},
          {.count = 48, .dtype = NN_F32, .calls = 8, .delays = 11},
          {.count = 8, .dtype = NN_BF16, .calls = 2})

SUMS_TEST(four_ranks, 4, {.count = 2052, .dtype = NN_F32, .calls = 4, .delays = 4},
          {.count = 1000, .dtype = NN_BF16, .calls = 3, .delays = 5})

SUMS_TEST(large_sums, 2, {.count = 200004, .dtype = NN_F32, .calls = 2, .delays = 6})

SUMS_TEST(large_sums_of_three, 3, {.count = 200004, .dtype = NN_F32, .calls = 1, .delays = 7})

/* New data, which the calls of an open rig add up. */
static enum status sum_again(void *rig, const struct many_sums *sums, struct rng *rng, char *text,
                             size_t size, struct error *error) {
    struct many_sums_problem p;
    TRY(many_sums_create(&p, 2, sums, rng, error));
    grader_watch(p.name, PATIENCE);
    enum status status = remote_many_sums(rig, &p, NULL, error);
    grader_watch("", 0);
    if (status == STATUS_OK) {
        many_sums_check(&p, text, size);
    }
    many_sums_free(&p);
    return status;
}

/* Sizes mixed in one workspace, so that a call finds what a larger or smaller one left. */
C_TEST(parity, sizes_in_turn) {
    static const size_t counts[] = {2048, 64, 4096, 4, 2048};
    struct error error = {0};
    struct rng rng = grader_rng();
    void *rig;
    char text[400] = "";
    if (!open(2)) {
        return;
    }
    enum status status = remote_many_open(&rig, 2, 1 << 20, &error);
    for (size_t i = 0; i < COUNT(counts) && status == STATUS_OK && text[0] == '\0'; i++) {
        const struct many_sums sums = {
            .count = counts[i], .dtype = NN_F32, .calls = 3, .delays = 8 + i};
        status = sum_again(rig, &sums, &rng, text, sizeof text, &error);
    }
    report("sizes in turn", status, text, &error);
}

/* A graph of three calls, three times: an odd number, so that a call meets the mailbox of another
   one of the time before. Data are others each time. */
C_TEST(parity, recorded_calls) {
    static const struct many_sums sums = {.count = 1000, .dtype = NN_F32, .calls = 3, .delays = 20};
    struct error error = {0};
    struct rng rng = grader_rng();
    void *rig;
    char text[400] = "", name[120] = "a graph of 3 calls is recorded";
    if (!open(2)) {
        return;
    }
    enum status status = remote_many_open(&rig, 2, many_sums_bytes(&sums), &error);
    if (status == STATUS_OK) {
        status = remote_many_record(rig, &sums, &error);
    }
    for (int launch = 1; launch <= 3 && status == STATUS_OK && text[0] == '\0'; launch++) {
        snprintf(name, sizeof name, "a recorded graph of 3 calls, launch %d%s", launch,
                 launch > 1 ? " (a graph repeats arguments: count calls in device memory)" : "");
        status = sum_again(rig, &sums, &rng, text, sizeof text, &error);
    }
    report(name, status, text, &error);
}

/* ---- many_linear() ---- */

static void run_products(int ranks, const struct many_products *shape) {
    struct many_products_problem p;
    struct error error = {0};
    struct rng rng = grader_rng();
    char text[400] = "";
    void *rig = NULL;
    enum status status = many_products_create(&p, ranks, shape, &rng, &error);
    if (status == STATUS_OK) {
        status = remote_many_open(&rig, ranks, 0, &error);
    }
    if (status == STATUS_OK) {
        grader_watch(p.name, PATIENCE);
        status = remote_many_multiply(rig, &p, &error);
        grader_watch("", 0);
    }
    if (status == STATUS_OK) {
        status = many_products_check(&p, text, sizeof text, &error);
    }
    report(p.name, status, text, &error);
    many_products_free(&p);
}

C_TEST(parity, products) {
    static const struct many_products list[] = {
        {.N = 64, .K = 128, .dtype = NN_F32, .calls = 1},
        {.N = 132, .K = 96, .dtype = NN_BF16, .calls = 3, .delays = 1},
        {.N = 36, .K = 64, .dtype = NN_F16, .calls = 2},
        {.N = 4, .K = 32, .dtype = NN_F32, .calls = 6, .delays = 12},
        /* Of the models that are timed: there logits would not tell sums that travel as fp16. */
        {.N = 128, .K = 64, .dtype = NN_BF16, .calls = 2},
        {.N = 2048, .K = 1024, .dtype = NN_BF16, .calls = 1},
    };
    if (open(2)) {
        for (size_t i = 0; i < COUNT(list) && !test_has_failed(); i++) {
            run_products(2, &list[i]);
        }
    }
}

C_TEST(parity, products_with_a_bias) {
    static const struct many_products list[] = {
        {.N = 64, .K = 128, .dtype = NN_F32, .bias = true, .calls = 1},
        {.N = 100, .K = 256, .dtype = NN_BF16, .bias = true, .calls = 2, .delays = 2},
    };
    if (open(4)) {
        for (size_t i = 0; i < COUNT(list) && !test_has_failed(); i++) {
            run_products(4, &list[i]);
        }
    }
}

/* ---- many_cut() ---- */

C_TEST(parity, cuts) {
    static const struct many_shape shapes[] = {
        {.C = 4096, .hidden = 11008, .NH = 32, .KVH = 32, .HS = 128},
        {.C = 64, .hidden = 96, .NH = 16, .KVH = 4, .HS = 8},
        {.C = 100, .hidden = 12, .NH = 12, .KVH = 12, .HS = 6},
    };
    struct grader_gpu gpu;
    if (!grader_gpu_open(&gpu)) {
        return;
    }
    for (size_t i = 0; i < COUNT(shapes); i++) {
        for (int ranks = 1; ranks <= 4; ranks++) {
            char text[400] = "";
            if (shapes[i].KVH % (size_t)ranks != 0 || shapes[i].hidden % (size_t)ranks != 0) {
                continue;
            }
            many_cut_check(&shapes[i], ranks, remote_many_cut, false, text, sizeof text);
            if (text[0] != '\0') {
                TEST_FAIL("%d ranks, C %zu, %zu heads, %zu key heads of %zu, hidden %zu: %s", ranks,
                          shapes[i].C, shapes[i].NH, shapes[i].KVH, shapes[i].HS, shapes[i].hidden,
                          text);
                return;
            }
        }
    }
}

/* ---- Wrong calls ---- */

C_TEST(parity, wrong_calls_are_refused) {
    struct error error = {0};
    void *rig;
    if (!open(2)) {
        return;
    }
    enum status status = remote_many_open(&rig, 2, 4096, &error);
    struct many_sums_call call = {.rig = rig, .sums = {.count = 3, .dtype = NN_F32, .calls = 1}};
    if (status == STATUS_OK) {
        status = remote_call("many_sum", &call, sizeof call, &error);
    }
    if (status != STATUS_INVALID_ARGUMENT) {
        TEST_FAIL("an all-reduce of 3 numbers of fp32 must be refused with "
                  "STATUS_INVALID_ARGUMENT, got %s; many_all_reduce_check() does that",
                  status_name(status));
    }
}

/* ---- A model ---- */

enum { MOST_V = 64, TOKENS = 3 };

static enum status feed(struct decoder_net *net, int ranks, const int32_t *tokens, float *got,
                        struct error *error) {
    struct many_decode_feed_call call = {.count = TOKENS};
    size_t bytes = (size_t)ranks * net->size.V * sizeof(float);
    TRY(remote_many_decode_open(&call.decoders, ranks, &net->model, error));
    TRY(device_alloc((void **)&call.logits, TOKENS * bytes, error));
    char *d_logits = (char *)call.logits;
    memcpy(call.tokens, tokens, TOKENS * sizeof *tokens);
    grader_watch("a small Llama2 on several GPUs", PATIENCE);
    enum status status = remote_call("many_decode_feed", &call, sizeof call, error);
    grader_watch("", 0);
    if (status == STATUS_OK) {
        status = device_read(got, d_logits + (TOKENS - 1) * bytes, bytes, NULL, error);
    }
    device_free(d_logits);
    return status;
}

static void check_logits(const struct decoder_net *net, int ranks, const float *got,
                         const float *want, const char *name) {
    double largest = net->logit_scale, tolerance = decoder_tolerance(net->size.dtype);
    for (size_t i = 0; i < net->size.V; i++) {
        largest = fmax(largest, fabs((double)want[i]));
    }
    for (size_t i = 0; i < net->size.V; i++) {
        double difference = fabs((double)got[i] - (double)want[i]);
        if (!(difference <= tolerance * largest)) {
            TEST_FAIL("%s: logit %zu: got %.9g, want %.9g, difference %.3g, tolerance %.3g", name,
                      i, (double)got[i], (double)want[i], difference, tolerance * largest);
            return;
        }
    }
    for (int r = 1; r < ranks; r++) {
        if (memcmp(got, got + (size_t)r * net->size.V, net->size.V * sizeof *got) != 0) {
            TEST_FAIL("%s: rank %d has other logits than rank 0: all must have the same bits", name,
                      r);
            return;
        }
    }
}

static void run_model(int ranks, const struct decoder_size *size, const char *name) {
    struct decoder_net net = {0};
    struct error error = {0};
    struct rng rng = grader_rng();
    int32_t tokens[TOKENS];
    float got[4 * MOST_V], want[MOST_V];
    if (!open(ranks)) {
        return;
    }
    for (int i = 0; i < TOKENS; i++) {
        tokens[i] = (int32_t)rng_below(&rng, size->V);
    }
    enum status status = decoder_net_create(&net, size, rng_u64(&rng), false, &error);
    if (status == STATUS_OK) {
        status = llama2_forward(net.llama2, tokens, TOKENS, 0, want);
    }
    if (status == STATUS_OK) {
        status = feed(&net, ranks, tokens, got, &error);
    }
    if (status == STATUS_OK) {
        check_logits(&net, ranks, got, want, name);
    }
    report(name, status, "", &error);
    decoder_net_free(&net);
}

C_TEST(parity, llama2_on_two) {
    static const struct decoder_size size = {
        .NH = 4, .KVH = 2, .HS = 8, .hidden = 48, .L = 2, .V = 61, .T = 16, .dtype = NN_F32};
    run_model(2, &size, "a small Llama2 on two GPUs");
}

C_TEST(parity, llama2_on_four) {
    static const struct decoder_size size = {
        .NH = 8, .KVH = 4, .HS = 8, .hidden = 64, .L = 1, .V = 50, .T = 16, .dtype = NN_BF16};
    run_model(4, &size, "a small Llama2 in bf16 on four GPUs");
}
