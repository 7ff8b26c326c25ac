/* A kernel's fault ends all work on the device, so this test is a program of its own. */
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "common/device/testdata/test_kernels.h"
#include "common/testing/testing.h"

C_TEST(fault, arrives_at_synchronize) {
    struct error error = {0};
    void *x = NULL;
    if (device_open(&error) != STATUS_OK) {
        TEST_SKIP("%s", error.message);
    }
    ASSERT_OK(device_alloc(&x, 1024, NULL));
    /* A GPU allocates in larger pieces, so write far beyond the end, to fault there, too. */
    test_add((float *)x + ((size_t)1 << 38), 1.0f, 1, 32, NULL);
    EXPECT_OK(device_launched("add", NULL));
    EXPECT_STATUS(STATUS_DEVICE, device_synchronize(NULL, &error));
    printf("%s\n", error.message);
    EXPECT_TRUE(strstr(error.message, "waiting for the GPU: an illegal memory access") != NULL);
    EXPECT_TRUE(strstr(error.message, "a kernel launched before this did it") != NULL);
    /* The error persists. */
    void *more = NULL;
    EXPECT_ERROR_CONTAINS(STATUS_DEVICE, "illegal memory access", device_alloc(&more, 16, &error));
    device_free(x);
}
