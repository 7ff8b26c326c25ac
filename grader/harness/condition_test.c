/* Made-up probes of GPUs that are well known, and what is said of them. */
#include "grader/harness/condition.h"

#include "common/testing/testing.h"

static const struct device_properties H200 = {
    .clock_khz = 1980000, .peak_flops = 66.9e12, .memory_bandwidth = 4.8e12};

/* What an idle H200 gives. */
static struct device_limits idle(void) {
    return (struct device_limits){.read = 4.4e12,
                                  .read_spread = 1.01,
                                  .fp32_flops = 63e12,
                                  .flops_spread = 1.01,
                                  .call_ms = 0.006,
                                  .call_spread = 1.2,
                                  .clock_khz = 1980000};
}

static void expect(enum condition_kind kind, const char *text, const struct device_properties *gpu,
                   struct device_limits limits) {
    struct condition c = condition_of(gpu, &limits);
    EXPECT_INT_EQ(kind, c.kind);
    EXPECT_STR_EQ(text, c.text);
}

C_TEST(condition, an_idle_gpu_is_fine) {
    expect(CONDITION_FINE, "", &H200, idle());
}

/* Its memory corrects errors in-band. */
C_TEST(condition, a_card_with_in_band_correction_is_fine) {
    const struct device_properties t4 = {
        .clock_khz = 1590000, .peak_flops = 8.1e12, .memory_bandwidth = 320e9};
    struct device_limits limits = idle();
    limits.read = 240e9;
    limits.fp32_flops = 7.5e12;
    limits.clock_khz = 1500000;
    expect(CONDITION_FINE, "", &t4, limits);
}

/* Consumer cards run above the clock that the driver names. */
C_TEST(condition, a_clock_above_boost_is_fine) {
    const struct device_properties rtx4090 = {
        .clock_khz = 2520000, .peak_flops = 82.6e12, .memory_bandwidth = 1008e9};
    struct device_limits limits = idle();
    limits.read = 930e9;
    limits.fp32_flops = 86e12;
    limits.clock_khz = 2730000;
    expect(CONDITION_FINE, "", &rtx4090, limits);
}

C_TEST(condition, a_power_cap_lowers_the_clock_and_with_it_the_flops) {
    struct device_limits limits = idle();
    limits.clock_khz = 1200000;
    limits.fp32_flops = 38e12;
    expect(CONDITION_THROTTLED,
           "Under load this GPU runs at 1200 of 1980 MHz: it is hot, or its power is capped. You "
           "are graded on what it can do at this clock.",
           &H200, limits);
}

C_TEST(condition, without_a_clock_low_flops_at_full_memory_speed_are_throttled) {
    struct device_limits limits = idle();
    limits.clock_khz = 0.0;
    limits.fp32_flops = 38e12;
    expect(CONDITION_THROTTLED,
           "This GPU gives 57% of the FLOP/s of its data sheet at full memory speed: it is hot, or "
           "its power is capped. You are graded on what it can do now.",
           &H200, limits);
}

C_TEST(condition, low_power_slows_memory_as_well) {
    struct device_limits limits = idle();
    limits.clock_khz = 345000;
    limits.fp32_flops = 11e12;
    limits.read = 0.5e12;
    expect(CONDITION_THROTTLED,
           "This GPU stays in a low power state: under load 345 of 1980 MHz, and 10% of the memory "
           "speed of its data sheet.",
           &H200, limits);
}

C_TEST(condition, probes_that_scatter_come_from_another_program) {
    struct device_limits limits = idle();
    limits.read_spread = 1.6;
    expect(
        CONDITION_SHARED,
        "Probes of this GPU's memory differ by 60% from run to run: another program may be using "
        "it. nvidia-smi lists the programs; end them and grade again.",
        &H200, limits);
    limits.flops_spread = 2.1;
    expect(CONDITION_SHARED,
           "Probes of this GPU's arithmetic differ by 110% from run to run: another program may be "
           "using it. nvidia-smi lists the programs; end them and grade again.",
           &H200, limits);
}

C_TEST(condition, memory_and_flops_that_both_fall_come_from_another_program) {
    struct device_limits limits = idle();
    limits.read = 2.4e12;
    limits.fp32_flops = 33e12;
    expect(
        CONDITION_SHARED,
        "This GPU gives 50% of the memory speed and 49% of the FLOP/s of its data sheet: another "
        "program may be using it. nvidia-smi lists the programs.",
        &H200, limits);
    limits.call_ms = 2.0;
    expect(CONDITION_SHARED,
           "This GPU gives 50% of the memory speed and 49% of the FLOP/s of its data sheet, and a "
           "launch takes 2000 us: another program may be using it. nvidia-smi lists the programs.",
           &H200, limits);
}

/* The driver of some GPUs does not tell the memory's clock. */
C_TEST(condition, an_unknown_bandwidth_is_not_judged) {
    struct device_properties gpu = H200;
    struct device_limits limits = idle();
    gpu.memory_bandwidth = 0.0;
    expect(CONDITION_FINE, "", &gpu, limits);
    limits.fp32_flops = 33e12;
    expect(CONDITION_SHARED,
           "This GPU gives 49% of the FLOP/s of its data sheet: another program may be using it. "
           "nvidia-smi lists the programs.",
           &gpu, limits);
}

C_TEST(condition, launches_that_scatter_come_from_a_busy_host) {
    struct device_limits limits = idle();
    limits.call_spread = 6.0;
    expect(
        CONDITION_LATE,
        "A launch takes 6 us at best, but half of them more than 36 us: other programs keep this "
        "host or its GPU busy, and measures that wait for the GPU suffer.",
        &H200, limits);
}

/* Two programs take turns: what fits into a turn is as fast as alone, but has to wait for it. */
C_TEST(condition, launches_that_are_all_late_come_from_another_program) {
    struct device_limits limits = idle();
    limits.call_ms = 1.9;
    limits.call_spread = 1.05;
    expect(CONDITION_LATE,
           "A launch takes 1900 us at best: another program may be using this GPU, or this host is "
           "busy. nvidia-smi lists the programs on the GPU, top those of the host.",
           &H200, limits);
    /* A load that holds the clock down as well is not graded as a slow clock. */
    limits.clock_khz = 1200000;
    limits.fp32_flops = 38e12;
    EXPECT_INT_EQ(CONDITION_LATE, condition_of(&H200, &limits).kind);
}

C_TEST(condition, a_miss_is_judged_unless_others_use_the_machine) {
    static const struct {
        enum condition_kind kind;
        bool disturbs;
    } cases[] = {{CONDITION_FINE, false},
                 {CONDITION_THROTTLED, false},
                 {CONDITION_SHARED, true},
                 {CONDITION_LATE, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct condition condition = {.kind = cases[i].kind};
        EXPECT_INT_EQ(cases[i].disturbs, condition_disturbs(&condition));
    }
}

/* A modelled GPU has nothing to disturb it. */
C_TEST(condition, simt_is_fine) {
    struct device_properties gpu = H200;
    struct device_limits limits = idle();
    gpu.modelled = true;
    limits.fp32_flops = 1e12;
    expect(CONDITION_FINE, "", &gpu, limits);
}
