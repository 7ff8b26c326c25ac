/* Records and times work on simt or on a GPU, whichever the program is linked with. */
#include "common/bench/device/kernel_times.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "common/bench/device/device_kernels.h"
#include "common/bench/device/kernel_times_cluster.h"
#include "common/testing/testing.h"

enum { BYTES = 1 << 10, MOST = 16 };

/* The reports of kernel_times_end(). */
struct log {
    char names[MOST][64];
    double ms[MOST];
    int count;
};

static void note(void *observer, const char *name, double ms) {
    struct log *log = observer;
    if (log->count < MOST) {
        snprintf(log->names[log->count], sizeof log->names[0], "%s", name);
        log->ms[log->count++] = ms;
    }
}

struct setup {
    struct kernel_times *times;
    device_stream stream;
    char *memory;
    struct log log;
};

static void setup(struct setup *s) {
    struct error error = {0};
    void *memory = NULL;
    *s = (struct setup){.times = NULL};
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_stream_create(&s->stream, &error));
    ASSERT_OK(device_alloc(&memory, BYTES, &error));
    ASSERT_OK(device_set(memory, 1, BYTES, s->stream, &error));
    ASSERT_OK(device_synchronize(s->stream, &error));
    ASSERT_OK(kernel_times_create(&s->times, s->stream, &error));
    s->memory = memory;
}

static void teardown(struct setup *s) {
    kernel_times_free(s->times);
    device_free(s->memory);
    device_stream_destroy(s->stream);
}

static int byte_at(struct setup *s, size_t at) {
    unsigned char byte = 0xee;
    struct error error = {0};
    EXPECT_OK(device_read(&byte, s->memory + at, 1, s->stream, &error));
    return byte;
}

/* Fills with 7, copies the first half on the second, then sweeps the first. */
static enum status put_work(struct setup *s, struct error *error) {
    TRY(device_set(s->memory, 7, BYTES / 2, s->stream, error));
    TRY(device_copy(s->memory + BYTES / 2, s->memory, BYTES / 2, s->stream, error));
    return device_sweep(s->memory, BYTES / 2, s->stream, error);
}

C_TEST(kernel_times, report_every_node_in_order_and_run_it_once) {
    struct setup s;
    struct error error = {0};
    setup(&s);
    ASSERT_OK(kernel_times_begin(s.times, &error));
    enum status called = put_work(&s, &error);
    EXPECT_OK(kernel_times_end(s.times, called, note, &s.log, &error));
    EXPECT_INT_EQ(3, s.log.count);
    EXPECT_STR_EQ("fill", s.log.names[0]);
    EXPECT_STR_EQ("copy on the device", s.log.names[1]);
    EXPECT_STR_EQ("sweep", s.log.names[2]);
    for (int i = 0; i < s.log.count; i++) {
        EXPECT_TRUE(s.log.ms[i] > 0.0 && s.log.ms[i] < 1000.0);
    }
    EXPECT_INT_EQ(0, byte_at(&s, 0));
    EXPECT_INT_EQ(7, byte_at(&s, BYTES / 2));
    EXPECT_INT_EQ(7, byte_at(&s, BYTES - 1));
    teardown(&s);
}

C_TEST(kernel_times, larger_work_takes_longer) {
    enum { LARGE = 64 << 20 };
    struct setup s;
    struct error error = {0};
    void *large = NULL;
    setup(&s);
    ASSERT_OK(device_alloc(&large, LARGE, &error));
    ASSERT_OK(kernel_times_begin(s.times, &error));
    enum status called = device_set(large, 0, LARGE, s.stream, &error);
    EXPECT_OK(called);
    called = device_set(s.memory, 0, BYTES, s.stream, &error);
    EXPECT_OK(kernel_times_end(s.times, called, note, &s.log, &error));
    EXPECT_INT_EQ(2, s.log.count);
    EXPECT_TRUE(s.log.ms[0] > s.log.ms[1]);
    device_free(large);
    teardown(&s);
}

