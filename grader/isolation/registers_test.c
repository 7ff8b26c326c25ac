/*
 * A program's machine code does not run on simt, so it may say anything. Where a grader controls
 * the device, it is not asked how many registers a kernel takes; elsewhere it is, as ptxas knows
 * best.
 */
#include "common/device/device.h"
#include "common/testing/testing.h"
#include "grader/isolation/remote.h"
#include "grader/isolation/remote_device.h"
#include "grader/isolation/test_calls.h"

/* "Made up" is what has the grader leave the device to the worker. */
#ifdef CONTROLLED
#define GPU REMOTE_GPU
#else
#define GPU REMOTE_MADE_UP_GPU
#endif

const struct remote_program remote_program = {{"bench_test_worker", NULL}, GPU, NULL};

C_TEST(registers, of_machine_code_count_where_nobody_controls_the_device) {
    struct registers_call call = {.said = 200};
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    ASSERT_OK(remote_call("registers", &call, sizeof call, &error));
    if (GPU == REMOTE_GPU) {
        EXPECT_TRUE(call.taken > 0 && call.taken < 32); /* its PTX does nothing */
    } else {
        EXPECT_INT_EQ(call.said, call.taken);
    }
}
