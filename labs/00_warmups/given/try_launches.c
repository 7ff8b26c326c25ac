/* w17 to w28: the launch and the compiler. */
#include <math.h>

#include <cuda_runtime_api.h>

#include "common/device/device.h"
#include "common/device/tensor_map.h"
#include "labs/00_warmups/given/tries.h"
#include "labs/00_warmups/warmups.h"

static double variance_from(const float *x, int n, int first, int count) {
    double mean = 0.0, sum = 0.0;
    for (int k = 0; k < count; k++) {
        mean += x[(first + k) % n] / (double)count;
    }
    for (int k = 0; k < count; k++) {
        double difference = x[(first + k) % n] - mean;
        sum += difference * difference;
    }
    return sum / count;
}

void try_w17_occupancy(struct trial *t) {
    enum { N = 1024, KEPT = 96, BLOCKS = 4 };
    static const int paper[3] = {2, 16, 25};
    static const char *const question[3] = {"blocks", "warps", "percent"};
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < 3; i++) {
        if (w17_paper[i] != paper[i]) {
            trial_fail(t, "on paper: %d is not the number of %s", w17_paper[i], question[i]);
        }
    }
    for (int i = 0; i < N; i++) {
        v.want[i] = variance_from(v.x, N, i, KEPT);
    }
    int blocks = w17_occupancy(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-5);
    if (blocks < BLOCKS) {
        trial_fail(t, "the result is right, but only %d blocks fit on a multiprocessor, not %d",
                   blocks, BLOCKS);
    }
}

static void must(struct trial *t, cudaError_t error, const char *what) {
    if (error != cudaSuccess) {
        trial_fail(t, "%s: %s", what, cudaGetErrorString(error));
    }
}

/* Records what the learner does on stream a as a graph; stream b is part of it only by an event. */
static cudaGraph_t record_streams(struct trial *t, float *d_x, int n, cudaStream_t a,
                                  cudaStream_t b) {
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    must(t, cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed), "recording");
    w18_streams(d_x, n, a, b);
    must(t, cudaStreamIsCapturing(b, &status), "recording");
    if (status == cudaStreamCaptureStatusNone) {
        trial_fail(t, "stream b does not wait for what is on stream a");
    }
    cudaError_t error = cudaStreamEndCapture(a, &graph);
    if (error == cudaErrorStreamCaptureUnjoined) {
        trial_fail(t, "stream a does not wait for the work on stream b");
    }
    must(t, error, "recording");
    return graph;
}

void try_w18_streams(struct trial *t) {
    enum { N = 1024 };
    cudaStream_t a, b;
    cudaGraphExec_t executable;
    size_t nodes = 0, roots = 0;
    struct vectors v = vectors_create(t, N, 1);
    double *want = trial_host(t, N, sizeof *want);
    for (int i = 0; i < N; i++) {
        want[i] = (float)(v.x[i] + (float)i);
    }
    must(t, cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), "a stream");
    must(t, cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), "a stream");
    cudaGraph_t graph = record_streams(t, v.d_x, N, a, b);
    must(t, cudaGraphGetNodes(graph, NULL, &nodes), "the graph");
    must(t, cudaGraphGetRootNodes(graph, NULL, &roots), "the graph");
    if (nodes != 2 || roots != 2) {
        trial_fail(t,
                   "two kernels should not wait for each other; there are %zu, of which %zu wait",
                   nodes, nodes - roots);
    }
    must(t, cudaGraphInstantiateWithFlags(&executable, graph, 0), "the graph");
    must(t, cudaGraphLaunch(executable, a), "the launch");
    must(t, cudaStreamSynchronize(a), "the kernels");
    trial_expect(t, "x", v.d_x, want, N, 0, 0.0);
}

/* On a GPU: what the stream is busy with when the learner's function is called. */
static enum status keep_busy(struct trial *t, void **d_scratch, struct error *error) {
    const size_t bytes = (size_t)64 << 20;
    if (t->counts) {
        return STATUS_OK;
    }
    TRY(device_alloc(d_scratch, bytes, error));
    for (int i = 0; i < 16; i++) {
        TRY(device_set(*d_scratch, i, bytes, NULL, error));
    }
    return STATUS_OK;
}

/* From before the launch to after it, by the stream's clock. */
static double time_whole(struct trial *t, const struct vectors *v, int steps, float *told) {
    device_event start, stop;
    double ms = 0.0;
    void *d_scratch = NULL;
    struct error error = {0};
    bool good = keep_busy(t, &d_scratch, &error) == STATUS_OK &&
                device_event_create(&start, &error) == STATUS_OK &&
                device_event_create(&stop, &error) == STATUS_OK &&
                device_event_record(start, NULL, &error) == STATUS_OK;
    *told = w19_events(v->d_y, v->d_x, steps);
    good = good && device_event_record(stop, NULL, &error) == STATUS_OK &&
           device_event_elapsed(start, stop, &ms, &error) == STATUS_OK;
    if (!good) {
        trial_fail(t, "%s", error.message);
    }
    device_free(d_scratch);
    return ms;
}

