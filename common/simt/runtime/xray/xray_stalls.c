#include "common/simt/runtime/xray/xray_stalls.h"

/* In passes of 128 bytes, as the model of time counts them (MODEL.md, "Units"). */
static double passes_of(const struct simt_instruction *i, const struct simt_site *site) {
    bool load = i->dst_count > 0 && i->op_class != SIMT_CLASS_ATOMIC;
    bool local = i->op_class == SIMT_CLASS_LOCAL;
    double missed = (double)site->sectors - (double)site->l1_hit_sectors;
    return (double)site->lines + (double)site->wavefronts + (load ? missed / 2 : 0) +
           (local ? (double)site->sectors / 4 : 0);
}

static void add_memory(struct xray_line *line, const struct simt_instruction *i,
                       const struct simt_site *site) {
    double missed = (double)site->sectors - (double)site->l1_hit_sectors;
    line->demand[SIMT_STATION_L1] += passes_of(i, site);
    line->demand[SIMT_STATION_L2] += missed;
    line->demand[SIMT_STATION_MEMORY] += missed;
    if (i->op_class == SIMT_CLASS_ATOMIC && site->sectors > 0) {
        line->demand[SIMT_STATION_ATOMICS] += (double)site->lanes;
    }
}

void xray_add_demand(struct xray_line *line, const struct simt_xray_instruction *record,
                     const struct simt_site *site) {
    static const struct {
        uint8_t op_class;
        enum simt_station station;
        double weight;
    } units[] = {
        {SIMT_CLASS_FLOAT, SIMT_STATION_FLOAT, 1},
        {SIMT_CLASS_DOUBLE, SIMT_STATION_DOUBLE, 1},
        {SIMT_CLASS_SPECIAL, SIMT_STATION_SPECIAL, 1},
        {SIMT_CLASS_CONVERT, SIMT_STATION_SPECIAL, 0.5},
        {SIMT_CLASS_TENSOR, SIMT_STATION_TENSOR, 1},
    };
    const struct simt_instruction *i = record->instruction;
    line->demand[SIMT_STATION_ISSUE] += (double)record->executed * i->machine;
    for (size_t n = 0; n < sizeof units / sizeof *units; n++) {
        if (units[n].op_class == i->op_class) {
            line->demand[units[n].station] += (double)record->executed * units[n].weight;
        }
    }
    for (size_t w = 0; w < SIMT_WAIT_COUNT; w++) {
        line->wait[w] += (double)record->wait[w];
    }
    line->loads += (double)record->loads;
    if (site != NULL) {
        add_memory(line, i, site);
    }
}

static double positive(double value) {
    return value > 0 ? value : 0;
}

/* What the lines of a launch ask for together. */
struct totals {
    double demand[SIMT_STATION_COUNT], wait, loads;
};

static struct totals total_of(const struct xray_launch *launch) {
    struct totals totals = {.wait = 0};
    for (size_t n = 0; n < launch->line_count; n++) {
        const struct xray_line *line = &launch->lines[n];
        for (size_t s = 0; s < SIMT_STATION_COUNT; s++) {
            totals.demand[s] += line->demand[s];
        }
        for (size_t w = 0; w < SIMT_WAIT_COUNT; w++) {
            totals.wait += positive(line->wait[w]);
        }
        totals.loads += positive(line->loads);
    }
    return totals;
}

static void add_share(double *stall, double share, double part, double whole) {
    *stall += whole > 0 ? share * part / whole : 0;
}

static void set_line(struct xray_line *line, const struct simt_explanation *time,
                     const struct totals *totals) {
    static const enum xray_stall of_station[] = {
        [SIMT_STATION_ISSUE] = XRAY_STALL_ISSUE,   [SIMT_STATION_L1] = XRAY_STALL_L1,
        [SIMT_STATION_FLOAT] = XRAY_STALL_MATH,    [SIMT_STATION_DOUBLE] = XRAY_STALL_MATH,
        [SIMT_STATION_SPECIAL] = XRAY_STALL_MATH,  [SIMT_STATION_TENSOR] = XRAY_STALL_MATH,
        [SIMT_STATION_L2] = XRAY_STALL_L2,         [SIMT_STATION_ATOMICS] = XRAY_STALL_L2,
        [SIMT_STATION_MEMORY] = XRAY_STALL_MEMORY,
    };
    static const enum xray_stall of_wait[] = {
        [SIMT_WAIT_FIXED] = XRAY_STALL_FIXED,
        [SIMT_WAIT_LOAD] = XRAY_STALL_LOAD,
        [SIMT_WAIT_SHARED] = XRAY_STALL_SHARED,
        [SIMT_WAIT_BARRIER] = XRAY_STALL_BARRIER,
    };
    for (size_t s = 0; s < SIMT_STATION_COUNT; s++) {
        add_share(&line->stall[of_station[s]], time->stay[s], line->demand[s], totals->demand[s]);
    }
    for (size_t w = 0; w < SIMT_WAIT_COUNT; w++) {
        add_share(&line->stall[of_wait[w]], time->chain, positive(line->wait[w]), totals->wait);
    }
    add_share(&line->stall[XRAY_STALL_LOAD], time->loads, positive(line->loads), totals->loads);
}

void xray_set_stalls(struct xray_launch *launch) {
    const struct totals totals = total_of(launch);
    for (size_t n = 0; n < launch->line_count; n++) {
        struct xray_line *line = &launch->lines[n];
        set_line(line, &launch->facts.time, &totals);
        for (size_t s = 0; s < XRAY_STALL_COUNT; s++) {
            launch->stall[s] += line->stall[s];
        }
    }
}
