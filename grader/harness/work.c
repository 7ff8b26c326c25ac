#include "grader/harness/work.h"

#include <math.h>
#include <stddef.h>

static double ms_of(double amount, double a_second) {
    return amount > 0.0 ? 1e3 * amount / a_second : 0.0;
}

/* Copies are slower than reads: the memory turns round between the two. */
static double memory_ms(const struct work *work, const struct device_limits *limits, bool *in_l2) {
    double bytes = work->read_bytes + work->written_bytes;
    *in_l2 = work->warm && bytes <= (double)limits->l2_bytes;
    bool copies = work->written_bytes > 0.1 * bytes;
    return ms_of(bytes, *in_l2 ? limits->l2 : copies ? limits->copy : limits->read);
}

/* The slowest of the units, which work side by side. */
static double busiest_ms(const struct work *work, const struct device_limits *limits,
                         const char **limit) {
    bool in_l2;
    double memory = memory_ms(work, limits, &in_l2), busiest = 0.0;
    const struct {
        double ms;
        const char *limit;
    } units[] = {
        {memory, in_l2 ? "the L2 cache's speed" : "the memory's speed"},
        {ms_of(work->fp32_flops, limits->fp32_flops), "the fp32 units' speed"},
        {ms_of(work->tensor_flops, limits->tensor_flops), "the tensor cores' speed"},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].ms > busiest) {
            busiest = units[i].ms;
            *limit = units[i].limit;
        }
    }
    return busiest;
}

struct least_time work_least_time(const struct work *work, const struct device_limits *limits) {
    struct least_time least = {.limit = "launches in a row"};
    const double times = work->times > 0 ? work->times : 1;
    const double kernels = times * (work->launches > 0 ? work->launches : 1);
    const double waits = work->waits ? times : 1.0;
    const double first = work->between_events ? limits->event_ms : limits->call_ms;
    const double each = work->graph ? limits->node_ms : limits->launch_ms;
    /* The rest of a model has its launches and its wait; beside it there are those of the work. */
    const double behind = work->rest_ms > 0.0 ? kernels : kernels - waits;
    const double bus = times * ms_of(work->bus_bytes, limits->bus);
    const char *unit = NULL;
    const double busiest = times * busiest_ms(work, limits, &unit);
    least.fixed_ms = work->rest_ms > 0.0 ? work->rest_ms : waits * first;
    least.ideal_ms = busiest + behind * each + bus;
    if (busiest >= behind * each && busiest >= bus) {
        least.limit = unit;
    } else if (bus > behind * each) {
        least.limit = "the bus's speed";
    }
    return least;
}

struct least_time least_time_sum(struct least_time a, struct least_time b) {
    return (struct least_time){.fixed_ms = a.fixed_ms,
                               .ideal_ms = a.ideal_ms + b.ideal_ms,
                               .limit = a.ideal_ms >= b.ideal_ms ? a.limit : b.limit,
                               .disturbed = a.disturbed || b.disturbed,
                               .throttled = a.throttled && b.throttled};
}

double least_time_allowed(const struct least_time *least, double share) {
    return least->fixed_ms + least->ideal_ms / share;
}

double least_time_share(const struct least_time *least, double ms) {
    double own = ms - least->fixed_ms;
    return own > 0.0 ? least->ideal_ms / own : INFINITY;
}