/* Of a short and of a long kernel: one number for both is wrong once. */
static void try_steps(struct trial *t, const struct vectors *v, int n, int steps) {
    float told = 0.0f;
    for (int i = 0; i < n; i++) {
        float value = v->x[i];
        for (int k = 0; k < steps; k++) {
            value = fmaf(value, 0.999f, 0.001f);
        }
        v->want[i] = value;
    }
    time_whole(t, v, steps, &told); /* the first launch also loads the code */
    double ms = time_whole(t, v, steps, &told);
    trial_expect(t, "y", v->d_y, v->want, (size_t)n, 0, 1e-5);
    if (!(told >= 0.5 * ms && told <= 1.01 * ms)) {
        trial_fail(t, "%d steps: you say %.4f ms; the GPU was busy with them for %s%.4f ms", steps,
                   told, t->counts ? "a modelled " : "", ms);
    }
}

void try_w19_events(struct trial *t) {
    enum { N = 256 };
    struct vectors v = vectors_create(t, N, N);
    try_steps(t, &v, N, 20000);
    try_steps(t, &v, N, 5000);
}

void try_w20_template_launch(struct trial *t) {
    enum { N = 200, WIDEST = 64 };
    static const char *const names[] = {"width 16: y", "width 32: y", "width 64: y"};
    struct vectors v = vectors_create(t, N * WIDEST, N);
    for (int k = 0; k < 3; k++) {
        int width = 16 << k;
        float *d_y = trial_output(t, N);
        for (int i = 0; i < N; i++) {
            v.want[i] = 0.0;
            for (int j = 0; j < width; j++) {
                v.want[i] += v.x[i * width + j];
            }
        }
        w20_template_launch(d_y, v.d_x, N, width);
        trial_expect(t, names[k], d_y, v.want, N, 0, 1e-4);
    }
}

void try_w21_inline_ptx(struct trial *t) {
    enum { N = 300 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        v.want[i] = exp2(v.x[i]);
    }
    w21_inline_ptx(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-5);
}

/*
 * Not 0: what cudaFuncGetAttributes() tells in place of the truth. The linker sends the exercise's
 * call here (--wrap), which has no context of ours.
 */
static int pretended_version;

cudaError_t __real_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                         const void *function);
cudaError_t __wrap_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                         const void *function);

cudaError_t __wrap_cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                         const void *function) {
    cudaError_t error = __real_cudaFuncGetAttributes(attributes, function);
    if (error == cudaSuccess && pretended_version != 0) {
        attributes->ptxVersion = pretended_version;
    }
    return error;
}

void try_w22_code_version(struct trial *t) {
    struct error error = {0};
    int seen = 0;
    int *d_seen = trial_integers(t, 1, 0);
    int told = w22_code_version(d_seen);
    trial_wait(t);
    if (device_read(&seen, d_seen, sizeof seen, NULL, &error) != STATUS_OK) {
        trial_fail(t, "%s", error.message);
    }
    if (told != seen || seen == 0) {
        trial_fail(t, "you say %d; the code that ran was compiled for %d", told, seen);
    }
    pretended_version = seen + 1;
    told = w22_code_version(d_seen);
    trial_wait(t);
    if (told != pretended_version) {
        trial_fail(t, "you say %d also when cudaFuncGetAttributes() tells a ptxVersion of %d", told,
                   pretended_version);
    }
}

void try_w23_cp_async(struct trial *t) {
    enum { N = 1024, THREADS = 128, GROUP = 4 };
    struct vectors v = vectors_create(t, N, N);
    for (int i = 0; i < N; i++) {
        int group = i / GROUP, opposite = group / THREADS * THREADS + THREADS - 1 - group % THREADS;
        v.want[i] = v.x[i] + v.x[opposite * GROUP + i % GROUP];
    }
    w23_cp_async(v.d_y, v.d_x, N);
    trial_expect(t, "y", v.d_y, v.want, N, 0, 1e-6);
}

/* A whole number from -4 to 3 in fp16. */
static uint16_t half_of(int value) {
    static const uint16_t halves[5] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    return value < 0 ? 0x8000 | halves[-value] : halves[value];
}

enum { MMA_N = 8, MMA_K = 16, MMA_MOST_M = 64 };

