#include "common/simt/profile.h"

enum { WARP = 32, SCHEDULERS = 4, REGISTER_UNIT = 256 };

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static uint32_t limit_of(const struct simt_profile *p, const struct simt_processor *processor,
                         uint64_t warps) {
    uint64_t a_warp = divide_up((uint64_t)p->registers * WARP, REGISTER_UNIT) * REGISTER_UNIT;
    /* A scheduler has a quarter of the registers, for whole warps. */
    uint64_t fitting = a_warp > 0 ? processor->registers / SCHEDULERS / a_warp * SCHEDULERS : 0;
    uint64_t by_registers = a_warp > 0 ? fitting / warps : UINT64_MAX;
    return (p->at_a_time + 1) * warps * WARP > processor->threads ? SIMT_OCCUPANCY_THREADS
           : p->at_a_time >= processor->blocks                    ? SIMT_OCCUPANCY_BLOCKS
           : by_registers <= p->at_a_time                         ? SIMT_OCCUPANCY_REGISTERS
                                                                  : SIMT_OCCUPANCY_SHARED;
}

void simt_profile_set_occupancy(struct simt_profile *p, const struct simt_processor *processor,
                                uint32_t processors, uint32_t at_a_time) {
    uint64_t warps = divide_up((uint64_t)p->block[0] * p->block[1] * p->block[2], WARP);
    uint64_t wanted = divide_up(p->blocks, processors);
    p->processors = processors;
    p->busy = p->blocks < processors ? (uint32_t)p->blocks : processors;
    p->even = wanted > 0 ? (double)p->blocks / (double)(wanted * processors) : 0;
    p->at_a_time = at_a_time;
    p->most_warps = processor->threads / WARP;
    p->warps = (uint32_t)(warps * (wanted < at_a_time ? wanted : at_a_time));
    p->limit = wanted < at_a_time ? SIMT_OCCUPANCY_GRID : limit_of(p, processor, warps);
}
