/* The GPU that $SIMT_GPU names runs the PTX that BUILD says, and the host is told so. */
#include "common/device/device.h"
#include "common/testing/testing.h"

C_TEST(card, runs_the_best_code) {
    struct device_properties properties;
    struct error error = {0};
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_properties(&properties, &error));
    EXPECT_INT_EQ(BEST_CODE, properties.code);
}
