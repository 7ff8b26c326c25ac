/* The emulated GPU as a process, without a worker: what its controller may do, and how it ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "common/simt/simt.h"
#include "common/testing/fixture.h"
#include "common/testing/testing.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/simt_device.h"

const struct remote_program remote_program = {{"device_test_worker", NULL}, REMOTE_GPU, NULL};

struct started {
    struct simt_device device;
    int program; /* the worker's end of its socket */
};

static bool start(struct started *s) {
    struct surroundings surroundings;
    struct sandbox_limits limits = sandbox_default_limits();
    struct error error = {0};
    limits.memory_bytes = (size_t)2 << 30;
    limits.resident = true;
    limits.wall_s = limits.cpu_s = 600.0;
    enum status status = surroundings_find(&surroundings, REMOTE_SUBJECT, &error);
    if (status == STATUS_OK) {
        status = simt_device_start(&s->device, &surroundings, &limits, &s->program, &error);
    }
    return status == STATUS_OK;
}

static void end(struct started *s, enum sandbox_end *how) {
    struct sandbox_result *result = calloc(1, sizeof *result);
    if (s->device.sandbox != NULL && result != NULL) {
        simt_device_end(&s->device, result);
        *how = result->end;
        close(s->program);
    }
    free(result);
}

static void end_any(struct started *s) {
    enum sandbox_end how;
    end(s, &how);
}

#define DEVICE_TEST(name) FIXTURE_TEST(simt_device, name, struct started, s, start(s), end_any(s))

DEVICE_TEST(works_for_its_controller) {
    enum { BYTES = 1 << 20 };
    struct simt_reading reading = {.nanoseconds = -1.0};
    char *sent = malloc(BYTES), *got = calloc(1, BYTES);
    void *memory = NULL;
    ASSERT_TRUE(sent != NULL && got != NULL);
    memset(sent, 7, BYTES);
    EXPECT_INT_EQ(cudaSuccess, cudaMalloc(&memory, BYTES));
    EXPECT_INT_EQ(cudaSuccess, cudaMemcpyAsync(memory, sent, BYTES, cudaMemcpyHostToDevice, NULL));
    EXPECT_INT_EQ(cudaSuccess, cudaMemcpyAsync(got, memory, BYTES, cudaMemcpyDeviceToHost, NULL));
    EXPECT_INT_EQ(0, memcmp(sent, got, BYTES));
    EXPECT_INT_EQ(cudaErrorInvalidValue,
                  cudaMemcpyAsync(memory, sent, BYTES + 1, cudaMemcpyHostToDevice, NULL));
    ASSERT_TRUE(simt_device_read(&s->device, &reading));
    EXPECT_TRUE(reading.nanoseconds == 0.0); /* no program has done anything */
    enum { FEW = 64 };                       /* bytes that travel with the question */
    EXPECT_INT_EQ(cudaSuccess, cudaMemcpy(memory, sent, FEW, cudaMemcpyHostToDevice));
    reading.nanoseconds = -1.0;
    ASSERT_TRUE(simt_device_read(&s->device, &reading));
    EXPECT_TRUE(reading.nanoseconds == 0.0);
    EXPECT_INT_EQ(0, reading.calls);
    EXPECT_INT_EQ(0, reading.faults);
    free(sent);
    free(got);
}

DEVICE_TEST(ends_with_its_controller) {
    enum sandbox_end how = SANDBOX_COULD_NOT_START;
    end(s, &how);
    EXPECT_INT_EQ(SANDBOX_EXITED, how);
}

/* That a program ends, however it does, is not something that it asks for. */
DEVICE_TEST(goes_on_without_its_program) {
    struct simt_reading reading;
    ASSERT_TRUE(shutdown(s->program, SHUT_RDWR) == 0);
    EXPECT_TRUE(simt_device_read(&s->device, &reading));
    EXPECT_INT_EQ(0, reading.calls);
}

DEVICE_TEST(counts_what_its_program_sends) {
    struct simt_reading reading;
    ASSERT_TRUE(send(s->program, "nonsense", 8, MSG_NOSIGNAL) == 8);
    ASSERT_TRUE(shutdown(s->program, SHUT_RDWR) == 0);
    EXPECT_TRUE(simt_device_read(&s->device, &reading));
    EXPECT_INT_EQ(1, reading.calls);
}

DEVICE_TEST(is_missed_when_it_has_died) {
    struct simt_reading reading;
    void *memory = NULL;
    sandbox_stop(s->device.sandbox);
    EXPECT_TRUE(sandbox_wait(s->device.sandbox, 60.0));
    EXPECT_TRUE(!simt_device_read(&s->device, &reading));
    EXPECT_INT_EQ(cudaErrorDevicesUnavailable, cudaMalloc(&memory, 4));
}

/* ---- Several GPUs ---- */

enum { SET_BYTES = 1 << 20 };

static bool start_two(struct started *s) {
    setenv("SIMT_DEVICES", "2", 1);
    bool started = start(s);
    unsetenv("SIMT_DEVICES");
    return started;
}

/* As the program, which has a connection of its own: sets memory of a GPU, and does not wait. */
static bool set_as_program(struct started *s, int device) {
    static void *memory[2];
    return s->device.control.attach(s->program, 60.0) && cudaSetDevice(device) == cudaSuccess &&
           (memory[device] != NULL || cudaMalloc(&memory[device], SET_BYTES) == cudaSuccess) &&
           cudaMemsetAsync(memory[device], 0, SET_BYTES, NULL) == cudaSuccess;
}

/* Nanoseconds that the grader's clock says of a set. */
static double time_of_set(struct started *s, int device) {
    struct simt_reading before = {0}, behind = {0};
    bool good = simt_device_read(&s->device, &before) && set_as_program(s, device) &&
                simt_device_read(&s->device, &behind);
    EXPECT_TRUE(good);
    return behind.nanoseconds - before.nanoseconds;
}

/* A GPU that has done less than another one is behind in its own clock. What it does between two
   readings takes as long as elsewhere: what another GPU did before does not hide it. */
FIXTURE_TEST(simt_device, clocks_meet_at_each_reading, struct started, s, start_two(s),
             end_any(s)) {
    enum { AHEAD = 8 };
    double first = time_of_set(s, 0);
    EXPECT_TRUE(first > 0.0);
    for (int i = 1; i < AHEAD; i++) {
        EXPECT_NEAR(first, time_of_set(s, 0), 1e-3);
    }
    EXPECT_NEAR(first, time_of_set(s, 1), 1e-3);
    EXPECT_NEAR(first, time_of_set(s, 0), 1e-3);
    EXPECT_NEAR(first, time_of_set(s, 1), 1e-3);
}
