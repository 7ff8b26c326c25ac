#include "common/simt/memory/counters.h"

#include <stddef.h>

void simt_counters_add(struct simt_counters *to, const struct simt_counters *from) {
    /* Nothing but 64-bit counts: added as one array. */
    _Static_assert(sizeof *to % sizeof(uint64_t) == 0, "a counter is 64 bits");
    uint64_t *sums = (uint64_t *)to;
    const uint64_t *terms = (const uint64_t *)from;
    for (size_t n = 0; n < sizeof *to / sizeof(uint64_t); n++) {
        sums[n] += terms[n];
    }
}

void simt_counters_subtract(struct simt_counters *from, const struct simt_counters *part) {
    uint64_t *rests = (uint64_t *)from;
    const uint64_t *terms = (const uint64_t *)part;
    for (size_t n = 0; n < sizeof *from / sizeof(uint64_t); n++) {
        rests[n] -= terms[n];
    }
}

void simt_site_add(struct simt_site *to, const struct simt_site *from) {
    to->requests += from->requests;
    to->lanes += from->lanes;
    to->sectors += from->sectors;
    to->least_sectors += from->least_sectors;
    to->lines += from->lines;
    to->l1_hit_sectors += from->l1_hit_sectors;
    to->wavefronts += from->wavefronts;
    to->least_wavefronts += from->least_wavefronts;
}
