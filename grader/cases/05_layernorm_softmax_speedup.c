/*
 * Lab 05, speedup: LayerNorm in fp32, softmax in bf16, and BERT with the norms, against the
 * starter's kernels in one run. On a GPU time is measured and the fastest of several calls counts,
 * on both sides; on simt it is modelled, and one call is as good as many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/formats/bert_random.h"
#include "common/model/bert.h"
#include "common/model/engine.h"
#include "common/testing/compare.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/bert_batch.h"
#include "grader/cases/05_layernorm_softmax_baseline.h"
#include "grader/device_buffer.h"
#include "grader/foreign.h"
#include "grader/gpu.h"
#include "grader/inputs.h"
#include "grader/speedup.h"
#include "grader/watch.h"
#include "labs/05_layernorm_softmax/engine.h"
#include "labs/05_layernorm_softmax/layernorm_softmax.h"
#include "labs/05_layernorm_softmax/oracle.h"

static const char lab[] = "05_layernorm_softmax";

enum { PATIENCE = 40 /* seconds */, CALLS = 7, COLUMNS = 2560, GPU_ROWS = 2048, SIMT_ROWS = 256 };

/* One operator and type; host copies that the submission never sees. */
struct kernel_case {
    enum rows_op op;
    enum nn_dtype type;
    size_t rows;
    struct rng rng;
    rows_function *run; /* the kernel of the next call */
    device_stream stream;
    void *workspace;
    struct rows_data data;
    struct device_buffer in, out, weight, bias;
    float *bytes; /* host, (rows, COLUMNS) at most */
};

/* Floats that elements take in a device_buffer. */
static size_t floats_of(const struct kernel_case *k, size_t count) {
    return count * nn_dtype_bytes(k->type) / sizeof(float);
}

static enum status kernel_create(struct kernel_case *k, bool guarded, struct error *error) {
    size_t count = k->rows * COLUMNS;
    struct device_buffer *buffers[] = {&k->in, &k->out, &k->weight, &k->bias};
    enum status status = device_stream_create(&k->stream, error);
    k->rng = rng_create(grader_seed());
    k->bytes = malloc(count * sizeof *k->bytes);
    if (k->bytes == NULL) {
        return error_set(error, STATUS_OUT_OF_MEMORY, "the grader is out of memory");
    }
    if (status == STATUS_OK) {
        status = device_alloc(&k->workspace, ROWS_WORKSPACE_BYTES, error);
    }
    for (int i = 0; i < 4 && status == STATUS_OK; i++) {
        size_t floats = floats_of(k, i < 2 ? count : COLUMNS);
        status = device_buffer_create(buffers[i], floats, guarded, 0, error);
    }
    return status;
}

static void kernel_free(struct kernel_case *k) {
    device_buffer_free(&k->in);
    device_buffer_free(&k->out);
    device_buffer_free(&k->weight);
    device_buffer_free(&k->bias);
    device_free(k->workspace);
    device_stream_destroy(k->stream);
    rows_data_free(&k->data);
    free(k->bytes);
}

static enum status put(struct kernel_case *k, struct device_buffer *buffer, const float *values,
                       size_t count, struct error *error) {
    nn_dtype_store(k->bytes, values, count, k->type);
    return device_buffer_put(buffer, k->bytes, error);
}

/* Fresh inputs, and nothing of an earlier result. */
static enum status kernel_renew(struct kernel_case *k, struct error *error) {
    rows_data_free(&k->data);
    enum status status = rows_data_create(&k->data, k->op, k->type, k->rows, COLUMNS,
                                          (struct rows_flavour){.mean = 0.5f}, &k->rng, error);
    if (status == STATUS_OK) {
        status = put(k, &k->in, k->data.in, k->rows * COLUMNS, error);
    }
    if (status == STATUS_OK) {
        status = put(k, &k->weight, k->data.weight, COLUMNS, error);
    }
    if (status == STATUS_OK) {
        status = put(k, &k->bias, k->data.bias, COLUMNS, error);
    }
    return status == STATUS_OK ? device_buffer_put(&k->out, NULL, error) : status;
}

/* Every row: it takes the host milliseconds. k->bytes holds the output. */
static void check_rows(const struct kernel_case *k) {
    double want[COLUMNS];
    float got[COLUMNS];
    for (size_t row = 0; row < k->rows && !test_has_failed(); row++) {
        rows_expect(&k->data, row, want, got);
        nn_dtype_load(got, k->bytes + floats_of(k, row * COLUMNS), COLUMNS, k->type);
        struct comparison result = compare_f32(got, want, COLUMNS, rows_tolerance(&k->data, row));
        if (!result.pass) {
            char text[512];
            comparison_describe(&result, COLUMNS, text, sizeof text);
            TEST_FAIL("a timed result is wrong: %s, row %zu: %s", rows_op_name(k->op), row, text);
        }
    }
}

static enum status check_result(struct kernel_case *k, struct error *error) {
    const struct device_buffer *inputs[] = {&k->in, &k->weight, &k->bias};
    bool intact = false, changed = false;
    enum status status = device_buffer_get(&k->out, k->bytes, &intact, &changed, error);
    EXPECT_TRUE(intact);
    for (int i = 0; i < 3 && status == STATUS_OK; i++) {
        status = device_buffer_get(inputs[i], NULL, &intact, &changed, error);
        EXPECT_TRUE(intact && !changed);
    }
    if (status == STATUS_OK) {
        check_rows(k);
    }
    return status;
}

