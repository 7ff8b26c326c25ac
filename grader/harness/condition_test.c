/* Made-up probes of GPUs that are well known, and what is said of them. */
#include "grader/harness/condition.h"

#include "common/testing/testing.h"

static const struct device_properties H200 = {
    .clock_khz = 1980000, .peak_flops = 66.9e12, .memory_bandwidth = 4.8e12};

/* What an idle H200 gives. */
static struct condition_probes idle(void) {
    return (struct condition_probes){
        .read = {4.4e12, 0.01}, .flops = {63e12, 0.01}, .launch = {6.0, 0.2}, .clock_khz = 1980000};
}

static void expect(enum condition_kind kind, const char *text, const struct device_properties *gpu,
                   struct condition_probes probes) {
    struct condition c = condition_of(gpu, &probes);
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
    const struct condition_probes probes = {{240e9, 0.02}, {7.5e12, 0.03}, {9.0, 0.3}, 1500000};
    expect(CONDITION_FINE, "", &t4, probes);
}

/* Consumer cards run above the clock that the driver names. */
C_TEST(condition, a_clock_above_boost_is_fine) {
    const struct device_properties rtx4090 = {
        .clock_khz = 2520000, .peak_flops = 82.6e12, .memory_bandwidth = 1008e9};
    const struct condition_probes probes = {{930e9, 0.01}, {86e12, 0.01}, {5.0, 0.1}, 2730000};
    expect(CONDITION_FINE, "", &rtx4090, probes);
}

C_TEST(condition, a_power_cap_lowers_the_clock_and_with_it_the_flops) {
    struct condition_probes probes = idle();
    probes.clock_khz = 1200000;
    probes.flops.best = 38e12;
    expect(CONDITION_THROTTLED,
           "Under load this GPU runs at 1200 of 1980 MHz: it is hot, or its power is capped. You "
           "are graded on what it can do at this clock.",
           &H200, probes);
}

C_TEST(condition, without_a_clock_low_flops_at_full_memory_speed_are_throttled) {
    struct condition_probes probes = idle();
    probes.clock_khz = 0.0;
    probes.flops.best = 38e12;
    expect(CONDITION_THROTTLED,
           "This GPU gives 57% of the FLOP/s of its data sheet at full memory speed: it is hot, or "
           "its power is capped. You are graded on what it can do now.",
           &H200, probes);
}

C_TEST(condition, low_power_slows_memory_as_well) {
    struct condition_probes probes = idle();
    probes.clock_khz = 345000;
    probes.flops.best = 11e12;
    probes.read.best = 0.5e12;
    expect(CONDITION_THROTTLED,
           "This GPU stays in a low power state: under load 345 of 1980 MHz, and 10% of the memory "
           "speed of its data sheet.",
           &H200, probes);
}

C_TEST(condition, probes_that_scatter_come_from_another_program) {
    struct condition_probes probes = idle();
    probes.read.spread = 0.6;
    expect(
        CONDITION_SHARED,
        "Probes of this GPU's memory differ by 60% from run to run: another program may be using "
        "it. nvidia-smi lists the programs; end them and grade again.",
        &H200, probes);
    probes.flops.spread = 1.1;
    expect(CONDITION_SHARED,
           "Probes of this GPU's arithmetic differ by 110% from run to run: another program may be "
           "using it. nvidia-smi lists the programs; end them and grade again.",
           &H200, probes);
}

C_TEST(condition, memory_and_flops_that_both_fall_come_from_another_program) {
    struct condition_probes probes = idle();
    probes.read.best = 2.4e12;
    probes.flops.best = 33e12;
    expect(
        CONDITION_SHARED,
        "This GPU gives 50% of the memory speed and 49% of the FLOP/s of its data sheet: another "
        "program may be using it. nvidia-smi lists the programs.",
        &H200, probes);
    probes.launch.best = 2000.0;
    expect(CONDITION_SHARED,
           "This GPU gives 50% of the memory speed and 49% of the FLOP/s of its data sheet, and a "
           "launch takes 2000 us: another program may be using it. nvidia-smi lists the programs.",
           &H200, probes);
}

/* The driver of some GPUs does not tell the memory's clock. */
C_TEST(condition, an_unknown_bandwidth_is_not_judged) {
    struct device_properties gpu = H200;
    struct condition_probes probes = idle();
    gpu.memory_bandwidth = 0.0;
    expect(CONDITION_FINE, "", &gpu, probes);
    probes.flops.best = 33e12;
    expect(CONDITION_SHARED,
           "This GPU gives 49% of the FLOP/s of its data sheet: another program may be using it. "
           "nvidia-smi lists the programs.",
           &gpu, probes);
}

C_TEST(condition, launches_that_scatter_come_from_a_busy_host) {
    struct condition_probes probes = idle();
    probes.launch.spread = 5.0;
    expect(
        CONDITION_BUSY_HOST,
        "A launch takes 6 us at best, but half of them more than 36 us: other programs keep this "
        "host busy, and measures that wait for the GPU suffer.",
        &H200, probes);
}

/* A modelled GPU has nothing to disturb it. */
C_TEST(condition, simt_is_fine) {
    struct device_properties gpu = H200;
    struct condition_probes probes = idle();
    gpu.modelled = true;
    probes.flops.best = 1e12;
    expect(CONDITION_FINE, "", &gpu, probes);
}