/* A kernel of clusters that is launched without them reads shared memory that is not there. */
C_TEST(kernel_times, keep_clusters) {
    struct setup s;
    struct error error = {0};
    struct device_properties gpu;
    setup(&s);
    ASSERT_OK(device_properties(&gpu, &error));
    if (gpu.major < 9) {
        teardown(&s);
        TEST_SKIP("clusters need compute capability 9.0");
    }
    ASSERT_OK(kernel_times_begin(s.times, &error));
    enum status called = write_cluster_blocks_of((unsigned *)(void *)s.memory, 4, s.stream, &error);
    EXPECT_OK(kernel_times_end(s.times, called, note, &s.log, &error));
    EXPECT_INT_EQ(1, s.log.count);
    EXPECT_INT_EQ(4, byte_at(&s, 0));
    teardown(&s);
}

/* CUDA refuses a graph launch while it records; launched by itself the graph works. */
C_TEST(kernel_times, refuse_a_graph) {
    struct setup s;
    struct error error = {0};
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    setup(&s);
    ASSERT_TRUE(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    EXPECT_OK(put_work(&s, &error));
    ASSERT_TRUE(cudaStreamEndCapture(s.stream, &graph) == cudaSuccess);
    ASSERT_TRUE(cudaGraphInstantiate(&ready, graph, 0) == cudaSuccess);
    ASSERT_OK(kernel_times_begin(s.times, &error));
    EXPECT_TRUE(cudaGraphLaunch(ready, s.stream) != cudaSuccess);
    EXPECT_STATUS(STATUS_UNSUPPORTED,
                  kernel_times_end(s.times, STATUS_DEVICE, note, &s.log, &error));
    EXPECT_INT_EQ(0, s.log.count);
    EXPECT_TRUE(cudaGraphLaunch(ready, s.stream) == cudaSuccess);
    EXPECT_INT_EQ(7, byte_at(&s, BYTES - 1));
    EXPECT_TRUE(cudaGraphExecDestroy(ready) == cudaSuccess);
    EXPECT_TRUE(cudaGraphDestroy(graph) == cudaSuccess);
    teardown(&s);
}

/* A call that waits for the stream cannot be recorded: nothing runs, and the caller gets an error.
 */
C_TEST(kernel_times, refuse_calls_that_wait) {
    struct setup s;
    struct error error = {0};
    double ms = -1.0;
    setup(&s);
    ASSERT_OK(kernel_times_begin(s.times, &error));
    enum status called = device_write(s.memory, "x", 1, s.stream, &error);
    EXPECT_TRUE(called != STATUS_OK);
    EXPECT_STATUS(STATUS_UNSUPPORTED, kernel_times_end(s.times, called, note, &s.log, &error));
    EXPECT_INT_EQ(0, s.log.count);
    EXPECT_INT_EQ(1, byte_at(&s, 0));
    ASSERT_OK(kernel_times_start(s.times, &error));
    ASSERT_OK(device_write(s.memory, "x", 1, s.stream, &error));
    EXPECT_OK(kernel_times_stop(s.times, &ms, &error));
    EXPECT_TRUE(ms > 0.0 && ms < 1000.0);
    EXPECT_INT_EQ('x', byte_at(&s, 0));
    teardown(&s);
}

C_TEST(kernel_times, a_call_that_fails_does_not_run) {
    struct setup s;
    struct error error = {0};
    setup(&s);
    ASSERT_OK(kernel_times_begin(s.times, &error));
    EXPECT_OK(put_work(&s, &error));
    EXPECT_STATUS(STATUS_UNSUPPORTED,
                  kernel_times_end(s.times, STATUS_INVALID_ARGUMENT, note, &s.log, &error));
    EXPECT_INT_EQ(0, s.log.count);
    EXPECT_INT_EQ(1, byte_at(&s, 0));
    kernel_times_free(NULL);
    teardown(&s);
}
