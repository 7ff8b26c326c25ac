/*
 * Lab 05, speedup: LayerNorm in fp32, softmax in bf16, and BERT with the norms, against the
 * starter's kernels in one run. On a GPU time is measured and the fastest of several calls counts,
 * on both sides; on simt it is modelled, and one call is as good as many.
 */
#include <math.h>

#include "common/base/rng.h"
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "common/testing/words.h"
#include "grader/05_layernorm_softmax/calls.h"
#include "grader/harness/done.h"
#include "grader/harness/gpu.h"
#include "grader/harness/remote_bert.h"
#include "grader/harness/seed.h"
#include "grader/harness/speedup.h"
#include "grader/harness/watchdog.h"
#include "grader/isolation/models.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "labs/05_layernorm_softmax/problem/case.h"

static const char lab[] = "05_layernorm_softmax";

enum { PATIENCE = 40 /* seconds */, CALLS = 7 };

struct shape {
    size_t rows, columns;
};

/*
 * On a GPU so much that launch and wait, which its clock counts too, are the smaller part. On simt
 * two rows a multiprocessor: each GPU has as much to do.
 */
static struct shape timed_shape(const struct grader_gpu *gpu) {
    static const struct shape measured = {2048, 8192};
    const struct shape modelled = {2 * (size_t)gpu->properties.multiprocessors, 2560};
    return gpu->modelled ? modelled : measured;
}

/* One worker's memory. */
struct kernel_side {
    device_stream stream;
    void *workspace;
    struct rows_buffers buffers;
};

/* One operator and type; host copies that the submission never sees. */
struct kernel_case {
    enum rows_op op;
    enum nn_dtype type;
    struct shape shape;
    struct rng rng;
    struct rows_data data; /* of the last call */
    struct kernel_side sides[REMOTE_SIDES];
};

static size_t elements_of(const struct kernel_case *k) {
    return k->shape.rows * k->shape.columns;
}

static enum status draw(struct kernel_case *k, struct error *error) {
    rows_data_free(&k->data);
    return rows_data_create(&k->data, k->op, k->type, k->shape.rows, k->shape.columns,
                            (struct rows_flavour){.mean = 0.5f}, &k->rng, error);
}

static enum status side_create(const struct kernel_case *k, struct kernel_side *side, bool guarded,
                               struct error *error) {
    TRY(device_stream_create(&side->stream, error));
    TRY(device_alloc(&side->workspace, ROWS_WORKSPACE_BYTES, error));
    return rows_buffers_create(&side->buffers, &k->data, (struct rows_variant){.skew_in = 0},
                               guarded, error);
}

static void side_free(struct kernel_side *side) {
    rows_buffers_free(&side->buffers);
    device_free(side->workspace);
    device_stream_destroy(side->stream);
}

static enum status kernel_create(struct kernel_case *k, bool guarded, struct error *error) {
    k->rng = grader_rng();
    TRY(draw(k, error));
    TRY(side_create(k, &k->sides[REMOTE_SUBJECT], guarded, error));
    TRY(remote_open_side(REMOTE_BASELINE, error));
    return side_create(k, &k->sides[REMOTE_BASELINE], guarded, error);
}

static void kernel_free(struct kernel_case *k) {
    for (int i = 0; i < REMOTE_SIDES; i++) {
        remote_use((enum remote_side)i);
        side_free(&k->sides[i]);
    }
    rows_data_free(&k->data);
}

/* Fresh inputs, and nothing of an earlier result, in the worker in use. */
static enum status kernel_renew(struct kernel_case *k, struct kernel_side *side,
                                struct error *error) {
    TRY(draw(k, error));
    return rows_buffers_put(&side->buffers, &k->data, error);
}

static enum status check_result(struct kernel_case *k, struct error *error) {
    char text[512];
    bool outside;
    const char *changed;
    struct rows_buffers *buffers = &k->sides[REMOTE_SUBJECT].buffers;
    TRY(rows_buffers_get(buffers, &outside, &changed, error));
    if (outside || changed != NULL) {
        TEST_FAIL("a timed call %s%s",
                  outside ? "wrote outside of the output" : "changed its input ",
                  outside ? "" : changed);
    }
    if (!rows_buffers_check(buffers, &k->data, 1, text, sizeof text)) {
        TEST_FAIL("a timed result is wrong: %s, %s", rows_op_name(k->op), text);
    }
    return STATUS_OK;
}

/* One call by the worker in use. */
static enum status run_kernel(const struct kernel_case *k, const struct kernel_side *side,
                              double *ms, struct error *error) {
    struct rows_call call = {.problem = rows_buffers_problem(&side->buffers, &k->data),
                             .workspace = side->workspace,
                             .stream = side->stream};
    return remote_call_timed("rows", &call, sizeof call, side->stream, ms, error);
}

/* Each element is read once and written once. A row's weight and bias are few. */
static double least_bytes(const struct kernel_case *k) {
    return 2.0 * (double)elements_of(k) * (double)nn_dtype_bytes(k->type);
}