/* C (M, 8) = A (M, 16) B (8, 16)^T of small whole numbers, exact in fp16. */
static void try_product(struct trial *t, int M,
                        void product(float *d_C, const uint16_t *d_A, const uint16_t *d_B)) {
    int a[MMA_MOST_M * MMA_K], b[MMA_N * MMA_K];
    uint16_t A[MMA_MOST_M * MMA_K], B[MMA_N * MMA_K];
    double want[MMA_MOST_M * MMA_N] = {0};
    float *d_C = trial_output(t, (size_t)(M * MMA_N));
    for (int i = 0; i < M * MMA_K; i++) {
        a[i] = (int)rng_below(&t->rng, 8) - 4;
        A[i] = half_of(a[i]);
    }
    for (int i = 0; i < MMA_N * MMA_K; i++) {
        b[i] = (int)rng_below(&t->rng, 8) - 4;
        B[i] = half_of(b[i]);
    }
    for (int i = 0; i < M * MMA_N * MMA_K; i++) {
        int m = i / (MMA_N * MMA_K), n = i / MMA_K % MMA_N, k = i % MMA_K;
        want[m * MMA_N + n] += a[m * MMA_K + k] * b[n * MMA_K + k];
    }
    product(d_C, trial_put(t, A, (size_t)(M * MMA_K) * sizeof *A), trial_put(t, B, sizeof B));
    trial_expect(t, "C", d_C, want, (size_t)(M * MMA_N), MMA_N, 0.0);
}

void try_w24_one_mma(struct trial *t) {
    try_product(t, 16, w24_one_mma);
}

void try_w28_one_wgmma(struct trial *t) {
    try_product(t, 64, w28_one_wgmma);
}

void try_w25_ldmatrix(struct trial *t) {
    enum { LANES = 32, REGISTERS = 4, ROW = 16 };
    uint16_t A[ROW * ROW];
    int want[LANES * REGISTERS];
    int *d_y = trial_integers(t, LANES * REGISTERS, -1);
    for (int i = 0; i < ROW * ROW; i++) {
        A[i] = (uint16_t)rng_below(&t->rng, 1 << 15);
    }
    for (int i = 0; i < LANES * REGISTERS; i++) {
        int lane = i / REGISTERS, matrix = i % REGISTERS;
        const uint16_t *pair =
            &A[ROW * (lane / 4 + matrix % 2 * 8) + lane % 4 * 2 + matrix / 2 * 8];
        want[i] = pair[0] | pair[1] << 16;
    }
    w25_ldmatrix(d_y, trial_put(t, A, sizeof A));
    trial_expect_integers(t, "y", d_y, want, LANES * REGISTERS);
}

void try_w26_swizzle(struct trial *t) {
    enum { ROWS = 32, PIECES = 8, FLOATS = 4, COUNT = ROWS * PIECES * FLOATS };
    struct simt_counters c;
    struct vectors v = vectors_create(t, COUNT, COUNT);
    for (int i = 0; i < COUNT; i++) {
        int row = i / FLOATS / PIECES, piece = i / FLOATS % PIECES;
        v.want[(piece * ROWS + row) * FLOATS + i % FLOATS] = v.x[i];
    }
    trial_count(t);
    w26_swizzle(v.d_y, v.d_x);
    trial_expect(t, "y", v.d_y, v.want, COUNT, ROWS * FLOATS, 0.0);
    if (trial_counted(t, &c) && c.shared_bank_conflicts > 0) {
        trial_fail(t, "the result is right, but there are %d bank conflicts; 0 would do",
                   (int)c.shared_bank_conflicts);
    }
}

void try_w27_tma_box(struct trial *t) {
    enum { ROWS = 40, COLUMNS = 96, BOX_ROWS = 16, BOX_COLUMNS = 64, ROW = 30, COLUMN = 64 };
    uint16_t matrix[ROWS * COLUMNS];
    int want[BOX_ROWS * BOX_COLUMNS];
    int *d_y = trial_integers(t, BOX_ROWS * BOX_COLUMNS, -1);
    CUtensorMap map;
    struct error error = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        matrix[i] = (uint16_t)(1 + rng_below(&t->rng, 60000));
    }
    for (int i = 0; i < BOX_ROWS * BOX_COLUMNS; i++) {
        int row = ROW + i / BOX_COLUMNS, column = COLUMN + i % BOX_COLUMNS;
        want[i] = row < ROWS && column < COLUMNS ? matrix[row * COLUMNS + column] : 0;
    }
    const struct tensor_map_matrix m = {.dtype = NN_BF16,
                                        .data = trial_put(t, matrix, sizeof matrix),
                                        .rows = ROWS,
                                        .columns = COLUMNS,
                                        .box_rows = BOX_ROWS,
                                        .box_columns = BOX_COLUMNS};
    if (tensor_map_create(&map, &m, &error) != STATUS_OK) {
        trial_fail(t, "%s", error.message);
    }
    w27_tma_box(d_y, &map, ROW, COLUMN);
    trial_expect_integers(t, "y", d_y, want, BOX_ROWS * BOX_COLUMNS);
}
