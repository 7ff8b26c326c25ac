/* Profiles of known launches, on simt or on a GPU, whichever the program is linked with. */
#include "common/bench/device/kernel_profile.h"

#include <string.h>

#include "common/bench/device/device_kernels.h"
#include "common/testing/testing.h"

enum { SMALL = 1 << 12, LARGE = 1 << 20 };

struct work {
    void *memory;
    bool kernels, fails;
};

/* Of two kernels the second is the longer one. */
static enum status do_work(void *argument, device_stream stream, struct error *error) {
    const struct work *w = argument;
    if (w->kernels) {
        TRY(device_sweep(w->memory, SMALL, stream, error));
        TRY(device_sweep(w->memory, LARGE, stream, error));
    }
    TRY(device_set(w->memory, 1, SMALL, stream, error));
    return w->fails ? error_set(error, STATUS_UNSUPPORTED, "no more") : STATUS_OK;
}

static void setup(struct work *w) {
    struct error error = {0};
    *w = (struct work){.kernels = true};
    ASSERT_OK(device_open(&error));
    ASSERT_OK(device_alloc(&w->memory, LARGE, &error));
}

C_TEST(kernel_profile, tells_the_longest_kernel) {
    struct work w;
    struct simt_profile p;
    setup(&w);
    ASSERT_TRUE(kernel_profile(do_work, &w, &p));
    EXPECT_STR_CONTAINS("sweep", p.kernel);
    EXPECT_INT_EQ(LARGE / 16, p.blocks * p.block[0]);
    EXPECT_TRUE(p.processors > 0 && p.busy > 0 && p.busy <= p.processors);
    EXPECT_TRUE(p.registers > 0 && p.warps > 0 && p.warps <= p.most_warps);
    device_free(w.memory);
}

/* What the runtime tells is what simt's own model has. */
C_TEST(kernel_profile, recording_tells_the_same_occupancy) {
    struct work w;
    struct simt_profile ran, recorded;
    setup(&w);
    ASSERT_TRUE(kernel_profile(do_work, &w, &ran));
    ASSERT_TRUE(kernel_profile_recorded(do_work, &w, &recorded));
    EXPECT_STR_EQ(ran.kernel, recorded.kernel);
    EXPECT_INT_EQ(0, memcmp(ran.grid, recorded.grid, sizeof ran.grid));
    EXPECT_INT_EQ(0, memcmp(ran.block, recorded.block, sizeof ran.block));
    EXPECT_INT_EQ(ran.registers, recorded.registers);
    EXPECT_INT_EQ(ran.processors, recorded.processors);
    EXPECT_INT_EQ(ran.busy, recorded.busy);
    EXPECT_INT_EQ(ran.warps, recorded.warps);
    EXPECT_INT_EQ(ran.most_warps, recorded.most_warps);
    EXPECT_INT_EQ(ran.limit, recorded.limit);
    EXPECT_INT_EQ(SIMT_UNIT_UNKNOWN, recorded.unit);
    EXPECT_TRUE(!recorded.modelled);
    device_free(w.memory);
}

C_TEST(kernel_profile, calls_without_a_kernel_have_none) {
    struct work w;
    struct simt_profile p;
    setup(&w);
    w.kernels = false;
    EXPECT_TRUE(!kernel_profile(do_work, &w, &p));
    EXPECT_TRUE(!kernel_profile_recorded(do_work, &w, &p));
    w.kernels = w.fails = true;
    EXPECT_TRUE(!kernel_profile(do_work, &w, &p));
    EXPECT_TRUE(!kernel_profile_recorded(do_work, &w, &p));
    w.fails = false;
    EXPECT_TRUE(kernel_profile(do_work, &w, &p)); /* no failure stays behind */
    device_free(w.memory);
}
