#include "grader/harness/condition.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Where the limits lie. An idle H200 reads 90% to 94% of its data sheet's bandwidth and reaches 92%
 * to 97% of its FLOPs at its boost clock, within 2% from run to run. Cards whose memory corrects
 * errors in-band read less, down to some 75%, and nobody uses those.
 */
static const double LOW_READ = 0.65;    /* of the data sheet's bandwidth */
static const double LOW_FLOPS = 0.8;    /* of the peak at the clock under load */
static const double LOW_CLOCK = 0.85;   /* of the boost clock */
static const double SLOW_CLOCK = 0.5;   /* with LOW_READ, too: saving power, not hot */
static const double STEADY = 0.15;      /* spread of probes that nobody disturbs */
static const double BUSY_LAUNCHES = 1.; /* spread: half of all launches take twice the time */
static const double LONG_LAUNCH = 50.0; /* us; 4 to 15 on an idle host, 20 to 40 on WSL */

/* The probes as shares of what the GPU should give; 0: not known. */
struct shares {
    double read, clock;
    double flops;          /* of the peak at the boost clock */
    double flops_at_clock; /* of the peak at the clock under load, where that is known */
};

static double share(double value, double of) {
    return value > 0.0 && of > 0.0 ? value / of : 0.0;
}

static struct shares shares_of(const struct device_properties *gpu,
                               const struct device_limits *limits) {
    struct shares s = {.read = share(limits->read, gpu->memory_bandwidth),
                       .flops = share(limits->fp32_flops, gpu->peak_flops),
                       .clock = share(limits->clock_khz, gpu->clock_khz)};
    s.flops_at_clock = s.clock > 0.0 ? s.flops / s.clock : s.flops;
    return s;
}

static bool below(double known, double limit) {
    return known > 0.0 && known < limit;
}

static struct condition say(enum condition_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static struct condition say(enum condition_kind kind, const char *format, ...) {
    struct condition condition = {.kind = kind};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(condition.text, sizeof condition.text, format, arguments);
    va_end(arguments);
    return condition;
}

static double percent(double value) {
    return 100.0 * value;
}

/* How much more the median run took than the fastest: 0.02 is 2%; 0 also where it is not known. */
static double beyond(double spread) {
    return spread > 1.0 ? spread - 1.0 : 0.0;
}

static bool scatters(const struct device_limits *limits) {
    return beyond(limits->read_spread) > STEADY || beyond(limits->flops_spread) > STEADY;
}

static struct condition scattered(const struct device_limits *limits) {
    double read = beyond(limits->read_spread), flops = beyond(limits->flops_spread);
    return say(CONDITION_SHARED,
               "Probes of this GPU's %s differ by %.0f%% from run to run: another program may be "
               "using it. nvidia-smi lists the programs; end them and grade again.",
               read > flops ? "memory" : "arithmetic", percent(fmax(read, flops)));
}

static struct condition throttled(const struct device_properties *gpu,
                                  const struct device_limits *limits, const struct shares *s) {
    if (below(s->clock, SLOW_CLOCK) && below(s->read, LOW_READ)) {
        return say(
            CONDITION_THROTTLED,
            "This GPU stays in a low power state: under load %.0f of %.0f MHz, and %.0f%% of "
            "the memory speed of its data sheet.",
            1e-3 * limits->clock_khz, 1e-3 * gpu->clock_khz, percent(s->read));
    }
    return say(CONDITION_THROTTLED,
               "Under load this GPU runs at %.0f of %.0f MHz: it is hot, or its power is capped. "
               "You are graded on what it can do at this clock.",
               1e-3 * limits->clock_khz, 1e-3 * gpu->clock_khz);
}

static struct condition shared(const struct device_limits *limits, const struct shares *s) {
    char launch[64] = "";
    if (1e3 * limits->call_ms > LONG_LAUNCH) {
        snprintf(launch, sizeof launch, ", and a launch takes %.0f us", 1e3 * limits->call_ms);
    }
    if (s->read > 0.0) {
        return say(CONDITION_SHARED,
                   "This GPU gives %.0f%% of the memory speed and %.0f%% of the FLOP/s of its data "
                   "sheet%s: another program may be using it. nvidia-smi lists the programs.",
                   percent(s->read), percent(s->flops), launch);
    }
    return say(CONDITION_SHARED,
               "This GPU gives %.0f%% of the FLOP/s of its data sheet%s: another program may be "
               "using it. nvidia-smi lists the programs.",
               percent(s->flops), launch);
}

/*
 * Two programs take turns on a GPU, some milliseconds each. A probe that fits into one turn finds
 * nothing slower than alone; launches wait for the turn. The host's CPUs make them wait, too.
 */
static struct condition late(const struct device_limits *limits) {
    const double best = 1e3 * limits->call_ms, spread = beyond(limits->call_spread);
    if (best > LONG_LAUNCH) {
        return say(CONDITION_LATE,
                   "A launch takes %.0f us at best: another program may be using this GPU, or this "
                   "host is busy. nvidia-smi lists the programs on the GPU, top those of the host.",
                   best);
    }
    if (spread > BUSY_LAUNCHES) {
        return say(CONDITION_LATE,
                   "A launch takes %.0f us at best, but half of them more than %.0f us: other "
                   "programs keep this host or its GPU busy, and measures that wait for the GPU "
                   "suffer.",
                   best, best * (1.0 + spread));
    }
    return (struct condition){0};
}

struct condition condition_of(const struct device_properties *gpu,
                              const struct device_limits *limits) {
    const struct shares s = shares_of(gpu, limits);
    if (gpu->modelled) {
        return (struct condition){0};
    }
    if (scatters(limits)) {
        return scattered(limits);
    }
    /* Without a clock, FLOPs alone are low where clocks are, and memory as well where it is shared.
     */
    bool steady_low = s.clock == 0.0 && below(s.flops, LOW_FLOPS) && !below(s.read, LOW_READ);
    struct condition condition = late(limits);
    if (below(s.clock, LOW_CLOCK) && !below(s.flops_at_clock, LOW_FLOPS) &&
        condition.kind == CONDITION_FINE) {
        return throttled(gpu, limits, &s);
    }
    if (steady_low) {
        return say(CONDITION_THROTTLED,
                   "This GPU gives %.0f%% of the FLOP/s of its data sheet at full memory speed: it "
                   "is hot, or its power is capped. You are graded on what it can do now.",
                   percent(s.flops));
    }
    if (below(s.read, LOW_READ) || below(s.flops_at_clock, LOW_FLOPS)) {
        return shared(limits, &s);
    }
    return condition;
}

bool condition_disturbs(const struct condition *condition) {
    return condition->kind == CONDITION_SHARED || condition->kind == CONDITION_LATE;
}