static enum status run_kernel(void *argument, device_stream stream, struct error *error) {
    const struct kernel_case *k = argument;
    const struct rows_problem problem = {.op = k->op,
                                         .type = k->type,
                                         .rows = k->rows,
                                         .C = COLUMNS,
                                         .in = k->in.data,
                                         .out = k->out.data,
                                         .weight = k->weight.data,
                                         .bias = k->bias.data,
                                         .eps = k->data.eps};
    return k->run(&problem, k->workspace, stream, error);
}

/* Milliseconds of one call with fresh inputs; the subject's result is checked. */
static double time_call(void *argument, bool subject) {
    struct kernel_case *k = argument;
    struct error error = {0};
    double ms = INFINITY;
    k->run = subject ? layernorm_softmax : rows_baseline;
    enum status status = kernel_renew(k, &error);
    grader_watch(subject ? "kernel, timed" : "kernel, baseline", PATIENCE);
    if (status == STATUS_OK) {
        status = grader_gpu_time(run_kernel, k, k->stream, &ms, &error);
    }
    grader_watch("", 0);
    if (status == STATUS_OK && subject) {
        status = check_result(k, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s of %zu row%s: %s", rows_op_name(k->op), k->rows, plural(k->rows),
                  error_text(&error, status));
    }
    return ms;
}

/* The output alone takes longer to write, even into a cache three times as fast as memory. */
static void check_possible(const struct kernel_case *k, const struct grader_gpu *gpu, double ms) {
    double bytes = (double)k->rows * COLUMNS * (double)nn_dtype_bytes(k->type);
    double bandwidth = gpu->properties.memory_bandwidth;
    if (bandwidth > 0.0 && ms < 1e3 * bytes / (3.0 * bandwidth)) {
        TEST_FAIL("%.4g ms is less than writing the result takes: the work was not done", ms);
    }
}

static void check_kernel(const char *measure, enum rows_op op, enum nn_dtype type) {
    struct grader_gpu gpu;
    struct kernel_case k = {.op = op, .type = type};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    k.rows = gpu.modelled ? SIMT_ROWS : GPU_ROWS;
    ASSERT_OK(kernel_create(&k, !gpu.modelled, &error));
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, measure, GRADER_SUBJECT, GRADER_MARGIN);
    speedup_measure(&speedup, CALLS, time_call, &k);
    if (!test_has_failed()) {
        check_possible(&k, &gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    grader_check_own_work();
    kernel_free(&k);
}

C_TEST(speedup, layernorm) {
    check_kernel("layernorm", ROWS_LAYERNORM, NN_F32);
}

C_TEST(speedup, softmax) {
    check_kernel("softmax", ROWS_SOFTMAX, NN_BF16);
}

/* One sentence, as it comes in: BERT-base with a narrower feed-forward part and fewer layers. */
static struct bert_config bert_config_of(bool modelled) {
    return (struct bert_config){.C = 768,
                                .hidden = 1536,
                                .L = modelled ? 1 : 4,
                                .NH = 12,
                                .V = 1000,
                                .T = 128,
                                .types = 2,
                                .labels = 2,
                                .norm_eps = 1e-12f,
                                .activation = NN_GELU};
}

/* Milliseconds of one sentence on an engine; logits receives (labels). */
static double time_sentence(const struct bert_random *random, rows_function *run,
                            const int32_t *ids, int calls, float *logits) {
    struct engine engine;
    struct error error = {0};
    double ms = INFINITY;
    const struct bert_input input = {.ids = ids, .B = 1, .T = random->config.T};
    grader_watch("BERT, a sentence", 4 * PATIENCE);
    enum status status = engine_layernorm_softmax_create_with(&engine, run, &error);
    if (status == STATUS_OK) {
        status = bert_batch_time(random, &engine, &input, calls, logits, &ms, &error);
    }
    grader_watch("", 0);
    if (status != STATUS_OK) {
        TEST_FAIL("BERT: %s", error_text(&error, status));
    }
    engine_destroy(&engine);
    return ms;
}

C_TEST(speedup, end_to_end) {
    enum { MOST_TOKENS = 128, LABELS = 2 };
    struct grader_gpu gpu;
    struct bert_random random;
    int32_t ids[MOST_TOKENS];
    float want[LABELS] = {0}, got[LABELS] = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct bert_config config = bert_config_of(gpu.modelled);
    uint64_t seed = grader_seed();
    struct rng rng = rng_create(seed);
    for (size_t i = 0; i < config.T; i++) {
        ids[i] = (int32_t)rng_below(&rng, config.V);
    }
    ASSERT_OK(bert_random_create(&random, &config, seed));
    struct speedup speedup =
        grader_gpu_speedup(&gpu, lab, "end_to_end", GRADER_SUBJECT, GRADER_MARGIN);
    int calls = gpu.modelled ? 1 : CALLS;
    speedup.baseline_ms = time_sentence(&random, rows_baseline, ids, calls, want);
    speedup.subject_ms = time_sentence(&random, layernorm_softmax, ids, calls, got);
    for (int i = 0; i < LABELS && !test_has_failed(); i++) {
        double largest = fmax(fabs((double)want[0]), fabs((double)want[1]));
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-4 * largest)) {
            TEST_FAIL("BERT with your norms gives other logits: %.9g, want %.9g", (double)got[i],
                      (double)want[i]);
        }
    }
    if (!test_has_failed()) {
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    bert_random_free(&random);
}
