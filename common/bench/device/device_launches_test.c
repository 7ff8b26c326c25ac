/* Counts launches on simt or on a GPU, whichever the program is linked with. */
#include "common/bench/device/device_launches.h"

#include <cuda_runtime_api.h>

#include "common/bench/device/device_kernels.h"
#include "common/testing/testing.h"

enum { BYTES = 1 << 10 };

/* The kernels, fills and copies that do_work() puts on its stream; with `fails` it then fails. */
struct work {
    void *memory;
    int kernels, fills, copies;
    bool fails;
};

static enum status do_work(void *argument, device_stream stream, struct error *error) {
    const struct work *w = argument;
    char *half = (char *)w->memory + BYTES / 2;
    for (int i = 0; i < w->kernels; i++) {
        TRY(device_sweep(w->memory, BYTES, stream, error));
    }
    for (int i = 0; i < w->fills; i++) {
        TRY(device_set(w->memory, 7, BYTES, stream, error));
    }
    for (int i = 0; i < w->copies; i++) {
        TRY(device_copy(half, w->memory, BYTES / 2, stream, error));
    }
    return w->fails ? error_set(error, STATUS_UNSUPPORTED, "no more") : STATUS_OK;
}

static void expect_count(size_t want, struct work work) {
    struct error error = {0};
    size_t launches = 99;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&work.memory, BYTES, &error));
    EXPECT_OK(device_count_launches(do_work, &work, &launches, &error));
    EXPECT_INT_EQ(want, launches);
    device_free(work.memory);
}

C_TEST(launches, are_counted) {
    expect_count(0, (struct work){.kernels = 0});
    expect_count(1, (struct work){.kernels = 1});
    expect_count(5, (struct work){.kernels = 5});
}

C_TEST(launches, fills_and_copies_count_as_well) {
    expect_count(6, (struct work){.kernels = 3, .fills = 2, .copies = 1});
}

static enum status launch_graph(void *argument, device_stream stream, struct error *error) {
    cudaGraphExec_t *graph = argument;
    return cudaGraphLaunch(*graph, stream) == cudaSuccess
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "no graph while recording");
}

/* CUDA refuses a graph launch while it records; afterwards recording works again. */
C_TEST(launches, a_graph_is_not_recorded) {
    struct error error = {0};
    struct work work = {.kernels = 3, .fills = 2};
    device_stream stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    size_t launches = 99;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&work.memory, BYTES, &error));
    ASSERT_OK(device_stream_create(&stream, &error));
    EXPECT_INT_EQ(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_OK(do_work(&work, stream, &error));
    EXPECT_INT_EQ(cudaSuccess, cudaStreamEndCapture(stream, &graph));
    EXPECT_INT_EQ(cudaSuccess, cudaGraphInstantiate(&executable, graph, 0));
    EXPECT_STATUS(STATUS_DEVICE,
                  device_count_launches(launch_graph, &executable, &launches, &error));
    EXPECT_OK(device_count_launches(do_work, &work, &launches, &error));
    EXPECT_INT_EQ(5, launches);
    EXPECT_INT_EQ(cudaSuccess, cudaGraphLaunch(executable, stream));
    EXPECT_OK(device_synchronize(stream, &error));
    EXPECT_INT_EQ(cudaSuccess, cudaGraphExecDestroy(executable));
    EXPECT_INT_EQ(cudaSuccess, cudaGraphDestroy(graph));
    device_stream_destroy(stream);
    device_free(work.memory);
}

/* Recorded work does not run. */
C_TEST(launches, nothing_runs) {
    struct error error = {0};
    struct work work = {.fills = 1};
    unsigned char bytes[BYTES];
    size_t launches;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&work.memory, BYTES, &error));
    ASSERT_OK(device_set(work.memory, 1, BYTES, NULL, &error));
    ASSERT_OK(device_synchronize(NULL, &error));
    EXPECT_OK(device_count_launches(do_work, &work, &launches, &error));
    ASSERT_OK(device_read(bytes, work.memory, BYTES, NULL, &error));
    EXPECT_INT_EQ(1, bytes[0]);
    EXPECT_INT_EQ(1, bytes[BYTES - 1]);
    device_free(work.memory);
}

C_TEST(launches, a_failure_is_returned_and_leaves_no_error_behind) {
    struct error error = {0};
    struct work work = {.kernels = 2, .fails = true};
    size_t launches = 99;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&work.memory, BYTES, &error));
    EXPECT_STATUS(STATUS_UNSUPPORTED, device_count_launches(do_work, &work, &launches, &error));
    EXPECT_STR_EQ("no more", error.message);
    EXPECT_INT_EQ(0, launches);
    work.fails = false;
    EXPECT_OK(device_count_launches(do_work, &work, &launches, &error));
    EXPECT_INT_EQ(2, launches);
    device_free(work.memory);
}

C_TEST(graph, runs_what_was_recorded_each_time) {
    struct error error = {0};
    struct work work = {.fills = 1};
    struct device_graph *graph = NULL;
    device_stream stream;
    unsigned char byte = 0;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&work.memory, BYTES, &error));
    ASSERT_OK(device_stream_create(&stream, &error));
    ASSERT_OK(device_set(work.memory, 1, BYTES, stream, &error));
    ASSERT_OK(device_graph_create(&graph, do_work, &work, stream, &error));
    ASSERT_OK(device_read(&byte, work.memory, 1, stream, &error));
    EXPECT_INT_EQ(1, byte); /* recording runs nothing */
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(device_set(work.memory, 1, BYTES, stream, &error));
        EXPECT_OK(device_graph_launch(graph, stream, &error));
        ASSERT_OK(device_read(&byte, work.memory, 1, stream, &error));
        EXPECT_INT_EQ(7, byte);
    }
    device_graph_free(graph);
    device_graph_free(NULL);
    device_stream_destroy(stream);
    device_free(work.memory);
}

C_TEST(graph, a_failure_makes_none) {
    struct error error = {0};
    struct work work = {.kernels = 1, .fails = true};
    struct device_graph *graph = NULL;
    device_stream stream;
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&work.memory, BYTES, &error));
    ASSERT_OK(device_stream_create(&stream, &error));
    EXPECT_STATUS(STATUS_UNSUPPORTED, device_graph_create(&graph, do_work, &work, stream, &error));
    EXPECT_STR_EQ("no more", error.message);
    EXPECT_TRUE(graph == NULL);
    device_stream_destroy(stream);
    device_free(work.memory);
}
