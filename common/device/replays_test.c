/* Recorded work: right whatever the contents of memory, bounded, and nothing for what comes once.
 */
#include "common/device/replays.h"

#include <cuda_runtime_api.h>

#include "common/device/testdata/test_kernels.h"
#include "common/testing/testing.h"

enum { COUNT = 64, MOST = 2 };

static struct replays *replays;
static float *x; /* device, (COUNT) */
static device_stream stream;

/* Adds *argument to x; a negative one fails after its launch. */
static enum status add(const void *argument, device_stream on, struct error *error) {
    const float *value = argument;
    test_add(x, *value < 0.0f ? -*value : *value, COUNT, 32, on);
    TRY(device_launched("test_add", error));
    return *value < 0.0f ? error_set(error, STATUS_INVALID_ARGUMENT, "as asked") : STATUS_OK;
}

static enum status run(char key, float value, struct error *error) {
    return replays_run(replays, &key, 1, add, &value, stream, error);
}

static float first(void) {
    float value = -1.0f;
    EXPECT_OK(device_read(&value, x, sizeof value, stream, NULL));
    return value;
}

static void expect_counts(size_t recorded, size_t launched, size_t kept) {
    const struct replay_counts counts = replays_counts(replays);
    EXPECT_INT_EQ(recorded, counts.recorded);
    EXPECT_INT_EQ(launched, counts.launched);
    EXPECT_INT_EQ(kept, counts.kept);
}

static void begin(struct error *error) {
    if (device_open(error) != STATUS_OK) {
        TEST_STOP("%s", error->message);
    }
    EXPECT_OK(device_stream_create(&stream, error));
    EXPECT_OK(device_alloc((void **)&x, COUNT * sizeof *x, error));
    EXPECT_OK(device_set(x, 0, COUNT * sizeof *x, stream, error));
    EXPECT_OK(replays_create(&replays, MOST, error));
}

static void end(void) {
    EXPECT_OK(device_synchronize(stream, NULL));
    replays_free(replays);
    device_free(x);
    device_stream_destroy(stream);
}

C_TEST(replays, records_what_comes_again) {
    struct error error = {0};
    begin(&error);
    EXPECT_OK(run('a', 1.0f, &error));
    expect_counts(0, 0, 0);
    EXPECT_OK(run('a', 1.0f, &error));
    expect_counts(1, 1, 1);
    EXPECT_OK(run('a', 1.0f, &error));
    expect_counts(1, 2, 1);
    EXPECT_NEAR(3.0, first(), 0.0);
    EXPECT_OK(run('b', 10.0f, &error));
    expect_counts(1, 2, 1);
    EXPECT_NEAR(13.0, first(), 0.0);
    end();
}

C_TEST(replays, forgets_what_was_used_longest_ago) {
    struct error error = {0};
    begin(&error);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(run('a', 1.0f, &error));
        EXPECT_OK(run('b', 10.0f, &error));
    }
    EXPECT_OK(run('a', 1.0f, &error)); /* b is the oldest now */
    EXPECT_OK(run('c', 100.0f, &error));
    expect_counts(2, 3, 1);
    EXPECT_OK(run('a', 1.0f, &error));
    expect_counts(2, 4, 1);
    EXPECT_OK(run('b', 10.0f, &error)); /* as if for the first time; c makes room */
    expect_counts(2, 4, 1);
    EXPECT_NEAR(4 * 1.0 + 3 * 10.0 + 100.0, first(), 0.0);
    end();
}

C_TEST(replays, tells_keys_apart_by_all_their_bytes) {
    struct error error = {0};
    const float one = 1.0f, ten = 10.0f;
    begin(&error);
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(replays_run(replays, "ab", 2, add, &one, stream, &error));
        EXPECT_OK(replays_run(replays, "abc", 3, add, &ten, stream, &error));
    }
    expect_counts(2, 2, 2);
    EXPECT_NEAR(22.0, first(), 0.0);
    end();
}

C_TEST(replays, goes_on_after_work_that_fails) {
    struct error error = {0};
    begin(&error);
    EXPECT_OK(run('a', 1.0f, &error));
    EXPECT_STATUS(STATUS_INVALID_ARGUMENT, run('a', -1.0f, &error)); /* while it is recorded */
    EXPECT_STR_EQ("as asked", error.message);
    EXPECT_NEAR(1.0, first(), 0.0);
    EXPECT_OK(run('a', 1.0f, &error));
    expect_counts(1, 1, 1);
    EXPECT_NEAR(2.0, first(), 0.0);
    end();
}

C_TEST(replays, adds_to_the_recording_of_its_caller) {
    struct error error = {0};
    cudaGraph_t graph = NULL;
    size_t nodes = 0;
    begin(&error);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(run('a', 1.0f, &error));
    }
    EXPECT_INT_EQ(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    EXPECT_OK(run('a', 1.0f, &error));
    EXPECT_INT_EQ(cudaSuccess, cudaStreamEndCapture(stream, &graph));
    EXPECT_INT_EQ(cudaSuccess, cudaGraphGetNodes(graph, NULL, &nodes));
    EXPECT_INT_EQ(1, nodes);
    EXPECT_NEAR(3.0, first(), 0.0);
    EXPECT_INT_EQ(cudaSuccess, cudaGraphDestroy(graph));
    end();
}