/* Of an element: part of two sums, or of one and an exponential; and a product. */
static double least_flops(const struct kernel_case *k) {
    return 3.0 * (double)elements_of(k);
}

/* Milliseconds of one call with fresh inputs; the subject's result is checked. */
static double time_call(void *argument, bool subject) {
    struct kernel_case *k = argument;
    enum remote_side which = subject ? REMOTE_SUBJECT : REMOTE_BASELINE;
    struct kernel_side *side = &k->sides[which];
    struct error error = {0};
    double ms = INFINITY;
    remote_use(which);
    enum status status = kernel_renew(k, side, &error);
    grader_watch(subject ? "kernel, timed" : "kernel, baseline", PATIENCE);
    if (status == STATUS_OK) {
        status = run_kernel(k, side, &ms, &error);
    }
    grader_watch("", 0);
    if (status == STATUS_OK && subject) {
        remote_check_counted(least_flops(k), REMOTE_FP32_PRODUCTS);
        remote_check_counted_bytes(least_bytes(k));
        remote_check_sent(0.0, 0.5 * least_bytes(k));
        status = check_result(k, &error);
    }
    if (status != STATUS_OK) {
        TEST_FAIL("%s of %zu row%s: %s", rows_op_name(k->op), k->shape.rows, plural(k->shape.rows),
                  error_text(&error, status));
    }
    return ms;
}

/* The output alone takes longer to write, even into a cache three times as fast as memory. */
static void check_possible(const struct kernel_case *k, const struct grader_gpu *gpu, double ms) {
    double bytes = (double)elements_of(k) * (double)nn_dtype_bytes(k->type);
    double bandwidth = gpu->properties.memory_bandwidth;
    if (bandwidth > 0.0 && ms < 1e3 * bytes / (3.0 * bandwidth)) {
        TEST_FAIL("%.4g ms is less than writing the result takes: the work was not done", ms);
    }
}

static struct work work_of(const struct kernel_case *k) {
    double bytes = 0.5 * least_bytes(k);
    return (struct work){.read_bytes = bytes, .written_bytes = bytes, .warm = true};
}

static void check_kernel(const char *measure, enum rows_op op, enum nn_dtype type) {
    struct grader_gpu gpu;
    struct kernel_case k = {.op = op, .type = type};
    struct error error = {0};
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    k.shape = timed_shape(&gpu);
    ASSERT_DONE(kernel_create(&k, !gpu.modelled, &error), &error);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, measure);
    const struct work work = work_of(&k);
    speedup.least = grader_gpu_least_time(&work);
    if (gpu.modelled) {
        /* Warm caches, as on a GPU. The baseline takes so long that its first misses are below a
         * hundredth of it. */
        (void)time_call(&k, true);
    }
    speedup_measure(&speedup, CALLS, time_call, &k);
    if (!test_has_failed()) {
        check_possible(&k, &gpu, speedup.subject_ms);
        speedup_check(&speedup, __FILE__, __LINE__);
    }
    kernel_free(&k);
}

C_TEST(speedup, layernorm) {
    check_kernel("layernorm", ROWS_LAYERNORM, NN_F32);
}

C_TEST(speedup, softmax) {
    check_kernel("softmax", ROWS_SOFTMAX, NN_BF16);
}

/*
 * One sentence, as it comes in: BERT-base with a narrower feed-forward part and fewer layers, a
 * shorter one on simt. So norms take much of the time, on a GPU that multiplies slowly, too.
 */
static struct bert_config bert_config_of(bool modelled) {
    const struct bert_config sizes = {.C = 768,
                                      .hidden = modelled ? 128 : 1536,
                                      .L = modelled ? 1 : 4,
                                      .NH = 12,
                                      .V = 1000,
                                      .T = modelled ? 96 : 128,
                                      .labels = 2};
    return remote_bert_config(sizes);
}

/* Of its norms: one behind the embeddings and two a layer, each a launch of its own. */
static struct work work_of_norms(const struct bert_config *config) {
    size_t norms = 2 * config->L + 1;
    double bytes = (double)norms * (double)(config->T * config->C) * sizeof(float);
    return (struct work){
        .read_bytes = bytes, .written_bytes = bytes, .warm = true, .launches = (int)norms};
}

C_TEST(speedup, end_to_end) {
    enum { MOST_TOKENS = 128 };
    struct grader_gpu gpu;
    int32_t ids[MOST_TOKENS];
    if (!grader_gpu_open_for_timing(&gpu)) {
        return;
    }
    const struct bert_config config = bert_config_of(gpu.modelled);
    struct remote_bert_job job = {.config = config,
                                  .input = {.ids = ids, .B = 1, .T = config.T},
                                  .what = "BERT, a sentence",
                                  .seconds = 4 * PATIENCE,
                                  .own = WORKER_NO_NORMS,
                                  .work = work_of_norms(&config)};
    remote_bert_draw(&job, ids, config.T);
    struct speedup speedup = grader_gpu_speedup(&gpu, lab, "end_to_end");
    remote_bert_compare(&job, &gpu, &speedup, gpu.modelled ? 1 : CALLS, "BERT with your norms");
}
